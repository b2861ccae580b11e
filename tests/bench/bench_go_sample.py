# SPDX-License-Identifier: Apache-2.0
"""
What sampling Go costs, all in one run: BPF time a frame in units of one 16-byte read (unit.py) and a sample, time to
the first sample with yrt's cache filled, memory; a million goroutines at one moment; how much slower a program becomes.
bench_go has the tables. The same samples by the OpenTelemetry eBPF profiler, in turns, where it can be had (otel.py).
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import go
import otel
import pairs
import unit
import yrt
from bpf_cost import bpf_statistics, cost, undisturbed

ROUNDS, DEPTHS, FRAME_LIMIT, SAMPLE_US, FIRST_MS, RSS_MB = 3, (20, 120), 1.5, 3.3, 100, 40
STARTS, BLOCKS, TIMES, AMOUNT = 9, 12, 24, 3000  # an amount is some 30 ms of work
SLOWER = {99: 0.01, 999: None}
GOROUTINES, ALL_S = 1000000, 2
STRIPPED = "-ldflags=-s -w"
PEER_READY_S, PEER_SHARE = 15, 0.5


def verdict(good, text):
    print(f"{'ok  ' if good else 'over'} {text}", flush=True)
    return not good


def sampled(depth):
    """Medians: units a sample, microseconds a sample, frames a sample; the last statistics."""
    with yrt.Fixture(go.build("depth", STRIPPED), depth, seconds=None, wait=False) as f:
        undisturbed(f.pid)
        runs = []
        for _ in range(ROUNDS):
            before = unit.measure()
            ns, frames, stats = cost("go-flame", f.pid, 999, 3)
            runs.append((ns / statistics.mean((before, unit.measure())), ns / 1000, frames, stats))
    return *(statistics.median(r[i] for r in runs) for i in range(3)), runs[-1][3]


def per_frame():
    points = [sampled(depth) for depth in DEPTHS]
    for units, us, n, _ in points:
        print(f"{units:.1f} units, {us:.2f} us a sample of {n:.1f} frames", flush=True)
    slope, stats = (points[1][0] - points[0][0]) / (points[1][2] - points[0][2]), points[0][3]
    rss = stats["sampling_rss_kb"] / 1024
    return any(
        [
            verdict(slope <= FRAME_LIMIT, f"{slope:.2f} units a frame, limit {FRAME_LIMIT}"),
            verdict(
                points[0][1] <= SAMPLE_US,
                f"{points[0][1]:.2f} us a sample of {points[0][2]:.1f} frames, limit {SAMPLE_US}",
            ),
            verdict(rss <= RSS_MB, f"{rss:.1f} MB of memory, limit {RSS_MB}"),
        ]
    )


def beside_peer():
    if otel.missing():
        print(f"     {otel.missing()}", flush=True)
        return False
    cpu = max(os.sched_getaffinity(0))
    with otel.collector() as (at, _), yrt.Fixture(
        go.build("depth", STRIPPED), DEPTHS[0], seconds=None, wait=False
    ) as f:
        subprocess.run(["taskset", "-a", "-c", "-p", str(cpu), str(f.pid)], stdout=subprocess.DEVNULL, check=True)
        undisturbed(f.pid)
        turns = [(cost("go-flame", f.pid, 999, 3)[0] / 1000, otel.us_a_run(at, 999, cpu, PEER_READY_S, 3, "-t", "go"))
                 for _ in range(ROUNDS)]
    print("     " + ", ".join(f"{ours:.2f} and {theirs:.2f}" for ours, theirs in turns), flush=True)
    share = statistics.median(ours / theirs for ours, theirs in turns)
    return verdict(share <= PEER_SHARE, f"{share:.2f} of the peer's time a sample, limit {PEER_SHARE}")


def first_ms(pid, cache):
    """From the start of yrt to its first sample, at real-time priority, as in bench_start.py."""
    begin = time.monotonic_ns()
    result = (
        yrt.Run("go-flame", "-p", pid, "-d", 0.2, "-F", 999, prefix=["chrt", "-f", "5"], env={"YRT_CACHE_DIR": cache})
        .result()
        .expect()
    )
    return (result.stats["first_sample_at_ns"] - begin) / 1e6


def starts():
    with yrt.Fixture(
        go.build("depth", STRIPPED), 20, seconds=None, wait=False
    ) as f, tempfile.TemporaryDirectory() as cache:
        first_ms(f.pid, cache)
        times = [first_ms(f.pid, cache) for _ in range(STARTS)]
    return verdict(
        statistics.median(times) <= FIRST_MS,
        f"first sample: {statistics.median(times):.0f} ms ({min(times):.0f} to {max(times):.0f}) "
        f"after yrt's start, limit {FIRST_MS}",
    )


def million():
    """All goroutines of a process that has very many."""
    with yrt.Fixture(go.build("crowd", STRIPPED), GOROUTINES, seconds=None, wait=False) as f:
        times, before = [], resource.getrusage(resource.RUSAGE_CHILDREN)
        for _ in range(ROUNDS):
            begin = time.monotonic()
            out = subprocess.run(
                [yrt.YRT, "go-goroutines", "-p", str(f.pid)], capture_output=True, text=True, check=True
            ).stdout
            times.append(time.monotonic() - begin)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert f"total {GOROUTINES + 1}" in out, out[:200]
    cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / ROUNDS
    return verdict(
        statistics.median(times) <= ALL_S,
        f"{GOROUTINES} goroutines in {statistics.median(times):.2f} s ({cpu:.2f} s of CPU), limit {ALL_S}",
    )


def worked(fixture):
    def amount():
        fixture.process.stdin.write(f"{AMOUNT}\n")
        fixture.process.stdin.flush()
        return yrt.json.loads(fixture.process.stdout.readline())
    return pairs.typical(amount, TIMES)


def slow_down():
    """The same work again and again, alone and beside yrt in turn."""
    with yrt.Fixture(go.build("depth", STRIPPED), 30, "asked", seconds=None, wait=False) as f:
        return pairs.slower("go-flame", f.pid, lambda: worked(f), SLOWER, BLOCKS)


PARTS = {"frames": per_frame, "peer": beside_peer, "starts": starts, "million": million, "slow": slow_down}
if __name__ == "__main__":
    with bpf_statistics():
        sys.exit(any([PARTS[name]() for name in sys.argv[1:] or PARTS]))
