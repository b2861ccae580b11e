# SPDX-License-Identifier: Apache-2.0
"""The chain of coroutines that a task awaits, and the inside of asyncio's event loop as one frame."""

import os
import re
import tempfile

import yrt

PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "python", "event_loop.py")
LOOP = "asyncio (event loop)"
SCRIPTED = re.compile(r" \([^()]*\.py:\d+\)$")
INSIDE = re.compile(
    r"(run_forever|_run_once|run_until_complete|Handle\._run) \((base_events|events|runners)\.py:\d+\)$"
)


def sample(mode, *flags, view="python-flame", seconds=3, python=PYTHON, loop=()):
    with yrt.Fixture(python, SCRIPT, seconds, mode, *loop, seconds=None) as f:
        result, _ = yrt.sample_whole(f, *flags, view=view, rate=999)
    # a module that is loaded meanwhile may be met before its mapping is known
    assert sum(result.stats["truncated"].values()) <= 2 + 0.001 * result.samples, result.stats["truncated"]
    return result


def python_names(frames):
    """Names of Python frames, as functions are called in all versions: without their class."""
    return [
        LOOP if f == LOOP else f.split(" (")[0].rsplit(".", 1)[-1] for f in frames if f == LOOP or SCRIPTED.search(f)
    ]


def chains(result):
    """Samples by what of a stack is Python's."""
    ret = {}
    for frames, n in result.stacks:
        key = tuple(python_names(frames))
        ret[key] = ret.get(key, 0) + n
    return ret


def behind_loop(names):
    """
    What is behind the frame of the loop, without the coroutine that awaits the tasks, which 3.14 and later report.
    """
    rest = names[names.index(LOOP) + 1:] if LOOP in names else ()
    return rest[1:] if rest[:1] == ("tasks",) else rest


def share(found, *end):
    """The share of samples whose stack has these names in a row behind the frame of the loop."""
    return sum(n for names, n in found.items() if behind_loop(names)[:len(end)] == end) / sum(found.values())


def check(result, before):
    """No stack has a frame of the loop's inside, and each has the loop at its place."""
    assert not any(INSIDE.search(f) for frames, _ in result.stacks for f in frames), yrt.show(result.stacks)
    found = chains(result)
    for names, n in found.items():
        if LOOP in names:
            assert names.count(LOOP) == 1 and names[:names.index(LOOP)] == before, names
    chain = share(found, "busy", "generator", "middle", "leaf", "burn")
    called = share(found, "callback", "burn")
    executor = sum(n for names, n in found.items() if names[-2:] == ("run", "burn")) / sum(found.values())
    # per turn 3 * 1 ms in leaf(), 3 * 0.2 ms in busy(), 4 * 1 ms in callback(), once called by busy() itself, 1 ms
    # beside it
    assert 0.25 < chain < 0.45 and 0.25 < called < 0.45 and executor > 0.03, f"{chain:.3f} {called:.3f} {executor:.3f}"
    return (
        f"{result.samples} samples: {chain:.3f} in the chain of a task, {called:.3f} in callbacks, {executor:.3f}"
        " beside the loop"
    )


@yrt.measured
def test_tasks():
    yield check(sample("tasks"), ("<module>", "main", "run"))


@yrt.measured
def test_python_tasks():
    """Task._step of the Task in Python stays: it belongs to the task."""
    result = sample("python-tasks")
    result.stacks = [([f for f in frames if not re.search(r"_step|_wakeup", f)], n) for frames, n in result.stacks]
    yield check(result, ("<module>", "main", "run"))


@yrt.measured
def test_in_thread():
    yield check(sample("thread"), ("_bootstrap", "_bootstrap_inner", "run", "run"))


@yrt.measured
def test_server():
    """asyncio's own coroutines and protocols: what a task awaits stays, what the loop calls for itself does not."""
    result = sample("server")
    found = chains(result)
    assert not any(INSIDE.search(f) for frames, _ in result.stacks for f in frames), yrt.show(result.stacks)
    answered = share(found, "answer", "burn")
    assert answered > 0.5, f"{answered:.3f} {found}"
    assert any("data_received" in names or "drain" in names for names in found), found
    yield f"{result.samples} samples, {answered:.3f} in answer()"


@yrt.measured
def test_uvloop():
    """A loop in C, with libuv: its frames are the loop's inside too, but those that a task calls itself."""
    python = "/usr/bin/python3"  # Debian's module is for this one
    yield check(sample("tasks", python=python, loop=["uvloop"]), ("<module>", "main", "run"))
    result = sample("server", python=python, loop=["uvloop"])
    found = chains(result)
    assert not any(
        LOOP in frames and "uv_run" in frames[frames.index(LOOP) :] for frames, _ in result.stacks
    ), yrt.show(result.stacks)
    answered = share(found, "answer", "burn")
    assert answered > 0.5, f"{answered:.3f} {found}"
    yield f"{result.samples} samples, {answered:.3f} in answer()"


@yrt.measured
def test_all_frames():
    """--no-async shows the frames of the loop, as yrt flame does, where --async folds them."""
    for view, flags in (("python-flame", ["--no-async"]), ("flame", [])):
        result = sample("tasks", *flags, view=view, seconds=2)
        assert not any(LOOP in frames for frames, _ in result.stacks)
        inside = sum(n for frames, n in result.stacks if any("_run_once" in f for f in frames)) / result.samples
        assert inside > 0.5, f"{view}: {inside:.3f}"
        yield f"{view}: {inside:.3f} of {result.samples} samples inside the loop"
    folded = sample("tasks", "--async", view="flame", seconds=2)
    assert folded.share(LOOP) > 0.5, yrt.show(folded.stacks)


@yrt.measured
def test_recording():
    """A recording has all frames; render --async folds them, and each sample stays one."""
    with tempfile.TemporaryDirectory() as directory, yrt.Fixture(PYTHON, SCRIPT, 2, "tasks", seconds=None) as f:
        path = os.path.join(directory, "x.yrt")
        yrt.sample_whole(f, "-o", path, view="record", rate=999, output=False)
        whole, folded = (yrt.run("render", path, *flags, stats=False).expect() for flags in ((), ("--async",)))
    assert whole.share(INSIDE) > 0.5 and whole.share(LOOP) == 0, yrt.show(whole.stacks)
    assert folded.samples == whole.samples, f"{folded.samples} of {whole.samples}"
    yield check(folded, ("<module>", "main", "run"))


yrt.main(globals())
