# SPDX-License-Identifier: Apache-2.0
"""What a sample costs, by the kernel's own statistics of BPF programs. Not a benchmark itself."""

import contextlib
import functools
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import yrt


@contextlib.contextmanager
def bpf_statistics():
    knob = "/proc/sys/kernel/bpf_stats_enabled"
    before = yrt.read(knob).strip()
    with open(knob, "w") as f:
        f.write("1")
    try:
        yield
    finally:
        with open(knob, "w") as f:
            f.write(before)


PERF_EVENT = 7  # enum bpf_prog_type: the clock's programs


def programs(pid, kind=PERF_EVENT):
    """{program id: (run time in ns, runs)} of the programs that a process holds: the clock's, or all with None."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        with contextlib.suppress(OSError):
            info = dict(re.findall(r"^(\w+):\s*(\d+)$", yrt.read(f"/proc/{pid}/fdinfo/{fd}"), re.M))
            if "run_time_ns" in info and kind in (None, int(info["prog_type"])):
                found[info["prog_id"]] = int(info["run_time_ns"]), int(info["run_cnt"])
    return found


def watch(run, seconds):
    """(nanoseconds, runs) of the clock's programs between two looks, just after yrt's begin and just before its end."""
    before = programs(run.process.pid)
    time.sleep(seconds)
    after = programs(run.process.pid)
    return tuple(sum(after[p][i] - before.get(p, (0, 0))[i] for p in after) for i in (0, 1))


@functools.lru_cache(maxsize=None)
def tick_ns(rate):
    """Nanoseconds of a run that is no sample: its CPU has something else to do, or nothing."""
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        try:
            run = yrt.Run("flame", "-p", sleeper.pid, "-d", 3, "-F", rate).sampling()
            spent, runs = watch(run, 2)
            run.result().expect()
        finally:
            sleeper.kill()
    return spent / runs


def undisturbed(pid):
    """From now on a process runs before all others: what these leave in the CPU's caches is not what is measured."""
    subprocess.run(["chrt", "-a", "-f", "-p", "5", str(pid)], check=True)


def cost(view, pid, rate, seconds):
    """(nanoseconds of BPF a sample, frames a sample, the statistics)"""
    run = yrt.Run(view, "-p", pid, "-d", seconds + 2, "-F", rate).sampling()
    spent, runs = watch(run, seconds)
    result = run.result().expect()
    stats = result.stats
    # The look is shorter than the run: the samples of the look are its share of the time.
    samples = stats["samples"] * seconds / stats["duration_s"]
    return (spent - max(runs - samples, 0) * tick_ns(rate)) / samples, stats["frames"] / stats["samples"], stats
