# SPDX-License-Identifier: Apache-2.0
"""off-flame: time off the CPU by the stack that waits and its reason, exact by the fixture's own clocks; threads' time adds up."""

import re
import time

import yrt

REASONS = {"wait_sleep": "sleep", "wait_pipe": "read of a pipe", "wait_socket": "read of a socket", "wait_epoll": "epoll", "wait_poll": "poll",
           "wait_lock": "futex", "wait_child": "wait for a child"}
# What a function waits for besides: fork() takes locks of the memory that other threads use.
BESIDES = {"wait_child": {"[clone]"}}
EXACT = 0.02


def whole(*args, seconds=3):
    with yrt.Fixture("pauses", seconds=seconds) as fixture:
        at = yrt.Run("off-flame", "-p", fixture.pid, "-d", 60, *args).sampling()
        fixture.release()
        truth = fixture.finish()
        return at.result().expect(), truth


def of(result, function):
    return [(frames, ns * 1e-9) for frames, ns in result.stacks if function in frames]


def check_balance(stats):
    off = stats["off"]
    assert abs(off["wall_s"] - off["on_s"] - off["off_s"]) <= EXACT * off["wall_s"] + 0.05, off
    return f"{off['wall_s']:.3f} s = {off['on_s']:.3f} s on + {off['off_s']:.3f} s off"


def test_reasons():
    """Each function's time is right within 2 %, and as good as all of it has the right reason (the rest is the run queue)."""
    result, truth = whole()
    for function, reason in REASONS.items():
        stacks, expected = of(result, function), truth["off"][function]
        total = sum(s for _, s in stacks)
        reasons = {f"[{reason}]", "[run queue]"} | BESIDES.get(function, set())
        right = sum(s for frames, s in stacks if frames[-1] in reasons)
        assert abs(total - expected) <= EXACT * expected + 0.05, f"{function}: {total} of {expected}\n{yrt.show(result.stacks)}"
        named = sum(s for frames, s in stacks if frames[-1] == f"[{reason}]")
        assert right > 0.97 * total and named > 0.6 * total, f"{function}: {right} and {named} of {total}\n{yrt.show(stacks)}"
        yield f"{function}: {total:.3f} of {expected:.3f} s, {named:.3f} s {reason}"
    stats = result.stats
    assert stats["event"] == "wait" and stats["unit"] == "nanoseconds", stats
    assert abs(sum(ns for _, ns in result.stacks) * 1e-9 - stats["off"]["off_s"]) <= EXACT * stats["off"]["off_s"], stats
    yield check_balance(stats)


def test_asleep():
    """A thread that slept before and sleeps after the run has its stack, for as long as the run lasted."""
    result, _ = whole("-U")
    stacks = of(result, "wait_always")
    total = sum(s for _, s in stacks)
    assert abs(total - result.stats["duration_s"]) <= EXACT * result.stats["duration_s"] + 0.05, f"{total}: {result.stats}"
    assert all(frames[-1] == "[futex]" and "start_thread" in frames for frames, _ in stacks), yrt.show(stacks)
    yield f"{total:.3f} of {result.stats['duration_s']:.3f} s, {result.stats['off']['walked_from_outside']} walked from outside"


def test_limits():
    """--min leaves out what is shorter, and says how much."""
    result, _ = whole("--min", 200000, seconds=2)
    assert of(result, "wait_always") and not of(result, "wait_sleep"), yrt.show(result.stacks)
    assert result.stats["off"]["left_out_s"] > 5, result.stats
    yrt.run("off-flame", "-p", 1, "--min", 10, "--max", 5).expect(yrt.USAGE)


def test_fast():
    """Where threads switch too often for a stack each, a part stands for all, and the sum is right within what chance allows."""
    with yrt.Fixture("switches", seconds=20, wait=True) as fixture:
        fixture.release()
        result = yrt.run("off-flame", "-p", fixture.pid, "-d", 3).expect()
    off = result.stats["off"]
    shown = sum(ns for _, ns in result.stacks) * 1e-9
    assert abs(shown - off["off_s"]) <= 0.1 * off["off_s"], f"{shown}: {off}"
    yield f"{off['waits']} waits, {off['waits_without_stack']} without a stack: {shown:.3f} of {off['off_s']:.3f} s; {check_balance(result.stats)}"


PYTHON = """
import threading, time, socket
a, b = socket.socketpair()
lock = threading.Lock()
def sleeper():
    time.sleep(1)
def locker():
    with lock: pass
def reader():
    a.recv(1)
time.sleep(0.3)
lock.acquire()
threads = [threading.Thread(target=f) for f in (sleeper, locker, reader)]
for t in threads: t.start()
time.sleep(1)
lock.release()
b.send(b"x")
for t in threads: t.join()
"""


def test_python():
    """Python's functions that wait, by the reason."""
    result = yrt.run("python-off-flame", "-U", "--", "/usr/bin/python3", "-c", PYTHON).expect()
    for function, reason in (("sleeper", "sleep"), ("locker", "futex"), ("reader", "receive")):
        ns = sum(n for frames, n in result.stacks if frames[-1] == f"[{reason}]" and any(re.match(rf"{function} \(", f) for f in frames))
        assert 0.95e9 < ns < 1.5e9, f"{function}: {ns}\n{yrt.show(result.stacks)}"
    assert not result.share("_PyEval_EvalFrameDefault"), yrt.show(result.stacks)


def test_recorded():
    """A recording of waits is drawn by render as others are."""
    with yrt.Fixture("pauses", seconds=4) as fixture:
        fixture.release()
        time.sleep(0.2)
        done = yrt.run("record", "--event", "wait", "-p", fixture.pid, "-d", 1, "-f", "folded").expect()
    assert of(done, "wait_sleep") and done.stats["unit"] == "nanoseconds", yrt.show(done.stacks)
    yrt.run("record", "--event", "nothing", "-p", 1).expect(yrt.USAGE)


yrt.main(globals())
