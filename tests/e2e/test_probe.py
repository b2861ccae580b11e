# SPDX-License-Identifier: Apache-2.0
"""
probe: each hit of a function, an address, a USDT probe or a tracepoint counts one for its stack; what is not there is
refused by name.
"""

import collections
import os
import re
import signal
import subprocess
import tempfile

import go
import yrt

PYTHON = "/usr/bin/python3"
N = 200
# Names are read from the living process: it stays for a moment.
CALLS = f"""
import os, time
def work():
    for i in range({N}): os.getppid()
work()
time.sleep(0.5)
"""
MIX = """
import os, threading, time
def thread():
    t = threading.Thread(target=int)
    t.start()
    t.join()
def child():
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
for i in range(5): thread()
for i in range(3): child()
time.sleep(0.5)
"""
BUSY = """
import os, time
while True:
    for i in range(2000): os.getppid()
    time.sleep(0.01)
"""


def probe(*what, command, flags=()):
    flags = ["--max-cpu", 0, *(f for w in what for f in ("-e", w)), *flags]
    return yrt.run("probe", *flags, "--", PYTHON, "-c", command).expect()


def of(result, function):
    return sum(n for frames, n in result.stacks if any(re.match(rf"{function} \(", f) for f in frames))


def libc(symbol):
    path = next(line.split()[-1] for line in open("/proc/self/maps") if "libc.so" in line)
    out = subprocess.run(["nm", "-D", path], capture_output=True, text=True, check=True).stdout
    return int(re.search(rf"^([0-9a-f]+) . {symbol}@", out, re.M).group(1), 16)


def test_function():
    """
    Every call from a program's first instruction on, by its name and by its address; Python's frames are above it.
    """
    for what in ("libc:getppid", f"libc+{libc('getppid'):#x}", "uprobe:libc.so.6:getppid"):
        result = probe(what, command=CALLS)
        assert (
            of(result, "work") == result.samples == result.stats["expected_samples"] == N
        ), f"{what}: {yrt.show(result.stacks)}"
        assert all(yrt.plain(yrt.leaf(frames)) == "getppid" for frames, _ in result.stacks), yrt.show(result.stacks)
        yield f"{what}: {result.samples} hits"


def test_several():
    """A tracepoint and a function in one run, distinguished by the leaf."""
    result = probe("sched:sched_process_fork", "libc:pthread_create", command=MIX, flags=["-U"])
    found = {}
    for frames, n in result.stacks:
        key = (frames[-1], "thread" if any(f.startswith("thread (") for f in frames) else "child")
        found[key] = found.get(key, 0) + n
    assert found == {("[libc:pthread_create]", "thread"): 5, ("[sched:sched_process_fork]", "thread"): 5,
                     ("[sched:sched_process_fork]", "child"): 3}, found


def test_usdt():
    """
    A USDT probe with a semaphore, by its provider: Python's collections, which it reports only while somebody looks.
    """
    result = probe(
        "python:gc__start",
        command="import gc, time\ndef collect():\n    for i in range(7): gc.collect()\ncollect()\ntime.sleep(0.5)",
    )
    assert of(result, "collect") == 7, yrt.show(result.stacks)


def test_running():
    """In a process that runs, past the budget: a part of the hits stands for all."""
    with subprocess.Popen([PYTHON, "-c", BUSY]) as target:
        try:
            at = yrt.Run(
                "probe", "-e", "raw_syscalls:sys_enter", "-p", target.pid, "-d", 600, "--max-cpu", 0.5
            ).sampling()
            yrt.busy_for([target.pid], 1)
            at.noting("half as many").interrupt()
            result = at.result().expect()
        finally:
            target.send_signal(signal.SIGKILL)
    halved, expected = result.stats["rate_halved"], result.stats["expected_samples"]
    assert halved and expected > 10000, result.stats
    # Of hits chosen one in w, each counting w, the sum has a variance below w times the number.
    assert (
        abs(result.samples - expected) < 6 * (expected * 2**halved) ** 0.5
    ), f"{result.samples} of {expected}, halved {halved} times"
    yield f"{result.samples} of {expected}, rate halved {halved} times"


@yrt.measured
def test_tables():
    """
    A function that only the language's own table has is found by the name that stacks show; suggestions come from it,
    too.
    """
    with yrt.Fixture(go.build("labels", "-ldflags=-s -w", name="labels-stripped"), seconds=None, wait=False) as fixture:
        result = yrt.run("probe", "-e", "go:main.burnBoth", "-p", fixture.pid, "-d", 1).expect()
        near = yrt.run("probe", "-e", "main.burnBoht", "-p", fixture.pid, "-d", 1).expect(yrt.USAGE)
    assert result.samples > 10 and all(frames[-1] == "main.burnBoth" for frames, _ in result.stacks), yrt.show(
        result.stacks
    )
    assert "main.burnBoth" in near.stderr, near.stderr
    yield f"{result.samples} hits"


def test_names():
    """C++'s functions by any form of their names: with arguments or without, of templates; all that have the name."""
    forms = {
        "shop::item::item": 70, "shop::item::~item": 140, "shop::item::price": 70, "shop::item::price(int)": 70,
        "shop::pack": 140, "shop::pack(int)": 70, "shop::pack(char const*)": 70, "shop::twice": 140,
        "shop::twice<int>": 70, "double shop::twice<double>(double)": 70, "(anonymous namespace)::hidden": 70,
        "ordering::operator()": 70, "ordering::operator<": 70, "copied": 70}
    for name, n in forms.items():
        with yrt.Fixture("names") as fixture:
            at = yrt.Run("probe", "-e", f"names:{name}", "-p", fixture.pid, "-d", 600, "--max-cpu", 0).sampling()
            fixture.release()
            fixture.finish()
            result = at.result().expect()
        assert result.samples == n, f"{name}: {result.samples} of {n}\n{yrt.show(result.stacks)}"
        assert ("all are taken" in result.stderr) == (name in ("shop::pack", "shop::twice")), result.stderr
    with yrt.Fixture("names") as fixture:
        result = yrt.run("probe", "-e", "names:shop::pakc", "-p", fixture.pid, "-d", 1).expect(yrt.USAGE)
        assert "near: shop::pack;" in result.stderr, result.stderr
        result = yrt.run("probe", "-e", "libc:shop::pack", "-p", fixture.pid, "-d", 1).expect(yrt.USAGE)
        assert "another file has it: -e names:shop::pack" in result.stderr, result.stderr


