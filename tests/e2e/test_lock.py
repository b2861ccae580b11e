# SPDX-License-Identifier: Apache-2.0
"""
lock-flame: how long threads wait for which lock, by the program's own clocks around each lock; what only looks like a
lock is apart.
"""

import json
import os
import re
import subprocess
import sys

import java
import yrt

EXACT = 0.02
# By the account of fixtures/native/locks.cc: a function on the stack, the lock at its leaf.
NATIVE = {
    "stats_lock": ("count", r"\[mutex stats_lock\]"),
    "table_locks": ("count", r"\[mutex table_locks\+0x50\]"),
    "member": ("session::update", r"\[mutex heap 0x[0-9a-f]+\]"),
    "reads": ("read_config", r"\[read lock config_lock\]"),
    "writes": ("write_config", r"\[write lock config_lock\]"),
}
JAVA = {
    "deposit": ("locks.deposit", "[monitor locks$Account]"),
    "reserve": ("locks.reserve", "[lock java.util.concurrent.locks.ReentrantLock$NonfairSync]"),
    "insert": ("locks.insert", "[write lock java.util.concurrent.locks.ReentrantReadWriteLock$NonfairSync]"),
    "checkout": ("locks.checkout", "[condition java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject]"),
    "permit": ("locks.permit", "[semaphore java.util.concurrent.Semaphore$NonfairSync]"),
}
# What may be waited for in methods of fixtures/java/park_classes.java.
JUC = "java.util.concurrent."
CONDITION = {JUC + "locks.AbstractQueuedSynchronizer$ConditionObject"}
NONFAIR, FAIR = {JUC + "locks.ReentrantLock$NonfairSync"}, {JUC + "locks.ReentrantLock$FairSync"}
PARKED = {
    "takeNonfair": NONFAIR,
    "takeInTime": NONFAIR,
    "takeTable": NONFAIR,
    "takeFair": FAIR,
    "takeAgain": NONFAIR | CONDITION,
    "takeWork": NONFAIR | CONDITION,
    "takeWrite": {JUC + "locks.ReentrantReadWriteLock$NonfairSync"},
    "takeRead": {JUC + "locks.ReentrantReadWriteLock$FairSync"},
    "takeFairWrite": {JUC + "locks.ReentrantReadWriteLock$FairSync"},
    "takeStamp": {JUC + "locks.StampedLock"},
    "takeTurnstile": {"park_classes$Turnstile"},
    "takePermit": {JUC + "Semaphore$NonfairSync"},
    "takeFairPermit": {JUC + "Semaphore$FairSync"},
}
SUPPOSED = {"ReentrantLock", "ReentrantReadWriteLock", "StampedLock"}  # by functions, where the object was not seen
PYTHON = """
import json, os, sys, threading, time
lock, rlock, over, ready = threading.Lock(), threading.RLock(), False, threading.Event()
own = {"first": 0.0, "second": 0.0, "spin": 0.0}
def off(): return time.monotonic() - time.thread_time()
def contend(which, name):
    while not over:
        if not which.acquire(False):
            begin = off()
            which.acquire()
            own[name] += off() - begin
        time.sleep(0.004)
        which.release()
        time.sleep(0.0005)
def first(): contend(lock, "first")
def second(): contend(rlock, "second")
def spin():
    begin, x = off(), 0
    while not over:
        x += 1
    own["spin"] += off() - begin
def idle(): ready.wait()
print(json.dumps({"pid": os.getpid()}), flush=True)
sys.stdin.readline()
work = {"locks": [first, first, second, second, idle], "gil": [spin, spin, spin]}[sys.argv[1]]
threads = [threading.Thread(target=f) for f in work]
for t in threads: t.start()
time.sleep(2)
over = True
ready.set()
for t in threads: t.join()
print(json.dumps(own))
"""


