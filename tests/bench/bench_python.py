# SPDX-License-Identifier: Apache-2.0
"""
What sampling Python costs, all in one run: BPF time a Python frame in units of one 16-byte read (unit.py); how much
slower a program becomes under yrt and under py-spy (of PyPI; on PATH or named by YRT_PYSPY); time to the first sample
and memory; a process of 500 threads against one of two; and both profilers' shares beside those that the program
measured of itself.
"""

import os
import json
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import pairs
import unit
import yrt
from bpf_cost import bpf_statistics, cost

PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")
PYSPY = os.environ.get("YRT_PYSPY") or shutil.which("py-spy")
RECURSION, SPLIT = (os.path.join(yrt.SOURCE, "fixtures", "python", name) for name in ("recursion.py", "split.py"))
ROUNDS, FRAME_LIMIT, FIRST_MS, RSS_MB = 3, 2, 100, 30
BLOCKS, TIMES, AMOUNT = 12, 24, 5  # of the slow-down; an amount is some 50 ms of work
SLOWER = {99: 0.01, 999: 0.02}


def verdict(good, text):
    print(f"{'ok  ' if good else 'over'} {text}", flush=True)
    return not good


def sampled(depth, threads=0, rate=999):
    """Medians: (units a sample, frames a sample), and the last statistics."""
    with yrt.Fixture(PYTHON, RECURSION, 600, depth, threads, seconds=None) as f:
        f.release()
        runs = []
        for _ in range(ROUNDS):
            ns, frames, stats = cost("python-flame", f.pid, rate, 3)
            runs.append((ns / unit.measure(), frames, stats))
    return statistics.median(r[0] for r in runs), statistics.median(r[1] for r in runs), runs[-1][2]


def frames():
    points = [sampled(depth) for depth in (20, 120)]
    for (units, n, _), depth in zip(points, (20, 120)):
        print(f"{depth} deep: {units:.1f} units a sample of {n:.1f} frames", flush=True)
    slope = (points[1][0] - points[0][0]) / (points[1][1] - points[0][1])
    stats = points[0][2]
    return (
        verdict(slope <= FRAME_LIMIT, f"{slope:.2f} units a Python frame, limit {FRAME_LIMIT}")
        | verdict(
            stats["first_sample_ms"] <= FIRST_MS,
            f"first sample after {stats['first_sample_ms']:.0f} ms, limit {FIRST_MS}; "
            f"armed {stats['armed_ms']:.0f} ms after its start",
        )
        | verdict(
            stats["sampling_rss_kb"] <= RSS_MB * 1024,
            f"{stats['sampling_rss_kb'] / 1024:.1f} MB of memory, limit {RSS_MB}; "
            f"{stats['map_kb'] / 1024:.1f} MB of maps",
        )
    )


def many_threads():
    (few, _, _), (many, _, stats) = sampled(20, 1), sampled(20, 499)
    print(f"500 threads: {many:.1f} units a sample, 2 threads: {few:.1f}: {many / few:.2f} times as much; "
          f"first sample after {stats['first_sample_ms']:.0f} ms, {stats['sampling_rss_kb'] / 1024:.1f} MB")


def profilers(pid, directory):
    """
    (name, limit, profiler): the limits are yrt's, on the CPU time of the target. Interrupts, so BPF, count as the
    target's time.
    """
    for rate, limit in SLOWER.items():
        yield f"bare ticks {rate} Hz", None, pairs.Beside(os.path.join(yrt.BUILD, "yrt-ticks"), str(rate))
        yield f"yrt {rate} Hz", limit, pairs.Beside(
            yrt.YRT,
            "python-flame",
            "-p",
            str(pid),
            "-F",
            str(rate),
            "-d",
            "0",
            "-q",
            "-o",
            os.path.join(directory, "x.folded"),
            "--stats",
            os.path.join(directory, "stats"),
        )
        if PYSPY:
            yield f"py-spy {rate} Hz", None, pairs.Beside(
                PYSPY,
                "record",
                "-p",
                str(pid),
                "-r",
                str(rate),
                "-d",
                "600",
                "-f",
                "raw",
                "-o",
                os.path.join(directory, "x.raw"),
            )


def amount(fixture):
    fixture.process.stdin.write(f"{AMOUNT}\n")
    fixture.process.stdin.flush()
    return json.loads(fixture.process.stdout.readline())


def worked(fixture):
    return pairs.typical(lambda: amount(fixture), TIMES)


def bpf_share(directory):
    """The share of the target's CPU time that the last yrt's BPF took, by its own clock; 0 if the last was none."""
    path = os.path.join(directory, "stats")
    stats = json.loads(yrt.read(path) or "{}")
    if stats:
        os.remove(path)
    return stats["bpf_ns_per_sample"] * 1e-9 * stats["samples"] / max(stats["target_cpu_s"], 1e-9) if stats else 0


def slow_down():
    """The same work again and again, alone and beside each profiler in turn."""
    blocks, shares, limits = {}, {}, {}
    with yrt.Fixture(PYTHON, RECURSION, 0, 30, seconds=None) as f, tempfile.TemporaryDirectory() as directory:
        worked(f)
        for _ in range(BLOCKS):
            for name, limit, profiler in profilers(f.pid, directory):
                blocks.setdefault(name, []).append(pairs.block(lambda: worked(f), profiler))
                shares.setdefault(name, []).append(bpf_share(directory))
                limits[name] = limit
    over = False
    for name, found in blocks.items():
        word, text = pairs.judge([b["cpu_s"] for b in found], limits[name])
        over |= word == "over"
        bpf = f"; BPF alone {statistics.median(shares[name]):.2%}" if any(shares[name]) else ""
        print(f"{word} {name}: CPU time {text}{bpf}", flush=True)
        print(f"     {name}: wall clock {pairs.judge([b['wall_s'] for b in found])[1]}", flush=True)
    return over


def of_pyspy(path):
    shares, whole = {}, 0
    for frames, n in yrt.parse_folded(yrt.read(path)):
        whole += n
        for name in {f.split(" (")[0] for f in frames}:
            shares[name] = shares.get(name, 0) + n
    return {name: n / max(whole, 1) for name, n in shares.items()}, whole


def distribution():
    with yrt.Fixture(PYTHON, SPLIT, 8, "kinds", seconds=None) as f, tempfile.TemporaryDirectory() as directory:
        raw = os.path.join(directory, "x.raw")
        spy = PYSPY and subprocess.Popen(
            [PYSPY, "record", "-p", str(f.pid), "-r", "99", "-d", "7", "-f", "raw", "-o", raw],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        run = yrt.Run("python-flame", "-p", f.pid, "-d", 60, "-F", 99).sampling()
        f.release()
        truth = f.finish(60)
        result = run.result().expect()
        if spy:
            spy.wait()
        theirs, whole = of_pyspy(raw)
    print(f"yrt: {result.samples} samples, {100 * (1 - result.incomplete()):.2f} % complete; py-spy: {whole} samples")
    for name, share in truth["split"].items():
        ours = result.share(f"{name} (split.py:{truth['lines'][name]})")
        print(
            f"     {name}: {share:.3f} of the measured time, yrt {ours:.3f}, py-spy {theirs.get(name, 0):.3f} of all"
            " samples"
        )


if not PYSPY:
    print("py-spy is not here (pip install py-spy; YRT_PYSPY names it): yrt alone is measured")
with bpf_statistics():
    failed = frames()
    many_threads()
failed |= slow_down()
distribution()
sys.exit(failed)
