# SPDX-License-Identifier: Apache-2.0
"""
All walkers of a program share the million instructions that the kernel's verifier looks at, and each adds to yrt's
start.
"""

import os
import subprocess
import tempfile

import verifier
import yrt


def printed(*args):
    done = subprocess.run([os.path.join(yrt.BUILD, "yrt-verifier"), *args], capture_output=True, text=True, timeout=600,
                          check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_budgets():
    """What a walker adds to native code alone, and all of them together."""
    found = verifier.counted(printed())
    walking = verifier.walking(found)
    assert {"on_clock_walk", "on_tlab_walk", "on_watch_walk", "on_fault_walk", "on_switch_walk", "on_hit_walk",
            "on_tracepoint_walk", "on_return_walk", "io_exit_walk", "on_y_walk", "on_y_point_walk",
            "on_y_tick_walk"} <= set(walking), found
    for program, of in walking.items():
        assert len(of) > 2, found
        assert not verifier.over_budget(of), f"{program}: {of}"
        if os.uname().release.startswith(verifier.START_KERNEL):
            assert not verifier.slows_start(program, of), f"{program}: {of}"
        yield f"{program}: {of}"
    # A walker that is added later gets into programs that are declared as WALKING() only.
    fixed = {name: of for name, of in found.items() if name not in walking and of["native"] != of["all"]}
    assert not fixed, f"these walk, and no walker can be added to them: {fixed}"


def tags_of(cache):
    """{program: (with the types that are kept in the cache, with the kernel's own)}"""
    return {program: tags for program, *tags in map(str.split, printed(cache).splitlines())}


@yrt.measured
def test_kernel_types():
    """
    Programs are the same with the kernel's types from the cache as with all of its BTF; a file that is no BTF is made
    anew.
    """
    with tempfile.TemporaryDirectory() as cache:
        tags = tags_of(cache)
        assert len(tags) > 10 and all(kept == own for kept, own in tags.values()), tags
        (name,) = os.listdir(cache)
        path = os.path.join(cache, name)
        size = os.path.getsize(path)
        assert name.endswith(".btf") and 1000 < size < 200_000, f"{name}: {size} bytes"
        for damaged in (b"", b"no BTF", open(path, "rb").read()[:-100]):
            with open(path, "wb") as file:
                file.write(damaged)
            assert all(kept == own for kept, own in tags_of(cache).values()), damaged
            assert os.path.getsize(path) == size, f"{len(damaged)} bytes"
    yield f"{len(tags)} programs, {size} bytes of types"


yrt.main(globals())
