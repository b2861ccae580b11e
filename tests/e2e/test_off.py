# SPDX-License-Identifier: Apache-2.0
"""
off-flame: time off the CPU by the stack that waits and its reason, exact by the fixture's own clocks; threads' time
adds up.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pods
import yrt
from waiting import EXACT, check_balance, of

REASONS = {
    "wait_sleep": "sleep",
    "wait_pipe": "read of a pipe",
    "wait_socket": "read of a socket",
    "wait_epoll": "epoll",
    "wait_poll": "poll",
    "wait_lock": "mutex lock",
    "wait_child": "wait for a child",
}
# What a function waits for besides: fork() takes locks of the memory that other threads use.
BESIDES = {"wait_child": {"[clone]"}, "wait_lock": {"[semaphore]"}}


def whole(*args, seconds=3):
    with yrt.Fixture("pauses", seconds=seconds) as fixture:
        at = yrt.Run("off-flame", "-p", fixture.pid, "-d", 600, *args).sampling()
        fixture.release()
        truth = fixture.finish()
        return at.result().expect(), truth


@yrt.measured
def test_reasons():
    """
    Each function's time is right within 2 %, and as good as all of it has the right reason (the rest is the run queue).
    By the program's clocks it was off the CPU, too, while the host ran others on that.
    """
    result, truth = whole()
    for function, reason in REASONS.items():
        stacks, expected = of(result, function), truth["off"][function]
        total = sum(s for _, s in stacks)
        reasons = {f"[{reason}]", "[run queue]"} | BESIDES.get(function, set())
        right = sum(s for frames, s in stacks if frames[-1] in reasons)
        assert abs(total - expected) <= EXACT * expected + 0.05 + result.slack(
            expected
        ), f"{function}: {total} of {expected}\n{yrt.show(result.stacks)}"
        named = sum(s for frames, s in stacks if frames[-1] == f"[{reason}]")
        assert (
            right > 0.97 * total and named > 0.6 * total
        ), f"{function}: {right} and {named} of {total}\n{yrt.show(stacks)}"
        yield f"{function}: {total:.3f} of {expected:.3f} s, {named:.3f} s {reason}"
    stats = result.stats
    assert stats["event"] == "wait" and stats["unit"] == "nanoseconds", stats
    assert (
        abs(sum(ns for _, ns in result.stacks) * 1e-9 - stats["off"]["off_s"]) <= EXACT * stats["off"]["off_s"]
    ), stats
    yield check_balance(result)


def queued(command, *args):
    """(by the stacks on the run queue but of the main thread, of all; by the kernel; the result)"""
    with yrt.Fixture("queued", wait=True) as fixture:
        at = yrt.Run(command, "-p", fixture.pid, "-d", 600, *args).sampling()
        fixture.release()
        truth = json.loads(fixture.process.stdout.readline())
        at.interrupt()
        result = at.result().expect()
    stacks = [(frames, ns * 1e-9) for frames, ns in result.stacks if frames[-1] == "[run queue]"]
    return sum(s for frames, s in stacks if "main" not in frames), truth["run_queue"], stacks, result


def test_run_queue():
    """From its wake-up until it has a CPU a thread is on the run queue: the sum is the kernel's own."""
    for command in ("off-flame", "wall-flame"):
        shown, expected, _, result = queued(command, "--max-cpu", 0)
        lost = result.missing(result.stats["off"]["off_s"] * 1e9) * 1e-9
        assert abs(shown - expected) <= EXACT * expected + 0.002 + lost, f"{shown} of {expected}, lost {lost}"
        yield f"{command}: {shown:.4f} s on the run queue, {expected:.4f} by the kernel"


@yrt.measured
def test_run_queue_stacks():
    """
    It is there with the stack that it waited with. Each worker waits in take() only, for those that were woken before
    it: most of the time.
    """
    for command in ("off-flame", "wall-flame"):
        _, expected, stacks, _ = queued(command, "--max-cpu", 0)
        woken = sum(s for frames, s in stacks if "take" in frames)
        assert woken > 0.2 * expected, f"{woken} of {expected}\n{yrt.show(stacks)}"
        yield f"{command}: {woken:.4f} of {expected:.4f} s after a wake-up"


