# SPDX-License-Identifier: Apache-2.0
"""
Java that changes under the eyes of yrt: code deoptimised, flushed and unloaded, classes redefined, names that are
hostile; a JVM that is killed.
"""

import base64
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import xml.dom.minidom

import java
import yrt

SECONDS = 5
JAVA_HOME = "/usr/lib/jvm/java-17-openjdk-amd64"
# At most one of 200: code that is freed between the sample and the walk's read is said to be so.
STORM_CUT, STORM_GONE = 0.005, 0.02
# Interpreted methods of a class that was unloaded, and replaced at the same addresses, between the sample and its
# naming (runtimes/hotspot/README.md, limits): 0 to 5 of 12,000 were seen.
STORM_WRONG = 0.001
# Who may call whom in a copy of storm.java's templates.
CALLERS = {
    "area": ("inner",),
    "inner": ("outer",),
    "outer": ("applyAsInt",),
    "other": ("applyAsInt",),
    "<init>": ("other", "applyAsInt"),
}


def after_cpu(run, pid, seconds=1, timeout=300):
    """Ends a run of yrt once the process has used so much CPU time: on a busy machine too there are samples then."""
    used, end = yrt.cpu_seconds(pid), time.monotonic() + timeout
    while yrt.cpu_seconds(pid) < used + seconds and time.monotonic() < end:
        time.sleep(0.05)
    run.interrupt()


def storm(mode, *options, seconds=SECONDS, view="flame", rate=1999):
    """
    (result, truth) of so much CPU time. yrt is preferred, so it reads names as soon as there are samples: what is freed
    until then is a known limit, and a longer wait for a CPU would be the scheduler's.
    """
    with java.Java("storm", mode, options=["-Xmx300m", *options], timeout=300) as jvm:
        time.sleep(1)
        sampling = java.Sampling(jvm.pid, seconds=90, rate=rate, view=view, prefix=("chrt", "-f", "5"))
        after_cpu(sampling.run, jvm.pid, seconds)
        result = sampling.result()
        jvm.process.stdin.close()
        truth = jvm.answer()
        assert jvm.process.wait(30) == 0, jvm.said()
    return result, truth


def copies(names):
    """{number} of the templates' copies that a stack names."""
    return {m.group(1) for name in names for m in re.finditer(r"storm\$\w+?(\d{4})\.", name)}


def illegal(names):
    """A pair that can not be: of a copy's methods each has its callers, and they are of the same copy."""
    ids = copies(names)
    if len(ids) > 1:
        return ids
    for above, name in zip(names, names[1:]):
        method = re.match(r"storm\$\w+?\d{4}\.(\D+?)(\d{4})?$", name)
        if method and method[1] in CALLERS and "storm$" in above and not any(
                re.search(rf"\.{caller}(\d{{4}})?$", above) for caller in CALLERS[method[1]]):
            if not (method[1] == "<init>" and above.endswith("<init>")):
                return above, name
    return None


def named(frames):
    """The methods of a stack, and what could not be named any more."""
    return [java.plain(f.name) for f in frames if java.is_method(f) or f.name == "[gone]"]


def check_storm(result, truth):
    wrong = [(what, n) for frames, n in result.stacks if (what := illegal(named(frames)))]
    count = sum(n for _, n in wrong)
    assert count <= max(
        1, STORM_WRONG * result.samples
    ), f"{count} of {result.samples} samples name what can not be: {wrong[:5]}"
    yield f"{count} of {result.samples} samples name what can not be: {wrong[:5]}"
    gone = sum(n for frames, n in result.stacks if any(f.name == "[gone]" for f in frames))
    seen = set().union(*(copies(java.methods(frames)) for frames, _ in result.stacks))
    yield (
        f"{truth}; {len(seen)} copies seen, {gone} of {result.samples} samples have code that was gone when it was to"
        " be named"
    )
    assert len(seen) > 3, seen
    assert gone <= STORM_GONE * result.samples, f"{gone} of {result.samples} with [gone]"
    yield java.check_complete(result, 200, STORM_CUT)


@yrt.measured
def test_unloading():
    """Deoptimised and unloaded all the time."""
    result, truth = storm("classes", "-XX:CompileThresholdScaling=0.1")
    assert truth["unloaded"] > 20, truth
    yield from check_storm(result, truth)


