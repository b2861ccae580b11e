# SPDX-License-Identifier: Apache-2.0
"""
fixtures/java/frames.java: a thread for each kind of frame, parked below it. The methods of each stack, in their order and with their lines,
are those that the JVM lists for the thread; stacks are whole.

Modes of the JVM (see MODES) on the command line; by default those of the default suite. YRT_JAVA_EXTRA: classes with more kinds.
"""

import collections
import os
import re

import java
import lua
import yrt

SECONDS, ENOUGH, WARM = 4, 30, 60
OPTIONS = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+ShowHiddenFrames", "-XX:CompileCommand=quiet",
           "-XX:CompileCommand=dontinline,frames::note"]
# What a kind that moves may call besides.
LIBRARY = re.compile(r"(java|javax|sun|jdk|com\.sun)\.|frames(_jdk\d+)?\.(osr|thrower|down|<init>|lambda)|frames.*\$\$Lambda")
MODES = {
    "tiered": [], "interpreter": ["-Xint"], "c1": ["-XX:TieredStopAtLevel=1"], "c2": ["-XX:-TieredCompilation"], "xcomp": ["-Xcomp"],
    "serial": ["-XX:+UseSerialGC"], "parallel": ["-XX:+UseParallelGC"], "g1": ["-XX:+UseG1GC"],
    "z": ["-XX:+UnlockExperimentalVMOptions", "-XX:+UseZGC"],
    "shenandoah": ["-XX:+UnlockExperimentalVMOptions", "-XX:+UseShenandoahGC"],
    "uncompressed": ["-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"], "noshare": ["-Xshare:off"],
    "compact": ["-XX:+UnlockExperimentalVMOptions", "-XX:+UseCompactObjectHeaders"], "wide": ["-XX:-UseCompactObjectHeaders"],
    "huge": ["-XX:+UseTransparentHugePages"], "one_heap": ["-XX:-SegmentedCodeCache", "-XX:ReservedCodeCacheSize=64m"],
    "debug_info": ["-XX:+DebugNonSafepoints"], "frame_pointer": ["-XX:+PreserveFramePointer"],
    "no_inline": ["-XX:-Inline"],
}


def program(mode):
    library = os.environ.get("YRT_JAVA_LIBRARY", yrt.fixture_path("libframes.so"))
    options = [*OPTIONS, *MODES[mode], f"-Dframes.library={library}", *os.environ.get("YRT_JAVA_OPTIONS", "").split()]
    warm = 0 if mode in ("interpreter", "xcomp") else WARM
    return java.Java("frames", warm, *os.environ.get("YRT_JAVA_EXTRA", "").split(), options=options, timeout=120)


def with_lines(frames):
    """[(method, line)] root first; yrt shows "Class.method:42" with --lines, and no line where there is none."""
    return [(java.plain(m[1]), int(m[2] or -1)) for f in frames if java.is_method(f) and (m := re.match(r"(.*?)(?::(\d+))?$", f.name))]


def same_line(method, truth, got):
    """A lambda's or a generated method's lines are none; native methods have -2."""
    return truth <= 0 or got == truth or method.startswith("frames.spin")


def difference(truth, got, moving):
    """What is wrong with a stack, root first; NULL if it is as the JVM says."""
    for i, (method, line) in enumerate(truth):
        if i >= len(got):
            return f"ends before {method}"
        if got[i][0] != method:
            return f"{got[i][0]} instead of {method}"
        if not same_line(method, line, got[i][1]) and not (moving and i == len(truth) - 1):
            return f"line {got[i][1]} of {method}, not {line}"
    extra = [m for m, _ in got[len(truth):] if not (moving and LIBRARY.match(m))]
    return f"{extra[0]} called by {truth[-1][0]}" if extra else None


def kind_of(got):
    return next((m.group(1) for method, _ in got if (m := re.match(r"frames(?:_jdk\d+)?\.kind_(\w+)$", method))), None)


def expected(kinds):
    """{kind: (moving, [(method, line)] root first)}"""
    found = {}
    for name, kind in kinds.items():
        stack = [java.plain(e.rpartition(":")[0]) for e in kind["stack"]], [int(e.rpartition(":")[2]) for e in kind["stack"]]
        found[name] = kind["moving"], list(zip(*stack))[::-1]
    return found


def compare(result, kinds):
    truth, right, wrong, bad = expected(kinds), collections.Counter(), collections.Counter(), {}
    for frames, count in result.stacks:
        if frames and frames[0].name.startswith("[truncated"):
            continue
        got = [pair for pair in with_lines(frames) if not pair[0].endswith("Continuation.enterSpecial")]
        kind = kind_of(got)
        if not kind:
            continue
        what = difference(truth[kind][1], got, truth[kind][0])
        if what:
            wrong[kind] += count
            bad.setdefault(kind, (what, frames, count))
        else:
            right[kind] += count
    lines = [f"{kind}: {wrong[kind]} of {wrong[kind] + right[kind]} wrong: {what}\n{lua.show([(frames, n)])}"
             for kind, (what, frames, n) in bad.items()]
    unseen = [k for k in truth if right[k] + wrong[k] < ENOUGH]
    assert not lines and not unseen, f"hardly seen: {unseen}\n" + "\n".join(lines)
    return f"{len(truth)} kinds, {sum(right.values())} stacks as the JVM lists them"


def check(mode):
    with program(mode) as jvm:
        result = java.Sampling(jvm.pid, "--lines", seconds=SECONDS).result()
    yield compare(result, jvm.start["kinds"])
    yield java.check_complete(result, 1000)


def test_tiered():
    yield from check("tiered")


def test_interpreter():
    yield from check("interpreter")


def add_mode(scope, mode):
    scope[f"test_{mode}"] = lambda: check(mode)


if os.environ.get("YRT_JAVA_MODES"):
    for word in os.environ["YRT_JAVA_MODES"].split():
        add_mode(globals(), word)
yrt.main(globals())
