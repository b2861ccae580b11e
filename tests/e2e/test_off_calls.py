# SPDX-License-Identifier: Apache-2.0
"""off-flame: what a thread waits for where its system call is a rare one, or one that goes on after a stop."""

import json
import os
import re
import signal
import subprocess
import sys

import dumps
import java
import yrt

EXACT = 0.02

CALLS = """
import ctypes, os
empty, other = os.pipe(), os.pipe()
ctypes.CDLL(None).tee(empty[0], other[1], 1, 0)
"""


@yrt.both_tiers
def test_other_call():
    """A system call that no word is for has its name."""
    with yrt.Program([sys.executable, "-c", CALLS]) as program:
        yrt.until(lambda: yrt.read(f"/proc/{program.pid}/syscall").startswith("276 "), "tee()")
        result = yrt.run("off-flame", "-U", "-p", program.pid, "-d", 1).expect()
        program.kill()
    due, ns = result.stats["duration_s"], sum(n for frames, n in result.stacks if frames[-1] == "[tee]")
    assert ns and {frames[-1] for frames, _ in result.stacks} == {"[tee]"}, yrt.show(result.stacks)
    assert not yrt.measuring() or abs(ns * 1e-9 - due) <= EXACT * due + 0.05, yrt.show(result.stacks)


RESTARTED = """
import ctypes, json, os, threading, time
libc = ctypes.CDLL(None)
class Time(ctypes.Structure): _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
class Poll(ctypes.Structure): _fields_ = [("fd", ctypes.c_int), ("events", ctypes.c_short), ("got", ctypes.c_short)]
REALTIME, MONOTONIC, WAIT_BITSET, PRIVATE, POLLIN = 0, 1, 9, 128, 1
long, late = ctypes.byref(Time(1000, 0)), ctypes.byref(Time(int(time.monotonic()) + 1000, 0))
word, words, empty = ctypes.c_int(7), ctypes.c_int(0), os.pipe()
polled = ctypes.byref(Poll(empty[0], POLLIN, 0))
lock = threading.Lock()
lock.acquire()
calls = {
    "nanosleep": lambda: libc.syscall(35, long, None),
    "clock_nanosleep": lambda: libc.syscall(230, REALTIME, 0, long, None),
    "clock_nanosleep_left": lambda: libc.syscall(230, MONOTONIC, 0, long, ctypes.byref(Time())),
    "poll": lambda: libc.poll(polled, 1, 1000000),
    "poll_forever": lambda: libc.poll(polled, 1, -1),
    "poll_nothing": lambda: libc.poll(None, 0, 1000000),
    "poll_nothing_forever": lambda: libc.poll(None, 0, -1),
    "futex": lambda: libc.syscall(202, ctypes.byref(word), PRIVATE, 7, long),
    "futex_shared": lambda: libc.syscall(202, ctypes.byref(words), 0, 0, long),
    "futex_moment": lambda: libc.syscall(202, ctypes.byref(word), WAIT_BITSET | PRIVATE, 7, late, None, 1),
    "lock": lambda: lock.acquire(timeout=1000),
}
tids = {}
def run(name):
    tids[name] = threading.get_native_id()
    calls[name]()
for name in calls: threading.Thread(target=run, args=(name,), daemon=True).start()
while len(tids) < len(calls): time.sleep(0.01)
print(json.dumps(tids), flush=True)
input()
"""
TIMED = r"(0x[0-9a-f]+|1000\.000 s)"
RESTARTED_CALLS = {
    "nanosleep": (rf"nanosleep\({TIMED}\)", "sleep"),
    "clock_nanosleep": (rf"clock_nanosleep\(REALTIME, 0, {TIMED}\)", "sleep"),
    "clock_nanosleep_left": (rf"clock_nanosleep\(MONOTONIC, 0, {TIMED}\)", "sleep"),
    "poll": (r"poll\(\[\d+ = pipe:\[\d+\]\], 1, 1000000 ms\)", "poll"),
    "poll_forever": (r"poll\(\[\d+ = pipe:\[\d+\]\], 1, no timeout\)", "poll"),
    "poll_nothing": (r"poll\(0, 0, 1000000 ms\)", "poll"),
    "poll_nothing_forever": (r"poll\(0, 0, no timeout\)", "poll"),
    "futex": (r"futex\(0x[0-9a-f]+, WAIT\|PRIVATE, 7, 1000\.000 s\)", "futex"),
    "futex_shared": (r"futex\(0x[0-9a-f]+, WAIT, 0, 1000\.000 s\)", "futex"),
    "futex_moment": (r"futex\(0x[0-9a-f]+, WAIT_BITSET\|PRIVATE, 7, [\d.]+ s from now\)", "futex"),
    "lock": (r"futex\(0x[0-9a-f]+, WAIT_BITSET\|PRIVATE.*, 0, [\d.]+ s from now\)", "futex"),
}


