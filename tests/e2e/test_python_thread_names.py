# SPDX-License-Identifier: Apache-2.0
"""
-t shows threads of Python by the names that threading gives them, in forked children and in other pid namespaces too.
"""

import os
import re
import subprocess

import yrt

PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "python", "busy_threads.py")
THREAD = re.compile(r"(.*) \(tid (\d+)\)$", re.S)


def names(result):
    """Samples by name of their thread."""
    ret = {}
    for frames, n in result.stacks:
        found = next(filter(None, map(THREAD.match, frames[:2])), None)  # below their process, where there are several
        assert found, frames
        ret[found[1]] = ret.get(found[1], 0) + n
    return ret


def check(result, main):
    """All threads with their names; what a thread did before threading knew of it has its name too."""
    seen = names(result)
    assert result.incomplete() <= 0.001, result.stats["truncated"]
    expected = {main, "zweiter-ü", "a name of more than fifteen bytes", "late"}
    hostile = set(seen) - expected
    assert expected <= set(seen), seen
    assert len(hostile) == 1 and re.fullmatch(r"first.? of.?all", hostile.pop()), seen
    return ", ".join(f"{name!r}: {n}" for name, n in seen.items())


def sample(*flags, mode="threads"):
    with yrt.Fixture(PYTHON, SCRIPT, 3, mode, seconds=None) as f:
        return yrt.sample_whole(f, "-t", *flags, view="python-flame", rate=499)[0]


@yrt.measured
def test_names():
    yield check(sample(), "MainThread")


@yrt.measured
def test_fork():
    """The forking thread is the child's only one, under a number that threading may not know."""
    result = sample("-s", mode="fork")
    result.stacks = [(frames, n) for frames, n in result.stacks if any(f.startswith("spin ") for f in frames)]
    yield check(result, "forker")


def test_interpreter():
    """A thread that another interpreter was started in has its name of the main one."""
    result = sample(mode="interpreter")
    inner = [(frames, n) for frames, n in result.stacks if any(f.startswith("inner (") for f in frames)]
    result.stacks = inner
    assert set(names(result)) == {"host"}, names(result)
    yield f"{sum(n for _, n in inner)} samples in another interpreter"


def test_without_t():
    """Without -t no thread is shown."""
    with yrt.Fixture(PYTHON, SCRIPT, 1000, seconds=None) as f:
        result = yrt.sample(f, view="python-flame", seconds=1)
    assert not any(THREAD.match(frames[0]) for frames, _ in result.stacks), result.stacks[0]


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return f.read().split()


@yrt.measured
def test_pid_namespace():
    """In a container threads have other numbers."""
    with subprocess.Popen(
        ["unshare", "--pid", "--fork", PYTHON, SCRIPT, "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as unshare:
        try:
            assert '"pid": 1,' in unshare.stdout.readline()
            pid = child_of(unshare.pid)[0]
            run = yrt.Run("python-flame", "-p", pid, "-t", "-d", 120, "-F", 499).sampling()
            unshare.stdin.write("\n")
            unshare.stdin.flush()
            result = run.result(150).expect()
        finally:
            unshare.stdin.close()
            unshare.terminate()
    yield check(result, "MainThread")


yrt.main(globals())
