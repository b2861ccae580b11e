# SPDX-License-Identifier: Apache-2.0
"""How many instructions the kernel's verifier may look at, of what yrt-verifier prints. Not a test itself."""

WALKER, NATIVE, PROGRAM = 60_000, 50_000, 300_000


# The same on Linux 6.18, where each thousand takes some 1.3 ms of yrt's start; other kernels count differently.
START_KERNEL, START_NATIVE, START_PROGRAM = "6.18.", 21_000, 91_000
# A program that walks twice: first the place, to know whether it is the function.
START_TWICE = {"on_callee_walk": 1.5}


def counted(text):
    """{program: {runtime: instructions}}"""
    found = {}
    for line in text.splitlines():
        program, runtime, instructions, _ = line.split()
        found.setdefault(program, {})[runtime] = int(instructions)
    return found


def walking(found):
    """Those that take stacks."""
    return {name: of for name, of in found.items() if name.endswith("_walk")}


def over_budget(of):
    """
    What is too much in a program's {runtime: instructions}: what a walker adds to native code alone, or all of them
    together.
    """
    limits = {r: of["native"] + WALKER for r in of} | {"native": NATIVE, "all": PROGRAM}
    return {r: n for r, n in of.items() if n > limits[r]}


def slows_start(program, of):
    """The same for the time that a start takes."""
    times = START_TWICE.get(program, 1)
    limits = {"native": START_NATIVE * times, "all": START_PROGRAM * times}
    return {r: n for r, n in of.items() if n > limits.get(r, n)}
