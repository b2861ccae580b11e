# SPDX-License-Identifier: Apache-2.0
"""
Greenlets, on which gevent's and eventlet's workers stand: their stacks lie on one another, each is whole where it
begins.
"""

import os
import re

import yrt

PYTHON = "/usr/bin/python3"  # Debian's module is for this one
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "python", "greenlets.py")
OURS = re.compile(r"^([\w<>]+) \(greenlets\.py:\d+\)$")
# A moment in which one stack has taken the place of another is none of either.
CUT_MAX = 0.002


def sample(view="python-flame", *flags):
    with yrt.Fixture(PYTHON, SCRIPT, 2, seconds=None) as f:
        return yrt.sample_whole(f, *flags, view=view, rate=999)[0]


def chain(frames):
    return [m.group(1) for m in map(OURS.match, frames) if m]


def is_legal(names):
    """
    From the root: the scheduler alone, a worker's own chain, one that was started with a function of its own, or of C.
    """
    text = " ".join(names)
    return bool(re.fullmatch(r"<module>( schedule( spin)?)?|nested( turn( spin)?)?|spin|"
                             r"worker( number_of( deep)*( turn( spin)?)?)?|", text))


@yrt.measured
def test_stacks():
    result = sample()
    assert result.samples > 300, result.stats
    cut = result.incomplete()
    assert cut <= CUT_MAX, f"{cut:.4%} cut: {result.stats['truncated']}\n{yrt.show(result.stacks)}"
    whole = [
        (frames, n)
        for frames, n in result.stacks
        if not frames[0].startswith("[truncated") and "Py_FinalizeEx" not in frames
    ]
    wrong = [(frames, n) for frames, n in whole if not is_legal(chain(frames))]
    assert sum(n for _, n in wrong) <= CUT_MAX * result.samples, yrt.show(wrong)
    alone = sum(n for frames, n in whole if not chain(frames)) / result.samples
    assert alone > 0.01, f"{alone:.3f} in C alone"
    workers = sum(n for frames, n in whole if chain(frames)[:1] == ["worker"]) / result.samples
    # of a round's time 8 workers of 0.6 ms, nested() of some 1.3 ms and the scheduler of 0.1 ms
    assert 0.65 < workers < 0.95, f"{workers:.3f} in workers"
    yield (
        f"{result.samples} samples, {cut:.3%} cut, {workers:.3f} in workers, {alone:.3f} in C alone, the deepest"
        f" {max(len(chain(frames)) for frames, _ in whole)}"
    )


def test_order():
    """The C that a worker calls stands between its Python functions."""
    result = sample("flame")
    called = [frames for frames, _ in result.stacks if {"number_of", "deep"} <= set(chain(frames))]
    assert called
    for frames in called:
        at = next(i for i, f in enumerate(frames) if f.startswith("number_of ("))
        assert not frames[at + 1].startswith("deep ("), frames


yrt.main(globals())
