# SPDX-License-Identifier: Apache-2.0
"""
What alloc and leak cost a program that does nothing but allocate, beside peers in the same run: calls for a second of
its CPU time, and of a CPU what the probes take. At full speed it makes several million calls a second, with pauses some
thousand. The peers: heaptrack (Debian), which follows every call, and probes at each entry, return and free with a
stack for each call, as memleak has them (leak --max-cpu 0).
"""

import json
import shutil
import statistics
import subprocess
import sys

from pairs import yrt

SECONDS, TIMES = 6, 3
MOST = 0.1  # of a CPU, that each of yrt's commands may take at the defaults


def measure(mode, *beside, prefix=()):
    """(calls, CPU seconds, seconds) of a run of the program."""
    if prefix:
        out = subprocess.run(
            [*prefix, yrt.fixture_path("alloc_sites"), str(SECONDS), "0", mode], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, check=True).stdout
        line = next(line for line in out.splitlines() if '"end"' in line)
    else:
        with yrt.Fixture("alloc_sites", 0, mode, seconds=SECONDS) as fixture:
            at = yrt.Run(*beside, "-p", fixture.pid, "-d", 60).sampling() if beside else None
            fixture.release()
            line = fixture.process.stdout.readline()
            if at:
                at.result()
    end = json.loads(line)
    return sum(calls for calls, _ in end["sites"].values()), end["cpu_s"], end["wall_s"]


def main():
    ways = {"alone": (), "alloc": ("alloc",), "leak": ("leak",), "growth": ("leak", "--growth"),
            "every call": ("leak", "--max-cpu", "0")}
    failed = False
    for mode, word in (("", "at full speed"), ("q", "with pauses")):
        found = {name: [] for name in ways}
        for _ in range(TIMES):
            for name, command in ways.items():
                found[name].append(measure(mode, *command))
        if shutil.which("heaptrack"):
            found["heaptrack"] = [measure(mode, prefix=("heaptrack", "-o", "/tmp/heaptrack-bench"))]
        alone = statistics.median(cpu / calls for calls, cpu, _ in found["alone"])
        for name, runs in found.items():
            ratio = statistics.median(alone * calls / cpu for calls, cpu, _ in runs)
            taken = statistics.median((cpu - alone * calls) / s for calls, cpu, s in runs)
            rate = statistics.median(calls / s for calls, _, s in runs)
            print(f"{word}: {name}: {rate:.3g} calls a second, rate {ratio:.3f} of alone, {taken:.1%} of a CPU taken")
            failed |= name in ("alloc", "leak", "growth") and taken > MOST
    return failed


sys.exit(main())
