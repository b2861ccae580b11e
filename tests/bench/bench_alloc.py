# SPDX-License-Identifier: Apache-2.0
"""
alloc and leak on a program that does nothing but allocate, at fifteen sites of 16 bytes to 10 MB, in each allocator, at
some thousand, some hundred thousand, and as many calls a second as it can make: how far the worst site's share is off,
what alloc says of all calls, and the target's rate, for a second of its CPU time, beside a run alone. Peers in the same
run: heaptrack and probes with a stack for each call, as memleak has them (leak --max-cpu 0), bpftrace, which sums up by
stack at each malloc() alone, and jemalloc's own profile.

arguments: SECONDS of a run (6), and which allocators (all)
"""

import glob
import json
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

from pairs import yrt

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 6
ALLOCATORS = sys.argv[2:] or ["glibc", "jemalloc", "mimalloc", "tcmalloc"]
MODES = {"with pauses": "q", "with work": "m", "at full speed": ""}
MOST = 0.1  # of a CPU, that each of yrt's commands may take at the defaults
JEMALLOC_SAMPLE = 1 << 19  # bytes between two, by default
PROGRAM = yrt.fixture_path("alloc_sites")


class Truth:
    """What a run of the program counted."""

    def __init__(self, line):
        end = json.loads(line)
        self.calls = {name: n for name, (n, _) in end["sites"].items()}
        self.bytes = {name: n for name, (_, n) in end["sites"].items()}
        self.cpu_s, self.wall_s = end["cpu_s"], end["wall_s"]
        self.all_calls = sum(self.calls.values())

    def cpu_of_call(self):
        return self.cpu_s / self.all_calls


def worst(seen, true):
    """The site whose share is farthest off, in points."""
    seen_all, true_all = sum(seen.values()) or 1, sum(true.values())
    return max(abs(seen.get(name, 0) / seen_all - n / true_all) for name, n in true.items()) * 100


def preload(allocator):
    return {} if allocator == "glibc" else {"LD_PRELOAD": glob.glob(f"{LIBRARIES}/lib{allocator}.so.[0-9]")[0]}


def beside(allocator, mode, *command):
    """(Truth, yrt's result; None: alone)."""
    os.environ.update(preload(allocator))
    try:
        fixture = yrt.Fixture("alloc_sites", 0, mode, seconds=SECONDS)
    finally:
        os.environ.pop("LD_PRELOAD", None)
    with fixture:
        at = yrt.Run(*command, "-p", fixture.pid, "-d", 60).sampling() if command else None
        fixture.release()
        truth = Truth(fixture.process.stdout.readline())
        return truth, at.result() if at else None


def under(prefix, mode, **env):
    """Truth of a run below another program."""
    out = subprocess.run([*prefix, PROGRAM, str(SECONDS), "0", mode], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, env={**os.environ, **env}, text=True, check=True).stdout
    return Truth(next(line for line in out.splitlines() if '"end"' in line))


def said_by_jemalloc(path):
    """
    {site: bytes}, from the profile's backtraces of all that was allocated (heap_v2, with prof_accum), each divided by
    the probability with which a block of that size was chosen.
    """
    text = open(path).read()
    (base,) = re.findall(r"^([0-9a-f]+)-\S+ r-?-?\S* 00000000 .*alloc_sites$", text, re.M)[:1]
    found = {}
    for stack, count, total in re.findall(r"^@ (.*)\n  t\*: \d+: \d+ \[(\d+): (\d+)\]", text, re.M):
        at = [hex(int(pc, 16) - int(base, 16) - 1) for pc in stack.split()]
        at = [pc for pc in at if not pc.startswith("-")]
        total = int(total) / -math.expm1(-int(total) / max(int(count), 1) / JEMALLOC_SAMPLE)
        found[tuple(at[:6])] = found.get(tuple(at[:6]), 0) + total
    every = sorted({pc for stack in found for pc in stack})
    names = subprocess.run(["addr2line", "-f", "-e", PROGRAM, *every], capture_output=True, text=True).stdout
    name = dict(zip(every, names.splitlines()[::2]))
    sites = {}
    for stack, total in found.items():
        for function in (name[pc] for pc in stack if name[pc].startswith(("site_", "leak_some"))):
            sites[function] = sites.get(function, 0) + total
            break
    return sites


def jemalloc_itself(mode):
    with tempfile.TemporaryDirectory() as folder:
        conf = f"prof:true,prof_accum:true,prof_final:true,prof_prefix:{folder}/p"
        truth = under((), mode, MALLOC_CONF=conf, **preload("jemalloc"))
        dumps = glob.glob(f"{folder}/*.heap")
        return truth, worst(said_by_jemalloc(dumps[0]), truth.bytes) if dumps else None


def bpftrace(mode):
    code = f"uprobe:{LIBRARIES}/libc.so.6:malloc {{ @[ustack] = sum(arg0); }} interval:s:1 {{ printf(\"on\\n\"); }}"
    with yrt.Fixture("alloc_sites", 0, mode, seconds=SECONDS) as fixture, subprocess.Popen(
            ["bpftrace", "-p", str(fixture.pid), "-e", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True) as tracer:
        while tracer.stdout.readline() != "on\n":  # what comes before it was placed before
            assert tracer.poll() is None, "bpftrace cannot"
        fixture.release()
        truth = Truth(fixture.process.stdout.readline())
        yrt.stop(tracer, signal.SIGINT)
        return truth


def main():
    failed = False
    for allocator in ALLOCATORS:
        for word, mode in MODES.items():
            alone = statistics.median(beside(allocator, mode)[0].cpu_of_call() for _ in range(3))

            def line(name, truth, more=""):
                taken = (truth.cpu_s - alone * truth.all_calls) / truth.wall_s
                print(f"{allocator}, {word}: {name}: {truth.all_calls / truth.wall_s:.3g} calls a second, rate "
                      f"{alone / truth.cpu_of_call():.3f} of alone, {taken:.1%} of a CPU taken{more}", flush=True)
                return taken > MOST

            for which in ("bytes", "calls"):
                truth, result = beside(allocator, mode, "alloc", *(["--calls"] if which == "calls" else []))
                said, true = result.stats["alloc"], getattr(truth, which)
                seen = {name: yrt.count(result.stacks, name) for name in true}
                low, high = (n / sum(true.values()) for n in said[f"{which}_interval"])
                failed |= line("alloc", truth, f"; worst site {worst(seen, true):.2f} points of {which}, total "
                               f"{said[which] / sum(true.values()):.2f} ({low:.2f}-{high:.2f})")
            failed |= line("leak", beside(allocator, mode, "leak")[0])
            if allocator == "glibc":
                line("every call", beside(allocator, mode, "leak", "--max-cpu", "0")[0])
                if shutil.which("heaptrack"):
                    with tempfile.TemporaryDirectory() as folder:
                        line("heaptrack", under(("heaptrack", "-o", f"{folder}/h"), mode))
                if shutil.which("bpftrace"):
                    line("bpftrace", bpftrace(mode))
            if allocator == "jemalloc":
                truth, off = jemalloc_itself(mode)
                line("its own profile", truth, f"; worst site {off:.2f} points of bytes" if off is not None else "")
    return failed


sys.exit(main())
