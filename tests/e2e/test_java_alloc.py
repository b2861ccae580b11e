# SPDX-License-Identifier: Apache-2.0
"""
yrt java-alloc: what it leaves behind (nothing, also when killed), threads, objects beside bytes in every format, taken
debug registers, what it refuses. How right its shares are: test_java_alloc_sites.py.
"""

import ctypes
import json
import math
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

import java
import java_alloc
import yrt

sys.path.insert(0, os.path.join(yrt.SOURCE, "tests", "tools"))
import oracles  # noqa: E402

SECONDS = 4
BREAKPOINT, WRITE, PERF_EVENT_OPEN = 5, 2, 298
INT3, ENDBR64 = 0xCC, b"\xf3\x0f\x1e\xfa"


def alloc(pid, *flags, **kw):
    return yrt.run("java-alloc", "-p", pid, "-d", SECONDS, *flags, **kw)


def sites_of(pid):
    """Addresses in the process of the functions that report allocations."""
    with open(f"/proc/{pid}/maps") as f:
        lines = [line.split() for line in f if line.rstrip().endswith("/libjvm.so")]
    start, path = int(lines[0][0].split("-")[0], 16), f"/proc/{pid}/root{lines[0][5]}"
    table = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    found = [start + int(line.split()[0], 16) for line in table.splitlines() if "send_allocation_in_new" in line
             or "send_allocation_outside" in line or "GCTracer15report_gc_start" in line]
    assert len(found) == 3, table
    return [at + 4 if bytes_at(pid, at, 4) == ENDBR64 else at for at in found]


def bytes_at(pid, address, n):
    with open(f"/proc/{pid}/mem", "rb") as f:
        f.seek(address)
        return f.read(n)


def first_bytes(pid, addresses):
    return [bytes_at(pid, address, 1)[0] for address in addresses]


def take_debug_registers(where):
    """Four on each (thread, CPU), until the descriptors are closed."""
    libc, word, fds = ctypes.CDLL(None, use_errno=True), ctypes.c_uint64(), []
    for thread, cpu in where:
        for _ in range(4):
            attr = bytearray(128)
            struct.pack_into("<IIQQ", attr, 0, BREAKPOINT, len(attr), 0, 1)
            struct.pack_into("<IQQ", attr, 52, WRITE, ctypes.addressof(word), 8)
            fd = libc.syscall(PERF_EVENT_OPEN, (ctypes.c_char * len(attr)).from_buffer(attr), thread, cpu, -1, 0)
            assert fd >= 0, f"perf_event_open: {os.strerror(ctypes.get_errno())}"
            fds.append(fd)
    return fds, word


@yrt.measured
def test_nothing_is_left():
    with java_alloc.Sites(2) as sites:
        addresses = sites_of(sites.pid)
        before = first_bytes(sites.pid, addresses)
        assert INT3 not in before
        for how, env in ((signal.SIGINT, {}), (signal.SIGINT, {"YRT_NO_MULTI": "1"}), (signal.SIGKILL, {})):
            run = yrt.Run("java-alloc", "-p", sites.pid, "-d", 600, env=env).sampling()
            deadline = time.monotonic() + 30
            # they may come in shifts
            while not (in_place := set(first_bytes(sites.pid, addresses)) == {INT3}) and time.monotonic() < deadline:
                time.sleep(0.02)
            assert in_place, "the probes were never in place"
            time.sleep(0.5)
            run.process.send_signal(how)
            result = run.result()
            assert result.code == (yrt.OK if how == signal.SIGINT else -signal.SIGKILL), result.stderr
            assert how == signal.SIGKILL or result.stats["alloc"]["refills"] > 10, result.stats
            while first_bytes(sites.pid, addresses) != before and time.monotonic() < deadline:
                time.sleep(0.05)
            assert first_bytes(sites.pid, addresses) == before, f"{how.name} left a probe behind"
        sites.finish()


