# SPDX-License-Identifier: Apache-2.0
"""
dump: threads, locks, owners and deadlocks of a JVM, compared with what it reports itself.
"""

import os
import re
import subprocess

import dumps
import java
import yrt


JAVA_ONLY = {"sleeping", "waiting", "blocked", "parked", "accepting", "Reference Handler", "Finalizer"}
LAMBDA = re.compile(r"(\$\$Lambda)\S*(?=\.)")


@yrt.measured
def test_java():
    """Each frame of each thread, with its line, as Thread.getAllStackTraces() has it."""
    with java.Java("waits") as jvm:
        dumps.settle(jvm.pid, JAVA_ONLY)
        threads = {t["name"]: t for t in dumps.of(jvm.pid).values()}
        jvm.release()
        told = jvm.answer()
        frames = 0
        for name in JAVA_ONLY:
            stack = [[LAMBDA.sub(r"\1", n), max(line, 0)] for n, line in told[name]]
            own = [
                [LAMBDA.sub(r"\1", x["name"]), x.get("line", 0)]
                for x in threads[name]["frames"]
                if x.get("module") == "hotspot" and x["kind"] != "stub"
            ]
            assert own == stack, f"{name}:\n{own}\n{stack}"
            assert threads[name]["walk"] in ("root", "root_runtime"), threads[name]
            frames += len(own)
        yield f"{frames} frames of {len(JAVA_ONLY)} threads as the JVM tells them"


HOLDERS = {
    "monitor-1",
    "monitor-2",
    "object-1",
    "object-2",
    "mixed-1",
    "mixed-2",
    "notified",
    "sleeper",
    "thin",
    "map",
    "class",
    "lock",
    "write",
    "read",
    "idle",
}


def locking_options(version):
    """Options of a JVM that lead to other kinds of locks, references or monitors."""
    yield from (["-Xint"], ["-XX:+UseSerialGC"])
    if 21 <= version <= 25:
        yield from (["-XX:+UnlockExperimentalVMOptions", f"-XX:LockingMode={mode}"] for mode in (1, 2))
    if version >= 17:
        yield java.mode_options("z")
    if version >= 24:
        yield from (java.MODES["compact"], ["-XX:+UnlockDiagnosticVMOptions", "-XX:+UseObjectMonitorTable"])


def check_locks(jvm):
    """
    What each thread of fixtures/java/holders.java waits for, who holds it, and deadlocks, as ThreadMXBean has it.
    Returns [JSON of the wait].
    """
    threads = dumps.of(jvm.pid)
    text = yrt.run("dump", "-p", jvm.pid, output=False, stats=False).expect().stdout
    jvm.release()
    names_of, told = {t["name"]: t for t in threads.values()}, jvm.answer()
    for name, (kind, state, owner, dead) in told.items():
        wait = names_of[name].get("waits_for")
        assert wait and wait["type"].partition(" for ")[0] == kind.replace(
            "[I", "int[]"
        ), f"{name} waits for a {kind}: {wait}"
        assert wait["deadlock"] == dead, f"{name}: {wait}"
        if state == "BLOCKED" or kind.endswith("Sync"):
            assert wait["kind"] == ("monitor" if state == "BLOCKED" else "lock"), f"{name} is {state}: {wait}"
            assert "owner" in wait and threads[wait["owner"]]["name"] == owner, f"{name} waits for {owner}: {wait}"
        else:
            assert wait["kind"] in ("notification", "permit") and "owner" not in wait, f"{name} is {state}: {wait}"
    assert names_of["class"]["waits_for"]["type"] == "java.lang.Class for holders"
    lines = text.splitlines()
    assert [line.startswith("DEADLOCK: ") for line in lines[:4]] == [True] * 3 + [False], lines[:4]
    for line, word in zip(lines, ("monitor", "object", "mixed")):
        assert all(re.search(rf"thread \d+ {word}-{i}", line) for i in (1, 2)), line
    assert re.search(r"waits for monitor 0x[0-9a-f]+ \(a java.util.HashMap\) held by thread \d+ main\n", text), text
    return {name: names_of[name]["waits_for"] for name in told}


def check_jstack(jvm, waits):
    """The addresses that jstack prints, if the JDK has it."""
    program = os.path.join(os.path.dirname(java.words()[-1]), "jstack")
    if not os.path.exists(program):
        return 0
    printed = subprocess.run([program, str(jvm.pid)], capture_output=True, text=True, check=True).stdout.partition(
        "Found one Java-level"
    )[0]
    told = {}
    for stanza in printed.split("\n\n"):
        found = re.search(r'^"([^"]+)" .*?- (?:waiting|parking) [^<]*<0x0*([0-9a-f]+)>', stanza, re.S | re.M)
        if found:
            told[found[1]] = found[2]
    own = {name: f"{wait['address']:x}" for name, wait in waits.items()}
    assert {name: told.get(name) for name in own} == own, printed
    return len(own)


@yrt.measured
def test_java_locks():
    """Monitors and locks of java.util.concurrent, owners and deadlocks among them, in each way that the JVM locks."""
    checked = same = 0
    for options in ([], *locking_options(java.version())):
        with java.Java("holders", options=options) as jvm:
            dumps.settle(jvm.pid, HOLDERS)
            waits = check_locks(jvm)
            checked += len(waits)
            same += 0 if options else check_jstack(jvm, waits)
    yield f"{checked} waits as ThreadMXBean has them, {same} addresses as jstack prints them"


yrt.main(globals())
