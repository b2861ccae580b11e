# SPDX-License-Identifier: Apache-2.0
"""What a sample costs, by the kernel's own statistics of BPF programs. Not a benchmark itself."""

import contextlib
import os
import re
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


def programs(pid):
    """{program id: (run time in ns, runs)} of the BPF programs that a process holds."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        with contextlib.suppress(OSError):
            info = dict(re.findall(r"^(\w+):\s*(\d+)$", yrt.read(f"/proc/{pid}/fdinfo/{fd}"), re.M))
            if "run_time_ns" in info:
                found[info["prog_id"]] = int(info["run_time_ns"]), int(info["run_cnt"])
    return found


def watch(run, seconds):
    """BPF nanoseconds of a running yrt between two looks, just after its begin and just before its end."""
    before = programs(run.process.pid)
    time.sleep(seconds)
    after = programs(run.process.pid)
    return sum(after[p][0] - before.get(p, (0, 0))[0] for p in after)


def cost(view, pid, rate, seconds):
    """(nanoseconds of BPF a sample, frames a sample, the statistics)"""
    run = yrt.Run(view, "-p", pid, "-d", seconds + 2, "-F", rate).sampling()
    spent = watch(run, seconds)
    result = run.result().expect()
    stats = result.stats
    # The look is shorter than the run: the samples of the look are its share of the time.
    samples = stats["samples"] * seconds / stats["duration_s"]
    return spent / samples, stats["frames"] / stats["samples"], stats
