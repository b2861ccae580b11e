# SPDX-License-Identifier: Apache-2.0
"""
alloc on programs of others under load, against a preloaded counter of all calls (fixtures/native/counted.c): totals and
their interval, the calls of the sites that make most, and what alloc, leak and peers take: calls in a second of the
clock and of CPU time, beside those before and after. heaptrack and memray attach.

arguments: seconds of a run (10), and which programs (all). --intervals RUNS: so many runs of alloc alone, and in how
many the truth was in the interval.
"""

import argparse
import contextlib
import os
import re
import shutil
import struct
import statistics
import sys
import tempfile
import time

from pairs import yrt
from alloc_servers import PROGRAMS, process, tree

sys.path.insert(0, os.path.join(yrt.SOURCE, "tests", "oracle"))
import pprof

SITES = 65536  # as in counted.c
TICK_HZ = os.sysconf("SC_CLK_TCK")
PEERS = {
    "leak": lambda pid, d: [yrt.YRT, "leak", "-p", pid, "-d", 600, "-o", f"{d}/leak.folded"],
    "heaptrack": lambda pid, d: ["heaptrack", "-p", pid, "-o", f"{d}/heaptrack"],
    "memray": lambda pid, d: ["memray", "attach", pid, "--native", "-o", f"{d}/memray.bin"],
}


class Counter:
    """What programs with its environment have asked for."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "counted")
        with open(self.path, "wb") as file:
            file.truncate((SITES + 1) * 24)
        os.chmod(self.path, 0o666)
        self.env = {**os.environ, "COUNTED_FILE": self.path, "LD_PRELOAD": yrt.fixture_path("libcounted.so")}

    def read(self):
        """{caller: (calls, bytes)}; None: all."""
        with open(self.path, "rb") as file:
            words = struct.unpack(f"{(SITES + 1) * 3}Q", file.read())
        return {**{words[i]: words[i + 1:i + 3] for i in range(0, SITES * 3, 3) if words[i]}, None: words[-2:]}


def cpu_s(pid):
    fields = [yrt.read(f"/proc/{p}/stat").rpartition(")")[2].split() for p in tree(pid)]
    return sum(int(n) for f in fields if f for n in f[11:15]) / TICK_HZ


class Stretch:
    """What a program did in a with statement."""

    def __init__(self, counter, server):
        self.counter, self.server = counter, server

    def look(self):
        return self.counter.read(), cpu_s(self.server.pid), time.monotonic()

    def __enter__(self):
        self.began = self.look()
        return self

    def __exit__(self, *_):
        (before, cpu, at), (after, cpu_then, then) = self.began, self.look()
        self.sites = {k: [n - m for n, m in zip(v, before.get(k, (0, 0)))] for k, v in after.items()}
        self.calls, self.bytes = self.sites.pop(None)
        self.rate, self.of_cpu = self.calls / (then - at), self.calls / max(cpu_then - cpu, 1 / TICK_HZ)


def stretch(counter, server, seconds):
    with Stretch(counter, server) as ret:
        time.sleep(seconds)
    return ret


def files_of(pids):
    """A function: the address of a caller -> its file, and where it is in the file's bytes."""
    lines = [re.match(r"(\w+)-(\w+) ..(.). (\w+) \S+ \d+ +(/.*)", line)
             for pid in pids for line in yrt.read(f"/proc/{pid}/maps").splitlines()]
    maps = [(int(m[1], 16), int(m[2], 16), int(m[4], 16), m[5]) for m in lines if m and m[3] == "x"]
    return lambda at: next(((path, at - low + off) for low, high, off, path in maps if low <= at < high), ("?", at))


def in_file(frame, offsets):
    """Where the code of a frame is in its file's bytes, as maps say."""
    if frame.mapping not in offsets:
        offsets[frame.mapping] = 0
        with open(frame.mapping, "rb") as file:
            head = file.read(64)
            table, size, n = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
            file.seek(table)
            for i in range(n):
                kind, flags, offset, addr = struct.unpack_from("<IIQQ", file.read(size))
                if kind == 1 and flags & 1:
                    offsets[frame.mapping] = addr - offset
    return frame.address - offsets[frame.mapping]


def said(stacks):
    """{caller: calls}: the frame below the counter's own."""
    ret, offsets = {}, {}
    for stack in stacks:
        names = [f.name for f in stack.frames]
        at = max((i for i, name in enumerate(names) if name.startswith("counted_")), default=0)
        if at:
            caller = stack.frames[at - 1]
            key = caller.mapping, in_file(caller, offsets)
            ret[key] = ret.get(key, 0) + stack.count
    return ret


