# SPDX-License-Identifier: Apache-2.0
"""
Java's time split between methods, against what the program measured by its thread's CPU clock. The innermost frames of
inlined code are known only approximately: what is not marked so must not claim more than the truth.
"""

import java
import yrt

TOLERANCE, ENOUGH, ROUNDS, RATE, SECONDS = 0.02, 10000, 16, 1999, 6
OPTIONS = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,split::path_*"]


def sample(mode, *options, seconds=SECONDS):
    with java.Java("split", mode, seconds, options=[*OPTIONS, *options], timeout=300) as jvm:
        run = java.Sampling(jvm.pid, "-t", seconds=seconds + 20, rate=RATE)
        jvm.release()
        truth = jvm.answer()
        run.run.interrupt()
        return run.result(), truth


def rounds(mode, options):
    """[(result, truth)] until there are enough samples."""
    found, samples = [], 0
    while samples < ENOUGH and len(found) < ROUNDS:
        result, truth = sample(mode, *options)
        samples += sum(n for frames, n in result.stacks if any(java.plain(f.name) == "split.run" for f in frames))
        found.append((result, truth))
    assert samples >= ENOUGH, f"only {samples} samples in {ROUNDS} rounds"
    return found


def shares(found, certain=False):
    """{method: (share of samples, of the truth)} by CPU time of the rounds."""
    seen, used = {}, {}
    for result, truth in found:
        for name, share in truth["split"].items():
            used[name] = used.get(name, 0) + share * truth["cpu_s"]
            seen.setdefault(name, 0)
            seen[name] += sum(
                n
                for frames, n in result.stacks
                if any(f.name == f"split.{name}" and not (certain and f.flags & java.APPROX) for f in frames)
            )
    return seen, used


def split(mode, *options):
    found = rounds(mode, options)
    yield java.check_complete(found[0][0], 1000)
    seen, used = shares(found)
    whole, cpu = sum(seen.values()), sum(used.values())
    for name in used:
        line = f"{name}: seen {seen[name] / max(whole, 1):.4f}, truth {used[name] / cpu:.4f}"
        assert (
            whole and abs(seen[name] / whole - used[name] / cpu) < TOLERANCE
        ), f"{line}\n{java.lua.show(found[0][0].stacks)}"
        yield line


@yrt.measured
def test_plain():
    yield from split("plain")


@yrt.measured
def test_kinds():
    yield from split("kinds")


@yrt.measured
def test_library():
    """Time in stubs and intrinsics belongs to the method that has called them."""
    yield from split("library")


@yrt.measured
def test_interpreter():
    yield from split("plain", "-Xint")


@yrt.measured
def test_inlined():
    """path_all gets all of it; of the methods that it inlined, none gets more certain time than it took."""
    found = rounds("inlined", ())
    whole = sum(n for result, _ in found for _, n in result.stacks)
    below = sum(
        n for result, _ in found for frames, n in result.stacks if any(f.name == "split.path_all" for f in frames)
    )
    certain, used = shares(found, True)
    drawn, _ = shares(found)
    cpu = sum(used.values())
    assert below > 0.9 * whole, f"path_all has {below} of {whole}\n{java.lua.show(found[0][0].stacks)}"
    for name in used:
        line = (
            f"{name}: certain {certain[name] / below:.4f}, drawn {drawn[name] / below:.4f}, truth"
            f" {used[name] / cpu:.4f}"
        )
        assert certain[name] / below < used[name] / cpu + TOLERANCE, line
        yield line


yrt.main(globals())