def stop_and_continue(pid, tids):
    """All go on in restart_syscall (219)."""
    os.kill(pid, signal.SIGSTOP)
    yrt.waiting(pid, len(tids) + 1, state="T")
    os.kill(pid, signal.SIGCONT)
    for name, tid in tids.items():
        yrt.until(lambda: yrt.read(f"/proc/{pid}/task/{tid}/syscall").startswith("219 "), name)


def reasons_of(result, tid):
    return {frames[-1] for frames, _ in result.stacks if any(f.endswith(f"(tid {tid})") for f in frames)}


def test_restarted():
    """After a stop a thread waits for what it waited for before: dump, off-flame and lock-flame say so."""
    with yrt.Program(
        [sys.executable, "-c", RESTARTED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        tids = json.loads(program.stdout.readline())
        yrt.waiting(program.pid, len(tids) + 1)
        dumps.settle(program.pid)
        stop_and_continue(program.pid, tids)
        dumped = dumps.of(program.pid)
        off, lock = (
            yrt.run(command, "-t", "-p", program.pid, "-d", 0.5, *more).expect()
            for command, more in (("off-flame", ()), ("lock-flame", ("--all-waits",)))
        )
        program.kill()
    for name, (text, reason) in RESTARTED_CALLS.items():
        said = dumped[tids[name]]["syscall"]["text"]
        assert re.fullmatch(text, said), f"{name}: {said}"
        locks = reasons_of(lock, tids[name])
        assert bool(locks) == (reason == "futex"), f"{name}: {yrt.show(lock.stacks)}"
        assert reasons_of(off, tids[name]) == (locks or {f"[{reason}]"}), f"{name}: {yrt.show(off.stacks)}"
    address = dumped[tids["futex"]]["syscall"]["text"].partition("(")[2].partition(",")[0]
    assert any(address in leaf for leaf in reasons_of(lock, tids["futex"])), yrt.show(lock.stacks)
    yield f"{len(tids)} calls"


GIL = """
import ctypes, threading, time
held = threading.Lock()
held.acquire()
for f in (held.acquire, lambda: ctypes.PyDLL(None).pause(), lambda: None):
    threading.Thread(target=f, daemon=True).start()
    time.sleep(0.3)
"""


PAUSE = 34


def in_call(pid, number):
    """Whether one of its threads is in this system call."""
    calls = (yrt.read(f"/proc/{pid}/task/{t}/syscall") for t in os.listdir(f"/proc/{pid}/task"))
    return any(call.startswith(f"{number} ") for call in calls)


def short(name):
    """Of dump's words: "the GIL", "monitor 0x7f12 (a Account)"."""
    return re.sub(r"^(\w+) 0x\w+ \(a (.+)\)$", r"\1 \2", name.removeprefix("the "))


def dumped_names(pid, wanted):
    """What dump says that threads wait for, of those that `wanted` matches: {tid: {name}}"""
    dumped = yrt.run("dump", "-p", pid, output=False, stats=False).expect().stdout
    said = re.findall(r"^thread (\d+) .*\n    waits for (.+?)(?: held by .*)?$", dumped, re.M)
    return {int(tid): {f"[{short(name)}]"} for tid, name in said if re.match(wanted, short(name))}


def names_of(pid, wanted, threads=1):
    """The same of dump, as soon as it has so many threads; each view of waits says so, too."""
    names = {}

    def are_there():
        names.clear()
        names.update(dumped_names(pid, wanted))
        return len(names) >= threads

    yrt.until(are_there, f"{threads} threads that wait for {wanted}")
    for view, *more in (("off-flame",), ("wall-flame",), ("lock-flame", "--all-waits")):
        shown = yrt.run(view, "-t", "-p", pid, "-d", 0.5, *more).expect()
        for tid, name in names.items():
            said = f"{view}: not {tid}: {name}\n{yrt.show(shown.stacks)}\n{shown.stderr}"
            assert name <= reasons_of(shown, tid), said
    return names


def test_names():
    """A lock is called the same by dump, off-flame, wall-flame and lock-flame: a mutex's variable, the GIL, a class."""
    with yrt.Fixture("waits", wait=False) as fixture:
        native = names_of(fixture.pid, "mutex", 4)
    with yrt.Program([sys.executable, "-c", GIL]) as program:
        yrt.until(lambda: in_call(program.pid, PAUSE), "pause(), for which the GIL is kept for good")
        gil = names_of(program.pid, "GIL")
    with java.Java("waits") as program:
        monitors = names_of(program.pid, "monitor")
    for names in (native, gil, monitors):
        yield f"{len(names)} threads: {', '.join(sorted({n for s in names.values() for n in s}))}"


yrt.main(globals())
