# SPDX-License-Identifier: Apache-2.0
"""All walkers of a program share the million instructions that the kernel's verifier looks at, and each adds to yrt's start."""

import os
import subprocess

import yrt

WALKER, PROGRAM = 60_000, 300_000


def counted():
    """{program: {runtime: instructions}}"""
    done = subprocess.run([os.path.join(yrt.BUILD, "yrt-verifier")], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    found = {}
    for program, runtime, instructions in map(str.split, done.stdout.splitlines()):
        found.setdefault(program, {})[runtime] = int(instructions)
    return found


def test_budgets():
    """What a walker adds to native code alone, and all of them together."""
    found = counted()
    assert {"on_clock", "on_alloc", "on_watch", "on_fault", "on_switch", "on_hit", "on_tracepoint"} <= set(found), found
    for program, of in found.items():
        runtimes = set(of) - {"native", "all"}
        assert runtimes, found
        over = {r: of[r] - of["native"] for r in runtimes if of[r] - of["native"] > WALKER}
        assert not over and of["native"] <= WALKER and of["all"] <= PROGRAM, f"{program}: {of}"
        yield f"{program}: {of}"


yrt.main(globals())