def test_none():
    """A command's files come later: what none of them has is said, and no cost is below zero."""
    result = yrt.run("probe", "-e", "libc:nothing_like_that", "--", "/bin/true").expect()
    assert 'there is no function or USDT probe "nothing_like_that"' in result.stderr, result.stderr
    assert not result.samples and " -" not in result.stderr.splitlines()[-1], result.stderr


def test_not_called():
    """A function that is there but never called may be inlined wherever it is: no hit, and the reason."""
    with yrt.Fixture("inlines", seconds=None, wait=False) as fixture:
        for command in ("probe", "latency"):
            result = yrt.run(command, "-e", "inlines:rare", "-p", fixture.pid, "-d", 0.3).expect()
            assert "nothing called it in this time" in result.stderr, result.stderr


SHOP = """
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int shop_price(int n) { asm volatile(""); return n; }
__attribute__((noinline)) int shop_cost(int n) { asm volatile(""); return n + 1; }
__attribute__((noinline)) int other(int n) { asm volatile(""); return n + 2; }
int main(void)
{
	volatile int sum = 0;
	puts("ready"), fflush(stdout);
	getchar();
	for (int i = 0; i < 100; i++)
		sum += shop_price(i) + shop_cost(i) + shop_cost(i) + other(i);
	puts("done"), fflush(stdout);
	getchar();
}
"""


def test_patterns():
    """A * takes all functions that match and counts each; too many are refused by number. --list names them."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "calls.c"), os.path.join(folder, "calls")
        with open(source, "w") as out:
            out.write(SHOP)
        subprocess.run(["cc", "-O1", "-o", program, source], check=True)
        with yrt.Program([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as target:
            target.stdout.readline()
            at = yrt.Run("probe", "-e", "calls:shop_*", "-p", target.pid, "-d", 600, "--max-cpu", 0).sampling()
            target.stdin.write(b"\n")
            target.stdin.flush()
            assert target.stdout.readline() == b"done\n"
            at.process.send_signal(signal.SIGINT)
            result = at.result().expect()
            counts = collections.Counter()
            for frames, n in result.stacks:
                counts[frames[-1]] += n
            assert counts == {"shop_price": 100, "shop_cost": 200}, yrt.show(result.stacks)
            assert "2 functions of" in result.stderr and "match, all are taken" in result.stderr, result.stderr
            many = yrt.run("probe", "-e", "libc:*", "-p", target.pid, "-d", 1)
            number = int(re.search(r"(\d+) functions of", many.stderr)[1])
            assert many.code == yrt.USAGE and number > 1000, many.stderr
            listed = [yrt.run(*words, "-p", target.pid, pattern, output=False, stats=False).expect().stdout.splitlines()
                      for words in (("probe", "--list"), ("functions",)) for pattern in ("calls:shop_*", "libc:malloc")]
            assert listed[:2] == listed[2:], listed
            assert listed[0] == ["calls:shop_cost\tfunction", "calls:shop_price\tfunction"], listed
            assert [line.split(":")[1] for line in listed[1]] == ["malloc\tfunction"], listed
            points = yrt.run("probe", "--list", "-p", target.pid, "sched:sched_sw*", output=False, stats=False).expect()
            assert "sched:sched_switch\ttracepoint" in points.stdout.splitlines(), points.stdout
            yrt.clear(yrt.run("latency", "-e", "calls:shop_*", "-p", target.pid), yrt.USAGE, "not a pattern")
            target.kill()


def test_refusals():
    """What is not there, or is there twice, is reported, with what comes near."""
    with subprocess.Popen([PYTHON, "-c", "import time; time.sleep(1000)"]) as target:
        try:
            yrt.in_call(target.pid, yrt.CLOCK_NANOSLEEP)
            for what, words in (
                ("libc:mallocx", ("no function", "malloc")),
                ("nothing:f", ("no file", "libc.so.6", "JIT")),
                ("nothing_like_that", ("no function", "JIT")),
                ("sched:sched_swich", ("sched_switch",)),
                ("libc:memcpy", ("IFUNC",)),
                ("libc:no_such*", ("no function matches", "yrt functions -p PID 'libc:no_such*'")),
                ("sched:*", ("no function matches", "tracepoints")),
                ("libc:*", ("functions of", "match, and 64 can be probed", "yrt functions")),
                ("libc:0x10", ("not in the code of",)),
                ("tracepoint:a:b_c_d", ("no tracepoint",)),
                (":x", ("name is missing",)),
            ):
                result = yrt.run("probe", "-e", what, "-p", target.pid, "-d", 1)
                assert result.code in (yrt.USAGE, yrt.UNSUPPORTED), f"{what}: {result.code} {result.stderr}"
                assert all(w in result.stderr for w in words), f"{what}: {result.stderr}"
            yrt.run("probe", "-p", target.pid).expect(yrt.USAGE)
            yrt.run("record", "--event", "hit", "-p", target.pid).expect(yrt.USAGE)
        finally:
            target.kill()


yrt.main(globals())