@yrt.measured
def test_asleep():
    """A thread that slept before and sleeps after the run has its stack, for as long as the run lasted."""
    result, _ = whole("-U")
    stacks = of(result, "wait_always")
    total = sum(s for _, s in stacks)
    assert (
        abs(total - result.stats["duration_s"]) <= EXACT * result.stats["duration_s"] + 0.05
    ), f"{total}: {result.stats}"
    assert all(
        frames[-1].startswith(("[semaphore", "[run queue]")) and "start_thread" in frames for frames, _ in stacks
    ), yrt.show(stacks)
    yield (
        f"{total:.3f} of {result.stats['duration_s']:.3f} s, {result.stats['off']['walked_from_outside']} walked from"
        " outside"
    )


@yrt.measured
def test_limits():
    """--min leaves out what is shorter, and says how much."""
    result, _ = whole("--min", "200ms", seconds=2)
    assert of(result, "wait_always") and not of(result, "wait_sleep"), yrt.show(result.stacks)
    assert result.stats["off"]["left_out_s"] > 5, result.stats
    yrt.run("off-flame", "-p", 1, "--min", 10, "--max", 5).expect(yrt.USAGE)
    yrt.run("off-flame", "-p", 1, "--min", "10ms", "--max", "9999us").expect(yrt.USAGE)
    yrt.run("off-flame", "-p", 1, "--min", "10x").expect(yrt.USAGE)


def check_shown(result, off_by):
    """
    Where a part of the waits stands for all, the sum is right but for this part of it, what the run itself says that
    chance may do, and what was lost. What to report.
    """
    off, shown, lost = (
        result.stats["off"],
        sum(ns for _, ns in result.stacks) * 1e-9,
        result.missing(result.stats["off"]["off_s"] * 1e9) * 1e-9,
    )
    off_by = max(off_by, 3 * off["off_by"])
    assert abs(shown + lost - off["off_s"]) <= off_by * off["off_s"], f"{shown} and {lost} lost: {off}"
    return f"{off['waits']} waits, {off['waits_without_stack']} without a stack: {shown:.3f} of {off['off_s']:.3f} s"


SLEEPERS = """
import threading, time
def work():
    while True:
        time.sleep(0.03)
for _ in range(60):
    threading.Thread(target=work, daemon=True).start()
time.sleep(1000)
"""


@yrt.measured
def test_account():
    """
    No wait is left out of the sum, also if the kernel does not report each switch, as one does not whose sandbox hides
    a task: some of 8,000.
    """
    with yrt.Program([sys.executable, "-c", SLEEPERS]) as program:
        time.sleep(1)
        result = yrt.run("off-flame", "-p", program.pid, "-d", 4).expect()
        program.kill()
    off = result.stats["off"]
    assert abs(off["wall_s"] - off["on_s"] - off["off_s"]) <= 0.02 + result.slack(off["on_s"]), off
    yield f"{check_balance(result)}; {off['returns_not_reported']} returns were not reported"


CHILDREN = """
import os, time
while True:
    for i in range(8):
        if not os.fork():
            end = time.process_time() + 0.01
            while time.process_time() < end: pass
            os._exit(0)
    for i in range(8): os.wait()
"""


@yrt.measured
def test_children():
    """Time on the CPU is known, too, where children end between the moment that they are found and the start."""
    with yrt.Program([sys.executable, "-c", CHILDREN]) as program:
        try:
            time.sleep(0.3)
            result = yrt.run("off-flame", "-s", "-p", program.pid, "-d", 1).expect()
        finally:
            program.kill()
    assert result.stats["off"]["on_s"] > 0.05 * result.stats["duration_s"], result.stats
    yield check_balance(result)


ENDS = """
import mmap, os, signal, sys, time
cpu = min(os.sched_getaffinity(0))
def child(work):
    pid = os.fork()
    if not pid: work()
    return pid
def hog():
    os.sched_setaffinity(0, {cpu})
    while True: pass
def ends():
    memory = mmap.mmap(-1, 1 << 30)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    memory[::mmap.PAGESIZE] = bytes(len(memory) // mmap.PAGESIZE)
    os.sched_setaffinity(0, {cpu})
    os.nice(19)
    os.write(1, b"ready\\n")
    signal.pause()
pid = child(ends)
print(child(hog), pid, flush=True)
time.sleep(60)
"""


