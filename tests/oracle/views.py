# SPDX-License-Identifier: Apache-2.0
"""
What yrt shows of one recording: a view of Java has nothing of the JVM around its first method, and formats keep the
marks of frames whose place is approximate (~) or a guess (?).
"""

import collections
import os
import re
import subprocess
import tempfile

import pprof
from machine import Process

MARKS = {"approx": "~", "guess": "?"}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode not in (0, 6):
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


def outside_methods(profile):
    """Stacks with methods of Java that begin with something else."""
    found, samples = {}, 0
    for stack in profile.stacks:
        if stack.truncated or not any(f.script == "hotspot" and f.plain != "(gc)" for f in stack.frames):
            continue
        samples += stack.count
        first = stack.frames[0]
        if not first.script:
            found.setdefault(first.plain, []).append(stack)
    for name, stacks in found.items():
        n = sum(s.count for s in stacks)
        yield f"{name} is outside of the first method in {n} of {samples} samples", n


def marked_samples(profile):
    """{mark: samples whose innermost frame has it}"""
    found = collections.Counter()
    for stack in profile.stacks:
        for mark in stack.frames[-1].marks & MARKS.keys() if stack.frames else ():
            found[mark] += stack.count
    return found


def dropped_marks(profile, folded):
    """Marks that folded stacks of the same recording lack."""
    shown = collections.Counter()
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        signs = re.match(r"(\? )?(~ )?", stack.rpartition(";")[2])[0]
        shown.update({mark: int(count) for mark, sign in MARKS.items() if sign in signs})
    for mark, n in marked_samples(profile).items():
        if shown[mark] != n:
            yield f"{n} samples end in a frame marked '{MARKS[mark]}'; in folded stacks {shown[mark]} do"


def check(yrt, pid, seconds, rate):
    """Lines for people, and whether something is wrong."""
    with tempfile.TemporaryDirectory(prefix="oracle-views-") as directory:
        view, recording, profile = (os.path.join(directory, n) for n in ("view.pb.gz", "all.yrt", "all.pb.gz"))
        common = ("-p", str(pid), "-d", str(seconds), "-F", str(rate), "--max-cpu", "0", "-q")
        faults, lines = [], []
        java = any("libjvm.so" in m[4] for m in Process(pid).maps)
        if java:
            run(yrt, "java-flame", *common, "-f", "pprof", "-o", view)
            seen = pprof.read(view)
            faults += [what for what, _ in outside_methods(seen)]
        run(yrt, "record", *common, "--annotate", "-o", recording)
        run(yrt, "render", recording, "--annotate", "-f", "pprof", "-o", profile)
        whole = pprof.read(profile)
        faults += dropped_marks(whole, run(yrt, "render", recording, "--annotate", "-f", "folded", "-o", "-"))
        marked = sum(marked_samples(whole).values())
        lines.append(f"  views    {'java-flame, ' if java else ''}marks of {marked} samples")
    return lines + [f"FAULT views: {what}" for what in faults], bool(faults)