def check(name, counter, server, alone, seconds):
    """True: the truth is not in the interval."""
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "a.pb.gz")
        run = yrt.Run("alloc", "-p", server.pid, "-s", "-d", 600, "--addresses", "--no-inline", "--calls", "-o", path,
                      output=False).sampling()
        true = stretch(counter, server, seconds)
        place = files_of(tree(server.pid))
        run.interrupt()
        stats = run.result().expect().stats["alloc"]
        found = said(pprof.read(path).stacks)
    print(f"{name}: {true.rate:.3g} calls a second; alloc: rate {true.rate / alone.rate:.3f}, for a second of CPU time "
          f"{true.of_cpu / alone.of_cpu:.3f}; load {os.getloadavg()[0]:.0f}")
    missed = False
    for which in ("calls", "bytes"):
        n = max(getattr(true, which), 1)
        low, high = (end / n for end in stats[f"{which}_interval"])
        has = low <= 1 <= high
        missed |= not has
        print(f"  {which}: {stats[which] / n:.2f} of the truth ({low:.2f}-{high:.2f}){'' if has else ' MISSED'}")
    for at, (calls, _) in sorted(true.sites.items(), key=lambda s: -s[1][0])[:3]:
        path, offset = place(at)
        seen = sum(found.get((path, offset - back), 0) for back in (0, 1))
        print(f"  {os.path.basename(path)}+{offset:#x}: {calls / max(true.calls, 1):.1%} of calls, "
              f"{seen / max(sum(found.values()), 1):.1%} seen", flush=True)
    return missed


def peer(name, word, counter, server, seconds):
    with tempfile.TemporaryDirectory() as d:
        before = stretch(counter, server, seconds / 2)
        with process(*PEERS[word](server.pid, d)):
            time.sleep(seconds / 2)  # to attach
            beside = stretch(counter, server, seconds / 2)
        how = f"ended with {server.poll()}" if server.poll() is not None else \
            f"rate {beside.rate / before.rate:.3f}, for a second of CPU time {beside.of_cpu / before.of_cpu:.3f}"
        print(f"{name}: {word}: {how}; load {os.getloadavg()[0]:.0f}", flush=True)


def interval(name, counter, server, seconds):
    """Of a run with windows, for calls and bytes: of the truth, how wide the interval is, and that it has the truth."""
    run = yrt.Run("alloc", "-p", server.pid, "-s", "-d", 600, "-o", os.devnull, "-f", "folded", output=False).sampling()
    began = time.monotonic()
    true = stretch(counter, server, seconds)
    counted_s = time.monotonic() - began
    run.interrupt()
    result, said = run.result().expect(), []
    stats, times = result.stats["alloc"], float(re.search(r" in ([0-9.]+) s", result.stderr)[1]) / counted_s
    for which in ("calls", "bytes"):
        n, (low, high) = max(getattr(true, which), 1) * times, stats[f"{which}_interval"]
        said.append((stats[which] / n, high / max(low, 1), low <= n <= high))
        print(f"  {name}: {which} {said[-1][0]:.2f} of the truth ({low / n:.2f}-{high / n:.2f})"
              f"{'' if said[-1][2] else ' MISSED'}", end=";")
    print(f" {stats['windows']} windows, {'landmarks' if stats['landmarks'] else 'a guess'}, load "
          f"{os.getloadavg()[0]:.0f}", flush=True)
    return said if stats["windows"] else []


def intervals(name, counter, server, seconds, runs):
    """In how many runs with windows the truth is in the interval; the others have seen each call."""
    in_windows = [said for said in (interval(name, counter, server, seconds) for _ in range(runs)) if said]
    for which, said in zip(("calls", "bytes"), zip(*in_windows)):
        found, widths, has = zip(*said)
        print(f"{name}: {which}: truth in the interval in {sum(has)} of {len(has)}; of the truth: geometric mean "
              f"{statistics.geometric_mean(found):.2f}, {min(found):.2f}-{max(found):.2f}; the upper end is "
              f"{statistics.median(widths):.2f} times the lower one (median)", flush=True)


def steps(name, counter, server, word, seconds):
    """True: the truth is not in the interval."""
    if word:
        peer(name, word, counter, server, seconds)
        return False
    return check(name, counter, server, stretch(counter, server, seconds), seconds)


@contextlib.contextmanager
def counted(name):
    """The program, and its counter."""
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o755)
        counter = Counter(d)
        with PROGRAMS[name](d, counter.env) as server:
            time.sleep(1)
            yield counter, server


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("seconds", nargs="?", type=float, default=10)
    arguments.add_argument("programs", nargs="*", default=PROGRAMS)
    arguments.add_argument("--intervals", type=int, metavar="RUNS")
    given, missed = arguments.parse_args(), False
    for name in given.programs:
        if given.intervals:
            with counted(name) as (counter, server):
                intervals(name, counter, server, given.seconds, given.intervals)
            continue
        peers = [w for w in PEERS if w == "leak" or shutil.which(w) and (w != "memray" or name == "python")]
        for word in (None, *peers):
            with counted(name) as (counter, server):
                missed |= steps(name, counter, server, word, given.seconds)
    return missed


sys.exit(main())