def stat_of(pid):
    """Its state and its flags."""
    words = yrt.read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return words[0], int(words[6])


def has_open(pid, path):
    with contextlib.suppress(OSError):
        return any(os.readlink(f.path) == path for f in os.scandir(f"/proc/{pid}/fd"))
    return False


@yrt.measured
def test_ends():
    """
    A process that ends while yrt starts, and takes long for it, is no target: its waits would count, but not its life.
    """
    with yrt.Program([sys.executable, "-c", ENDS], stdout=subprocess.PIPE, text=True) as program:
        lines = sorted(program.stdout.readline() for _ in range(2))  # "ready" is the last
        hog, ends = map(int, lines[0].split())
        try:
            at = yrt.Run("off-flame", "-p", program.pid, "-p", ends, "-d", 600)
            yrt.until(lambda: has_open(at.process.pid, "anon_inode:bpf-prog"), "programs for what was read of it")
            os.kill(ends, signal.SIGKILL)
            at.sampling()
            yield f"state and flags at the start: {stat_of(ends)}"
            time.sleep(0.5)
        finally:
            for pid in hog, ends:
                os.kill(pid, signal.SIGKILL)
        yrt.until(lambda: stat_of(ends)[0] == "Z", "the end")
        at.interrupt()
        result = at.result().expect()
        program.kill()
    yield check_balance(result)


LATE = """
import os, sys, time
end = time.monotonic() + 1.5
while time.monotonic() < end: pass
os.execv(sys.argv[1], ["late", "1"])
"""


@yrt.measured
def test_late():
    """Time of a process counts from when it is a target: what it did before a rule matched it was no wait."""
    with tempfile.TemporaryDirectory(prefix="yrt-late") as directory:
        late = shutil.copy("/usr/bin/sleep", f"{directory}/late{os.getpid()}")
        with yrt.Program([late, "60"]) as first:
            at = yrt.Run("off-flame", "--select", f"exe={late}", "-d", 600).sampling()
            with yrt.Program([sys.executable, "-c", LATE, late]) as program:
                program.wait()
            at.interrupt()
            result = at.result().expect()
            first.kill()
    off = sum(ns for frames, ns in result.stacks if f"(pid {program.pid})" in frames[0]) * 1e-9
    lived = result.stats["off"]["wall_s"] - result.stats["duration_s"]
    assert 0.9 < off < 2 and lived < 2, f"{off} of {lived}: {result.stats}\n{yrt.show(result.stacks)}"
    yield f"{off:.3f} of {lived:.3f} s off the CPU"


@yrt.measured
def test_exec():
    """A wait that begins before its new program was read is whole, once it was, and counts so."""
    with yrt.Program(["/bin/sh", "-c", "sleep 0.5; exec sleep 1.2"]) as program:
        result = yrt.run("off-flame", "-p", program.pid, "-d", 1.5).expect()
        program.kill()
    cut = sum(result.stats["truncated"].get(why, 0) for why in ("no_process", "no_region")) * 1e-9
    assert cut < 0.1 * result.stats["duration_s"], f"{result.stats}\n{yrt.show(result.stacks)}"


@yrt.measured
def test_crowd():
    """
    Time begins to count when all that is to be read of a thousand threads was read. A wait that goes on is one, too.
    """
    with yrt.Fixture("waits", 1000, wait=False) as fixture:
        yrt.waiting(fixture.pid, 1001, 60)
        for command in "off-flame", "wall-flame":
            result = yrt.run(command, "-p", fixture.pid, "-d", 1).expect()
            off, lived = result.stats["off"], 1001 * result.stats["duration_s"]
            assert abs(off["wall_s"] - lived) <= EXACT * lived + result.slack(lived), f"{off}: {lived}"
            assert abs(off["off_s"] - lived) <= EXACT * lived + result.slack(lived), f"{off}: {lived}"
            assert off["waits"] >= 1001 and "1001 waits" in result.stderr, f"{off}: {result.stderr}"


