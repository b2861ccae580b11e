# SPDX-License-Identifier: Apache-2.0
"""
What a sample costs, in units of one 16-byte bpf_probe_read_user measured in the same run (unit.py): BPF run time by the
kernel's own statistics (kernel.bpf_stats_enabled) over the samples taken, for a 30-deep C chain and for nginx running
Lua; beside it `perf record`.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import unit
import yrt
from bpf_cost import bpf_statistics, cost

ROUNDS = 3
LIMITS = {999: 60, 99: 97}
LUA_FRAME = 3


def perf_peer(pid, seconds):
    """What perf record --call-graph dwarf needs: bytes a sample, and its own CPU time a sample while recording."""
    if not shutil.which("perf"):
        return "perf is not installed (Debian: linux-perf)"
    with tempfile.TemporaryDirectory() as dir:
        data = os.path.join(dir, "perf.data")
        begin = os.times()
        subprocess.run(
            [
                "perf",
                "record",
                "-q",
                "-F",
                "999",
                "-e",
                "cpu-clock",
                "--call-graph",
                "dwarf",
                "-p",
                str(pid),
                "-o",
                data,
                "--",
                "sleep",
                str(seconds),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = os.times()
        report = subprocess.run(
            ["perf", "report", "-i", data, "--header-only", "--stats"], capture_output=True, text=True
        ).stdout
        samples = (
            int((re.search(r"SAMPLE events:\s+(\d+)", report) or re.search(r"(0)", "0")).group(1)) or 999 * seconds
        )
        own = end.children_user + end.children_system - begin.children_user - begin.children_system
        return f"perf record --call-graph dwarf: {os.path.getsize(data) / samples:.0f} bytes and " \
               f"{own / samples * 1e6:.1f} us of its own CPU a sample, no stack unwound yet"


def native():
    failed = False
    with yrt.Fixture("deep30", seconds=600) as fixture:
        fixture.release()
        for rate, limit in LIMITS.items():
            ratios = []
            for _ in range(ROUNDS):
                ns, frames, stats = cost("flame", fixture.pid, rate, 5 if rate > 500 else 12)
                one = unit.measure()
                ratios.append(ns / one)
                print(
                    f"deep30 at {rate} Hz: {ns:.0f} ns a sample of {frames:.1f} frames = {ns / one:.1f} units of"
                    f" {one:.1f} ns; yrt itself says {stats['bpf_ns_per_sample']} ns",
                    flush=True,
                )
            ratio = statistics.median(ratios)
            failed |= ratio > limit
            print(f"{'over' if ratio > limit else 'ok  '} {ratio:.1f} units at {rate} Hz, limit {limit}", flush=True)
        print(perf_peer(fixture.pid, 3))
    return failed


def lua():
    """The slope: samples of Lua recursion 20 and 120 deep."""
    luajit, script = shutil.which("luajit"), os.path.join(yrt.SOURCE, "fixtures", "lua", "deep.lua")
    points, one = [], unit.measure()
    for depth in (20, 120):
        with yrt.Fixture(luajit, "-joff", script, 600, depth, seconds=None) as fixture:
            fixture.release()
            costs = [cost("flame", fixture.pid, 999, 4)[:2] for _ in range(ROUNDS)]
        points.append((statistics.median(c[0] for c in costs), statistics.median(c[1] for c in costs)))
        print(f"Lua {depth} deep: {points[-1][0]:.0f} ns a sample of {points[-1][1]:.1f} frames", flush=True)
    slope = (points[1][0] - points[0][0]) / (points[1][1] - points[0][1]) / one
    print(f"{'over' if slope > LUA_FRAME else 'ok  '} {slope:.2f} units a Lua frame, limit {LUA_FRAME}")
    return slope > LUA_FRAME


if __name__ == "__main__":
    with bpf_statistics():
        sys.exit(bool(native() | lua()))
