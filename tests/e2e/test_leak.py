# SPDX-License-Identifier: Apache-2.0
"""
leak: of three sites in one size class, the blocks that one of them never frees are left, all of them and no others,
whatever the order in which the others are freed, in each allocator; in windows and by debug registers, too, where a
cache that is full is none.
"""

import glob
import json
import os
import re
import subprocess
import tempfile

import yrt

LIBRARIES = "/usr/lib/x86_64-linux-gnu"


def left(mode, *args, rounds=1000, threads=1, preload=None):
    """(result, what the program says): of a whole run of it, which is still there at the end."""
    if preload:
        os.environ["LD_PRELOAD"] = preload
    try:
        fixture = yrt.Fixture("alloc_sites", rounds, mode + "w", threads)
    finally:
        os.environ.pop("LD_PRELOAD", None)
    with fixture:
        at = yrt.Run("leak", "-p", fixture.pid, "-d", 600, "--max-cpu", 0, *args).sampling()
        fixture.release()
        truth = json.loads(fixture.process.stdout.readline())
        at.interrupt()
        return at.result().expect(), truth


def check(result, truth):
    size = 200
    calls = sum(calls for calls, _ in truth["sites"].values())
    stats = result.stats["leak"]
    of = [(frames, n) for frames, n in result.stacks if "leak_some" in frames]
    assert sum(n for _, n in of) == size * truth["leaked"], yrt.show(result.stacks)
    assert all(frames[-1].startswith("[left: ") for frames, _ in of), yrt.show(of)
    stacks = sum("allocate_stack" in frames for frames, _ in result.stacks)  # of threads: the program's own
    others = [frames for frames, _ in result.stacks if "leak_some" not in frames and "allocate_stack" not in frames]
    assert not others and stats["freed"] == calls - truth["leaked"], yrt.show(result.stacks)
    assert stats["watched"] - stats["freed"] == stats["left"] >= truth["leaked"] + stacks, stats
    assert not stats["no_room"] and not stats["not_freed_by_free"] and len(stats["curve"]) >= 2, stats
    return f"{stats['left']} of {stats['watched']} blocks, {stats['from']}"


def test_orders():
    """Blocks are freed in the order in which they were made, and in the opposite one; by one thread and by four."""
    for mode, threads in (("l", 1), ("lf", 1), ("lf", 4)):
        yield check(*left(mode, threads=threads))


def test_words():
    """The verdict, the curve, and the stack that matters, above the last line."""
    result, truth = left("l", "--blocks")
    assert result.samples == truth["leaked"], yrt.show(result.stacks)
    for part in (f"watched 3000 blocks: {3000 - truth['leaked']} freed, {truth['leaked']} not", "yrt: resident ",
                 "malloc < leak_some < one_round", "yrt: left at the end:"):
        assert part in result.stderr, result.stderr


def test_nothing():
    """A program that frees all it makes, by every allocation function, has nothing left."""
    result, truth = left("", rounds=64)
    assert not result.stacks and not result.stats["leak"]["left"], yrt.show(result.stacks)
    calls = sum(calls for calls, _ in truth["sites"].values())
    assert result.stats["leak"]["freed"] == calls, result.stats


def test_preloaded():
    """Other allocators."""
    for name in ("jemalloc", "tcmalloc", "tcmalloc_minimal", "mimalloc"):
        (path,) = glob.glob(f"{LIBRARIES}/lib{name}.so.[0-9]")
        yield check(*left("l", preload=path))


def preloading(library, program, *args, seconds):
    """The program, with that allocator."""
    if library:
        (os.environ["LD_PRELOAD"],) = glob.glob(f"{LIBRARIES}/lib{library}.so.[0-9]")
    try:
        return yrt.Fixture(program, *args, seconds=seconds)
    finally:
        os.environ.pop("LD_PRELOAD", None)


def windows(mode, seconds, program="alloc_sites", library=""):
    """(result, what the program says, {function: verdict}): in windows, of a program that runs for longer."""
    arguments = (0, mode) if program == "alloc_sites" else (mode,)
    with preloading(library, program, *arguments, seconds=seconds + 3) as fixture:
        run = yrt.Run("leak", "-p", fixture.pid, "-d", seconds).sampling()
        fixture.release()
        result = run.result().expect()
        truth = json.loads(fixture.process.stdout.readline())
    verdicts = {}
    for frames, _ in result.stacks:
        verdicts |= {name: frames[-1] for name in frames if name.startswith(("leak_", "site_", "make_"))}
    assert result.stats["leak"]["in_windows"], result.stats["leak"]
    return result, truth, verdicts