def crowd_shown(seconds, duration):
    """400 threads that sleep for so long each: few of their waits are chosen."""
    with yrt.Program(
        [sys.executable, "-c", SLEEPERS.replace("0.03", f"{seconds}").replace("range(60)", "range(400)")]
    ) as target:
        try:
            yrt.waiting(target.pid, 400)
            return [yrt.run("off-flame", "-p", target.pid, "-d", duration).expect() for _ in range(2)]
        finally:
            target.kill()


@yrt.measured
def test_crowd_shown():
    """
    Threads of which few waits were chosen. Waits that are as long as those before are not walked from outside.
    """
    for result in crowd_shown(0.02, 1):
        off = result.stats["off"]
        yield check_shown(result, 0.04)
        assert off["walked_from_outside"] < 0.2 * off["waits"], off


@yrt.measured
def test_crowd_long():
    """The same where the counts are drained in between, long after most of them were chosen."""
    for result in crowd_shown(0.04, 4):
        yield f"{check_shown(result, 0.02)}; {result.stats['off']['walked_from_outside']} walked from outside"


@yrt.measured
def test_long_waits():
    """Where all waits are long each has its stack when it begins, which costs less than to walk it from outside."""
    threads = 300
    with yrt.Program(
        [sys.executable, "-c", SLEEPERS.replace("0.03", "0.06").replace("range(60)", f"range({threads})")]
    ) as target:
        try:
            yrt.waiting(target.pid, threads)
            result = yrt.run("off-flame", "-p", target.pid, "-d", 3).expect()
        finally:
            target.kill()
    off = result.stats["off"]
    assert off["waits"] > 10 * threads and off["walked_from_outside"] < 2 * threads, off
    yield f"{off['waits']} waits, {off['walked_from_outside']} walked from outside"


NAPS = "import time\nwhile True:\n time.sleep(0.004)\n sum(range(2000))"


@yrt.measured
def test_neighbours():
    """What the threads of other programs cost: they are not looked at 50 times a second (Linux 6.1 and later)."""
    if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 1):
        raise yrt.Skipped("before Linux 6.1 all threads are listed")
    with yrt.Program([sys.executable, "-c", NAPS]) as target:
        sample = ("off-flame", "-p", target.pid, "-d", 3)
        alone = yrt.run(*sample).expect()
        with yrt.Fixture("waits", 2000, wait=False) as neighbour:
            yrt.waiting(neighbour.pid, 2001, 60)
            beside = yrt.run(*sample).expect()
        target.kill()
    cost = [result.stats["cpu_percent"] for result in (alone, beside)]
    assert cost[1] < 2 * cost[0], f"{cost[0]:.1f} % of a CPU alone, {cost[1]:.1f} % beside 2,000 threads"
    yield f"{cost[0]:.1f} % of a CPU alone, {cost[1]:.1f} % beside 2,000 threads"


@yrt.measured
def test_frozen():
    """A control group that version 2 of them has frozen: nothing waits for what its system call says."""
    with yrt.Fixture("waits", wait=False) as fixture, pods.Pod() as pod:
        yrt.waiting(fixture.pid, 9)
        pod.add(fixture.pid)
        with open(f"{pod.folders[2]}/cgroup.freeze", "w") as freeze:
            freeze.write("1")
        yrt.until(lambda: "frozen 1" in yrt.read(f"{pod.folders[2]}/cgroup.events"), "frozen")
        result = yrt.run("off-flame", "-p", fixture.pid, "-d", 1).expect()
        dump = yrt.run("dump", "-p", fixture.pid, "--json", output=False, stats=False).expect()
    assert {frames[-1] for frames, _ in result.stacks} == {"[frozen]"}, yrt.show(result.stacks)
    assert {t["state"] for t in json.loads(dump.stdout)["threads"]} == {"frozen"}, dump.stdout


@yrt.measured
def test_births():
    """Threads that end after a wait or two: others stand for those that were not chosen."""
    with yrt.Fixture("births", seconds=12, wait=True) as fixture:
        fixture.release()
        result = yrt.run("off-flame", "-p", fixture.pid, "-d", 8).expect()
    assert result.stats["off"]["waits_without_stack"] > 0, result.stats
    off = result.stats["off"]
    yield check_shown(result, max(0.03, 5 / (off["waits"] - off["waits_without_stack"]) ** 0.5))


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


