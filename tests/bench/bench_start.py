# SPDX-License-Identifier: Apache-2.0
"""
From the start of a profiler to its first sample, in ms: yrt beside perf, py-spy, austin and async-profiler, in turns,
medians.

	YRT=build/release/yrt YRT_BUILD=build/release YRT_SOURCE=. python3 tests/bench/bench_start.py [RUNS]

Warm: yrt's cache is filled; cold: it is empty. All tools run at real-time priority, so that a busy machine delays them
as little as an idle one would. py-spy and austin are those of PyPI, on PATH or named by YRT_PYSPY and YRT_AUSTIN;
async-profiler is what bench_java.py has.

The first sample of yrt is when its BPF program ran first (--stats), of perf its first event, of py-spy the first read
of the target after its first sleep, of austin when its first line arrives, of async-profiler when "start" is done.
"""

import contextlib
import os
import pty
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import async_profiler
import java
import servers
import yrt

RUNS = 9
PREFER = ["chrt", "-f", "5"]
LIMITS = {"native": 60, "Python warm": 100, "nginx with Lua cold": 150, "JVM warm": 100}
PYSPY = os.environ.get("YRT_PYSPY") or shutil.which("py-spy")
AUSTIN = os.environ.get("YRT_AUSTIN") or shutil.which("austin")
LOOP = "while True:\n  for i in range(1000): pass\n"


def yrt_ms(pid, cache):
    begin = time.monotonic_ns()
    result = (
        yrt.Run("flame", "-p", pid, "-d", 0.2, "-F", 999, prefix=PREFER, env={"YRT_CACHE_DIR": cache}).result().expect()
    )
    return (result.stats["first_sample_at_ns"] - begin) / 1e6


def yrt_cold(pid, _):
    with tempfile.TemporaryDirectory() as cache:
        return yrt_ms(pid, cache)


def perf_ms(pid, scratch):
    path = os.path.join(scratch, "perf.data")
    begin = time.monotonic_ns()
    subprocess.run(
        [
            *PREFER,
            "perf",
            "record",
            "-q",
            "-k",
            "CLOCK_MONOTONIC",
            "-e",
            "cpu-clock",
            "-F",
            "999",
            "-g",
            "-p",
            str(pid),
            "-o",
            path,
            "--",
            "sleep",
            "0.2",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    script = subprocess.run(
        ["perf", "script", "-i", path, "-F", "time", "--ns"], capture_output=True, text=True, check=True
    ).stdout
    seconds, ns = re.search(r"(\d+)\.(\d{9}):", script).groups()
    return (int(seconds) * 10**9 + int(ns) - begin) / 1e6


def pyspy_ms(pid, scratch):
    path = os.path.join(scratch, "calls")
    begin = time.time()
    subprocess.run(
        [
            *PREFER,
            "strace",
            "-f",
            "--seccomp-bpf",
            "-ttt",
            "-e",
            "trace=nanosleep,clock_nanosleep,process_vm_readv",
            "-o",
            path,
            PYSPY,
            "record",
            "--nonblocking",
            "-p",
            str(pid),
            "-r",
            "999",
            "-d",
            "1",
            "-f",
            "raw",
            "-o",
            os.devnull,
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    calls = re.findall(r"^\d+ +(\d+\.\d+) (\w+)\(", yrt.read(path), re.M)
    slept = next(i for i, (_, call) in enumerate(calls) if call.endswith("nanosleep"))
    return 1e3 * (next(float(at) for at, call in calls[slept:] if call == "process_vm_readv") - begin)


def austin_ms(pid, _):
    ours, its = pty.openpty()  # so that it hands out each line at once
    begin = time.monotonic_ns()
    process = subprocess.Popen(
        [*PREFER, AUSTIN, "-i", "1000", "-p", str(pid)], stdin=subprocess.DEVNULL, stdout=its, stderr=subprocess.DEVNULL
    )
    os.close(its)
    try:
        with os.fdopen(ours, "rb", buffering=0) as out:
            seen = b"\n"
            while b"\nP" not in seen:
                seen += out.read(4096).replace(b"\r", b"")
            return (time.monotonic_ns() - begin) / 1e6
    finally:
        yrt.stop(process)


@contextlib.contextmanager
def launcher():
    """Its launcher as a function of (pid, scratch); None: it can not be had."""
    jar = async_profiler.jar()
    if not jar:
        yield None
        return
    with tempfile.TemporaryDirectory() as home, zipfile.ZipFile(jar) as file:
        names = {re.sub(r"-[\d.]+-linux-x64", "", os.path.basename(n)): n for n in file.namelist() if "-linux-x64" in n}
        for name, folder in (("asprof", "bin"), ("libasyncProfiler.so", "lib")):
            os.makedirs(os.path.join(home, folder))
            path = os.path.join(home, folder, name)
            with open(path, "wb") as out:
                out.write(file.read(names[name]))
            os.chmod(path, 0o755)
        os.chmod(home, 0o755)

        def start(pid, _):
            begin = time.monotonic_ns()
            asprof = os.path.join(home, "bin", "asprof")
            subprocess.run(
                [*PREFER, asprof, "start", "-e", "ctimer", "-i", "1ms", str(pid)], check=True, stdout=subprocess.DEVNULL
            )
            took = (time.monotonic_ns() - begin) / 1e6
            subprocess.run([asprof, "stop", "-o", "collapsed", str(pid)], check=True, stdout=subprocess.DEVNULL)
            return took

        yield start


def measure(target, pid, tools, runs):
    """
    Prints a line for each tool; whether yrt is over its limit. The first run of each fills caches; async-profiler's
    loads its agent.
    """
    found = {name: [] for name, tool in tools.items() if tool}
    with tempfile.TemporaryDirectory() as scratch:
        first = {name: tools[name](pid, scratch) for name in found}
        for _ in range(runs):
            for name, times in found.items():
                times.append(tools[name](pid, scratch))
    over = False
    for name, times in found.items():
        median, limit = statistics.median(times), LIMITS.get(target + name.removeprefix("yrt"))
        over |= limit is not None and median > limit
        print(
            f"{target + name.removeprefix('yrt') if name.startswith('yrt') else f'  {name}'}: {median:.0f} ms"
            f" ({min(times):.0f} to {max(times):.0f}; the first"
            f" {first[name]:.0f}){'' if limit is None else f', limit {limit}'}",
            flush=True,
        )
    return over


def main(runs):
    over = False
    with yrt.Fixture("deep30", seconds=1000) as fixture:
        fixture.release()
        over |= measure("native", fixture.pid, {"yrt": yrt_ms, "perf": perf_ms}, runs)
    python = subprocess.Popen([sys.executable, "-c", LOOP])
    try:
        over |= measure(
            "Python",
            python.pid,
            {"yrt warm": yrt_ms, "yrt cold": yrt_cold, "py-spy": PYSPY and pyspy_ms, "austin": AUSTIN and austin_ms},
            runs,
        )
    finally:
        yrt.stop(python)
    with servers.Nginx(load=300) as nginx:
        over |= measure("nginx with Lua", nginx.workers()[0], {"yrt warm": yrt_ms, "yrt cold": yrt_cold}, runs)
    with java.Java("rate", 60, timeout=600) as jvm, launcher() as start:
        jvm.release()
        over |= measure("JVM", jvm.pid, {"yrt warm": yrt_ms, "async-profiler": start}, runs)
    return over


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS))
