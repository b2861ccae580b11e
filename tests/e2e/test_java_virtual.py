# SPDX-License-Identifier: Apache-2.0
"""
dump --logical: virtual threads, against what the JVM lists of them (HotSpotDiagnosticMXBean.dumpThreads).

YRT_JAVA_OPTIONS: more options.
"""

import collections
import json
import os
import re

import java
import yrt
from java_virtual import needed

SLEEPERS, STORM = 20, 500
# Methods that the JVM hides from stack traces.
HIDDEN = re.compile(
    r"jdk\.internal\.vm\.Continuation\.|java\.lang\.VirtualThread\$VThreadContinuation"
    r"|java\.lang\.VirtualThread\.yieldContinuation$"
    r"|java\.lang\.VirtualThread\.runWith$|java\.lang\.Thread\.runWith$|.*\$\$Lambda|.*LambdaForm\$"
)
LISTED = re.compile(r"(?:.*/)?([^/]+)\((?:[^:)]*?)(?::(-?\d+))?\)$")


def program(*options, arguments=(SLEEPERS,)):
    # Each that is pinned, or spins, has a carrier of its own.
    return java.Java(
        "virtual_waits",
        *arguments,
        timeout=300,
        options=[
            "-Djdk.virtualThreadScheduler.parallelism=8",
            *options,
            *os.environ.get("YRT_JAVA_OPTIONS", "").split(),
        ],
    )


def listed(start):
    """{number: (name, [(method, line), ...])} of virtual threads, as the JVM has them, leaf first."""
    found = {}
    for container in start["listed"]["threadDump"]["threadContainers"]:
        for thread in container["threads"]:
            stack = [LISTED.match(e) for e in thread["stack"]]
            assert all(stack), thread
            if any(m[1] == "java.lang.VirtualThread.run" for m in stack):
                found[int(thread["tid"])] = (
                    thread["name"],
                    [(java.plain(m[1]), max(int(m[2] or 0), 0)) for m in stack],
                )
    return found


def dump(pid):
    result = yrt.run("dump", "-p", pid, "--logical", "--json", output=False, stats=False).expect()
    told = json.loads(result.stdout)
    tasks = [t for t in told["tasks"] if t["kind"] == "virtual thread"]
    for task in tasks:
        task["frames"] = told["stacks"][task["stack"]]
    return {int(re.match(r"#(\d+)", t["name"])[1]): t for t in tasks}


def shown(task):
    names = [
        (java.plain(f["name"]), f.get("line", 0)) for f in task["frames"] if not f["name"].startswith("[truncated")
    ]
    return [(name, line) for name, line in names if not HIDDEN.match(name)]


def check(tasks, truth):
    assert set(tasks) == set(
        truth
    ), f"shown {sorted(set(tasks) - set(truth))}, not shown {sorted(set(truth) - set(tasks))}"
    for number, (name, stack) in truth.items():
        task = tasks[number]
        assert task["name"] == f"#{number} {name}".strip(), task
        if name in ("pinned", "spins"):
            assert re.search(r"(running|pinned to its thread), on thread \d+$", task["state"]) and not shown(task), task
        else:
            stack = [e for e in stack if not HIDDEN.match(e[0])]
            assert (
                task["walk"] == "root_runtime" and shown(task) == stack
            ), f"{name}, {task['walk']}: {shown(task)}\nand not\n{stack}"
    return {name: tasks[number] for number, (name, _) in truth.items()}


def check_states(tasks, version):
    assert tasks["sleeps-3"]["state"].startswith("parked"), tasks["sleeps-3"]
    assert re.match(
        r"parked: waits for java\.util\.concurrent\.locks\.ReentrantLock\$NonfairSync, held by thread \d+$",
        tasks["locks"]["state"],
    ), tasks["locks"]
    assert tasks["takes"]["state"].endswith("AbstractQueuedSynchronizer$ConditionObject"), tasks["takes"]
    if version >= 24:
        assert tasks["enters"]["state"] == "waits for a monitor", tasks["enters"]
        assert tasks["waits"]["state"] == "waits in Object.wait()", tasks["waits"]


def on_a_thread(tasks, version):
    """Up to 23 a monitor pins."""
    return {n: t for n, t in tasks.items() if version < 24 and t["name"].split(" ")[-1] in ("waits", "enters")}


def run(*options):
    with needed():
        version = java.version()
        with program(*options) as jvm:
            tasks, truth = dump(jvm.pid), listed(jvm.start)
            pinned = on_a_thread(tasks, version)
            assert all(re.search(r", on thread \d+$", t["state"]) and not shown(t) for t in pinned.values()), pinned
            named = check(
                {n: t for n, t in tasks.items() if n not in pinned}, {n: t for n, t in truth.items() if n not in pinned}
            )
            check_states(named, version)
            text = yrt.run("dump", "-p", jvm.pid, "--logical", output=False, stats=False).expect().stdout
            assert f"\n{len(truth)} virtual threads: " in text, text
        return (
            f"{len(truth)} virtual threads of {version} as the JVM lists them,"
            f" {sum(len(shown(t)) for t in tasks.values())} frames"
        )


@yrt.measured
def test_g1():
    """Each has exactly the methods and lines that the JVM lists, and says what it waits for."""
    yield run()


@yrt.measured
def test_interpreter():
    """The same with frames of the interpreter alone."""
    yield run("-Xint")


@yrt.measured
def test_z():
    """The same with coloured references."""
    yield run("-XX:+UseZGC", *(["-XX:+ZGenerational"] if java.version() in (21, 22) else []))


@yrt.measured
def test_shenandoah():
    """The same where objects lead to their copies."""
    yield run("-XX:+UnlockExperimentalVMOptions", "-XX:+UseShenandoahGC")


@yrt.measured
def test_serial_uncompressed():
    """The same with references of 8 bytes."""
    yield run("-XX:+UseSerialGC", "-XX:-UseCompressedOops")


def storm(*options):
    """
    Each stack of a thread that is parked is one that it has there, though threads go on and objects are moved
    meanwhile.
    """
    seen, walks = 0, collections.Counter()
    with needed():
        with program(*options, arguments=(STORM, "storm")) as jvm:
            for _ in range(5):
                for task in dump(jvm.pid).values():
                    walks[task["walk"] if task["state"].startswith("parked") else task["state"].split(",")[0]] += 1
                    if not task["state"].startswith("parked for a time") or task["walk"] != "root_runtime":
                        continue
                    names = [
                        name.removeprefix("virtual_waits.")
                        for name, _ in shown(task)
                        if name.startswith("virtual_waits.")
                    ]
                    assert names[:2] in (["nap", "one"], ["nap", "two"]) and names[2:13] == ["recurse"] * 11, task
                    seen += 1
    assert seen > STORM and sum(n for walk, n in walks.items() if walk.startswith("vm_")) <= 0.05 * seen, walks
    yield f"{seen} stacks as they should be; {dict(walks)}"


@yrt.measured
def test_storm():
    yield from storm()


@yrt.measured
def test_storm_z():
    yield from storm("-XX:+UseZGC", *(["-XX:+ZGenerational"] if java.version() in (21, 22) else []))


yrt.main(globals())
