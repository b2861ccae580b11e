# SPDX-License-Identifier: Apache-2.0
"""
dump: the stack of every thread once, compared with what the fixture promises, or with what the runtime itself reports
of its threads.
"""

import collections
import json
import os
import re
import signal
import subprocess
import tempfile
import time

import dumps
import go
import yrt

PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")


def names(thread, *kinds):
    return [f["name"] for f in thread["frames"] if not kinds or f["kind"] in kinds]


def chain_of(name):
    kind = name.split("-")[0]
    return [f"wait_{kind}", "third", "second", "first"]


def settle(pid, told):
    """Those that wait do so: no thread is on its way there any more."""
    dumps.settle(pid, [name for name, thread in told.items() if thread["call"]])


def check_native(threads, told):
    for name, truth in told.items():
        thread = threads[truth["tid"]]
        if thread["how"] == "unseen" and not truth["call"]:  # it runs, but not at the moment
            continue
        own = [n for n in names(thread, "native") if re.match("wait_|first|second|third", n)]
        assert own == chain_of(name), f"{name}: {own}"
        assert thread["comm"] == name, thread
        if truth["call"]:
            assert thread["how"] == "walked" and thread["walk"] == "root", thread
            assert thread["state"] == "sleeping" and thread["syscall"]["name"] == truth["call"], thread
            assert thread["frames"][0]["kind"] == "kernel", thread["frames"][0]
            assert thread["off_cpu_ns"] > 0, thread


@yrt.measured
def test_native():
    """Each thread's chain, system call and state; who runs is sampled; a cycle of mutexes, and none elsewhere."""
    began = time.monotonic()
    with yrt.Fixture("waits", wait=False) as f:
        yrt.waiting(f.pid, 9)
        asleep = time.monotonic()
        time.sleep(1)
        least = time.monotonic() - asleep
        threads, told = dumps.of(f.pid), f.start["threads"]
        for name in ("sleep", "accept", "cycle-0"):
            slept = threads[told[name]["tid"]]["off_cpu_ns"] * 1e-9
            assert least - 0.05 <= slept <= time.monotonic() - began, f"{name}: {slept} s, at least {least}"
        assert set(threads) == {f.pid} | {t["tid"] for t in told.values()}
        check_native(threads, told)
        assert (
            threads[told["spin"]["tid"]]["how"] in ("sampled", "walked")
            and threads[told["spin"]["tid"]]["state"] != "sleeping"
        )
        assert "main" in names(threads[f.pid]) and threads[f.pid]["syscall"]["text"].startswith("read(0 = pipe:[")
        texts = {name: threads[t["tid"]].get("syscall", {}).get("text", "") for name, t in told.items()}
        assert re.fullmatch(r"accept\(\d+ = tcp 127\.0\.0\.1:\d+ listens, 0, 0\)", texts["accept"]), texts
        assert re.fullmatch(
            r"epoll_wait\(\d+ = anon_inode:\[eventpoll\], 0x[0-9a-f]+, 1, no timeout\)", texts["epoll"]
        ), texts
        assert re.fullmatch(r"futex\(0x[0-9a-f]+, WAIT\|PRIVATE, 2, no timeout\)", texts["mutex"]), texts
        for i in range(3):
            lock = threads[told[f"cycle-{i}"]["tid"]]["waits_for"]
            assert lock["owner"] == told[f"cycle-{(i + 1) % 3}"]["tid"] and lock["deadlock"], lock
            assert lock["name"] == ("cycle+0x28", "cycle+0x50", "cycle")[i], lock
        lock = threads[told["mutex"]["tid"]]["waits_for"]
        assert lock["owner"] == f.pid and not lock["deadlock"] and lock["name"] == "held", lock
        assert [n for n, t in told.items() if "waits_for" in threads[t["tid"]]] == [
            "mutex",
            "cycle-0",
            "cycle-1",
            "cycle-2",
        ]
        text = yrt.run("dump", "-p", f.pid, output=False, stats=False).expect().stdout.splitlines()
        assert re.fullmatch(
            r"DEADLOCK: (thread \d+ cycle-\d,? (which )?waits for mutex cycle(\+0x(28|50))? held by ){1}.*", text[0]
        ), text[0]
        assert all(f"cycle-{i}" in text[0] for i in range(3)) and "main" not in text[0]
        yield f"{len(threads)} threads, {len({t['stack'] for t in threads.values()})} stacks"


