# SPDX-License-Identifier: Apache-2.0
"""The clock ticks where targets are: a target that comes to a CPU where none was for a while is sampled there."""

import os
import time

import yrt

STAYS = 3.2  # seconds at one CPU: long enough for the timer of the others to be stopped


def cpus():
    return sorted(os.sched_getaffinity(0))[:2]


@yrt.measured
def test_moves():
    """A thread that is moved from CPU to CPU is sampled on each, as often as its CPU time demands."""
    if len(cpus()) < 2:
        raise yrt.Skipped("one CPU only")
    with yrt.Fixture("deep30", seconds=600) as fixture:
        os.sched_setaffinity(fixture.pid, {cpus()[0]})
        run = yrt.Run("flame", "-p", fixture.pid, "-d", 4 * STAYS, "-F", 499).sampling()
        fixture.release()
        for i in range(1, 4):
            time.sleep(STAYS)
            os.sched_setaffinity(fixture.pid, {cpus()[i % 2]})
        stats = run.result().expect().stats
    expected = stats["target_cpu_s"] * 499
    assert 0.97 * expected <= stats["samples"] <= 1.03 * expected, f"{stats['samples']} of {expected:.0f}: {stats}"
    yield f"{stats['samples']} samples of {expected:.0f}, moved 3 times"


@yrt.measured
def test_bursts():
    """A thread that runs for some milliseconds, each time on another CPU, and sleeps long in between."""
    if len(cpus()) < 2:
        raise yrt.Skipped("one CPU only")
    with yrt.Fixture("bursty", seconds=600) as fixture:
        run = yrt.Run("flame", "-p", fixture.pid, "-d", 12, "-F", 997).sampling()
        fixture.release()
        for i in range(22):
            time.sleep(0.5)
            os.sched_setaffinity(fixture.pid, {cpus()[i // 6 % 2]})
        stats = run.result().expect().stats
    expected = stats["target_cpu_s"] * 997
    assert 0.93 * expected - 15 <= stats["samples"] <= 1.07 * expected + 15, f"{stats['samples']} of {expected:.0f}"
    yield f"{stats['samples']} samples of {expected:.0f}"


yrt.main(globals())
