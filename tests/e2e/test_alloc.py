# SPDX-License-Identifier: Apache-2.0
"""
alloc: bytes and calls of fifteen sites of known size are what the program itself counts, exactly, where every call is
seen and every stack is taken; with libc's malloc and with others that replace it.
"""

import glob
import os
import re
import subprocess
import tempfile

import yrt

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
SITES = os.path.join(yrt.SOURCE, "fixtures/native/alloc_sites.c")


def count(*args, preload=None, name="alloc_sites", rounds=512, threads=1, mode=""):
    """(result, what the program counted), of a whole run of it."""
    if preload:
        os.environ["LD_PRELOAD"] = preload
    try:
        fixture = yrt.Fixture(name, rounds, mode, threads)
    finally:
        os.environ.pop("LD_PRELOAD", None)
    with fixture:
        at = yrt.Run("alloc", "-p", fixture.pid, "-d", 600, "--max-cpu", 0, *args).sampling()
        fixture.release()
        truth = fixture.finish()
        return at.result().expect(), truth["sites"]


def check(result, sites, which, what=""):
    for name, counted in sites.items():
        seen = yrt.count(result.stacks, name)
        assert seen == counted[which], f"{what} {name}: {seen} of {counted}\n{yrt.show(result.stacks)}"
    lost = result.lost()
    assert not lost and result.incomplete() == 0, result.stats
    return f"{what} {sum(c[which] for c in sites.values())} in {len(sites)} sites, {result.stats['alloc']['from']}"


def test_bytes():
    """Each site's bytes; blocks that an allocator makes of itself are not counted twice."""
    result, sites = count()
    yield check(result, sites, 1)
    stats = result.stats["alloc"]
    assert stats["stacks"] == stats["calls"] and stats["inner_calls"] and not stats["in_shifts"], stats
    assert result.stats["unit"] == "bytes" and "libc.so.6 (glibc)" in result.stderr, result.stderr


def test_calls():
    """The number of calls, of several threads."""
    result, sites = count("--calls", threads=4, rounds=128)
    yield check(result, sites, 0)


def test_by_chance():
    """Below which size blocks get a stack by chance is said, whatever the run made of it; above all are counted."""
    fixed, sites = count("--interval", 1000)
    assert fixed.stats["alloc"]["interval"] == 1000 and "of blocks below 1000 bytes by chance" in fixed.stderr
    with yrt.Fixture("alloc_sites", 4096, "", 1) as fixture:
        at = yrt.Run("alloc", "-p", fixture.pid, "-d", 600, "--max-cpu", 100).sampling()
        fixture.release()
        truth = fixture.finish()["sites"]
        paced = at.result().expect()
    for result, sites in (fixed, sites), (paced, truth):
        stats = result.stats["alloc"]
        large = {n: c for n, c in sites.items() if c[1] >= stats["interval"] * c[0]}
        assert stats["stacks"] < stats["calls"] and stats["interval"] > 16, stats
        if not stats["in_shifts"] and "rate halved" not in result.stderr:
            yield check(result, large, 1)


def test_left_out():
    """What a filter leaves out is bytes, as everything else of that line."""
    result, sites = count("-X", "site_", rounds=64)
    assert re.search(r", [0-9.]+ MiB left out as asked", result.stderr), result.stderr


def test_growth():
    """What malloc() of libc maps for large blocks: their pages, with its header."""
    result, _ = count("--growth", rounds=1)
    for name, size in (("site_12", 300000), ("site_13", 1 << 20), ("site_14", 10 << 20)):
        due = (size + 16 + 4095) // 4096 * 4096
        assert yrt.count(result.stacks, name) == due, f"{name}: not {due}\n{yrt.show(result.stacks)}"
    small = ("site_0", "site_1", "site_3")
    assert sum(yrt.count(result.stacks, name) for name in small) % 4096 == 0, yrt.show(result.stacks)
    leaves = {frames[-1] for frames, _ in result.stacks}
    assert leaves <= {"mmap", "mmap64", "sbrk", "__sbrk"}, yrt.show(result.stacks)


def test_preloaded():
    """Other allocators in its place: jemalloc, gperftools, mimalloc."""
    found = [p for n in ("jemalloc", "tcmalloc", "tcmalloc_minimal", "mimalloc")
             for p in glob.glob(f"{LIBRARIES}/lib{n}.so.[0-9]")]
    assert len(found) == 4, found
    for path in found:
        result, sites = count(preload=path)
        yield check(result, sites, 1)
        assert re.search(r"\((jemalloc|tcmalloc|mimalloc|gperftools)", result.stats["alloc"]["from"]), result.stats


def built(directory, compiler, *flags):
    path = os.path.join(directory, "sites")
    subprocess.run(
        [compiler, "-O2", "-g", "-pthread", "-fno-optimize-sibling-calls", *flags, SITES, "-o", path], check=True
    )
    return path


def test_other_builds():
    """musl, and a static program; one without symbols, or with AddressSanitizer, is refused by name."""
    for compiler, flags in (("musl-gcc", ()), ("gcc", ("-static",))):
        with tempfile.TemporaryDirectory() as directory:
            result, sites = count(name=built(directory, compiler, *flags))
            yield check(result, sites, 1, f"{compiler} {' '.join(flags)}")
    hidden, sanitized = ("-static", "-s"), ("-fsanitize=address",)
    for flags, word in ((hidden, "no malloc that has a name"), (sanitized, "AddressSanitizer")):
        with tempfile.TemporaryDirectory() as directory:
            with yrt.Fixture(built(directory, "gcc", *flags)) as fixture:
                refused = yrt.run("alloc", "-p", fixture.pid, "-d", 1)
            assert refused.code == yrt.UNSUPPORTED and word in refused.stderr, refused.stderr