@yrt.measured
def test_threads():
    with java_alloc.Sites(3) as sites:
        result = alloc(sites.pid, "-t").expect()
        by_thread = {}
        for frames, n in result.stacks:
            by_thread[frames[0]] = by_thread.get(frames[0], 0) + n
        whole = sum(by_thread.values())
        stats = result.stats["alloc"]
        assert abs(whole / stats["bytes"] - 1) < 0.01, f"{whole} drawn, {stats['bytes']} allocated"
        workers = [n for name, n in by_thread.items() if name.startswith("allocator-")]
        assert len(workers) == 3 and min(workers) > 0.1 * whole, by_thread
    yield f"{len(by_thread)} threads"


@yrt.measured
def test_formats():
    with java_alloc.Sites(1) as sites, tempfile.TemporaryDirectory() as folder:
        recording = os.path.join(folder, "x.yrt")
        alloc(sites.pid, "-o", recording, output=False).expect()
        out = {}
        for name in ("pb.gz", "speedscope.json", "svg", "txt", "html", "folded"):
            out[name] = os.path.join(folder, f"out.{name}")
            yrt.run("render", recording, "-o", out[name], output=False, stats=False).expect()
        with open(out["speedscope.json"]) as f:
            profile = json.load(f)["profiles"][0]
        whole = sum(n for _, n in yrt.parse_folded(yrt.read(out["folded"])))
        assert profile["unit"] == "bytes" and sum(profile["weights"]) == whole
        assert '"unit":"bytes"' in yrt.read(out["html"]).replace(" ", "")
        profile = oracles.Pprof(out["pb.gz"])
        profile.check()
        assert profile.types() == [("alloc_objects", "count"), ("alloc_space", "bytes")], profile.types()
        objects, size = (sum(n for _, n in profile.stacks(i)) for i in (0, 1))
        assert size == whole and 0 < objects < whole, (objects, size, whole)
    yield f"{whole / 1e9:.1f} GB"


@yrt.measured
def test_objects():
    with java_alloc.Sites(1) as sites:
        window = java_alloc.Window(sites)
        with window:
            result = alloc(sites.pid, "--objects", "-F", 500).expect()
        total = sum(n for _, n in result.stacks)
        # objects of one size: their share of all is what the fixture counts, as far as 300 samples of a site can show
        small = {"plain_object", "boxed", "node", "bytes_48"}
        measured = {
            name: sum(n for frames, n in result.stacks if java_alloc.site_of(frames, small) == name) for name in small
        }
        truth = {name: window.bytes[name] / sites.sizes[name] for name in small}
        for name in small:
            share, true = measured[name] / sum(measured.values()), truth[name] / sum(truth.values())
            assert abs(share - true) < 0.15, f"{name}: {share:.1%} of the small objects, in truth {true:.1%}"
    yield f"{total} objects"


@yrt.measured
def test_filter():
    """Stacks that are left out as asked leave the others what they are."""
    with java_alloc.Sites(1) as sites:
        with java_alloc.Window(sites) as window:
            result = alloc(sites.pid, "-F", 500, "-I", "bytes_48").expect()
    stats, whole = result.stats["alloc"], sum(n for _, n in result.stacks)
    assert result.stats["filtered_samples"] and stats["samples"], result.stats
    share, truth = whole / stats["bytes"], window.shares["bytes_48"]
    assert (
        abs(share - truth) < java_alloc.limit(truth, stats["samples"] / truth) / 100
    ), f"{share:.1%} of the bytes, in truth {truth:.1%}"
    yield f"{share:.1%} of the bytes, in truth {truth:.1%}, {stats['samples']} samples"


def check_survey(shares, truth, samples):
    """
    Bytes by class and size are from few whole buffers; sites that make the same are distinguished by the few stacks of
    refills.
    """
    for name, share in truth.items():
        limit = max(4.0, 100 * 4 * math.sqrt(share * (1 - share) / (samples / 4)))
        assert (
            abs(shares[name] - share) * 100 < limit
        ), f"{name}: {shares[name]:.1%}, in truth {share:.1%}, {samples} samples"


