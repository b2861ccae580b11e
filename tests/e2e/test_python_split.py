# SPDX-License-Identifier: Apache-2.0
"""Python's time split between functions, against what the program measured of itself by its thread's CPU clock."""

import os
import re

import yrt

TOLERANCE, ENOUGH, ROUNDS, RATE = 0.02, 10000, 5, 1999
PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "python", "split.py")
# OpenSSL's, or of a build without it
HASHING = re.compile(r"SHA256_Update|\b_sha2\.")


def sample(mode, view="python-flame", seconds=7):
    with yrt.Fixture(PYTHON, SCRIPT, seconds, mode, seconds=None) as f:
        return yrt.sample_whole(f, "--max-cpu", 0, view=view, rate=RATE)


def check_complete(result):
    assert result.incomplete() <= 0.001, f"{result.incomplete():.4%} cut: {result.stats['truncated']}"
    return result.summary()


def split(mode):
    """Rounds until there are enough samples; the truth is each round's, weighted by its CPU time."""
    seen, used, samples = {}, {}, 0
    for _ in range(ROUNDS):
        result, truth = sample(mode)
        yield check_complete(result)
        samples += result.samples
        for name, share in truth["split"].items():
            frame = f"{name} (split.py:{truth['lines'][name]})"
            used[name] = used.get(name, 0) + share * truth["cpu_s"]
            seen[name] = seen.get(name, 0) + sum(n for frames, n in result.stacks if frame in frames)
        if sum(seen.values()) >= ENOUGH:
            break
    whole, cpu = sum(seen.values()), sum(used.values())
    assert whole >= ENOUGH, f"only {whole} samples of {samples} in {ROUNDS} rounds"
    for name in used:
        line = f"{name}: seen {seen[name] / whole:.4f}, truth {used[name] / cpu:.4f}"
        assert abs(seen[name] / whole - used[name] / cpu) < TOLERANCE, line
        yield line


@yrt.measured
def test_direct():
    yield from split("direct")


@yrt.measured
def test_kinds():
    yield from split("kinds")


@yrt.measured
def test_without_the_gil():
    """A thread that hashes holds no GIL, and must still have its Python frames."""
    result, truth = sample("threads")
    yield check_complete(result)
    hashed = [(frames, n) for frames, n in result.stacks if any(HASHING.search(f) for f in frames)]
    if not hashed:  # a stripped OpenSSL in the interpreter: only the share is a real check then
        hashed = [(frames, n) for frames, n in result.stacks if any(f.startswith("hashing (split.py:") for f in frames)]
    whole = sum(n for _, n in hashed)
    named = sum(n for frames, n in hashed if any(f.startswith("hashing (split.py:") for f in frames))
    assert whole > 500, f"{whole} of {result.samples} samples hash"  # how many, the GIL decides
    assert named == whole, f"{whole - named} of {whole} samples have no Python frame"
    share, measured = whole / result.samples, 1 - truth["cpu_s"] / truth["process_cpu_s"]
    assert abs(share - measured) < 2 * TOLERANCE, f"{share:.4f} of the samples hash, {measured:.4f} of the time"
    yield f"{whole} of {result.samples} samples hash, all in hashing(); measured {measured:.4f}"


@yrt.measured
def test_true_order():
    """C between two Python functions stands between them, and only the view of Python hides the loop."""
    result, _ = sample("kinds", "flame", 2)
    yield check_complete(result)
    for frames, _ in result.stacks:
        names = [f.split(" ")[0] for f in frames]
        if "heavy" not in names:
            continue
        at = names.index("heavy")
        caller = max(i for i, f in enumerate(frames[:at]) if "(split.py:" in f)
        assert names[caller] == "<lambda>" and caller < at - 1, frames
        called = [f.split(" ")[0] for f in frames[at + 1:] if "(split.py:" in f]
        assert called[:1] in (["inner"], []), frames  # what lies between is arithmetic in C
    yield f"{result.samples} samples in order"


yrt.main(globals())
