# SPDX-License-Identifier: Apache-2.0
"""dump --logical: what waits without a thread, against what the runtime itself reports of it."""

import json
import os
import re

import dumps
import yrt

PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "python", "tasks.py")


def dump(pid, *flags):
    result = yrt.run("dump", "-p", pid, "--logical", "--json", *flags, output=False, stats=False).expect()
    told = json.loads(result.stdout)
    for task in told["tasks"]:
        task["frames"] = told["stacks"][task["stack"]]
    return told["tasks"]


def plain(name):
    return "".join(c for c in name if c.isalnum() or c in "-_.")


def check_tasks(tasks, truth, version):
    names = {t["task"]: plain(t["name"]) for t in tasks}
    assert sorted(names.values()) == sorted(plain(n) for n in truth["tasks"]), names.values()
    by_name = {plain(t["name"]): t for t in tasks}
    for name, chain in truth["tasks"].items():
        found = [[f["name"], f.get("line", 0)] for f in by_name[plain(name)]["frames"]]
        assert found == chain, f"{name}: {found} and not {chain}"
    assert all(t["kind"] == "asyncio task" for t in tasks), tasks
    waits = by_name["for-task"]
    assert waits["state"] == "waits for a task" and names[waits["awaits"]] == "holds", waits
    assert names[by_name["holds"]["awaited_by"]] == "for-task", by_name["holds"]
    assert by_name["future"]["state"] == "waits for a future" and "awaits" not in by_name["future"], by_name["future"]
    assert by_name["gathers"]["state"] == "waits for _GatheringFuture", by_name["gathers"]
    if version < [3, 14]:
        return
    for name, awaiters in truth["awaited_by"].items():
        task = by_name[plain(name)]
        assert task["awaiters"] == len(awaiters), f"{name}: {task} and not {awaiters}"
        assert not awaiters or names[task["awaited_by"]] in map(plain, awaiters), f"{name}: {task} and not {awaiters}"


def test_asyncio():
    """Each task has exactly the frames and lines that cr_await leads to, its name, and what it waits for."""
    with yrt.Fixture(PYTHON, SCRIPT, 50, seconds=None, wait=False) as f:
        dumps.settle(f.pid)
        tasks = dump(f.pid)
        check_tasks(tasks, f.start, f.start["version"])
        text = yrt.run("dump", "-p", f.pid, "--logical", output=False, stats=False).expect().stdout
        assert f"\n{len(tasks)} asyncio tasks: " in text, text
        assert re.search(r'^asyncio task "for-task": waits for a task "holds"(, awaited by "main")?$', text, re.M), text
        assert re.search(
            r'^asyncio task "holds": waits for a future, awaited by "(for-task|main)"( and 1 more)?$', text, re.M
        ), text
        assert "\x1b" not in text
        folded = yrt.run("dump", "-p", f.pid, "--logical", "-f", "folded", output=False, stats=False).expect().stdout
        assert re.search(r"^queue \(task \d+\);queue .*;(Queue.)?get .* 1$", folded, re.M), folded
        plain_dump = yrt.run("dump", "-p", f.pid, "--json", output=False, stats=False).expect()
        assert "tasks" not in json.loads(plain_dump.stdout)
        yield f"{len(tasks)} tasks, {len({t['stack'] for t in tasks})} stacks, Python {f.start['version']}"


def test_moving():
    """Tasks that go on all the time: each stack is one that there is, as a whole; what moved is said to have."""
    program = """if 1:
        import asyncio, json, os, sys
        async def leaf(n): await asyncio.sleep(0 if n % 2 else 0.001)
        async def one(): await leaf(1); await leaf(2)
        async def two(): await leaf(2); await leaf(1)
        async def forever(a):
            while True: await a()
        async def main(): await asyncio.gather(*(forever(one if i % 2 else two) for i in range(200)))
        print(json.dumps({"pid": os.getpid(), "chain": []}), flush=True)
        __import__("threading").Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
        asyncio.run(main())
    """
    legal = {("leaf", "one", "forever"), ("leaf", "two", "forever"), ("main",), ()}
    seen, torn = 0, 0
    with yrt.Fixture(PYTHON, "-c", program, seconds=None, wait=False) as f:
        yrt.until(lambda: len(dump(f.pid)) > 200, "all tasks are there")
        for _ in range(5):
            for task in dump(f.pid):
                names = [n["name"] for n in task["frames"]]
                names = names[names.index("leaf"):] if "leaf" in names else names
                names = () if names in (["one", "forever"], ["two", "forever"], ["forever"]) else tuple(names)
                seen += 1
                torn += task["state"] == "moved whenever it was read"
                assert names in legal, task
    assert seen > 500, seen
    yield f"{seen} tasks seen, {torn} moved"


def test_none():
    """A program without any: said so."""
    with yrt.Fixture("waits", wait=False) as f:
        assert dump(f.pid) == []
        text = yrt.run("dump", "-p", f.pid, "--logical", output=False, stats=False).expect().stdout
        assert "\nno tasks that wait without a thread were found\n" in text


yrt.main(globals())
