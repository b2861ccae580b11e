# SPDX-License-Identifier: Apache-2.0
"""
fixtures/java/callers.java: code that moves the stack pointer where a stale return address may lie in the caller's
place. Each method must have a caller that calls it.

A test for each mode of the JVM: YRT_JAVA_MODES names some of java.MODES.
"""

import collections
import os
import re

import java
import lua
import yrt

SECONDS = 8
COLLECTOR = re.compile(
    r"VM_\w*(Collect|GC)\w*::doit\(|"
    r"[ZX]Barrier::|ZStoreBarrierBuffer::|G1BarrierSet(Runtime)?::|CollectedHeap::collect\("
)


def wrong_edge(frames, callers):
    """A method of callers.java below one that does not call it; None if there is none."""
    methods = [
        f.name.removeprefix("callers.").removeprefix("callers$")
        for f in frames
        if java.is_method(f) and f.name.startswith("callers")
    ]
    for caller, callee in zip([None, *methods], methods):
        if callee in callers and caller not in callers[callee]:
            return f"{callee} called by {caller}"
    return None


def collects_alone(frames):
    """The collector's first function is right inside of (gc)."""
    names = [f.name.partition(":0")[0] for f in frames]
    first = next((i for i, name in enumerate(names) if COLLECTOR.match(name)), None)
    return first is not None and "(gc)" not in names[:first]


def library_view():
    """Without symbols too a view of Java begins with its methods, and goes from native code that calls back to them."""
    with java.Stripped() as stripped, program([]) as jvm:
        assert java.library_of(jvm.pid)[1] == stripped.inode, "it runs its own library"
        result = java.Sampling(jvm.pid, seconds=SECONDS, view="java-flame").result()
    ours = [(frames, n) for frames, n in result.stacks if any(f.name.startswith("callers") for f in frames)]
    led = [(frames, n) for frames, n in ours if not frames[0].name.startswith(("callers", "[truncated")) or any(
        f.name.startswith("libjvm") and c.name.startswith("callers") for f, c in zip(frames, frames[1:]))]
    assert ours and not led, lua.show(led[:3])
    yield f"{sum(n for _, n in ours)} samples"


def program(options):
    return java.Java("callers", 120, timeout=300, options=[
        *options, "-Dcallers.library=" + yrt.fixture_path("libframes.so"), "-Xmx256m", "-XX:CompileCommand=quiet",
        "-XX:CompileCommand=dontinline,callers::*"])


def check(mode):
    with program(java.mode_options(mode)) as jvm:
        result = java.Sampling(jvm.pid, seconds=SECONDS).result()
    wrong, seen = collections.defaultdict(list), set()
    for frames, count in result.stacks:
        edge = wrong_edge(frames, jvm.start["callers"])
        seen.update(f.name.removeprefix("callers.") for f in frames)
        if edge and not frames[0].name.startswith("[truncated"):
            wrong[edge].append((frames, count))
    number = sum(n for found in wrong.values() for _, n in found)
    text = "\n".join(f"{edge}: {sum(n for _, n in found)}\n{lua.show(found[:2])}" for edge, found in wrong.items())
    assert not wrong, f"{number} of {result.samples} samples have a false edge\n{text}"
    alone = [(frames, n) for frames, n in result.stacks if collects_alone(frames)]
    assert not alone, f"collectors without (gc)\n{lua.show(alone[:3])}"
    unseen = set(jvm.start["callers"]) - seen
    guessed = sum(n for frames, n in result.stacks if any(f.flags & java.GUESS for f in frames))
    collecting = sum(n for frames, n in result.stacks if any(f.name.startswith("(gc)") for f in frames))
    assert collecting or mode != "z", "ZGC collects all the time"
    yield f"{result.samples} samples, {guessed} with a guess, {collecting} in (gc), not seen: {sorted(unseen)}"
    yield java.check_complete(result, 1000)


def mode_test(mode):
    return yrt.measured(lambda: check(mode))


TESTS = {f"test_{mode}": mode_test(mode) for mode in os.environ.get("YRT_JAVA_MODES", "tiered z").split()}
yrt.main(TESTS | {"test_library_without_symbols": yrt.measured(library_view)})
