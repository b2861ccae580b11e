# SPDX-License-Identifier: Apache-2.0
"""
Go: goroutines that are created, grow, are copied and end all the time; programs that end or stop in the middle: no call
that can not be.
"""

import os
import re
import signal
import time

import go
import yrt

RATE = 997
ROOTS = {"main.main", "main.spawn", "main.grow", "main.spawned", "main.grown"}
CREATORS = {
    "main.spawned": "main.spawn",
    "main.grown": "main.grow",
    "main.spawn": "main.main",
    "main.grow": "main.main",
}


def program():
    return go.build("storms", "-ldflags=-s -w", name="storms-stripped")


CALLS = 2000  # are looked at in each storm, however little of the CPUs it gets


def check(result, calls, depth=None):
    """
    Each call between functions of the program is one that it makes, up to a goroutine's first function. How many there
    were.
    """
    edges = 0
    for frames, n in result.stacks:
        own = [f for f in frames if f.startswith("main.")]
        cut = frames[0].startswith("[truncated")
        assert not own or cut or own[0] in ROOTS, frames
        for caller, callee in zip(own, own[1:]):
            assert callee in calls.get(caller, ()), f"{caller} does not call {callee}: {frames}"
        edges += n * max(len(own) - 1, 0)
        root = frames[1 if frames[0].startswith("created by ") and len(frames) > 1 else 0]
        assert "(scheduler)" not in frames or not root.startswith("runtime."), frames
        if own and frames[0].startswith("created by "):
            assert frames[0] == f"created by {CREATORS[own[0]]}", frames
    causes = dict(result.stats["truncated"])
    if depth:
        causes.pop("depth", None)
    assert sum(causes.values()) <= 0.001 * result.samples, causes
    return edges


def told(result, calls):
    assert calls, result.summary()
    return f"{result.summary()}; {calls} calls, none that can not be; {dict(result.stats['truncated'])}"


def storm(kind, least, *flags, depth=None):
    with yrt.Fixture(program(), kind, 600, seconds=None, wait=False) as f:
        calls, rounds = 0, 0
        while calls < CALLS and rounds < 10:
            result = yrt.sample(f, "-U", "--creators", *flags, view="go-flame", seconds=4, rate=RATE)
            calls, rounds = calls + check(result, f.chain, depth), rounds + 1
    assert calls >= CALLS, f"{calls} calls in {rounds} runs"
    assert all(result.share(name) >= share for name, share in least.items()), yrt.show(result.stacks, 9)
    yield told(result, calls)


@yrt.measured
def test_spawn():
    """Hundreds of thousands that live for microseconds."""
    yield from storm("spawn", {"main.spawned": 0.2, "main.leaf": 0.2})


@yrt.measured
def test_grow():
    """Stacks that are copied to twice their size, nine times each."""
    yield from storm("grow", {"main.grown": 0.5, "main.descend": 0.5}, "--depth", 8192)


@yrt.measured
def test_deep():
    yield from storm("deep", {"main.descend": 0.5}, "--depth", 8192)


@yrt.measured
def test_deeper():
    """More calls than a stack has room for: cut there, and nowhere else."""
    yield from storm("deeper", {"main.descend": 0.5}, depth=True)


@yrt.measured
def test_channel():
    """All wait for one lock, by whatever word each of them sleeps at."""
    with yrt.Fixture(program(), "channel", 600, seconds=None, wait=False) as f:
        result = yrt.run("go-lock-flame", "-p", f.pid, "-d", 1).expect()
    waits = {}
    for frames, ns in result.stacks:
        waits[frames[-1]] = waits.get(frames[-1], 0) + ns
    most = max(waits, key=waits.get, default="")
    assert re.fullmatch(r"\[runtime lock( 0x[0-9a-f]+)?\]", most), waits
    assert waits[most] > 0.8 * sum(waits.values()), waits
    yield f"{waits[most] / sum(waits.values()):.1%} of {result.samples} ns at {most}"


@yrt.measured
def test_ends_midway():
    with yrt.Fixture(program(), "grow", 0, seconds=None, wait=False) as f:
        run = yrt.Run("go-flame", "-U", "--depth", 8192, "-p", f.pid, "-d", 600, "-F", RATE).sampling()
        f.release()
        result = run.result().expect()
        yield told(result, check(result, f.chain))


@yrt.measured
def test_stopped():
    """A process that stands still all the time, and one that is stopped meanwhile."""
    with yrt.Fixture(program(), "spawn", 600, seconds=None, wait=False) as f:
        time.sleep(0.5)
        os.kill(f.pid, signal.SIGSTOP)
        text = yrt.Run("go-goroutines", "-p", f.pid, "-f", "folded", output=False, stats=False).result().expect().stdout
        all_of = sum(int(n) for n in re.findall(r" (\d+)$", text, re.M))
        assert all_of >= 2 and "[torn]" not in text, text
        yield f"{all_of} goroutines of a process that is stopped"
        at = yrt.Run("go-flame", "-U", "-p", f.pid, "-d", 4, "-F", RATE).sampling()
        time.sleep(0.5)
        os.kill(f.pid, signal.SIGCONT)
        time.sleep(1.5)
        os.kill(f.pid, signal.SIGSTOP)
        result = at.result().expect()
        os.kill(f.pid, signal.SIGCONT)
        yield told(result, check(result, f.chain))


yrt.main(globals())
