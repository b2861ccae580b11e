# SPDX-License-Identifier: Apache-2.0
"""dump --logical: coroutines that have yielded, against debug.getinfo() of each."""

import collections
import json

import lua
import yrt

ROUNDS = 10
LEAST = 100  # stacks seen in a storm


def dump(pid, complete=True):
    result = yrt.run("dump", "-p", pid, "--logical", "--json", output=False, stats=False).expect()
    told = json.loads(result.stdout)
    assert not complete or "may be missing" not in result.stderr, result.stderr
    for task in told["tasks"]:
        task["frames"] = told["stacks"][task["stack"]]
    return {t["name"]: t for t in told["tasks"] if t["kind"] == "coroutine"}


def lines_of(task):
    return [f.get("line", 0) for f in task["frames"] if not f["name"].startswith("[truncated")]


def check(tasks, truth):
    for address, lines in truth.items():
        task = tasks[address]
        assert task["state"] == ("yielded" if lines else "not started"), task
        assert lines_of(task) == lines and task["walk"] == "root_runtime", f"{task} and not {lines}"


def test_coroutines():
    """Each that has yielded has the lines that debug.getinfo() has; what has ended or was dropped is not there."""
    with lua.fixture("parked_coroutines.lua", wait=False) as f:
        truth, tasks = f.start["coroutines"], dump(f.pid)
        check(tasks, truth)
        # those that coroutine.wrap() made have no other name, and wait in deep()
        others = [t for a, t in tasks.items() if a not in truth]
        assert len(others) == 6 and all(t["frames"][0]["name"].endswith("yield") for t in others), others
        text = yrt.run("dump", "-p", f.pid, "--logical", output=False, stats=False).expect().stdout
        assert f"\n{len(tasks)} coroutines: " in text, text
    yield f"{len(tasks)} coroutines, {sum(len(l) for l in truth.values())} functions as debug.getinfo() has them"


def test_storm():
    """Beside a program that makes, resumes and drops coroutines all the time no stack is there that cannot be."""
    legal = {("yield", *["deep"] * n) for n in range(1, 9)}
    seen, states = 0, collections.Counter()
    with lua.fixture("parked_coroutines.lua", "storm", wait=False) as f:
        for _ in range(10 * ROUNDS):
            tasks = dump(f.pid, complete=False)
            for address, task in tasks.items():
                states[task["state"]] += 1
                if address in f.start["coroutines"] or task["state"] != "yielded":
                    continue
                names = tuple(frame["name"].split(".")[-1].split("  ")[0] for frame in task["frames"])
                if not names[0].startswith("[truncated") and "function" not in names[-1]:
                    assert names in legal, task
                    seen += 1
            if seen > LEAST:
                break
    assert seen > LEAST, states
    yield f"{seen} stacks as they can be; {dict(states)}"


yrt.main(globals())
