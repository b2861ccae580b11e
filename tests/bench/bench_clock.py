# SPDX-License-Identifier: Apache-2.0
"""
The clock's price by the number of CPUs: runs of its program for each sample of one thread that keeps one CPU busy. A
CPU without targets ticks for the first two seconds of a run and not after that, so what a sample costs does not depend
on how many there are.
"""

import itertools
import os
import sys
import time

from bpf_cost import bpf_statistics, watch, yrt

SETTLED, LOOK = 4, 4  # seconds
MOST = 1.3  # of a CPU, by its own CPU time, in each period


def ticks(chosen, rate):
    """(runs of the program for each period of the first second, and of the time after SETTLED; samples a second)"""
    run = yrt.Run("flame", *chosen, "-d", SETTLED + LOOK + 1, "-F", rate).sampling()
    _, first = watch(run, 1)
    time.sleep(SETTLED - 1)
    _, runs = watch(run, LOOK)
    stats = run.result().expect().stats
    return first / rate, runs / LOOK / rate, stats["samples"] / stats["duration_s"]


def main():
    cpus, failed = sorted(os.sched_getaffinity(0)), False
    with bpf_statistics(), yrt.Fixture("deep30", seconds=600) as fixture:
        os.sched_setaffinity(fixture.pid, {cpus[0]})
        fixture.release()
        ways = ("-p", fixture.pid), ("-s", "-p", fixture.pid), ("--select", f"exe={yrt.fixture_path('deep30')}")
        for rate, chosen in itertools.product((99, 999), ways):
            first, settled, samples = ticks(chosen, rate)
            each = settled * rate / samples
            print(f"{rate} Hz, {os.cpu_count()} CPUs, {chosen[0]}, a target on one: {first:.2f} ticks a period at "
                  f"first, {settled:.2f} after {SETTLED} s; {each:.2f} a sample", flush=True)
            failed |= settled > MOST
    return failed


sys.exit(main())
