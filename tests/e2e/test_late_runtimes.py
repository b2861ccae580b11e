# SPDX-License-Identifier: Apache-2.0
"""
A runtime that appears while yrt samples: its walker is loaded then (probes/walker_loads.h), and nothing is lost,
counted twice or cut behind that.
"""

import math
import os
import re
import shutil
import subprocess
import tempfile

import yrt

RATE, SIGMAS = 1999, 5
ALL = ("--max-cpu", "0")
# Of the samples: they end in a library, or a whole program, that yrt is only reading (test_follow.py, test_start.py).
# How long it does depends on the machine; without the walker a third of the samples, or all, would end there.
LIBRARY, PROGRAM = 0.06, 0.2


def check_loads(stats, least):
    assert stats["walker_loads"] >= least, stats


def check_cut(stats, reading):
    """Stacks were cut while walkers were loaded, and then only: how many, and how many while anything was read."""
    cut = dict(stats["truncated"])
    waited = cut.pop("no_walker", 0)
    most = RATE * stats["walker_load_s"]
    assert waited <= most + SIGMAS * math.sqrt(most) + 5, stats
    assert sum(cut.values()) <= reading * stats["samples"], stats
    return waited, waited + sum(cut.values())


def check_counted(result, cpu_s):
    expected = RATE * cpu_s
    assert not result.lost_beside(RATE), result.stats
    assert result.samples == result.stats["samples"], result.stats
    assert abs(result.samples - expected) <= SIGMAS * math.sqrt(expected) + 0.01 * expected + result.missing(
        expected
    ), f"{result.samples} of {expected}: {result.stats}"


@yrt.measured
def test_dlopen():
    """
    A native program loads Python, then LuaJIT: each has a third of its samples, of the root whatever came between.
    """
    with yrt.Fixture("late_runtimes", seconds=4.5) as fixture:
        result, truth = yrt.sample_whole(fixture, "-U", *ALL)
    check_loads(result.stats, 2)
    check_counted(result, truth["cpu_s"])
    waited, cut = check_cut(result.stats, LIBRARY)
    late = cut / result.samples
    for frame in ("early", re.compile(r"^py_leaf \("), re.compile(r"^lua_leaf \(")):
        assert (
            0.27 - late < result.share(frame) < 0.4
        ), f"{frame}: {result.share(frame)}, {late} without\n{yrt.show(result.stacks)}"
    yield (
        f"{result.summary()}; {result.stats['walker_loads']} loads of {result.stats['walker_load_s']:.3f} s in all,"
        f" {waited} samples meanwhile"
    )


@yrt.measured
def test_off():
    """Waits have the stack of the program that was put in place, and their sum is the time off the CPU."""
    with yrt.Fixture("late_runtimes", "pause", seconds=4.5) as fixture:
        at = yrt.Run("off-flame", "-p", fixture.pid, "-d", 600, "-U").sampling()
        fixture.release()
        truth = fixture.finish()
    result = at.result().expect()
    stats, off = result.stats, result.stats["off"]
    check_loads(stats, 1)
    assert not stats["lost"], stats
    assert abs(off["wall_s"] - off["on_s"] - off["off_s"]) <= 0.02 * off["wall_s"] + 0.05 + result.slack(
        off["on_s"]
    ), off
    assert abs(sum(ns for _, ns in result.stacks) * 1e-9 - off["off_s"]) <= 0.02 * off["off_s"], stats
    assert abs(off["on_s"] - truth["cpu_s"]) <= 0.02 * truth["cpu_s"] + 0.1 + result.slack(
        truth["cpu_s"]
    ), f"{off}, {truth}"
    sleeps = sum(ns for frames, ns in result.stacks if any(f.startswith("py_leaf (") for f in frames)) * 1e-9
    assert sleeps >= 1.5 - stats["walker_load_s"] - 0.2, f"{sleeps} s\n{yrt.show(result.stacks)}"
    yield f"{sleeps:.3f} of 1.5 s below Python; loads took {stats['walker_load_s']:.3f} s"


