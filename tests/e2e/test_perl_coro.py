# SPDX-License-Identifier: Apache-2.0
"""
Coroutines of Coro under AnyEvent, each on a native stack of its own or on one that several share, against what caller()
says of them.
"""

import os

import yrt
from perl import PERL, expected, need, perl_frames

SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "perl", "coro.pl")


@yrt.measured
def test_coroutines():
    """Stacks end where a coroutine begins, and all frames up to there are right, names and executing lines."""
    need("Coro", "Coro", "AnyEvent")
    with yrt.Fixture(PERL, SCRIPT, 6, seconds=None) as f:
        result, truth = yrt.sample_whole(f, "--max-cpu", 0, "--lines", view="perl-flame", rate=1999)
    assert result.incomplete() <= 0.003, f"{result.incomplete():.4%} cut: {result.stats['truncated']}"
    right, seen = 0, {}
    for frames, n in result.stacks:
        kind = next((f.split(" (")[0].removeprefix("Burn::") for f in frames if f.startswith("Burn::")), None)
        if not kind:
            continue
        found = perl_frames(frames)
        at = next(i for i, (name, _) in enumerate(found) if name.startswith("Burn::"))
        want = expected(truth["truth"][kind])
        if any(name == "Coro::_coro_run" for name, _ in want):
            want = want[1:]  # what caller() calls the main program is the beginning of the coroutine
        mine = [place for place in found[:at + 1] if place[0] != "sort {...}"]
        assert mine == want, f"{n} samples of {kind}:\n  found {mine}\n  truth {want}\n  {frames}"
        seen[kind] = seen.get(kind, 0) + n
        right += n
    assert set(seen) == set(truth["truth"]), f"{seen}, truth has {set(truth['truth'])}"
    assert right > 0.5 * result.stats["samples"], f"{right} of {result.stats['samples']} samples in Burn::"
    yield f"{seen}; {result.summary()}"


yrt.main(globals())