@yrt.measured
def test_flushing():
    """A code cache that is too small for what is compiled."""
    result, truth = storm(
        "classes", "-XX:ReservedCodeCacheSize=4m", "-XX:CompileThresholdScaling=0.05", "-XX:TieredStopAtLevel=1"
    )
    yield from check_storm(result, truth)


@yrt.measured
def test_redefinition():
    with tempfile.TemporaryDirectory() as folder:
        jar, manifest = os.path.join(folder, "storm.jar"), os.path.join(folder, "manifest")
        with open(manifest, "w") as f:
            f.write("Premain-Class: storm\nCan-Redefine-Classes: true\n")
        subprocess.run([os.path.join(JAVA_HOME, "bin", "jar"), "cfm", jar, manifest], check=True)
        result, truth = storm("redefine", f"-javaagent:{jar}")
    assert truth["rounds"] > 10, truth
    work = [(named(frames), n) for frames, n in result.stacks
            if "storm$Changing.inner" in named(frames) and not frames[0].name.startswith("[truncated")]
    seen = sum(n for _, n in work)
    assert seen > 20, f"{seen} of {result.samples} in inner\n{java.lua.show(result.stacks)}"
    wrong = [
        (names, n)
        for names, n in work
        if names[names.index("storm$Changing.inner") - 1] not in ("storm$Changing.outer", "[gone]")
    ]
    assert not wrong, wrong[:3]
    gone = sum(n for frames, n in result.stacks if "[gone]" in named(frames))
    yield (
        f"{truth['rounds']} redefinitions, {seen} samples in what is redefined, {gone} have methods that were gone when"
        " they were to be named"
    )
    yield java.check_complete(result, 200, STORM_CUT)


HOSTILE = [
    "x<script>alert(1)<",
    "y\n&amp;\"'\t|; 12",
    "z ü漢字\U0001f4a5{}",
    "<script>alert(1)</script>",
    "me thod\n1 2",
    "\x1b[31m\"},{;",
    "\u202ertl漢字\x00nul",
    "L" * 30000,
]


def hostile():
    names = [base64.b64encode(n.encode()).decode() for n in HOSTILE]
    return java.Java(
        "storm",
        "hostile",
        *names,
        options=["-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote", "-XX:-Inline"],
        timeout=300,
    )


@yrt.measured
def test_hostile_names():
    """Each format stays what it is, whatever classes and methods are called."""
    with hostile() as jvm, tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, "x.yrt")
        recording = yrt.Run("record", "-p", jvm.pid, "-d", 90, "-F", 999, "-o", record, output=False).sampling()
        after_cpu(recording, jvm.pid)
        recording.result().expect()
        texts = {}
        for extension in ("html", "svg", "folded", "json", "txt", "pb.gz"):
            path = os.path.join(folder, f"x.{extension}")
            yrt.run("render", record, "-o", path, output=False, stats=False).expect()
            texts[extension] = yrt.read(path) if extension != "pb.gz" else ""
        viewing = java.Sampling(jvm.pid, "--signatures", "--lines", seconds=90, view="java-flame")
        after_cpu(viewing.run, jvm.pid)
        view = viewing.result()
    stacks = yrt.parse_folded(texts["folded"])
    assert sum(n for _, n in stacks) > 30 and any("script" in f for frames, _ in stacks for f in frames), yrt.show(
        stacks
    )
    assert "<script>alert" not in texts["html"] and "<script>alert" not in texts["svg"]
    json.loads(texts["json"])
    xml.dom.minidom.parseString(texts["svg"].encode())
    assert not re.search(
        r"[\x00-\x08\x1b\u202e]", texts["folded"] + texts["txt"]
    ), "control characters reach a terminal"
    shown = {f.name for frames, _ in java.lua.parse_page(texts["html"]) for f in frames}
    assert any("漢字" in name for name in shown), shown
    assert any(name.startswith("<script>alert(1)<.script>.") or ".script>" in name for name in shown), shown
    yield java.check_complete(view, 100)


@yrt.measured
def test_killed():
    """It ends with what was seen."""
    with java.Java("split", "plain", 60, options=["-XX:CompileCommand=quiet"], timeout=300) as jvm:
        run = java.Sampling(jvm.pid, seconds=30)
        jvm.release()
        time.sleep(2)
        os.kill(jvm.pid, signal.SIGKILL)
        result = run.result(20)
    assert result.samples > 50 and any(
        "split.path_spin" in java.methods(frames) for frames, _ in result.stacks
    ), result.stderr
    yield java.check_complete(result, 50, 0.02)


yrt.main(globals())
