# SPDX-License-Identifier: Apache-2.0
"""All walkers of a program share the million instructions that the kernel's verifier looks at, and each adds to yrt's start."""

import os
import subprocess
import tempfile

import yrt

WALKER, NATIVE, PROGRAM = 60_000, 50_000, 300_000


def verifier(*args):
    done = subprocess.run([os.path.join(yrt.BUILD, "yrt-verifier"), *args], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return map(str.split, done.stdout.splitlines())


def counted():
    """{program: {runtime: instructions}}"""
    found = {}
    for program, runtime, instructions in verifier():
        found.setdefault(program, {})[runtime] = int(instructions)
    return found


def test_budgets():
    """What a walker adds to native code alone, and all of them together."""
    found = counted()
    walking = {name: of for name, of in found.items() if name.endswith("_walk")}
    assert {"on_clock_walk", "on_alloc_walk", "on_watch_walk", "on_fault_walk", "on_switch_walk", "on_hit_walk",
            "on_tracepoint_walk", "on_return_walk", "io_exit_walk"} <= set(walking), found
    for program, of in walking.items():
        runtimes = set(of) - {"native", "all"}
        assert runtimes, found
        over = {r: of[r] - of["native"] for r in runtimes if of[r] - of["native"] > WALKER}
        assert not over and of["native"] <= NATIVE and of["all"] <= PROGRAM, f"{program}: {of}"
        yield f"{program}: {of}"
    # A walker that is added later gets into programs that are declared as WALKING() only.
    fixed = {name: of for name, of in found.items() if name not in walking and of["native"] != of["all"]}
    assert not fixed, f"these walk, and no walker can be added to them: {fixed}"


def test_kernel_types():
    """Programs are the same with the types of the kernel that are kept in the cache as with all of its BTF; a file that is no BTF is made anew."""
    with tempfile.TemporaryDirectory() as cache:
        tags = {program: found for program, *found in verifier(cache)}
        assert len(tags) > 10 and all(kept == own for kept, own in tags.values()), tags
        (name,) = os.listdir(cache)
        path = os.path.join(cache, name)
        size = os.path.getsize(path)
        assert name.endswith(".btf") and 1000 < size < 200_000, f"{name}: {size} bytes"
        for damaged in (b"", b"no BTF", open(path, "rb").read()[:-100]):
            with open(path, "wb") as file:
                file.write(damaged)
            assert all(kept == own for _, kept, own in verifier(cache)) and os.path.getsize(path) == size, f"{len(damaged)} bytes"
    yield f"{len(tags)} programs, {size} bytes of types"


yrt.main(globals())
