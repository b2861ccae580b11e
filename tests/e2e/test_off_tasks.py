# SPDX-License-Identifier: Apache-2.0
"""off-flame --logical: time that tasks wait without a thread, against how long they do by their own account."""

import collections
import os
import re

import go
import lua
import yrt

PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")
SECONDS = 2


def look(pid, *flags, command="off-flame"):
    result = yrt.run(command, "-p", pid, "--logical", "-d", SECONDS, *flags).expect()
    off = result.stats["off"]
    assert off["looks"] > 4, off
    assert re.search(rf"; [0-9.]+ s of tasks without a thread, in {off['looks']} looks", result.stderr), result.stderr
    return result, off


def seconds(result, kind):
    """By state."""
    states = collections.Counter()
    for frames, value in result.stacks:
        if frames[-1].startswith(f"[{kind}: "):
            states[frames[-1][len(kind) + 3:-1]] += value / 1e9
    return states


@yrt.measured
def test_asyncio():
    """Three that wait all the time, in a function each: each has the time of the whole run, beside its thread's."""
    program = """if 1:
        import asyncio, json, os, sys, threading
        async def sleeps(): await asyncio.sleep(1000)
        async def waits(): await asyncio.Event().wait()
        async def main():
            print(json.dumps({"pid": os.getpid(), "chain": []}), flush=True)
            await asyncio.gather(sleeps(), waits(), waits(), waits())
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
        asyncio.run(main())
    """
    with yrt.Fixture(PYTHON, "-c", program, seconds=None, wait=False) as f:
        result, off = look(f.pid, "--idle", command="python-off-flame")
        states = seconds(result, "asyncio task")
        of = {
            name: sum(
                n
                for frames, n in result.stacks
                if "[asyncio task: " in frames[-1] and any(re.match(rf"{name}\b", frame) for frame in frames)
            )
            / 1e9
            for name in ("sleeps", "waits", "main")
        }
        run = off["wall_s"] / 2  # of two threads
        for name, each in (("sleeps", 1), ("waits", 3), ("main", 1)):
            assert abs(of[name] - each * run) < 0.02 * each * run, f"{name}: {of[name]} of {each} * {run}"
        assert states.keys() == {"waits for a future", "waits for _GatheringFuture"}, states
        assert abs(sum(states.values()) - off["tasks_s"]) < 1e-3, f"{states} and not {off}"
        assert abs(result.samples / 1e9 - off["tasks_s"] - off["off_s"]) < 0.02 * off["off_s"], off
        plain = yrt.run("python-off-flame", "-p", f.pid, "-d", 1, "--idle").expect()
        assert (
            not any("asyncio task" in frames[-1] for frames, _ in plain.stacks) and not plain.stats["off"]["looks"]
        ), plain.stacks
        yield f"{of} of {run:.3f} s in {off['looks']} looks"


@yrt.measured
def test_goroutines():
    """By what each waits for, as debug=2 of runtime/pprof says it."""
    with yrt.Fixture(go.build("moments", name="moments"), seconds=None, wait=False) as f:
        want = collections.Counter(re.findall(r"^goroutine \d+ \[([^,\]]*)", f.start["each"], re.M))
        result, off = look(f.pid)
        states, run = seconds(result, "goroutine"), result.stats["duration_s"]
        for state in want.keys() - {"running", "syscall", "runnable"}:  # the one that asked waits by now, too
            assert (
                0.98 * want[state] * run < states[state] < 1.02 * (want[state] + 1) * run
            ), f"{state}: {states} and not {want} times {run}"
        yield f"{dict(states)} of {dict(want)} in {run:.3f} s"


def test_on_a_thread():
    """A goroutine in a system call waits on its thread, and so counts once."""
    with yrt.Fixture(go.build("waits"), seconds=None, wait=False) as f:
        yrt.waiting(f.pid, 4)
        result = yrt.run("off-flame", "-p", f.pid, "--logical", "-d", 0.5, "--idle").expect()
        waits = {frames[-1] for frames, _ in result.stacks if "main.wait" in frames}
        assert waits and result.stats["off"]["looks"], yrt.show(result.stacks)
        assert not any("goroutine" in wait for wait in waits), waits


@yrt.measured
def test_locks():
    """Goroutines among lock-flame's locks: those that wait for one of package sync, and no others."""
    locks = {"locked": "mutex sync.Mutex", "reading": "read lock sync.RWMutex", "writing": "write lock sync.RWMutex"}
    with yrt.Fixture(go.build("moments", name="moments"), seconds=None, wait=False) as f:
        result = yrt.run("lock-flame", "-p", f.pid, "--logical", "-d", SECONDS).expect()
        run, looks = result.stats["duration_s"], result.stats["lock"]["looks"]
        for function, lock in locks.items():
            want = len(re.findall(rf"^main\.{function}\(", f.start["each"], re.M)) * run
            stacks = [(frames, n) for frames, n in result.stacks if f"main.{function}" in frames]
            have = sum(n for frames, n in stacks if frames[-1] == f"[{lock}]") / 1e9
            assert want and abs(have - want) < 0.02 * want, f"{lock}: {have} s of {want}, {yrt.show(result.stacks, 9)}"
        assert not any(frames[-1].startswith("[goroutine: ") for frames, _ in result.stacks), yrt.show(result.stacks, 9)
        every = yrt.run("lock-flame", "-p", f.pid, "--logical", "--all-waits", "-d", 0.2).expect()
        assert seconds(every, "goroutine")["select"], yrt.show(every.stacks, 9)
        plain = yrt.run("lock-flame", "-p", f.pid, "-d", 0.2).expect().stderr
        assert "goroutines wait without a thread: --logical shows what for" in plain, plain
        yield f"{looks} looks"


@yrt.measured
def test_coroutines():
    """LuaJIT's coroutines that have yielded: each for the whole run."""
    with lua.fixture("parked_coroutines.lua", wait=False) as f:
        result, off = look(f.pid)
        states = seconds(result, "coroutine")
        yielded = sum(1 for lines in f.start["coroutines"].values() if lines) + 6
        run = off["wall_s"]
        assert abs(states["yielded"] - yielded * run) < 0.02 * yielded * run, f"{states} of {yielded} for {run}"
        yield f"{dict(states)} of {yielded} in {run:.3f} s"


yrt.main(globals())
