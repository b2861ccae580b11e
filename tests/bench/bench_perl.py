# SPDX-License-Identifier: Apache-2.0
"""
What sampling Perl costs, all in one run: BPF time a Perl frame in units of one 16-byte read (unit.py), time to the
first sample with yrt's cache filled and empty, memory; how much slower a program becomes under yrt, and under
Devel::NYTProf where this perl has it.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import pairs
import unit
import yrt
from bpf_cost import cost, undisturbed

PERL = os.environ.get("YRT_PERL", "/usr/bin/perl")
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "perl", "depth.pl")
ROUNDS, DEPTHS, FRAME_LIMIT, FIRST_MS, RSS_MB = 3, (20, 120), 2.5, 100, 30
STARTS, BLOCKS, TIMES, AMOUNT = 9, 12, 24, 500  # an amount is some 30 ms of work
SLOWER = {99: 0.01, 999: None}
CALLS = {"a chain of subs": ["chain"], "a sub that calls itself": []}


def verdict(good, text):
    print(f"{'ok  ' if good else 'over'} {text}", flush=True)
    return not good


def sampled(depth, words, rate=999):
    """Medians: (units a sample, frames a sample), and the last statistics."""
    with yrt.Fixture(PERL, SCRIPT, 600, depth, *words, seconds=None) as f:
        f.release()
        undisturbed(f.pid)
        runs = []
        for _ in range(ROUNDS):
            before = unit.measure()
            ns, frames, stats = cost("perl-flame", f.pid, rate, 3)
            runs.append((ns / statistics.mean((before, unit.measure())), frames, stats))
    return statistics.median(r[0] for r in runs), statistics.median(r[1] for r in runs), runs[-1][2]


def per_frame():
    over = False
    for what, words in CALLS.items():
        points = [sampled(depth, words) for depth in DEPTHS]
        for (units, n, _), depth in zip(points, DEPTHS):
            print(f"{what}, {depth} deep: {units:.1f} units a sample of {n:.1f} frames", flush=True)
        slope = (points[1][0] - points[0][0]) / (points[1][1] - points[0][1])
        over |= verdict(slope <= FRAME_LIMIT, f"{slope:.2f} units a Perl frame of {what}, limit {FRAME_LIMIT}")
    rss = points[0][2]["sampling_rss_kb"] / 1024
    return over | verdict(rss <= RSS_MB, f"{rss:.1f} MB of memory, limit {RSS_MB}")


def first_ms(pid, cache):
    """From the start of yrt to its first sample, at real-time priority, as in bench_start.py."""
    begin = time.monotonic_ns()
    result = (
        yrt.Run("perl-flame", "-p", pid, "-d", 0.2, "-F", 999, prefix=["chrt", "-f", "5"], env={"YRT_CACHE_DIR": cache})
        .result()
        .expect()
    )
    return (result.stats["first_sample_at_ns"] - begin) / 1e6


def starts():
    with yrt.Fixture(PERL, SCRIPT, 600, 20, seconds=None) as f, tempfile.TemporaryDirectory() as warm:
        f.release()
        first_ms(f.pid, warm)
        found = {"warm": [], "cold": []}
        for _ in range(STARTS):
            found["warm"].append(first_ms(f.pid, warm))
            with tempfile.TemporaryDirectory() as cold:
                found["cold"].append(first_ms(f.pid, cold))
    return any(
        [
            verdict(
                statistics.median(times) <= FIRST_MS,
                f"first sample, {name}: {statistics.median(times):.0f} ms "
                f"({min(times):.0f} to {max(times):.0f}) after yrt's start, limit {FIRST_MS}",
            )
            for name, times in found.items()
        ]
    )


def worked(fixture):
    def amount():
        fixture.process.stdin.write(f"{AMOUNT}\n")
        fixture.process.stdin.flush()
        return json.loads(fixture.process.stdout.readline())
    return pairs.typical(amount, TIMES)


def slow_down():
    """The same work again and again, alone and beside yrt in turn; and in a process that NYTProf instruments."""
    with yrt.Fixture(PERL, SCRIPT, 0, 30, seconds=None) as f, tempfile.TemporaryDirectory() as directory:
        alone = worked(f)
        over = pairs.slower("perl-flame", f.pid, lambda: worked(f), SLOWER, BLOCKS)
        if subprocess.run([PERL, "-MDevel::NYTProf::Util", "-e1"], capture_output=True).returncode:
            print("     this perl has no Devel::NYTProf")
            return over
        os.environ["NYTPROF"] = f"file={directory}/nytprof.out"
        with yrt.Fixture(PERL, "-d:NYTProf", SCRIPT, 0, 30, seconds=None) as g:
            print(
                f"     Devel::NYTProf: CPU time {worked(g)['cpu_s'] / alone['cpu_s']:.1f} times that of the program"
                " alone",
                flush=True,
            )
    return over


sys.exit(any([per_frame(), starts(), slow_down()]))
