# SPDX-License-Identifier: Apache-2.0
"""
What the tests of java-alloc share: fixtures/java/alloc_sites.java at work, the bytes that it counted by site between
two moments, and those that a profile gives them. Not a test itself.
"""

import array
import math
import os
import tempfile
import time

import java

COLLECTORS = {
    "Serial": "-XX:+UseSerialGC",
    "Parallel": "-XX:+UseParallelGC",
    "G1": "-XX:+UseG1GC",
    "ZGC": "-XX:+UseZGC",
    "Shenandoah": "-XX:+UseShenandoahGC",
}

POINTS, SIGMAS = 2.0, 4


def options(name):
    """Those of a collector. What C1's code takes from the heap by itself no probe sees, up to 10; yrt says so."""
    silent = name in ("Serial", "Parallel") and java.version() < 11
    return [COLLECTORS[name], *(["-XX:-FastTLABRefill"] if silent else [])]


class Sites:
    """The fixture with its counts. heap: as -Xmx takes it."""

    def __init__(self, threads, *options, pause=0, heap="2g", timeout=300):
        self.dir = tempfile.TemporaryDirectory(prefix="yrt-alloc-")
        self.path = os.path.join(self.dir.name, "counts")
        self.jvm = java.Java(
            "alloc_sites", threads, self.path, pause, options=[f"-Xmx{heap}", *options], timeout=timeout
        )
        self.pid, self.sizes = self.jvm.pid, self.jvm.start["sites"]

    def __enter__(self):
        return self

    def __exit__(self, *details):
        self.jvm.__exit__(*details)
        self.dir.cleanup()

    def bytes(self):
        """{site: bytes so far}"""
        counts = array.array("q")
        with open(self.path, "rb") as f:
            counts.frombytes(f.read())
        n = len(self.sizes)
        return {name: size * sum(counts[i::n]) for i, (name, size) in enumerate(self.sizes.items())}

    def finish(self):
        """What it says at its end: its own bytes by site, and the JVM's of all."""
        self.jvm.process.stdin.close()
        return self.jvm.answer()


class Window:
    """The bytes by site between its begin and end."""

    def __init__(self, sites):
        self.sites = sites

    def __enter__(self):
        self.before, self.begin = self.sites.bytes(), time.monotonic()
        return self

    def __exit__(self, *_):
        after = self.sites.bytes()
        self.seconds = time.monotonic() - self.begin
        self.bytes = {name: after[name] - self.before[name] for name in after}
        self.total = sum(self.bytes.values())
        self.shares = {name: n / max(self.total, 1) for name, n in self.bytes.items()}


def site_of(frames, names):
    """The site of a stack, root first: the innermost frame that is one."""
    for frame in reversed(frames):
        name = frame.split("alloc_sites.")[-1].split("(")[0].split("_[")[0].split(" ")[0]
        if "alloc_sites." in frame and name in names:
            return name
    return None


def shares(stacks, names):
    """({site: share of what stacks of sites weigh}, the share of all weight that belongs to none)"""
    weights, other = dict.fromkeys(names, 0), 0
    for frames, weight in stacks:
        site = site_of(frames, names)
        if site:
            weights[site] += weight
        else:
            other += weight
    total = sum(weights.values())
    assert total, "no stack with any of the sites"
    return {name: n / total for name, n in weights.items()}, other / (total + other)


def worst(truth, measured):
    """(error in points of the site that is farthest off, its name)"""
    return max((abs(measured[name] - truth[name]) * 100, name) for name in truth)


def limit(share, samples):
    """Points: POINTS, or where that is more, what random sampling alone exceeds in one of 15,000 sites."""
    return max(POINTS, 100 * SIGMAS * math.sqrt(share * (1 - share) / samples))


def check_shares(truth, stacks, samples):
    measured, other = shares(stacks, truth)
    error, site = worst(truth, measured)
    shown = "\n".join(f"  {name:16} {truth[name]:7.2%} {measured[name]:7.2%}" for name in truth)
    for name, share in truth.items():
        off = 100 * abs(measured[name] - share)
        assert off <= limit(share, samples), f"{name} is {off:.2f} points off at {samples:.0f} samples\n{shown}"
    assert other < 0.01, f"{other:.1%} of the bytes belong to no site"
    return f"{samples:.0f} samples, worst {error:.2f} points ({site}), {other:.2%} elsewhere"
