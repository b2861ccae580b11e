# SPDX-License-Identifier: Apache-2.0
"""
`yrt flame -a` beside 200 processes (crowd.py). The machine is a pid namespace of its own, and what runs in another one
beside it is none of its processes, whatever its pid is: the neighbour is the process 1 there, as this test is here.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import crowd
import yrt

RATE = 399
SECONDS = 10
MEMORY_KB = 80 << 10
UNKNOWN = "[truncated: no_region]", "[truncated: no_cfi]"
FORKS = """
import os, time
def work():
    end = time.thread_time() + 0.02
    while time.thread_time() < end:
        pass
open("/proc/self/comm", "w").write("forker")
while True:
    if not os.fork():
        work()
        os._exit(0)
    os.wait()
"""
# NAME SECONDS REST: for SECONDS it is not dumpable: looking into it takes CAP_SYS_PTRACE. It rests between turns.
CLOSED = """
import ctypes, sys, time
ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE
open("/proc/self/comm", "w").write(sys.argv[1])
print(flush=True)
def closed_at_first(end):
    while time.monotonic() < end:
        sum(range(100000))
        time.sleep(float(sys.argv[3]))
sys.stdin.readline()
closed_at_first(time.monotonic() + float(sys.argv[2]))
ctypes.CDLL(None).prctl(4, 1)
closed_at_first(time.monotonic() + 1000)
"""
BESIDE = "sub beside { my $n = 0; $n += $_ for 1 .. 200000 } while (1) { beside(); select(undef, undef, undef, 0.05) }"


def of_process(result, pid):
    # below its cgroup, if there are several
    return [(frames, n) for frames, n in result.stacks if any(f.endswith(f"(pid {pid})") for f in frames[:3])]


def check_busy(result, name, frame, pid, used):
    """A process at work: seen as much as it ran, its stacks are whole, and most have its function."""
    stacks = of_process(result, pid)
    seen = sum(n for _, n in stacks)
    cut = sum(n for frames, n in stacks if any("[truncated" in f for f in frames))
    unknown = sum(n for frames, n in stacks if any(f in UNKNOWN for f in frames))
    named = sum(n for frames, n in stacks if yrt.has(frames, frame))
    print(f"{name}: {seen} samples of {used * RATE:.0f}, {cut} cut, {named} with its function")
    due = used * RATE
    assert 0.7 * due - 20 - result.missing(due) < seen < 1.3 * due + 20, f"{name}: {seen} samples of {due:.0f}"
    assert cut <= 5 + 0.05 * seen, f"{name}: {cut} of {seen} are cut\n{yrt.show(stacks)}"
    assert not unknown, f"{name}: {unknown} of {seen} end in unknown code\n{yrt.show(stacks)}"
    assert named >= 0.5 * seen, f"{name}: {named} of {seen} have its function\n{yrt.show(stacks)}"


@yrt.measured
def test_crowd():
    """
    Those at work are seen with their language's frames, of each only the first stacks may be cut, none in code that is
    not known; nothing is lost; yrt stays small.
    """
    with tempfile.TemporaryDirectory() as cache, crowd.Crowd() as machine:
        env = {"YRT_CACHE_DIR": cache}
        # unwind tables of large files are on disk from here on
        yrt.run("flame", "-a", "-d", 1, "-F", 99, env=env).expect()
        at = yrt.Run(
            "flame", "-a", "-d", SECONDS, "-F", RATE, "--max-cpu", 0, "--processes", "each", env=env
        ).sampling()
        begin, before, own = time.monotonic(), machine.cpu_seconds(), time.process_time()
        result = at.result().expect()
        passed, after, own = time.monotonic() - begin, machine.cpu_seconds(), time.process_time() - own
    st = result.stats
    print(
        result.summary(), st["max_rss_kb"], "kB", st["cpu_percent"], "%", st["processes"], "processes", st["truncated"]
    )
    assert result.lost_beside(RATE) <= 0.02 * result.samples, st
    assert sum(st["truncated"].values()) <= st["processes"] + 0.02 * result.samples, st
    assert st["unread_processes"] == 0, result.stderr
    assert st["max_rss_kb"] <= MEMORY_KB, st
    first = of_process(result, 1)
    assert sum(n for _, n in first) <= 2 * own * RATE + 10, f"this test ran for {own} s\n{yrt.show(first)}"
    for name, (frame, process) in machine.busy.items():
        check_busy(result, name, frame, process.pid, (after[name] - before[name]) / passed * SECONDS)


@yrt.measured
def test_children():
    """A child that is gone before anybody looked at it is walked as its parent, and has the kernel's name."""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/forker.py", "w") as script:
            script.write(FORKS)
        parent = subprocess.Popen([sys.executable, script.name])
        try:
            result = yrt.run("flame", "-a", "-d", 2, "-F", RATE, "--max-cpu", 0, "--processes", "each").expect()
        finally:
            yrt.stop(parent, signal.SIGKILL)
    own = [(frames, n) for frames, n in result.stacks if any("forker" in f for f in frames[:3])]
    seen, cut = sum(n for _, n in own), sum(n for frames, n in own if any("[truncated" in f for f in frames))
    assert seen > 5, f"only {seen} samples\n{yrt.show(result.stacks)}"
    assert cut <= 4 + 0.06 * seen, f"{cut} of {seen} samples are cut\n{yrt.show(own)}"
    unnamed = [s for s in result.stacks if any(re.match(r"\d+ \(pid", f) for f in s[0][:3])]
    assert not unnamed, yrt.show(unnamed)
    yield f"{cut} of {seen} samples are cut"


