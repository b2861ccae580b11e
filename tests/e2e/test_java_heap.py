# SPDX-License-Identifier: Apache-2.0
"""java-heap, against what the program counts itself, and against jmap -histo, of a program that waits meanwhile."""

import os
import re
import subprocess
import tempfile

import java
import java_heap
import yrt

N = 20000
READ = java_heap.collectors()
Z_KINDS = {21: ("-XX:+ZGenerational", "-XX:-ZGenerational"), 22: ("-XX:+ZGenerational", "-XX:-ZGenerational")}
SMALL = ["-Xmx256m", "-Xms64m"]


def run(*args, code=yrt.OK):
    return yrt.run("java-heap", *args, output=False, stats=False).expect(code)


def check(seen, jvm, theirs):
    """The program's own classes, and float[], which it makes most of."""
    for name, count in jvm.start["counts"].items():
        assert seen.get(name, (0, 0))[0] == count, (name, seen.get(name), count)
        assert seen[name] == theirs[name], (name, seen[name], theirs[name])
    assert seen["float[]"] == theirs["float[]"] and seen["float[]"][0] >= N, (seen["float[]"], theirs["float[]"])


def test_classes():
    """Counts and bytes, by collector, kind of pointers to classes, and before or after a full collection."""
    for mode in READ:
        for options, collect in (([], []), (java_heap.WIDE, []), ([], ["collect"])):
            with java.Java("heaped", N, *collect, options=java.mode_options(mode) + options + SMALL) as jvm:
                result = run("-p", jvm.pid)
                check(java_heap.types(result.stdout), jvm, java_heap.jmap(jvm.pid))
                assert re.search(r"^yrt: \d+ objects, \d+ bytes; 0 torn;", result.stderr, re.M), result.stderr
                assert "objects that nothing refers to are counted" in result.stderr, result.stderr
        yield mode


def test_used():
    """What the last collection left in use, against jstat, while nothing collects."""
    for mode in READ:
        with java.Java("heaped", N, "collect", options=java.mode_options(mode) + SMALL) as jvm:
            text = yrt.run("inspect", "-p", jvm.pid, output=False, stats=False).expect().stdout
            said = int(re.search(r"left in use by the last one +(\d+)", text)[1])
            table = subprocess.run([java.SYSTEM + "/jstat", "-gc", str(jvm.pid)], capture_output=True, text=True,
                                   check=True).stdout.split("\n")
            theirs = dict(zip(table[0].split(), table[1].split()))["OU"]
            # Shenandoah has one space for all: what the program makes after the collection is in it, too
            after = 2048 if mode == "still_shenandoah" else 0.1
            assert -0.1 < float(theirs) - said / 1024 < after, (mode, said, theirs)
        yield mode


def test_buffers():
    """Buffers of threads end elsewhere without C2, and if objects are aligned otherwise; or there are none."""
    for options in (["-Xint"], java.MODES["c1"], ["-XX:ObjectAlignmentInBytes=16"], ["-XX:-UseTLAB"]):
        with java.Java("heaped", N, options=java.mode_options("g1") + options + SMALL) as jvm:
            result = run("-p", jvm.pid)
            check(java_heap.types(result.stdout), jvm, java_heap.jmap(jvm.pid))
            assert "; 0 torn;" in result.stderr, result.stderr


def test_pause_core_and_page():
    """The same of a JVM that is stopped for it and runs on, of a core, and in a profile; nothing grows."""
    with java.Java("heaped", N, options=java.mode_options("g1") + SMALL) as jvm, tempfile.TemporaryDirectory() as d:
        alive = run("-p", jvm.pid)
        assert run("-p", jvm.pid, "--pause").stdout == alive.stdout
        assert len(run("-p", jvm.pid, "--watch", 0.1).stdout.splitlines()) == 1
        folded = run("-p", jvm.pid, "-f", "folded").stdout.splitlines()
        sums = {}
        for line in folded:
            path, _, size = line.rpartition(" ")
            sums[path.rpartition(";")[2]] = sums.get(path.rpartition(";")[2], 0) + int(size)
        seen = java_heap.types(alive.stdout)
        assert sum(sums.values()) == seen["(all)"][1]
        for name in jvm.start["counts"]:
            assert sums[name] == seen[name][1], (name, sums[name], seen[name])
        large = "humongous" if java.version() > 8 else "regions"
        assert any(line.startswith(f"{large};heaped$Cell[] ") for line in folded), folded[:20]
        core = os.path.join(d, "core")
        subprocess.run(["gcore", "-o", core, str(jvm.pid)], check=True, capture_output=True)
        assert run("--core", f"{core}.{jvm.pid}").stdout == alive.stdout
        jvm.release()
        jvm.process.wait(300)


def test_z():
    """Found from the roots, as by jmap -histo there; after a collection references may still say where objects were."""
    for kind in Z_KINDS.get(java.version(), ("",)) if java.version() > 14 else ():
        for collect in ([], ["collect"]):
            with java.Java("heaped", N, *collect, options=[*java.MODES["z"], *filter(None, [kind]), *SMALL]) as jvm:
                result = run("-p", jvm.pid)
                check(java_heap.types(result.stdout), jvm, java_heap.jmap(jvm.pid))
                assert re.search(r" references; \d+ torn;", result.stderr), result.stderr
                yrt.clear(run("-p", jvm.pid, "--hprof", os.devnull, code=yrt.UNSUPPORTED), yrt.UNSUPPORTED, "of ZGC")
        yield kind


def test_refused():
    """What is not parsed, by its name."""
    if java.version() < 11:
        return
    with java.Java("heaped", 10, options=["-XX:+UnlockExperimentalVMOptions", "-XX:+UseEpsilonGC"]) as jvm:
        yrt.clear(run("-p", jvm.pid, code=yrt.UNSUPPORTED), yrt.UNSUPPORTED, "the heap of Epsilon is not read")


yrt.main(globals())
