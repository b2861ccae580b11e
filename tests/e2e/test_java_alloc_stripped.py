# SPDX-License-Identifier: Apache-2.0
"""
yrt java-alloc on a JVM whose library has no symbols and no debug file, nor says of which build it is: where it
allocates is found by its code, that is said, and shares are right; code that only looks like it is refused.
"""

import os
import re
import struct
import subprocess
import tempfile

import java
import java_alloc
import yrt

SECONDS, RATE = 5, 500
LEAST = 100


def watch(pid, *flags, window):
    run = yrt.Run("java-alloc", "-p", pid, "-d", SECONDS, "-F", RATE, *flags).sampling()
    with window:
        run.process.wait(SECONDS + 120)
    return run.result()


def check(stripped, name, threads):
    with java_alloc.Sites(threads, *java_alloc.options(name)) as sites:
        assert java.library_of(sites.pid)[1] == stripped.inode, "it runs its own library"
        window = java_alloc.Window(sites)
        result = watch(sites.pid, window=window).expect()
    stats = result.stats["alloc"]
    assert stats["sites"] == "disassembly" and "found by code" in result.stderr, (stats, result.stderr)
    assert stats["refills"] and stats["outside"] and not stats["strange"], stats
    assert stats["samples"] >= LEAST, stats
    text = java_alloc.check_shares(window.shares, result.stacks, stats["effective_samples"])
    nameless = {f for frames, _ in result.stacks for f in frames if f.startswith("libjvm.so+")}
    assert not nameless, f"the VM's slow path is not hidden: {nameless}"
    unseen = sum(n for frames, n in result.stacks if frames[-1].startswith("[class not seen]"))
    assert unseen < 0.02 * sum(n for _, n in result.stacks), f"{unseen} bytes without a class"
    return f"{name}: {text}"


@yrt.measured
def test_shares():
    with java.Stripped() as stripped:
        yield check(stripped, "G1", 2)
        yield check(stripped, "Serial", 1)


def spoil(stripped):
    """
    The function that reports new TLABs tests another event than its own, which nobody but JFR (not in use) would
    notice.
    """
    table = subprocess.run(["nm", stripped.library], capture_output=True, text=True, check=True).stdout
    start = next(
        int(line.split()[0], 16)
        for line in table.splitlines()
        if "AllocTracer" in line and "send_allocation_in_new_tlab" in line
    )
    with open(stripped.path, "r+b") as f:
        f.seek(start)  # addresses of code are offsets in the file
        test = re.search(rb"\x80[\xb8-\xbf](..)\0\0\0", f.read(256), re.DOTALL)
        assert test, "no test of an event"
        f.seek(start + test.start(1))
        f.write(struct.pack("<H", struct.unpack("<H", test[1])[0] + 48))


@yrt.measured
def test_refused():
    with java.Stripped() as stripped:
        spoil(stripped)
        with java.Java("alloc_split", 60) as jvm:
            result = yrt.run("java-alloc", "-p", jvm.pid, "-d", 1)
            shown = yrt.run("inspect", "-p", jvm.pid, output=False, stats=False).expect().stdout
    assert (
        result.code == yrt.UNSUPPORTED and "has no symbols for it" in result.stderr and "openjdk-N-dbg" in result.stderr
    ), result.stderr
    assert re.search(r"places +not known", shown), shown


@yrt.measured
def test_inspect():
    with java.Stripped():
        with java.Java("alloc_split", 60) as jvm:
            shown = yrt.run("inspect", "-p", jvm.pid, output=False, stats=False).expect().stdout
    assert "by disassembly" in shown, shown


@yrt.measured
def test_debuginfod_cache():
    """A debug file that debuginfod's client has got before, by the library's build-id."""
    with java.Stripped(without=(".gnu_debuglink", ".gnu_debugdata")) as stripped, tempfile.TemporaryDirectory(
        prefix="yrt-cache-"
    ) as cache:
        note = subprocess.run(["readelf", "-n", stripped.path], capture_output=True, text=True, check=True).stdout
        folder = os.path.join(cache, re.search("Build ID: ([0-9a-f]+)", note)[1])
        os.mkdir(folder)
        subprocess.run(
            ["objcopy", "--only-keep-debug", stripped.library, os.path.join(folder, "debuginfo")], check=True
        )
        with java.Java("alloc_split", 60) as jvm:
            shown = (
                yrt.run("inspect", "-p", jvm.pid, output=False, stats=False, env={"DEBUGINFOD_CACHE_PATH": cache})
                .expect()
                .stdout
            )
    assert "by debug file" in shown, shown


yrt.main(globals())
