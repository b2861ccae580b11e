# SPDX-License-Identifier: Apache-2.0
"""
Flat shares: how often each function is the one that runs, beside a sampler that does not unwind (perf without -g) at
work in the same seconds; and samples of each thread beside the CPU time that the scheduler counted.
"""

import collections
import itertools
import math
import os
import subprocess
import tempfile
import threading
import time

import native

CHANCE = 1e-4  # of any false alarm in one comparison
FEWEST = 20    # samples of both that a function needs to be compared by itself


class Plain:
    """perf, sampling a process for some seconds from now on."""

    def __init__(self, pid, seconds, rate):
        self.directory = tempfile.TemporaryDirectory(prefix="oracle-perf-")
        self.path = os.path.join(self.directory.name, "data")
        self.process = subprocess.Popen(
            [
                "perf",
                "record",
                "-q",
                "-e",
                "cpu-clock",
                "-F",
                str(rate),
                "-p",
                str(pid),
                "-o",
                self.path,
                "--",
                "sleep",
                str(seconds),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def flat(self, process):
        """{function: samples}"""
        error = self.process.communicate()[1]
        with self.directory:
            if self.process.returncode:
                raise RuntimeError(f"perf: {error.decode(errors='replace')[-300:]}")
            out = subprocess.run(
                ["perf", "script", "-i", self.path, "-F", "ip"], capture_output=True, text=True, check=True
            ).stdout
        return collections.Counter(bucket(process, *process.place(int(word, 16))) for word in out.split())


def bucket(process, file, address):
    if address >> 47:
        return "[kernel]"
    function = file.function(address) if file else None
    return str(function) if function else os.path.basename(file.path) if file else "[no file]"


def flat(profile, process):
    """
    The same of a profile: the innermost frame of machine code is what runs. A JIT's code, which some show as methods,
    is in no file.
    """
    found = collections.Counter()
    for stack in profile.stacks:
        frame = next(
            (f for f in reversed(stack.frames) if f.native or f.mapping == "[kernel]" or f.script == "hotspot"), None
        )
        if not frame:
            continue
        place = native.place_of(process, frame) if frame.native else None
        found[
            (
                "[kernel]"
                if frame.mapping == "[kernel]"
                else bucket(process, place.file, place.address) if place else "[no file]"
            )
        ] += stack.count
    return found


def unlikely(a, b):
    """
    How unlikely two counts of na and nb samples are if the shares are the same: by the normal approximation, two-sided.
    """
    (x, nx), (y, ny) = a, b
    share = (x + y) / (nx + ny)
    spread = math.sqrt(share * (1 - share) * (1 / nx + 1 / ny))
    return math.erfc(abs(x / nx - y / ny) / spread / math.sqrt(2)) if spread else 1.0


def differences(ours, theirs):
    """(how many were compared, [what differs beyond chance])"""
    nx, ny = sum(ours.values()), sum(theirs.values())
    names = [n for n in ours.keys() | theirs.keys() if ours[n] + theirs[n] >= FEWEST]
    if not names or min(nx, ny) < 100:
        return 0, []
    found = []
    for name in names:
        p = unlikely((ours[name], nx), (theirs[name], ny)) * len(names)
        if p < CHANCE:
            found.append(
                f"{name}: {ours[name] / nx:.2%} of {nx} samples, {theirs[name] / ny:.2%} of {ny} by a sampler that does"
                " not unwind"
            )
    return len(names), sorted(found)


def thread_times(pid):
    """{thread: seconds on a CPU}"""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/schedstat") as file:
                found[int(tid)] = int(file.read().split()[0]) * 1e-9
        except (OSError, ValueError, IndexError):
            continue
    return found


class Watch(threading.Thread):
    """Notes the CPU times of a process's threads, some times a second."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.notes, self.done = pid, [], threading.Event()
        self.start()

    def run(self):
        while not self.done.is_set():
            self.notes.append((time.time_ns(), thread_times(self.pid)))
            self.done.wait(0.05)
        self.notes.append((time.time_ns(), thread_times(self.pid)))

    def end(self):
        self.done.set()
        self.join()

    def at(self, moment):
        """{thread: seconds on a CPU} at a moment, between two notes."""
        for (t0, a), (t1, b) in itertools.pairwise(self.notes):
            if t0 <= moment <= t1:
                part = (moment - t0) / (t1 - t0)
                return {tid: a[tid] + (b[tid] - a[tid]) * part for tid in a.keys() & b.keys()}
        return self.notes[0 if moment < self.notes[0][0] else -1][1]


def thread_differences(profile, watch, rate):
    """Of threads that lived all the time: what has more or fewer samples than chance and 3 % explain."""
    before, after = watch.at(profile.begin_ns), watch.at(profile.begin_ns + profile.duration_ns)
    counted, expected = collections.Counter(), {}
    for stack in profile.stacks:
        if isinstance(tid := stack.labels.get("thread_id"), int) and tid in before and tid in after:
            counted[tid] += stack.count
    for tid in before.keys() & after.keys():
        expected[tid] = (after[tid] - before[tid]) * rate
    found = []
    for name, got, want in [("all threads", sum(counted.values()), sum(expected.values())),
                            *((f"thread {t}", counted[t], expected[t]) for t in expected)]:
        if abs(got - want) > (3 if name == "all threads" else 4) * math.sqrt(want + 1) + 0.03 * want:
            found.append(f"{name}: {got} samples, {want:.0f} by the scheduler's CPU time")
    return len(expected), found