def test_no_call():
    """Where no call is made, yrt says who may make them: children, and a heap of the program's own, as PHP has."""
    code = """
        #include <unistd.h>
        void *_emalloc(unsigned long size) { static char heap[64]; return heap + size % 64; }
        int main(int argc, char **argv) { char c; if (argc > 1) fork(); return write(1, _emalloc(1), 1) - read(0, &c, 1); }
    """
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "waits")
        subprocess.run(["gcc", "-x", "c", "-rdynamic", "-w", "-", "-o", path], input=code.encode(), check=True)
        for args, said in ((), "used again what it had"), (("fork",), "its children (1) may make them: add -s"):
            with subprocess.Popen([path, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
                program.stdout.read(1 + len(args))
                result = yrt.run("alloc", "-p", program.pid, "-d", 0.1, "-o", os.path.join(directory, "alloc.html"))
                shown = yrt.run("inspect", "-p", program.pid, output=False, stats=False)
                program.stdin.close()
            assert result.code == 0 and "0 B by 0 calls" in result.stderr and said in result.stderr, result.stderr
            assert "waits has a heap of its own" in result.stderr and "-e '_emalloc*'" in result.stderr, result.stderr
            assert "waits (a heap of its own)" in shown.stdout, shown.stdout


def test_nameless():
    """An allocator that is linked in and stripped, and not found by its code, is said to be there, unseen."""
    code = """
        #include <stdio.h>
        int main(int argc, char **argv) { puts(argc > 1 ? "mimalloc: error: none" : ""); fflush(stdout); return getchar(); }
    """
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "linked")
        subprocess.run(["gcc", "-x", "c", "-s", "-", "-o", path], input=code.encode(), check=True)
        with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            program.stdout.read(1)
            result = yrt.run("alloc", "-p", program.pid, "-d", 0.1)
            shown = yrt.run("inspect", "-p", program.pid, output=False, stats=False)
            program.stdin.close()
    assert "linked has mimalloc linked in, whose functions have no names" in result.stderr, result.stderr
    assert "linked (mimalloc, without names, blocks are not seen)" in shown.stdout, shown.stdout


STRIPPED = """
    #include <stdio.h>
    #include <stdlib.h>
    static void *volatile sink;
    int main(void)
    {
        getchar();
        for (int i = 0; i < 1000; i++) {
            sink = malloc(300);
            free(sink);
            sink = calloc(10, 100);
            sink = realloc(sink, 5000);
            free(sink);
            sink = malloc(40);
        }
        return fclose(stdin);
    }
"""


def test_stripped():
    """jemalloc that is linked in statically, without any symbol, is found by its code: each call, each byte."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "linked")
        command = ["gcc", "-O1", "-fno-builtin", "-static", "-s", "-x", "c", "-", "-x", "none",
                   f"{LIBRARIES}/libjemalloc.a", "-lstdc++", "-lm", "-o", path]
        subprocess.run(command, input=STRIPPED.encode(), check=True, stderr=subprocess.DEVNULL)
        with subprocess.Popen([path], stdin=subprocess.PIPE) as program:
            at = yrt.Run("alloc", "-p", program.pid, "-d", 600, "--max-cpu", 0).sampling()
            shown = yrt.run("inspect", "-p", program.pid, output=False, stats=False)
            program.stdin.close()
            stats = at.result().stats["alloc"]
    assert "malloc: linked (jemalloc, found by its code)" in shown.stdout, shown.stdout
    assert stats["from"] == "linked (jemalloc)", stats
    assert (stats["calls"], stats["bytes"]) == (4000, 1000 * (300 + 1000 + 5000 + 40)), stats


@yrt.measured
def test_windows():
    """Past the budget: calls in windows, weighed by landmarks, come to what the program counts."""
    for mode, within in (("m", 0.15), ("", 0.5)):
        with yrt.Fixture("alloc_sites", 0, mode, seconds=15) as fixture:
            at = yrt.Run("alloc", "-p", fixture.pid, "-d", 600).sampling()
            fixture.release()
            sites = fixture.finish()["sites"]
            result = at.result().expect()
        calls, stats = sum(n for n, _ in sites.values()), result.stats["alloc"]
        low, high = stats["calls_interval"]
        assert stats["in_shifts"] and stats["landmarks"], stats
        assert low <= calls <= high and abs(stats["calls"] / calls - 1) < within, (mode, calls, stats)
        yield f"{mode}: {stats['calls'] / calls:.2f} of {calls} calls ({low / calls:.2f}-{high / calls:.2f})"


@yrt.measured
def test_counter():
    """jemalloc's own count of bytes is the scale of windows, at any density of calls."""
    (path,) = glob.glob(f"{LIBRARIES}/libjemalloc.so.2")
    for mode in ("m", "", "p"):
        os.environ["LD_PRELOAD"] = path
        try:
            fixture = yrt.Fixture("alloc_sites", 0, mode, 2, seconds=10)
        finally:
            del os.environ["LD_PRELOAD"]
        with fixture:
            at = yrt.Run("alloc", "-p", fixture.pid, "-d", 600).sampling()
            fixture.release()
            total = sum(n for _, n in fixture.finish()["sites"].values())
            stats = at.result().expect().stats["alloc"]
        assert stats["in_shifts"] and stats["by_counter"], stats
        assert abs(stats["bytes"] / total - 1) < 0.1, (mode, total, stats)
        yield f"{mode or 'full speed'}: {stats['bytes'] / total:.3f} of {total} bytes"


yrt.main(globals())
