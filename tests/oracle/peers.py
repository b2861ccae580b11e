# SPDX-License-Identifier: Apache-2.0
"""
Shares of a language's functions beside a profiler of that language at work in the same seconds: py-spy for Python (the
function that runs), async-profiler for Java (the functions on the stack). Where both say that a function has some
share, the two must not be further apart than chance and SYSTEMATIC explain: they stop a program at other moments than
yrt does.
"""

import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

import shares
from java_edges import NAME

SYSTEMATIC = 0.03
OF_NO_PACKAGE = re.compile(r"[\w$]+(\.0x[0-9a-f]+)?\.(?!cold|part|isra|constprop)[a-z]\w*")


def py_spy():
    """Beside the interpreter of the oracle, or of the system."""
    beside = os.path.join(os.path.dirname(sys.executable), "py-spy")
    return beside if os.path.exists(beside) else shutil.which("py-spy")


class Peer:
    """A profiler that writes folded stacks of a process for some seconds, from now on."""

    def __init__(self, language, command, path, own, theirs):
        self.language, self.path, self.own, self.theirs = language, path, own, theirs
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    def differences(self, profile):
        """(how many functions were compared, [what differs])"""
        error = self.process.communicate()[1]
        if self.process.returncode or not os.path.exists(self.path):
            raise RuntimeError(f"{self.process.args[0]}: {error.decode(errors='replace')[-300:]}")
        theirs, ntheirs, ours, nours = collections.Counter(), 0, collections.Counter(), 0
        with open(self.path, errors="replace") as lines:
            for line in lines:
                stack, _, count = line.rstrip("\n").rpartition(" ")
                names = self.theirs(stack.split(";"))
                theirs.update({n: int(count) for n in names})
                ntheirs += int(count) if names else 0
        for stack in profile.stacks:
            names = self.own([f for f in stack.frames if f.script == self.language])
            ours.update({n: stack.count for n in names})
            nours += stack.count if names else 0
        return compare(ours, nours, theirs, ntheirs)


def compare(ours, nours, theirs, ntheirs):
    names = [n for n in ours.keys() | theirs.keys() if ours[n] + theirs[n] >= shares.FEWEST]
    if not names or min(nours, ntheirs) < 100:
        return 0, []
    found = []
    for name in names:
        x, y = ours[name] / nours, theirs[name] / ntheirs
        nearer = max(y - SYSTEMATIC, x) if y > x else min(y + SYSTEMATIC, x)
        if shares.unlikely((ours[name], nours), (nearer * ntheirs, ntheirs)) * len(names) < shares.CHANCE:
            found.append(f"{name}: {x:.2%} of {nours} samples, {y:.2%} of {ntheirs} by the language's own profiler")
    return len(names), sorted(found)


def python_function(name):
    """A function's own name: py-spy has no class in it before 3.11, and no line."""
    return name.rsplit(".", 1)[-1].strip("<>")


def python_own(frames):
    frames = [f for f in frames if f.plain != "(gc)"]
    if not frames:
        return set()
    name = re.sub(r" \([^()]*\)$", "", frames[-1].plain)
    return {(python_function(name), os.path.basename(frames[-1].file))}


def python_theirs(frames):
    found = re.fullmatch(r"(.*) \(([^()]*):\d+\)", frames[-1])
    return {(python_function(found[1]), os.path.basename(found[2]))} if found else set()


def plain_class(name):
    """Hidden classes have numbers of their own."""
    return re.sub(r"\$\$Lambda.*\.|\$\$Lambda[^.]*|0x[0-9a-f]+|/\d+", "$$", name)


def java_own(frames):
    """Approximate ones, too: both take the place that the JVM has noted nearest to the program counter."""
    return {plain_class(found["owner"] + "." + found["method"]) for f in frames if (found := NAME.fullmatch(f.plain))}


def java_theirs(frames):
    if any(f.startswith("[") for f in frames):  # [unknown_Java], [not_walkable_Java], ...: frames are missing
        return set()
    return {plain_class(f.replace("/", ".")) for f in frames if "/" in f or OF_NO_PACKAGE.fullmatch(f)}


def start(pid, maps, seconds, directory):
    """The profiler for what runs in the process; None: there is none."""
    path = os.path.join(directory, "peer.folded")
    if any("libjvm.so" in m[4] for m in maps):
        if not os.environ.get("AP_LOADER"):
            return None
        java = os.readlink(f"/proc/{pid}/exe")
        command = [
            java,
            "-jar",
            os.environ["AP_LOADER"],
            "profiler",
            "-e",
            "itimer",
            "-i",
            "5ms",
            "-d",
            str(int(seconds)),
            "-o",
            "collapsed",
            "-f",
            path,
            str(pid),
        ]
        return Peer("hotspot", command, path, java_own, java_theirs)
    if any(re.search(r"/(libpython|python)\d", m[4]) for m in maps):
        spy = py_spy()
        command = [
            spy,
            "record",
            "--nonblocking",
            "-r",
            "199",
            "-d",
            str(int(seconds)),
            "-f",
            "raw",
            "-o",
            path,
            "-p",
            str(pid),
        ]
        return Peer("python", command, path, python_own, python_theirs) if spy else None
    return None


def compare_with_peer(pid, maps, seconds, sample):
    """Lines for people, and whether something is wrong. sample() samples with yrt meanwhile and gives the profile."""
    with tempfile.TemporaryDirectory(prefix="oracle-peer-") as directory:
        peer = start(pid, maps, seconds, directory)
        profile = sample()
        if not peer:
            return profile, ["  peer     none for this process"], False
        number, wrong = peer.differences(profile)
    return (
        profile,
        [
            f"  peer     {number} functions of {peer.language} compared, {len(wrong)} differ",
            *(f"FAULT peer: {what}" for what in wrong),
        ],
        bool(wrong),
    )
