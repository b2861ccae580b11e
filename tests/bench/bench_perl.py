# SPDX-License-Identifier: Apache-2.0
"""What sampling Perl costs, all in one run: BPF time a Perl frame in units of one 16-byte read (unit.py), time to the first sample, memory."""

import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import unit
import yrt
from bpf_cost import cost

PERL = os.environ.get("YRT_PERL", "/usr/bin/perl")
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "perl", "depth.pl")
ROUNDS, DEPTHS, FRAME_LIMIT, FIRST_MS, RSS_MB = 3, (20, 120), 2.5, 100, 30
CALLS = {"a chain of subs": ["chain"], "a sub that calls itself": []}


def verdict(good, text):
    print(f"{'ok  ' if good else 'over'} {text}", flush=True)
    return not good


def sampled(depth, words, rate=999):
    """Medians: (units a sample, frames a sample), and the last statistics."""
    with yrt.Fixture(PERL, SCRIPT, 600, depth, *words, seconds=None) as f:
        f.release()
        runs = []
        for _ in range(ROUNDS):
            before = unit.measure()
            ns, frames, stats = cost("perl-flame", f.pid, rate, 3)
            runs.append((ns / statistics.mean((before, unit.measure())), frames, stats))
    return statistics.median(r[0] for r in runs), statistics.median(r[1] for r in runs), runs[-1][2]


def main():
    over = False
    for what, words in CALLS.items():
        points = [sampled(depth, words) for depth in DEPTHS]
        for (units, n, _), depth in zip(points, DEPTHS):
            print(f"{what}, {depth} deep: {units:.1f} units a sample of {n:.1f} frames", flush=True)
        slope = (points[1][0] - points[0][0]) / (points[1][1] - points[0][1])
        over |= verdict(slope <= FRAME_LIMIT, f"{slope:.2f} units a Perl frame of {what}, limit {FRAME_LIMIT}")
    stats = points[0][2]
    over |= verdict(stats["first_sample_ms"] <= FIRST_MS, f"first sample after {stats['first_sample_ms']:.0f} ms, limit {FIRST_MS}; "
                    f"armed {stats['armed_ms']:.0f} ms after its start")
    over |= verdict(stats["sampling_rss_kb"] <= RSS_MB * 1024, f"{stats['sampling_rss_kb'] / 1024:.1f} MB of memory, limit {RSS_MB}")
    sys.exit(over)


main()
