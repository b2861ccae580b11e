# SPDX-License-Identifier: Apache-2.0
"""The split of time between Lua functions, against what the program measured of itself by its thread's CPU clock."""

import lua
import yrt

TOLERANCE, RATE, ENOUGH, ROUNDS = 0.02, 3999, 20000, 6


def count(result, truth, seen):
    """
    Adds up what the functions have; returns how many samples are in what the fixture does to measure, and to flush.
    """
    measuring = 0
    for frames, n in result.stacks:
        paths = {f.name.split(" ")[0] for f in frames if f.file.endswith("split.lua") and
                 truth["lines"].get(f.name.split(" ")[0]) == f.line}
        for path in paths:
            seen[path] += n
        if not paths and any(f.name.startswith(("clock (split.lua", "jit.flush")) for f in frames):
            measuring += n
    return measuring


def split(mode):
    """Rounds until there are enough samples; the truth is each round's, weighted by its CPU time."""
    seen, used = {}, {}
    samples = measuring = 0
    for _ in range(ROUNDS):
        result, truth = lua.sample("split.lua", mode, seconds=7, rate=RATE)
        yield lua.check_complete(result, 1000)
        samples += result.samples
        for path, share in truth["split"].items():
            seen.setdefault(path, 0)
            used[path] = used.get(path, 0) + share * truth["cpu_s"]
        measuring += count(result, truth, seen)
        if samples >= ENOUGH:
            break
    whole, cpu = sum(seen.values()), sum(used.values())
    assert samples >= ENOUGH, f"only {samples} samples in {ROUNDS} rounds"
    assert whole > 0.97 * (
        samples - measuring
    ), f"only {whole} of {samples} samples in {seen}, {measuring} measure\n{lua.show(result.stacks)}"
    for path in used:
        line = f"{path}: seen {seen[path] / whole:.4f}, truth {used[path] / cpu:.4f}"
        assert abs(seen[path] / whole - used[path] / cpu) < TOLERANCE, f"{line}\n{lua.show(result.stacks)}"
        yield line


@yrt.measured
def test_jit():
    yield from split("jit")


@yrt.measured
def test_interpreter():
    yield from split("off")


@yrt.measured
def test_flush():
    yield from split("flush")


yrt.main(globals())