def seconds_of(result, function, leaf):
    """Of stacks with this function, whatever its arguments or lines, and this leaf."""
    return (
        sum(
            ns
            for frames, ns in result.stacks
            if re.fullmatch(leaf, frames[-1]) and any(re.split("[ (]", f)[0] == function for f in frames)
        )
        * 1e-9
    )


def check(result, truth, functions):
    for name, (function, leaf) in functions.items():
        total, expected = seconds_of(result, function, leaf), truth[name]
        assert expected > 0.5 and abs(total - expected) <= EXACT * expected + 0.03 + result.slack(
            expected
        ), f"{name}: {total} of {expected}\n{yrt.show(result.stacks)}"
        yield f"{name}: {total:.3f} of {expected:.3f} s"


def native(*args):
    with yrt.Fixture("locks", seconds=3) as fixture:
        at = yrt.Run("lock-flame", "-p", fixture.pid, "-d", 600, "--max-cpu", 0, *args).sampling()
        fixture.release()
        truth = fixture.finish()["waits"]
        return at.result().expect(), truth


@yrt.measured
def test_native():
    """
    Mutexes and rwlocks by their variables, within 2 %; semaphores and joins are summed apart, and nothing else is
    shown.
    """
    result, truth = native()
    yield from check(result, truth, NATIVE)
    strange = [frames for frames, ns in result.stacks if not re.match(r"\[(mutex|read lock|write lock) ", frames[-1])]
    assert not strange, strange
    kinds = result.stats["lock"]["kinds"]
    shown = sum(ns for _, ns in result.stacks) * 1e-9
    assert abs(shown - sum(k["s"] for k in kinds.values() if k["contention"])) < 0.01, (shown, kinds)
    assert (
        kinds["semaphores"]["s"] > 2.5 and not kinds["semaphores"]["contention"] and kinds["mutexes"]["waits"] > 500
    ), kinds


@yrt.measured
def test_deep():
    """
    A condition that twenty native functions led to is something that is needed, and a semaphore below LWLockAcquire() a
    lock; workers and main() wait for work.
    """
    with yrt.Fixture("workers", seconds=None) as fixture:
        fixture.release()
        yrt.waiting(fixture.pid, 7)
        result = yrt.run("lock-flame", "-p", fixture.pid, "-d", 1).expect()
    run = result.stats["duration_s"]
    for leaf, function in ("[condition]", "needs_answer"), ("[LWLock]", "LWLockAcquire"):
        shown = sum(ns for frames, ns in result.stacks if frames[-1] == leaf and function in frames) * 1e-9
        assert abs(shown - run) < EXACT * run, f"{leaf}: {shown} of {run}\n{yrt.show(result.stacks)}"
    assert {frames[-1] for frames, _ in result.stacks} == {"[condition]", "[LWLock]"}, yrt.show(result.stacks)


@yrt.measured
def test_all_waits():
    """--all-waits shows what nobody holds."""
    result, _ = native("--all-waits")
    assert seconds_of(result, "wait_for_work", r"\[semaphore\]") > 2.5, yrt.show(result.stacks)
    assert any(frames[-1] == "[join]" for frames, _ in result.stacks), yrt.show(result.stacks)


@yrt.measured
def test_holders():
    """--holders: inside the wait who released the lock, from unlocking up to the function that held it."""
    result, truth = native("--holders")
    held = 0
    for frames, ns in result.stacks:
        if "[mutex stats_lock]" in frames and "[released by locks]" in frames:
            holder = frames[frames.index("[released by locks]"):]
            assert any("unlock" in f for f in holder) and any(f.startswith("count(") for f in holder), holder
            held += ns * 1e-9
    assert held > 0.9 * truth["stats_lock"], f"{held} of {truth}\n{yrt.show(result.stacks)}"
    yield f"{held:.3f} of {truth['stats_lock']:.3f} s"


