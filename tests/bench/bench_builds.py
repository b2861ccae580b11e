# SPDX-License-Identifier: Apache-2.0
"""
What a sample costs with another build of yrt, and with this one: bench_builds.py OTHER_YRT [ROUNDS]. Both sample the
same thread at the same time, so that a loaded machine disturbs both, and their ratio can be told to some percent. The
thread runs before all others (undisturbed()). Rows: C 30 deep, which stays in the caches, or sweeps 8 MB; Python and
Lua 30 deep.
"""

import os
import shutil
import signal
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import yrt
from bpf_cost import bpf_statistics, programs, undisturbed

SECONDS = {99: 6, 999: 3}
PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")


def targets():
    """(row, command of a fixture, whether that takes its seconds first)"""
    fixtures = os.path.join(yrt.SOURCE, "fixtures")
    yield "C", ["deep30"], True
    yield "C, 8 MB", ["sweeps"], True
    yield "Python", [PYTHON, os.path.join(fixtures, "python", "recursion.py"), 3600, 30, 0], False
    if shutil.which("luajit"):
        yield "Lua", [shutil.which("luajit"), "-joff", os.path.join(fixtures, "lua", "deep.lua"), 600, 30], False


def both(pid, rate, builds):
    """Nanoseconds a sample of each, in the same seconds."""
    runs = [yrt.Run("flame", "-p", pid, "-d", 0, "-F", rate, "--max-cpu", 0, binary=b).sampling() for b in builds]
    time.sleep(1)
    before = [programs(run.process.pid) for run in runs]
    time.sleep(SECONDS[rate])
    after = [programs(run.process.pid) for run in runs]
    for run in runs:
        run.process.send_signal(signal.SIGINT)
    stats = [run.result().expect().stats for run in runs]
    spent = [sum(a[p][0] - b.get(p, (0, 0))[0] for p in a) for a, b in zip(after, before)]
    return [ns / (s["samples"] * SECONDS[rate] / s["duration_s"]) for ns, s in zip(spent, stats)]


def row(name, fixture, rate, other, rounds):
    found = []
    for i in range(rounds):
        builds = [other, yrt.YRT][:: -1 if i % 2 else 1]
        found.append(both(fixture.pid, rate, builds)[:: -1 if i % 2 else 1])
    ratios = sorted(own / its for its, own in found)
    least = [min(f[i] for f in found) for i in (0, 1)]
    print(f"{name}, {rate} Hz: {least[0] / 1e3:.2f} us, here {least[1] / 1e3:.2f}; "
          f"median of ratios {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)


def main(other, rounds=4):
    for name, command, seconds in targets():
        with yrt.Fixture(*command, seconds=3600 if seconds else None) as fixture:
            undisturbed(fixture.pid)
            fixture.release()
            for rate in SECONDS:
                row(name, fixture, rate, os.path.abspath(other), int(rounds))


if __name__ == "__main__":
    with bpf_statistics():
        main(*sys.argv[1:])
