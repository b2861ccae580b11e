# SPDX-License-Identifier: Apache-2.0
"""
dump --logical: virtual threads, against what the JVM lists of them (HotSpotDiagnosticMXBean.dumpThreads).

YRT_JAVA: a JVM of 21 or later, with YRT_JAVA_CLASSES. Without one it is the newest JDK of the machine.
YRT_JAVA_OPTIONS: more options.
"""

import collections
import contextlib
import glob
import json
import os
import re
import subprocess
import tempfile

import java
import yrt

SINCE, SLEEPERS, STORM = 21, 20, 500
# Methods that the JVM hides from stack traces.
HIDDEN = re.compile(
    r"jdk\.internal\.vm\.Continuation\.|java\.lang\.VirtualThread\$VThreadContinuation"
    r"|java\.lang\.VirtualThread\.yieldContinuation$"
    r"|java\.lang\.VirtualThread\.runWith$|java\.lang\.Thread\.runWith$|.*\$\$Lambda|.*LambdaForm\$"
)
LISTED = re.compile(r"(?:.*/)?([^/]+)\((?:[^:)]*?)(?::(-?\d+))?\)$")


@contextlib.contextmanager
def jdk():
    """Sets up a JVM of 21 or later and its class; yields False if the machine has no such JVM."""
    if java.version() >= SINCE:
        yield "YRT_JAVA_CLASSES" in os.environ
        return
    homes = [os.path.dirname(os.path.dirname(p)) for p in glob.glob("/usr/lib/jvm/*/bin/javac")]
    with tempfile.TemporaryDirectory(prefix="yrt-virtual-") as classes:
        for home in sorted(homes, reverse=True):
            sources = [
                os.path.join(yrt.SOURCE, "fixtures", "java", "jdk21", f"{name}.java")
                for name in ("virtual_waits", "pinned_lock", "preempted")
            ]
            done = subprocess.run(
                [f"{home}/bin/javac", "-g", "--release", str(SINCE), "-d", classes, *sources],
                capture_output=True,
                text=True,
            )
            if done.returncode:
                continue
            os.environ.update(YRT_JAVA=f"{home}/bin/java", YRT_JAVA_CLASSES=classes)
            try:
                yield True
            finally:
                del os.environ["YRT_JAVA"], os.environ["YRT_JAVA_CLASSES"]
            return
        yield False


def program(*options, arguments=(SLEEPERS,)):
    # Each that is pinned, or spins, has a carrier of its own.
    return java.Java(
        "virtual_waits",
        *arguments,
        timeout=120,
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


@contextlib.contextmanager
def needed():
    """A JVM with virtual threads; YRT_JAVA names the one to test, which may have none."""
    if "YRT_JAVA" in os.environ and java.version() < SINCE:
        raise yrt.Skipped(f"{java.version()} has no virtual threads")
    with jdk() as there:
        if not there:
            raise yrt.Skipped(f"no JDK {SINCE} or later")
        yield


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


def test_g1():
    """Each has exactly the methods and lines that the JVM lists, and says what it waits for."""
    yield run()


def test_interpreter():
    """The same with frames of the interpreter alone."""
    yield run("-Xint")


def test_z():
    """The same with coloured references."""
    yield run("-XX:+UseZGC", *(["-XX:+ZGenerational"] if java.version() in (21, 22) else []))


def test_shenandoah():
    """The same where objects lead to their copies."""
    yield run("-XX:+UnlockExperimentalVMOptions", "-XX:+UseShenandoahGC")


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


def test_storm():
    yield from storm()


def test_storm_z():
    yield from storm("-XX:+UseZGC", *(["-XX:+ZGenerational"] if java.version() in (21, 22) else []))


RATE = 4999  # what may be wrong is so in 0.1 % of the samples


def preempted(*options):
    """
    Stacks do not have the frames of a thread twice, nor lack its outermost ones, while it is unmounted at a monitor or
    in Object.wait().
    """
    with needed(), java.Java("preempted", options=("-Djdk.virtualThreadScheduler.parallelism=2", *options)) as jvm:
        result = yrt.run("java-flame", "-p", jvm.pid, "-F", RATE, "-d", 5, "--max-cpu", 0).expect()
    own = inside = twice = 0
    for frames, n in result.stacks:
        names = [re.split("[ (]", f.removeprefix("~ ").removeprefix("? "))[0] for f in frames]
        twice += n * (names.count("preempted.work") > 1)
        own += n * ("preempted.work" in names)
        inside += n * ("preempted.work" in names and "jdk.internal.vm.Continuation.enter" in names)
    assert own > 30 and inside == own and not twice, f"{inside} of {own}, {twice} twice\n{yrt.show(result.stacks)}"
    yield f"{inside} of {own} stacks whole, {twice} have frames twice"


def test_preempted():
    yield from preempted()


def test_preempted_interpreter():
    yield from preempted("-Xint")


def test_preempted_z():
    yield from preempted("-XX:+UseZGC")


def test_pinned_lock():
    """One that parks on its carrier waits for what it has noted itself, not its carrier: lock-flame and dump."""
    with needed(), java.Java("pinned_lock") as jvm:
        at = yrt.Run("java-lock-flame", "-p", jvm.pid, "-d", 60, "--max-cpu", 0).sampling()
        jvm.release()
        jvm.answer()
        dumped = yrt.run("dump", "-p", jvm.pid, output=False, stats=False).expect().stdout
        jvm.release()
        own = jvm.answer()["waited"]
        result = at.result().expect()
    waits = {
        frames[-1]: ns * 1e-9
        for frames, ns in result.stacks
        if any(f.split("(")[0] == "pinned_lock.take" for f in frames)
    }
    shown = waits.get("[lock java.util.concurrent.locks.ReentrantLock$NonfairSync]", 0)
    assert abs(shown - own) < 0.02 * own + result.slack(own), f"{own}\n{yrt.show(result.stacks)}"
    assert "java.util.concurrent.locks.ReentrantLock$NonfairSync" in dumped, dumped
    yield f"{shown:.3f} of {own:.3f} s"


yrt.main(globals())