def test_refused():
    """
    What could not be looked into is named, with the reason; it is tried again, and is as any other once that passes.
    """
    without = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    with contextlib.ExitStack() as stack:
        processes = {}
        for name, seconds, rest in [("opens", 0.4, 0), *((f"closed{i}", 1000, 0.05) for i in range(5))]:
            process = subprocess.Popen(
                [*without, sys.executable, "-c", CLOSED, name, str(seconds), str(rest)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            stack.callback(yrt.stop, process, signal.SIGKILL)
            assert process.stdout.readline() == b"\n"
            processes[name] = process
        at = yrt.Run(
            "flame", "-a", "-d", 600, "-F", RATE, "--max-cpu", 0, "--processes", "each", prefix=without
        ).sampling()
        for process in processes.values():
            process.stdin.write(b"\n")
            process.stdin.flush()
        yrt.busy_for([processes["opens"].pid], 1, timeout=600)
        for process in processes.values():
            yrt.busy_for([process.pid], 0.05, timeout=600)
        at.interrupt()
        result = at.result().expect()
    opened = of_process(result, processes["opens"].pid)
    named = [n for frames, n in opened if yrt.has(frames, re.compile("^closed_at_first "))]
    assert sum(named) > 20, f"not looked into a second time\n{result.stderr}"
    unread = {entry["pid"]: entry for entry in result.stats["unread"]}
    unread.pop(1, None)  # this test, if it was seen: it may do more than yrt
    assert set(unread) == {process.pid for name, process in processes.items() if name != "opens"}, unread
    for entry in unread.values():
        assert entry["name"].startswith("closed") and "Permission denied" in entry["why"], entry
    told = r"process \d+ \(\w+\) could not be looked into.*: Permission denied.*CAP_SYS_PTRACE"
    told, n = re.findall(told, result.stderr), result.stats["unread_processes"]
    assert len(told) == 3 and f"{n - 3} more processes could not be looked into" in result.stderr, result.stderr


def wake_ups(pid):
    return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", yrt.read(f"/proc/{pid}/status"), re.M)[1])


@yrt.measured
def test_wake_ups():
    """At a low rate yrt sleeps most of the time, also beside programs that end at once."""
    most = {"sleep 1000": 16, "while :; do sleep 0.05; done": 26}  # a second
    for script, bound in most.items():
        with subprocess.Popen(["sh", "-c", script]) as beside:
            try:
                at = yrt.Run("flame", "-a", "-d", 12, "-F", 19).sampling()
                time.sleep(4)
                begin, before = time.monotonic(), wake_ups(at.process.pid)
                time.sleep(6)
                rate = (wake_ups(at.process.pid) - before) / (time.monotonic() - begin)
                at.result().expect()
            finally:
                yrt.stop(beside, signal.SIGKILL)
        assert rate < bound, f"{rate:.1f} wake-ups a second beside {script}"
        yield f"{rate:.1f} wake-ups a second beside {script}"


def enter_namespace():
    """
    Runs this file once more as the first process of a namespace, with a neighbour in another, and ends with its exit
    code.
    """
    words = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    beside = subprocess.Popen([*words, "perl", "-e", BESIDE])
    try:
        code = subprocess.run([*words, sys.executable, *sys.argv]).returncode
    finally:
        yrt.stop(beside, signal.SIGKILL)
    sys.exit(code)


if os.getpid() != 1:
    enter_namespace()
yrt.main(globals())
