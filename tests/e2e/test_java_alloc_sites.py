# SPDX-License-Identifier: Apache-2.0
"""
yrt java-alloc against a program that counts what its fifteen call sites allocate, with each collector: shares of bytes
within 2 points, or within four standard errors where a busy machine gives few samples, each site's class, totals, and
the three sites whose cycle resonates with TLABs.
"""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time

import java
import java_alloc
import yrt

SECONDS = 5  # at least, of real time and of the JVM's CPU time: a few arrays of 10 MB would have no exact share
RATE = 500  # as by default, but whatever it costs here
LEAST = 300
UNSEEN = "[class not seen]"
MISSED = 0.02  # of the bytes may have no class
SLOW_PATH = (
    "Runtime1",
    "OptoRuntime",
    "InterpreterRuntime::",
    "MemAllocator",
    "AllocTracer",
    "_Java",
    "CollectedHeap",
    "Klass::allocate",
    "memset",
    "arraycopy",
    "_fill",
)
CLASSES = {
    "plain_object": "java.lang.Object",
    "boxed": "java.lang.Long",
    "node": "alloc_sites$Node",
    "bytes_48": "byte[]",
    "bytes_1000": "byte[]",
    "bytes_10m": "byte[]",
    "references": "alloc_sites$Node[]",
    "longs_cloned": "long[]",
}


def collections(log):
    """How many collections the JVM reports in its log."""
    return len(re.findall(r"\[GC|\[Full GC|Pause", yrt.read(log)))


def watch(pid, *flags, window=contextlib.nullcontext(), seconds=SECONDS):
    run = yrt.Run("java-alloc", "-p", pid, "-d", 150, *flags).sampling()
    with window:
        end = time.monotonic() + seconds
        yrt.busy_for([pid], seconds)
        time.sleep(max(0, end - time.monotonic()))
        run.interrupt()
    return run.result().expect()


def check_shares(truth, stacks, samples):
    assert samples >= LEAST, f"only {samples:.0f} samples"
    return java_alloc.check_shares(truth, stacks, samples)


def check_hidden(stacks):
    """The VM's slow path stands between no method and its object."""
    shown = {f for frames, _ in stacks for f in frames if any(word in f for word in SLOW_PATH)}
    assert not shown, f"not hidden: {shown}"


def check_classes(stacks, stats):
    """
    None is wrong, few are not known (a collection came before yrt could look), and those are said. Returns their share.
    """
    unseen = total = 0
    for site, name in CLASSES.items():
        mine = [(frames[-1].split("_[")[0], n) for frames, n in stacks if java_alloc.site_of(frames, CLASSES) == site]
        wrong = {leaf for leaf, _ in mine} - {name, UNSEEN}
        assert not wrong, f"{site} makes {name}, not {wrong}"
        unseen += sum(n for leaf, n in mine if leaf == UNSEEN)
        total += sum(n for _, n in mine)
    said = stats["alloc"]["samples_without_class"]
    assert not unseen or said, f"{unseen / total:.1%} of the bytes have no class, and nothing says so"
    assert unseen / total <= MISSED, f"{unseen / total:.1%} of the bytes have no class"
    return unseen / total


def collector(name, threads):
    with java_alloc.Sites(threads, *java_alloc.options(name)) as sites:
        window = java_alloc.Window(sites)
        result = watch(sites.pid, "-F", RATE, window=window)
        text = check_shares(window.shares, result.stacks, result.stats["alloc"]["effective_samples"])
        check_hidden(result.stacks)
        text += f", {check_classes(result.stacks, result.stats):.2%} without a class"
        own = sites.finish()
        total = sum(own["bytes"].values())
        assert abs(own["jvm"] / total - 1) < 1e-3, f"the fixture counts {total}, the JVM {own['jvm']}"
    return text


@yrt.measured
def test_serial():
    yield collector("Serial", 1)


@yrt.measured
def test_serial_busy():
    """
    Dozens of collections a second, beside programs that want all CPUs: a class is lost with each that begins before it
    is read.
    """
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
    try:
        with tempfile.TemporaryDirectory(prefix="yrt-alloc-") as folder, java_alloc.Sites(
                2, *java_alloc.options("Serial"), "-Xmn40m", f"-Xloggc:{folder}/gc") as sites:
            window = java_alloc.Window(sites)
            before = collections(f"{folder}/gc")
            result = watch(sites.pid, "-F", RATE, window=window)
            rate = (collections(f"{folder}/gc") - before) / window.seconds
            assert rate > 5, f"only {rate:.1f} collections a second"
            yield f"{rate:.0f} collections a second, {check_classes(result.stacks, result.stats):.2%} without a class"
    finally:
        for hog in hogs:
            yrt.stop(hog)


@yrt.measured
def test_parallel():
    yield collector("Parallel", 8)


@yrt.measured
def test_g1():
    yield collector("G1", 8)


@yrt.measured
def test_z():
    yield collector("ZGC", 1)
    yield collector("ZGC", 8)


@yrt.measured
def test_shifts():
    """At its default rate yrt takes its uprobes away for most of the time, where they alone would cost too much."""
    with java_alloc.Sites(2, *java_alloc.options("G1")) as sites:
        window = java_alloc.Window(sites)
        result = watch(sites.pid, window=window, seconds=2 * SECONDS)
    stats = result.stats["alloc"]
    said = "% of the time to bound that" in result.stderr
    assert said == (stats["placed"] < 0.99), (stats, result.stderr)
    text = java_alloc.check_shares(window.shares, result.stacks, stats["effective_samples"])
    yield f"{text}, placed {stats['placed']:.0%} of the time, {stats['slowed']:.1%} of the CPU time"


@yrt.measured
def test_shenandoah():
    yield collector("Shenandoah", 8)


@yrt.measured
def test_many_threads():
    yield collector("G1", 200)


@yrt.measured
def test_cycle():
    """Rounds of the same 102,400 bytes, and TLABs of a constant size: refill events alone see 78/22/0."""
    truth = {"seventy": 0.7, "twenty": 0.2, "ten": 0.1}
    with java.Java("alloc_split", 120, timeout=300) as jvm:
        result = watch(jvm.pid, "-F", RATE)
    stacks = [([f.replace("alloc_split.", "alloc_sites.") for f in frames], n) for frames, n in result.stacks]
    yield check_shares(truth, stacks, result.stats["alloc"]["effective_samples"])


@yrt.measured
def test_grown():
    """
    An inlined allocation whose zeros are written behind all else of the compiled method: it is not that of the methods
    whose code lies there.
    """
    with java.Java("alloc_grown", 120, timeout=300) as jvm:
        result = watch(jvm.pid, "-F", RATE, seconds=2)
    share = sum(n for frames, n in result.stacks if "alloc_grown.grown" in frames) / yrt.count(result.stacks, "byte[]")
    assert share > 0.9 and not result.share(re.compile("looked_at")), yrt.show(result.stacks)
    yield f"{share:.2%}"


yrt.main(globals())
