# SPDX-License-Identifier: Apache-2.0
"""
The tasks that await the one that runs, against what asyncio.capture_call_graph() says: Python 3.14 and later (ctest -C
Pythons). With an older one there is nothing to see, which is printed.
"""

import os
import re
import subprocess

import yrt

PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "python", "awaiters.py")
LOOP, SEVERAL = "asyncio (event loop)", "several tasks await this"
SCRIPTED = re.compile(r" \([^()]*\.py:\d+\)$")
CHAINS = ["alone", "gathered", "grouped", "inner", "wanted", "one_left", "shielded"]


def version():
    out = subprocess.run(
        [PYTHON, "-c", "import sys; print(sys.version_info[1])"], capture_output=True, text=True, check=True
    )
    return int(out.stdout)


def python_names(frames):
    return [f.split(" (")[0] if SCRIPTED.search(f) else f for f in frames if f in (LOOP, SEVERAL) or SCRIPTED.search(f)]


def sample(*flags):
    with yrt.Fixture(PYTHON, SCRIPT, 4, seconds=None) as f:
        result, said = yrt.sample_whole(f, *flags, view="python-flame", rate=999)
    truth = said["truth"]
    assert sum(result.stats["truncated"].values()) <= 2 + 0.001 * result.samples, result.stats["truncated"]
    assert sorted(truth) == sorted(CHAINS), truth
    return truth, [(python_names(frames), n) for frames, n in result.stacks]


def test_awaiters():
    """Each sample of a task's work has exactly what asyncio says, root first, behind the frame of the loop."""
    if version() < 14:
        yield "this Python does not tell who awaits a task"
        return
    truth, stacks = sample()
    for name in CHAINS:
        mine = [(names, n) for names, n in stacks if "burn" in names and names[names.index("burn") - 1] == name]
        samples = sum(n for _, n in mine)
        assert samples > 10, f"{name}: {samples} samples"
        for names, n in mine:
            assert LOOP in names and names.count(LOOP) == 1, names
            found = names[names.index(LOOP) + 1:names.index("burn")]
            assert found == truth[name][::-1], f"{n} samples of {name}: {found} and not {truth[name][::-1]}"
        yield f"{samples} samples of {' < '.join(truth[name])}"


def test_without():
    """--no-async shows a task's own coroutines alone."""
    if version() < 14:
        yield "this Python does not tell who awaits a task"
        return
    _, stacks = sample("--no-async")
    inner = [names for names, _ in stacks if "inner" in names and "burn" in names]
    assert inner and not any("middle" in names or "outer" in names for names in inner), inner
    assert not any(SEVERAL in names for names, _ in stacks)
    yield f"{len(inner)} stacks of a task without those that await it"


yrt.main(globals())