@yrt.measured
def test_without_debug_registers():
    fds, word = take_debug_registers([(-1, cpu) for cpu in sorted(os.sched_getaffinity(0))])
    try:
        with java_alloc.Sites(1) as sites:
            window = java_alloc.Window(sites)
            with window:
                result = alloc(sites.pid, "-F", 500).expect()
            stats = result.stats["alloc"]
            assert not stats["debug_registers"] and stats["traps"] == 0 and stats["survey"] and stats["buffers"], stats
            assert "debug registers are not available" in result.stderr and "without debug registers" in result.stderr
            assert f"bytes by class and size from {stats['buffers']} buffers" in result.stderr, result.stderr
            assert stats["samples"] > 100, stats
            measured, other = java_alloc.shares(result.stacks, window.shares)
            check_survey(measured, window.shares, stats["samples"])
            assert (
                abs(other * stats["bytes"] - stats["unseen_bytes"]) < 0.01 * stats["bytes"]
            ), f"{other:.1%} elsewhere: {stats}"
            error, site = java_alloc.worst(window.shares, measured)
    finally:
        for fd in fds:
            os.close(fd)
    yield (
        f"{stats['samples']} samples by refills, {stats['buffers']} buffers, {word.value} writes, worst {error:.2f}"
        f" points ({site})"
    )


@yrt.measured
def test_cycle_without_debug_registers():
    """
    Rounds of the same 102,400 bytes in TLABs of a constant size: stacks of refills alone see 78/22/0. Nothing gets more
    than its due.
    """
    truth = {"seventy": 0.7, "twenty": 0.2, "ten": 0.1}
    fds, _ = take_debug_registers([(-1, cpu) for cpu in sorted(os.sched_getaffinity(0))])
    try:
        with java.Java("alloc_split", 60) as jvm:
            result = alloc(jvm.pid, "-F", 500).expect()
    finally:
        for fd in fds:
            os.close(fd)
    whole, shares = sum(n for _, n in result.stacks), dict.fromkeys(truth, 0)
    for frames, n in result.stacks:
        for name in [f.split("alloc_split.")[-1].split("_[")[0] for f in frames]:
            if name in shares:
                shares[name] += n / whole
    unseen = sum(n for frames, n in result.stacks if any(f.startswith("[no stack seen]") for f in frames)) / whole
    for name, share in truth.items():
        assert share - unseen - 0.04 < shares[name] < share + 0.04, f"{shares}, {unseen:.1%} unseen; in truth {truth}"
    yield f"{shares}, no stack seen for {unseen:.1%}"


@yrt.measured
def test_debug_registers_of_threads():
    """Another profiler watches the JVM's threads at four addresses each: those of yrt itself are free."""
    with java_alloc.Sites(2) as sites:
        fds, _ = take_debug_registers([(int(tid), -1) for tid in os.listdir(f"/proc/{sites.pid}/task")])
        try:
            result = alloc(sites.pid, "-F", 500).expect()
        finally:
            for fd in fds:
                os.close(fd)
        stats = result.stats["alloc"]
        assert not stats["debug_registers"] and stats["traps"] == 0 and stats["refused"], stats
        assert "debug registers are not available" in result.stderr and "without debug registers" in result.stderr
        assert stats["samples"] > 100, stats
    yield f"{stats['samples']} samples by refills, {stats['refused']} watchpoints refused"


@yrt.measured
def test_refusals():
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        result = alloc(sleeper.pid)
        assert (
            result.code == yrt.UNSUPPORTED and f"process {sleeper.pid} runs no language" in result.stderr
        ), result.stderr
    finally:
        yrt.stop(sleeper)
    for flags in (["--interval", "10"], ["--interval", "5x"], ["--interval", "-1"]):
        result = yrt.run("java-alloc", "-p", os.getpid(), *flags)
        assert result.code == yrt.USAGE and "--interval takes bytes" in result.stderr, result.stderr


@yrt.measured
def test_command():
    """A JVM that yrt starts, from its start to its end."""
    words = [*java.words(), "-cp", java.class_path(), "alloc_split", "5"]
    result = yrt.run("java-alloc", "--", *words, timeout=300).expect()
    split = sum(n for frames, n in result.stacks if any("alloc_split" in f for f in frames))
    whole = sum(n for _, n in result.stacks)
    assert whole and split > 0.5 * whole, f"{split} of {whole} bytes\n{result.stderr}"
    yield f"{result.stats['alloc']['samples']} samples"


yrt.main(globals())