@yrt.measured
def test_exec():
    """A shell that becomes Python, and one whose child is: whatever the target was when yrt began."""
    script = (
        "import sys, time\ndef py_leaf(end):\n  while time.process_time() < end: pass\npy_leaf(time.process_time() +"
        " 2)\n"
    )
    for flags, word in (((), "exec "), (("-s",), "")):
        shell = subprocess.Popen(["sh", "-c", f"read x; {word}python3 -c \"$0\"; :", script], stdin=subprocess.PIPE)
        try:
            at = yrt.Run("flame", "-p", shell.pid, "-d", 600, "-F", RATE, "-U", *ALL, *flags).sampling()
            shell.communicate(b"\n", timeout=300)
            result = at.result().expect()
        finally:
            yrt.stop(shell)
        check_loads(result.stats, 1)
        check_counted(result, result.stats["target_cpu_s"])
        waited, cut = check_cut(result.stats, PROGRAM)
        found = result.share(re.compile(r"^py_leaf \("))
        assert found > 0.8 - cut / result.samples, f"{found}\n{yrt.show(result.stacks)}"
        yield (
            f"{word or 'child '}{result.summary()}; loaded in {result.stats['walker_load_s']:.3f} s, {waited} samples"
            " meanwhile"
        )


@yrt.measured
def test_whole():
    """
    Of the whole machine, here a pid namespace: a walker is there from the start if a process seems to have its runtime,
    else once one has.
    """
    script = (
        "import time\ndef py_leaf(end):\n  while time.process_time() < end: pass\npy_leaf(time.process_time() + 2)\n"
    )
    polls = f"until grep -qE '^({'|'.join(map(str, yrt.EPOLL_WAITS))}) ' /proc/$yrt/syscall; do sleep 0.05; done"
    orders = {
        "before": (
            "python3 -c \"$0\" & py=$!; until grep -q python /proc/$py/comm; do sleep 0.05; done; \"$@\" & yrt=$!;"
            f" {polls}; wait $py"
        ),
        "after": f"\"$@\" & yrt=$!; {polls}; python3 -c \"$0\"",
    }
    for order, words in orders.items():
        prefix = (
            "unshare",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            f"{words}; kill -INT $yrt; wait $yrt",
            script,
        )
        result = yrt.run("flame", "-a", "-d", 600, "-F", RATE, "-U", *ALL, prefix=prefix).expect()
        loads = result.stats["walker_loads"]
        assert loads >= 1 if order == "after" else loads == 0, f"Python {order}: {result.stats}"
        assert not result.lost_beside(RATE) and result.samples == result.stats["samples"], result.stats
        waited, cut = check_cut(result.stats, PROGRAM)
        found = result.share(re.compile(r"^py_leaf \("))
        assert found > 0.8 - cut / result.samples, f"Python {order}: {found}\n{yrt.show(result.stacks)}"
        yield (
            f"Python {order}: {result.summary()}; {loads} loads of {result.stats['walker_load_s']:.3f} s, {waited}"
            " samples meanwhile"
        )


@yrt.measured
def test_names():
    """A program that is called like another runtime's: its own walker is loaded before it is sampled."""
    with tempfile.TemporaryDirectory() as directory:
        path = shutil.copy("/usr/bin/perl", os.path.join(directory, "luajit"))
        process = subprocess.Popen([path, "-e", "while (1) { $x += $_ for 1 .. 1000 }"])
        try:
            result = yrt.run("flame", "-p", process.pid, "-d", 0.5, "-F", RATE).expect()
        finally:
            yrt.stop(process)
    assert result.stats["walker_loads"] == 1 and not result.stats["truncated"], result.stats
    found = result.share(re.compile("^main program"))
    assert found > 0.95, f"{found}\n{yrt.show(result.stacks)}"
    yield result.summary()


yrt.main(globals())
