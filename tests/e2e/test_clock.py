# SPDX-License-Identifier: Apache-2.0
"""The clock ticks where targets are: a target that comes to a CPU where none was for a while is sampled there."""

import os
import subprocess
import sys
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


BURST = "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: pass"


def bursts(flags, rate):
    """A program that begins now and then at a CPU where nothing was for a while: its result, samples and CPU time."""
    script = f"read go; for i in 1 2 3; do taskset -c {cpus()[1]} {sys.executable} -c '{BURST}'; sleep {STAYS}; done"
    with yrt.Program(["taskset", "-c", str(cpus()[0]), "sh", "-c", script], stdin=subprocess.PIPE) as shell:
        yrt.waiting(shell.pid, 1)
        run = yrt.Run("flame", *flags(shell.pid), "-d", 5.5 * STAYS, "-F", rate).sampling()
        time.sleep(STAYS)
        shell.stdin.write(b"\n")
        shell.stdin.flush()
        stats = run.result().expect().stats
    expected = stats["target_cpu_s"] * rate
    assert stats["target_cpu_s"] > 1 and 0.95 * expected - 5 <= stats["samples"] <= 1.05 * expected + 5, stats
    return f"{stats['samples']} samples of {expected:.0f}"


@yrt.measured
def test_children():
    """A child that is followed to a CPU whose timer stood still is sampled from its begin."""
    if len(cpus()) < 2:
        raise yrt.Skipped("one CPU only")
    yield bursts(lambda pid: ("-s", "-p", pid), 499)


@yrt.measured
def test_selected():
    """A process that is chosen while it runs on such a CPU is sampled there from then on."""
    if len(cpus()) < 2:
        raise yrt.Skipped("one CPU only")
    yield bursts(lambda pid: ("--select", f"exe={os.path.realpath(sys.executable)}"), 499)


yrt.main(globals())