@yrt.measured
def test_windows():
    """Past the budget: debug registers find the site that leaks, and blame no other of its size."""
    for mode in ("l", "lf", "lm"):
        result, truth, verdicts = windows(mode, 30)
        blamed = {name for name, text in verdicts.items() if text.startswith("[leaks ")}
        assert blamed == {"leak_some"}, (mode, verdicts)
        assert "in 0 of" not in result.stderr, result.stderr  # nor tells what is not there
        leaked = 200 * truth["leaked"] / truth["wall_s"] * result.stats["duration_s"]
        assert 0.7 * leaked < sum(n for frames, n in result.stacks if "leak_some" in frames) < 1.4 * leaked, (
            leaked, yrt.show(result.stacks))
        yield f"{mode}: {verdicts['leak_some']}, {result.stats['leak']['outlived']} blocks outlived"


@yrt.measured
def test_rates():
    """From a thousand calls a second on to a million, in each allocator: the leak is found, and none where none is."""
    size, seconds = 200, 10
    for library, rate, every in (("", 1000, 50), ("", 10_000, 50), ("", 100_000, 50), ("", 1_000_000, 50),
                                 ("", 100_000, 0), ("jemalloc", 10_000, 50), ("jemalloc", 1_000_000, 50),
                                 ("mimalloc", 100_000, 50), ("tcmalloc", 100_000, 50)):
        with preloading(library, "leak_rate", rate, every, seconds=seconds + 3) as fixture:
            run = yrt.Run("leak", "-p", fixture.pid, "-d", seconds).sampling()
            fixture.release()
            result = run.result().expect()
            truth = json.loads(fixture.process.stdout.readline())
        a_minute = truth["leaked"] * size / truth["wall_s"] * 60
        stats = result.stats["leak"]
        blamed = {next(name for name in frames if name.startswith("make_")) for frames, _ in result.stacks
                  if "leaks " in frames[-1] or "grows by" in frames[-1]}
        assert blamed - {"make_entry"} == ({"make_leak"} if every else set()), (library, rate, blamed, result.stderr)
        if "make_entry" not in blamed:  # a cache that takes nearly all of the run to fill up
            assert stats["growth_low"] <= a_minute <= stats["growth_high"], (library, rate, a_minute, result.stderr)
        yield (f"{library or 'glibc'}, {rate}: {a_minute:.0f} bytes a minute, {stats['growth_low']:.0f} to "
               f"{stats['growth_high']:.0f} said, {stats['outlived']} blocks outlived")


@yrt.measured
def test_sizes():
    """Of a function that makes blocks of two sizes, in two lines, and leaks the small ones: so many blocks leak."""
    code = """
        #include <stdio.h>
        #include <stdlib.h>
        #include <time.h>
        static long n;
        static __attribute__((noinline)) void make(void **a, void **b) { *a = malloc(40); *b = malloc(700); n++; }
        int main(void) {
            void *a, *b;
            for (time_t end = time(NULL) + 16; time(NULL) < end;) {
                make(&a, &b);
                free(b);
                if (n % 50)
                    free(a);
            }
            return printf("%ld", n / 50) < 0;
        }
    """
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "sizes")
        subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", path], input=code.encode(), check=True)
        with subprocess.Popen([path], stdout=subprocess.PIPE) as program:
            result = yrt.run("leak", "-p", program.pid, "-d", 12).expect()
            leaked = int(program.stdout.read()) * 12 / 16
    said = int(re.search(r"in (\d+) of \d+ blocks; debug registers", result.stderr)[1])
    assert 0.7 * leaked < said < 1.4 * leaked, (leaked, result.stderr)
    yield f"{said} said, {leaked:.0f} in truth"


@yrt.measured
def test_counter():
    """jemalloc's own count of bytes is the scale of windows, as in alloc; those that follow blocks do not count."""
    for mode in ("m", ""):
        with preloading("jemalloc", "alloc_sites", 0, mode, 2, seconds=8) as fixture:
            run = yrt.Run("leak", "-p", fixture.pid, "-d", 600).sampling()
            fixture.release()
            total = sum(n for _, n in fixture.finish()["sites"].values())
            stats = run.result().expect().stats["leak"]
        assert stats["by_counter"] and abs(stats["bytes_estimate"] / total - 1) < 0.1, (mode, total, stats)
        yield f"{mode or 'full speed'}: {stats['bytes_estimate'] / total:.3f} of {total} bytes"


@yrt.measured
def test_cache():
    """A cache that is full is no leak, though its blocks outlive what is watched; a leak beside it is no excuse."""
    for library in ("", "jemalloc"):
        for mode in ("c", "cl"):
            _, _, verdicts = windows(mode, 40, "leak_like", library)
            assert verdicts["make_entry"].startswith("[outlived ") and "make_short" not in {
                name for name, text in verdicts.items() if text.startswith("[leaks ")}, (library, mode, verdicts)
            yield f"{library or 'glibc'}, {mode}: {verdicts}"


yrt.main(globals())