def test_handed_round():
    """Threads that are read one after the other, and hand two locks on meanwhile, are in no deadlock."""
    with yrt.Fixture("handed") as f:
        for _ in range(20):
            waits = [t["waits_for"] for t in dumps.of(f.pid).values() if "waits_for" in t]
            assert not any(w["deadlock"] for w in waits), waits


def test_stopped():
    """SIGSTOP: nobody runs, so that everything is read where it is, and stays stopped."""
    with yrt.Fixture("waits", wait=False) as f:
        settle(f.pid, f.start["threads"])
        os.kill(f.pid, signal.SIGSTOP)
        yrt.waiting(f.pid, len(os.listdir(f"/proc/{f.pid}/task")), state="T")
        threads = dumps.of(f.pid)
        check_native(threads, {n: {**t, "call": ""} for n, t in f.start["threads"].items()})
        assert {(t["state"], t["how"]) for t in threads.values()} == {("stopped", "walked")}, threads
        assert "State:\tT" in yrt.read(f"/proc/{f.pid}/status")


def test_repeat():
    """Who is stuck: a thread that waits did not run between dumps, one that works did."""
    with yrt.Fixture("waits", wait=False) as f:
        told = f.start["threads"]
        settle(f.pid, told)
        threads = dumps.of(f.pid, "--repeat", 3, "--interval", 1)
        assert all(
            threads[t["tid"]]["not_run"] == 3 and threads[t["tid"]]["same_stack"] == 3
            for t in told.values()
            if t["call"]
        )
        assert all(threads[told[n]["tid"]]["not_run"] < 3 for n in ("spin", "flip"))