def python(mode, *command, interpreter=sys.executable):
    program = subprocess.Popen(
        [interpreter, "-c", PYTHON, mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        pid = json.loads(program.stdout.readline())["pid"]
        at = yrt.Run(*command, "-p", pid, "-d", 600, "--max-cpu", 0).sampling()
        out, _ = program.communicate("\n", timeout=300)
        return at.result().expect(), json.loads(out)
    finally:
        yrt.stop(program)


@yrt.measured
def test_python_locks():
    """threading's locks within 2 % (what came by way of the GIL besides), the Event apart."""
    result, truth = python("locks", "python-lock-flame")
    for name in ("first", "second"):
        total = seconds_of(result, name, r"\[(R?Lock.*|GIL)\]")
        assert truth[name] > 0.5 and abs(total - truth[name]) <= EXACT * truth[name] + 0.05 + result.slack(
            truth[name]
        ), f"{name}: {total} of {truth}\n{yrt.show(result.stacks)}"
        yield f"{name}: {total:.3f} of {truth[name]:.3f} s"
    assert not seconds_of(result, "idle", r"\[(?!GIL\]).*"), yrt.show(result.stacks)
    assert result.stats["lock"]["kinds"]["conditions"]["s"] > 1.5, result.stats["lock"]


@yrt.measured
def test_gil():
    """
    Threads that compute wait for the GIL and nothing else; by their own clocks not longer than they were off the CPU
    (the rest is the run queue). Debian's Python has no symbol for take_gil().
    """
    for interpreter in sorted({os.path.realpath(sys.executable), os.path.realpath("/usr/bin/python3")}):
        result, truth = python("gil", "lock-flame", interpreter=interpreter)
        total = seconds_of(result, "spin", r"\[GIL\]")
        others = seconds_of(result, "spin", r"\[(?!GIL\]).*")
        assert (
            0.1 < total <= (1 + EXACT) * truth["spin"] + 0.05 and others < 0.05 * total
        ), f"{interpreter}: {total}, {others} of {truth}\n{yrt.show(result.stacks)}"
        yield f"{interpreter}: {total:.3f} of {truth['spin']:.3f} s off the CPU"


@yrt.measured
def test_java():
    """
    Within 2 %: monitors, java.util.concurrent's locks, permits, and a pool that is too small for a request. Waits for
    work, of the JVM's own threads too, are summed apart.
    """
    with java.Java("locks", 4) as jvm:
        at = yrt.Run("java-lock-flame", "-p", jvm.pid, "-d", 600, "--max-cpu", 0).sampling()
        jvm.release()
        truth = jvm.answer()
        result = at.result().expect()
    assert truth["class"] == "locks$Account", truth
    yield from check(
        result, truth["waits"], {name: (function, re.escape(leaf)) for name, (function, leaf) in JAVA.items()}
    )
    work = [
        frames
        for frames, _ in result.stacks
        if re.match(r"\[(condition|parked)", frames[-1]) and any(re.match(r"locks\.work\b", f) for f in frames)
    ]
    assert not work and result.stats["lock"]["kinds"]["conditions"]["hidden_s"] > 10, (work, result.stats["lock"])


def monitors():
    """({method: class that the JVM says a thread waits for there}, {method: {leaf: waits}}) of lock_classes."""
    with java.Java("lock_classes", 3) as jvm:
        at = yrt.Run("java-lock-flame", "-p", jvm.pid, "-d", 600).sampling()
        jvm.release()
        truth = jvm.answer()["classes"]
        result = at.result().expect()
    waits = {}
    for frames, ns in result.stacks:
        for method in truth:
            if frames[-1].startswith("[monitor") and any(
                re.split("[ (]", f)[0] == f"lock_classes.{method}" for f in frames
            ):
                waits.setdefault(method, {}).setdefault(frames[-1], []).append(ns)
    assert waits.keys() == truth.keys() and len(truth) == 5, (truth, waits)
    words = {"java.lang.Class": "java.lang.Class for lock_classes$Queue", "[J": "long[]"}
    return {method: f"[monitor {words.get(name, name)}]" for method, name in truth.items()}, waits


@yrt.measured
def test_java_classes():
    """
    Monitors have the class that the JVM says a thread waits for in this method: objects of several classes by one
    method, a class, an array, and what a thread wants again that has waited on it. None has a wrong one; what begins
    while all threads stand has none.
    """
    truth, waits = monitors()
    for method, leaf in truth.items():
        assert leaf in waits[method] and waits[method].keys() <= {leaf, "[monitor]"}, (method, leaf, waits[method])
    total = sum(ns for leaves in waits.values() for each in leaves.values() for ns in each)
    unknown = sum(ns for leaves in waits.values() for ns in leaves.get("[monitor]", ()))
    assert unknown <= 0.02 * total, (unknown, total)
    yield f"{unknown * 1e-9:.3f} of {total * 1e-9:.3f} s without a class"


def parked(seconds, *options):
    """
    (the JVM's account, {method: {class that is shown, None if none is: seconds}}) of park_classes; locks are what a
    thread has parked for.
    """
    with java.Java("park_classes", seconds, options=options) as jvm:
        at = yrt.Run("java-lock-flame", "--all-waits", "-p", jvm.pid, "-d", 600, "--max-cpu", 0).sampling()
        jvm.release()
        truth = jvm.answer()
        result = at.result().expect()
    waits = {method: {} for method in (*PARKED, "takeSlow")}
    for frames, ns in result.stacks:
        found = re.fullmatch(
            r"\[(lock of a Condition|lock|read lock|write lock|semaphore|class initialization)( [\w.$]+)?\]", frames[-1]
        )
        method = next(
            (name[13:] for f in frames if (name := re.split("[ (]", f)[0]).startswith("park_classes.take")), None
        )
        if found and "lock" in found[1]:
            assert any(re.split("[ (]", f)[0].endswith(".Unsafe.park") for f in frames), frames
        if found and method:
            shown = found[2] and found[2][1:]
            shown = None if shown in SUPPOSED else shown or (found[1] if method == "takeSlow" else None)
            waits[method][shown] = waits[method].get(shown, 0) + ns * 1e-9
    for method, name in truth["classes"].items():
        assert set(name.split()) <= PARKED[method], (method, name)
    assert len(truth["classes"]) > 8, truth
    return truth, waits


@yrt.measured
def test_java_parked():
    """What threads have parked for has its class; waits for a class that another thread initializes."""
    truth, waits = parked(3)
    slow, own = waits.pop("takeSlow"), truth["waits"]["takeSlow"]
    assert slow.keys() == {"class initialization"} and 0.7 * own < slow["class initialization"] < 0.9 * own, (slow, own)
    for method, shown in waits.items():
        assert set(shown) - {None} <= PARKED[method], (method, shown)
    total = sum(sum(shown.values()) for shown in waits.values())
    unseen = sum(shown.get(None, 0) for shown in waits.values())
    assert (
        sum(len(set(shown) - {None}) > 0 for shown in waits.values()) > 8 and total > 1 and unseen < 0.02 * total
    ), waits
    yield f"{len(waits)} methods, {total:.3f} s, without a class {unseen:.3f} s"


@yrt.measured
def test_java_moved():
    """The same while collectors move the objects: none has a wrong class."""
    for collector in "Serial", "Parallel", "G1":
        truth, waits = parked(3, f"-XX:+Use{collector}GC", "-Xmx200m", "-Dcollect=20")
        del waits["takeSlow"]
        for method, shown in waits.items():
            assert set(shown) - {None} <= PARKED[method], (collector, method, shown)
        total = sum(sum(shown.values()) for shown in waits.values())
        yield f"{collector}: {total:.3f} s, without a class {sum(shown.get(None, 0) for shown in waits.values()):.3f} s"


yrt.main(globals())