@yrt.measured
def test_python():
    """Python's functions that wait, by the reason."""
    result = yrt.run("python-off-flame", "-U", "--", "/usr/bin/python3", "-c", PYTHON).expect()
    for function, reason in (("sleeper", "sleep"), ("locker", "Lock .*"), ("reader", "receive")):
        ns = sum(
            n
            for frames, n in result.stacks
            if re.fullmatch(rf"\[{reason}\]", frames[-1]) and any(re.match(rf"{function} \(", f) for f in frames)
        )
        assert 0.95e9 < ns < 1.8e9, f"{function}: {ns}\n{yrt.show(result.stacks)}"
    assert not result.share("_PyEval_EvalFrameDefault"), yrt.show(result.stacks)


WAKERS = """
import os, queue, socket, subprocess, sys, threading, time
q, lock = queue.Queue(), threading.Lock()
listening = socket.create_server(("127.0.0.1", 0))
out, into = socket.create_connection(listening.getsockname()), listening.accept()[0]
def sender():
    while True:
        time.sleep(0.04)
        out.send(b"x")
def receiver():
    while True: into.recv(1)
def producer():
    while True:
        time.sleep(0.04)
        q.put(1)
def consumer():
    while True: q.get()
def holder():
    while True:
        with lock: time.sleep(0.03)
        time.sleep(0.001)
def locker():
    while True:
        with lock: pass
        time.sleep(0.001)
def reader():
    pipe = subprocess.Popen(["bash", "-c", "while sleep 0.04; do echo; done"], stdout=subprocess.PIPE)
    while True: os.read(pipe.stdout.fileno(), 1)
for f in (producer, consumer, holder, locker, reader, sender, receiver):
    threading.Thread(target=f, name=f.__name__, daemon=True).start()
time.sleep(1)
print(flush=True)
sys.stdin.read()
"""


@yrt.measured
def test_wakers():
    """Inside a wait stands who ended it: a function of the program, another program, or an interrupt."""
    with yrt.Program(["/usr/bin/python3", "-c", WAKERS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as target:
        target.stdout.readline()
        shown = {
            user: yrt.run("python-off-flame", "--wakers", "--idle", *user, "-p", target.pid, "-d", 4).expect()
            for user in ((), ("-U",))
        }
        target.stdin.close()
    for result in shown.values():
        for waiter, reason, waker in (
            ("consumer", "condition", r"producer \("),
            ("locker", "Lock .*", r"holder \("),
            ("reader", "read of a pipe", r"\[woken by bash\]"),
            ("receiver", "receive( .*)?", r"sender \("),
            ("producer", "sleep", r"\[woken by an interrupt\]"),
        ):
            all_ns = right = 0
            for frames, ns in result.stacks:
                at = next((i for i, f in enumerate(frames) if re.fullmatch(rf"\[{reason}\]", f)), 0)
                if not any(re.match(rf"{waiter} \(", f) for f in frames[:at]):
                    continue
                behind = frames[at + 1:]
                all_ns += ns
                right += ns * any(re.match(waker, f) for f in behind)
            # the first wait may have begun before the run, the last one is not over
            assert (
                all_ns > 2e9 and right > 0.9 * all_ns
            ), f"{waiter}: {right} of {all_ns}\n{yrt.show(result.stacks, 20)}"
            yield f"{waiter}, woken by {waker}: {right * 1e-9:.3f} of {all_ns * 1e-9:.3f} s"
    interrupts = [
        frames[frames.index("[woken by an interrupt]") :]
        for frames, _ in shown[("-U",)].stacks
        if "[woken by an interrupt]" in frames
    ]
    assert interrupts and all(len(frames) == 1 for frames in interrupts), interrupts
    yield check_balance(result)


@yrt.measured
def test_recorded():
    """A recording of waits is drawn by render as others are."""
    with yrt.Fixture("pauses", seconds=4) as fixture:
        fixture.release()
        time.sleep(0.2)
        done = yrt.run("record", "--event", "wait", "-p", fixture.pid, "-d", 1, "-f", "folded").expect()
    assert of(done, "wait_sleep") and done.stats["unit"] == "nanoseconds", yrt.show(done.stacks)
    yrt.run("record", "--event", "nothing", "-p", 1).expect(yrt.USAGE)


yrt.main(globals())