def test_namespace():
    """Of another pid namespace: owners of mutexes are numbered there."""
    command = ["unshare", "--pid", "--fork", "--kill-child", yrt.fixture_path("waits"), "60"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        told = json.loads(process.stdout.readline())["threads"]
        pid = int(yrt.read(f"/proc/{process.pid}/task/{process.pid}/children").split()[0])
        settle(pid, told)
        threads = {t["own_tid"]: t for t in dumps.of(pid).values()}
        check_native(threads, told)
        lock = threads[told["cycle-0"]["tid"]]["waits_for"]
        assert lock["owner"] == threads[told["cycle-1"]["tid"]]["tid"] and lock["deadlock"], lock
    finally:
        yrt.stop(process, signal.SIGKILL)


def test_formats():
    """Besides text and JSON a thread is a sample of the formats of flame."""
    with yrt.Fixture("waits", wait=False) as f, tempfile.TemporaryDirectory() as at:
        settle(f.pid, f.start["threads"])
        path = os.path.join(at, "x.folded")
        yrt.run("dump", "-p", f.pid, "-U", "-o", path, output=False, stats=False).expect()
        stacks = yrt.parse_folded(yrt.read(path))
        assert sum(n for _, n in stacks) == 12, stacks
        page = os.path.join(at, "x.html")
        yrt.run("dump", "-p", f.pid, "-o", page, output=False, stats=False).expect()
        assert "wait_accept" in yrt.read(page)


def test_gone():
    """Targets that exit or become another program meanwhile: what was gathered, or a clear word."""
    for i in range(8):
        program = "sleep 0.2 & exec sleep 0.3" if i % 2 else "exec sleep 0.2"
        process = subprocess.Popen(["sh", "-c", program])
        time.sleep(0.02 * i)
        result = yrt.run("dump", "-p", process.pid, output=False, stats=False)
        assert result.code in (yrt.OK, yrt.NO_PROCESS), result.stderr
        assert result.code or re.match(r"\S+ \(pid \d+\): 1 thread", result.stdout), result.stdout
        process.wait()
    yrt.clear(yrt.run("dump", "-p", process.pid, output=False, stats=False), yrt.NO_PROCESS, process.pid)


def test_bad_input():
    for args, code, word in (
        (["-p", "2"], yrt.UNSUPPORTED, "kernel thread"),
        ([], yrt.USAGE, "-p PID"),
        (["-p", "1", "x"], yrt.USAGE, "x"),
        (["-p", os.getpid(), "-o", "x.foo"], yrt.USAGE, "x.foo"),
        (["-p", os.getpid(), "--repeat", "0"], yrt.USAGE, "--repeat"),
        (["-p", os.getpid(), "--json", "-f", "html"], yrt.USAGE, "--json"),
        (["-p", os.getpid(), "-o", "/nowhere/x"], yrt.OUTPUT, "/nowhere/x"),
    ):
        yrt.clear(yrt.run("dump", *args, output=False, stats=False), code, word)
    with yrt.nobody() as how, yrt.Fixture("waits", wait=False) as f:
        yrt.clear(yrt.run("dump", "-p", f.pid, output=False, stats=False, **how), yrt.PERMISSION, "root")


def test_python():
    """Each frame of each thread, with its line, as sys._current_frames() has it; threads by the names of threading."""
    with yrt.Fixture(PYTHON, os.path.join(yrt.SOURCE, "fixtures", "python", "waits.py"), seconds=None, wait=False) as f:
        dumps.settle(f.pid)
        threads = dumps.of(f.pid)
        f.release()
        told = json.loads(f.process.stdout.readline())
        frames = 0
        for tid, (name, stack) in told.items():
            if int(tid) == f.pid:
                continue
            thread = threads[int(tid)]
            own = [
                [x["name"], os.path.basename(x["file"]), x["line"]] for x in thread["frames"] if x["kind"] == "script"
            ]
            assert own == stack, f"{name}:\n{own}\n{stack}"
            assert thread["name"] == name and thread["walk"] == "root", thread
            frames += len(own)
        assert len(told) == 9 and frames > 60
        yield f"{frames} frames of {len(told) - 1} threads as Python tells them"


@yrt.measured
def test_python_locks():
    """threading.RLock with its owner, a deadlock of two of them, and the GIL with its holder."""
    free_threaded = (
        "free-threading"
        in subprocess.run([*PYTHON.split(" "), "-VV"], capture_output=True, text=True, check=True).stdout
    )
    with yrt.Fixture(
        *PYTHON.split(" "),
        os.path.join(yrt.SOURCE, "fixtures", "python", "holders.py"),
        "gil",
        seconds=None,
        wait=False,
    ) as f:
        yrt.waiting(f.pid, 5)
        threads = dumps.of(f.pid)
        told = {t["name"]: t for t in threads.values()}
        owners = {"waits": (f.pid, False), "left": (told["right"]["tid"], True), "right": (told["left"]["tid"], True)}
        for name, (owner, dead) in owners.items():
            wait = told[name]["waits_for"]
            assert {k: wait[k] for k in ("kind", "type", "owner", "deadlock")} == {
                "kind": "lock", "type": "threading.RLock", "owner": owner, "deadlock": dead}, f"{name}: {wait}"
        assert len({told[name]["waits_for"]["address"] for name in owners}) == 3, owners
        assert "waits_for" not in told["event"] and "waits_for" not in threads[f.pid]
        text = yrt.run("dump", "-p", f.pid, output=False, stats=False).expect().stdout.splitlines()
        assert re.match(
            r"DEADLOCK: thread \d+ (left|right) waits for lock 0x[0-9a-f]+ \(a threading.RLock\) held by thread",
            text[0],
        ), text[0]
        if free_threaded:
            return
        f.release()
        f.release()
        end = time.monotonic() + 20
        while "waits_for" not in dumps.of(f.pid)[f.pid] and time.monotonic() < end:
            pass
        threads = dumps.of(f.pid)
        wait = threads[f.pid]["waits_for"]
        assert wait["kind"] == "VM lock" and wait["type"] == "GIL" and threads[wait["owner"]]["name"] == "spins", wait


@yrt.both_tiers
def test_moving():
    """Threads that take the GIL from each other: whatever stack they are caught in, it is one that they have."""
    seen = collections.Counter()
    with yrt.Fixture(
        PYTHON, os.path.join(yrt.SOURCE, "fixtures", "python", "moving.py"), seconds=None, wait=False
    ) as f:
        yrt.waiting(f.pid, 1)
        for n in range(200):
            if n >= 3 and seen["walked"]:
                break
            for thread in dumps.of(f.pid).values():
                if thread["tid"] == f.pid:
                    continue
                own = [x for x in names(thread, "script") if not x.startswith("Thread.")]
                chains = [chain[i:] + ["loop"] for chain in f.start["chains"] for i in range(len(chain) + 1)]
                assert own in chains or thread["how"] == "unseen", f"{thread['how']}: {own}"
                seen[thread["how"]] += 1
    assert seen["walked"] > (sum(seen.values()) / 2 if yrt.measuring() else 0), seen
    yield dict(seen)


def test_go():
    """
    Each frame of goroutines that hold a thread, inlined ones too, with its line, as runtime.CallersFrames() has it.
    """
    with yrt.Fixture(go.build("waits"), seconds=None, wait=False) as f:
        for tid in f.start["threads"]:
            yrt.in_call(tid, yrt.READ)
        threads = dumps.of(f.pid)
        for tid, stack in f.start["threads"].items():
            own = [[x["name"], x["line"]] for x in threads[int(tid)]["frames"] if x["module"] == "go"]
            at = [name for name, _ in own].index("main.wait")
            assert own[at:] == stack, f"{own}\n{stack}"
            assert [name for name, _ in own[:at]][-1] == "syscall.Read" and threads[int(tid)]["syscall"][
                "name"
            ] == "read"
        yield (
            f"{sum(map(len, f.start['threads'].values()))} frames of {len(f.start['threads'])} threads as Go tells them"
        )


SLEEPERS = """
import threading, time
def inner(n):
    return inner(n - 1) if n else time.sleep(1000)
for i in range(3):
    threading.Thread(target=inner, args=(i,), daemon=True).start()
inner(9)
"""


def test_view_of_a_language():
    """Only the frames of scripts, which are those that dump has, and what each thread waits for."""
    with yrt.Program([PYTHON, "-c", SLEEPERS]) as program:
        yrt.waiting(program.pid, 4)
        dumps.settle(program.pid)
        whole, own = dumps.of(program.pid), dumps.of(program.pid, command="python-dump")
        text = yrt.run("python-dump", "-p", program.pid, output=False, stats=False).expect().stdout
        other = yrt.run("perl-dump", "-p", program.pid, "-K", output=False, stats=False)
    assert len(own) == 4 and set(own) == set(whole), (own, whole)
    for tid, thread in own.items():
        assert {f["kind"] for f in thread["frames"]} == {"script"}, thread
        assert thread["frames"] == [f for f in whole[tid]["frames"] if f["kind"] == "script"], (thread, whole[tid])
        assert thread["syscall"]["name"] == whole[tid]["syscall"]["name"], thread
    assert "[kernel]" not in text and "libc" not in text and "inner  <string>:4" in text, text
    yrt.clear(other, yrt.USAGE, "leave no frames")


def test_perl():
    """Each sub and eval, with the line that it executes, as caller() has it."""
    with yrt.Fixture(
        "/usr/bin/perl", os.path.join(yrt.SOURCE, "fixtures", "perl", "waits.pl"), seconds=None, wait=False
    ) as f:
        dumps.settle(f.pid)
        thread = dumps.of(f.pid)[f.pid]
        own = [[x["name"], x["line"]] for x in thread["frames"] if x["module"] == "perl" and x["kind"] == "script"]
        words = {"(eval)": "eval {...}", "main": "main program"}
        assert own == [[words.get(name, name), line] for name, line in f.start["stack"]], f"{own}\n{f.start['stack']}"
        assert thread["walk"] == "root" and thread["syscall"]["text"] == "pselect6(0, 0, 0, 0, 1000.000 s)", thread


def test_luajit():
    """The lines of Lua's functions, through pcall and a metamethod, as debug.getinfo() has them."""
    with yrt.Fixture(
        "/usr/bin/luajit", os.path.join(yrt.SOURCE, "fixtures", "lua", "waits.lua"), seconds=None, wait=False
    ) as f:
        dumps.settle(f.pid)
        thread = dumps.of(f.pid)[f.pid]
        own = [
            x["line"] for x in thread["frames"] if x["module"] == "luajit" and x.get("file", "").endswith("waits.lua")
        ]
        assert own == f.start["lines"], f"{own}\n{f.start['lines']}"
        assert thread["walk"] == "root", thread


UPSTREAM = """
import select, socket, threading, time
server = socket.create_server(("127.0.0.1", 0))
def ask(wait):
    while True:
        with socket.create_connection(server.getsockname()) as s: wait(s)
def poll(s):
    p = select.poll()
    p.register(s, select.POLLIN)
    p.poll(400)
for wait in poll, lambda s: select.select([s], [], [], 0.4):
    threading.Thread(target=ask, args=(wait,), daemon=True).start()
print(server.getsockname()[1], flush=True)
kept = []
while True: kept = [*kept[-9:], server.accept()[0]]
"""


def test_descriptors():
    """Whom a thread waits for, also if its socket is another one soon: poll() and select() have it in memory."""
    with yrt.Program([PYTHON, "-c", UPSTREAM], stdout=subprocess.PIPE) as program:
        port = int(program.stdout.readline())
        peer = rf"\d+ = tcp 127\.0\.0\.1:\d+ to 127\.0\.0\.1:{port}"
        wanted = {rf"poll\(\[{peer}\], 1, 400 ms\)", rf"pselect6\(\d+, \[{peer}\], 0, 0, 0\.400 s\)"}
        found = set()
        try:
            for _ in range(200):
                texts = [t.get("syscall", {}).get("text", "") for t in dumps.of(program.pid).values()]
                found |= {w for w in wanted for text in texts if re.search(w, text)}
                if found == wanted:
                    break
        finally:
            program.kill()
    assert found == wanted, f"{texts}: not {wanted - found}"


def test_logical_unknown():
    """Where a runtime can not list its tasks the dump says that it does not know, and not that there are none."""
    lua = subprocess.Popen(
        ["lua5.4", "-e", "local c = coroutine.create(coroutine.yield) coroutine.resume(c) io.read()"],
        stdin=subprocess.PIPE,
    )
    try:
        yrt.waiting(lua.pid, 1)
        text = yrt.run("dump", "-p", lua.pid, "--logical", output=False, stats=False)
        listed = json.loads(yrt.run("dump", "-p", lua.pid, "--logical", "--json", output=False, stats=False).stdout)
    finally:
        yrt.stop(lua)
    assert (
        "tasks that wait without a thread could not be listed" in text.stdout
        and "PUC-Lua are not listed" in text.stderr
    ), text
    assert "were found" not in text.stdout and listed["all_tasks"] is False and listed["tasks"] == [], listed
    with yrt.Fixture("locks", seconds=30) as fixture:
        text = yrt.run("dump", "-p", fixture.pid, "--logical", output=False, stats=False).stdout
    assert "no tasks that wait without a thread were found" in text, text


def test_crowd():
    """A thousand threads with one stack are one group."""
    with yrt.Fixture("waits", 1000, wait=False) as f:
        yrt.waiting(f.pid, 1001, 300)
        dumps.settle(f.pid)
        result = yrt.run("dump", "-p", f.pid, output=False, stats=False).expect()
        assert re.match(
            r"waits \(pid \d+\): 1001 threads, 2 different stacks, 0 on a CPU\n", result.stdout
        ), result.stdout[:200]
        assert len(result.stdout.splitlines()) < 80 and "and 992 more" in result.stdout, result.stdout


yrt.main(globals())
