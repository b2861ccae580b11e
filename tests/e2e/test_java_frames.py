# SPDX-License-Identifier: Apache-2.0
"""
fixtures/java/frames.java: a thread for each kind of frame, parked below it. The methods of each stack, in their order
and with their lines, are those that the JVM lists for the thread; stacks are whole. What is marked approximate (what
the innermost nmethod inlined) is only counted, and the line before it with it.

A test for each mode of the JVM: YRT_JAVA_MODES names some of java.MODES. YRT_JAVA_EXTRA: classes with more kinds.
YRT_JAVA_OPTIONS: more options.
"""

import collections
import contextlib
import itertools
import os
import re
import time

import java
import lua
import yrt

CPU_SECONDS, SECONDS, ENOUGH, WARM, NAMES_SECONDS = 8, 90, 10, 60, 3  # of the JVM's CPU time, of real time at most
LEAST = {"vt_yielding": 1}  # each turn waits for another carrier to be scheduled: 4 samples were seen on a busy machine
OPTIONS = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+ShowHiddenFrames", "-XX:CompileCommand=quiet",
           "-XX:CompileCommand=dontinline,frames::note"]
# What a kind that moves may call besides.
LIBRARY = re.compile(
    r"(java|javax|sun|jdk|com\.sun)\.|frames(_jdk\d+)?\.(osr|thrower|down|<init>|lambda)|frames.*\$\$Lambda"
)


def program(mode):
    library = os.environ.get("YRT_JAVA_LIBRARY", yrt.fixture_path("libframes.so"))
    options = [
        *OPTIONS,
        *java.mode_options(mode),
        f"-Dframes.library={library}",
        *os.environ.get("YRT_JAVA_OPTIONS", "").split(),
    ]
    warm = 0 if mode in ("interpreter", "xcomp") else WARM
    return java.Java("frames", warm, *os.environ.get("YRT_JAVA_EXTRA", "").split(), options=options, timeout=300)


Method = collections.namedtuple("Method", "name line approximate")


def with_lines(frames):
    """The methods of a stack, root first; yrt shows "Class.method:42" with --lines, and no line where there is none."""
    found = []
    for frame, callee in zip(frames, [*frames[1:], None]):
        if not java.is_method(frame):
            continue
        name, line = re.match(r"(.*?)(?::(\d+))?$", frame.name).groups()
        if not name.endswith("Continuation.enterSpecial"):  # the JVM hides it
            # while the frames below are being thawed, the innermost of them is a guess
            thawing = callee and callee.name.endswith("cont_returnBarrier") and frame.flags & java.GUESS
            found.append(Method(java.plain(name), int(line or -1), bool(frame.flags & java.APPROX or thawing)))
    return found


def same_line(truth, got):
    """
    A generated method's lines are none, or made up (JDK 8); native methods have -2. The loop itself is in another line
    than its note.
    """
    return not 0 < truth.line <= 0xffff or got.line == truth.line or truth.name.startswith("frames.spin")


def difference(truth, got, moving):
    """What is wrong with a stack, root first; None if it is as the JVM says."""
    for i, expected in enumerate(truth):
        if i >= len(got):
            return f"ends before {expected.name}"
        if got[i].name != expected.name:
            return f"{got[i].name} instead of {expected.name}"
        uncertain = i + 1 < len(got) and got[i + 1].approximate
        if not same_line(expected, got[i]) and not uncertain and not (moving and i == len(truth) - 1):
            return f"line {got[i].line} of {expected.name}, not {expected.line}"
    extra = [m.name for m in got[len(truth):] if not (moving and LIBRARY.match(m.name))]
    return f"{extra[0]} called by {truth[-1].name}" if extra else None


def certain(got):
    """The frames before the first that is approximate."""
    return list(itertools.takewhile(lambda m: not m.approximate, got))


def judge(truth, got, moving):
    """(what is wrong, whether what is approximate is right)"""
    exact, wrong = certain(got), difference(truth, got, moving)
    if len(exact) == len(got) or not wrong:
        return wrong, True
    return difference(truth[:len(exact)], exact[:-1] + [exact[-1]._replace(line=truth[len(exact) - 1].line)], moving) \
        if 0 < len(exact) <= len(truth) else None if moving else wrong, False


def kind_of(got):
    return next(
        (m.group(1) for method in got if (m := re.match(r"frames(?:_jdk\d+)?\.kind_(\w+)$", method.name))), None
    )


def expected(kinds):
    """{kind: (moving, [Method, ...] root first)}"""
    def method(text):
        name, _, line = text.rpartition(":")
        return Method(java.plain(name), int(line), False)
    return {name: (kind["moving"], [method(e) for e in kind["stack"]][::-1]) for name, kind in kinds.items()}


def compare(result, kinds):
    truth, right, wrong, approximate, bad = expected(kinds), collections.Counter(), collections.Counter(), [0, 0], {}
    for frames, count in result.stacks:
        got = with_lines(frames)
        kind = kind_of(got)
        if not kind or frames[0].name.startswith("[truncated"):
            continue
        moving, stack = truth[kind]
        what, exact = judge(stack, got, moving)
        approximate[exact] += count * any(m.approximate for m in got)
        (wrong if what else right)[kind] += count
        if what:
            bad.setdefault(kind, (what, frames, count))
    lines = [f"{kind}: {wrong[kind]} of {wrong[kind] + right[kind]} wrong: {what}\n{lua.show([(frames, n)])}"
             for kind, (what, frames, n) in bad.items()]
    unseen = [k for k in truth if right[k] + wrong[k] < LEAST.get(k, ENOUGH)]
    assert not lines and not unseen, f"hardly seen: {unseen}\n" + "\n".join(lines)
    return (
        f"{len(truth)} kinds, {sum(right.values())} stacks as the JVM lists them, {approximate[1]} of"
        f" {sum(approximate)} approximate ones too"
    )


def thread_of(frames):
    return frames[0].name.strip("[]").split(" ")[0]


def check_names(pid):
    """
    With -t threads are called as Java calls them; of names of workers, which run virtual threads, too, Linux keeps less
    than all.
    """
    stacks = java.Sampling(pid, "-t", seconds=NAMES_SECONDS).result().stacks
    names = {thread_of(frames) for frames, _ in stacks if (kind_of(with_lines(frames)) or "").startswith("vt_")}
    wrong = {name for name in names if not re.fullmatch(r"ForkJoinPool-\d+-worker-\d+", name)}
    assert names and not wrong, f"{len(wrong)} of {len(names)} threads: {wrong}"
    return f"{len(names)} threads by name"


def check(mode):
    with java.Stripped() if mode == "stripped" else contextlib.nullcontext() as stripped, program(mode) as jvm:
        assert not stripped or java.library_of(jvm.pid)[1] == stripped.inode, "it runs its own library"
        sampling, end = java.Sampling(jvm.pid, "--lines", seconds=SECONDS), yrt.cpu_seconds(jvm.pid) + CPU_SECONDS
        while yrt.cpu_seconds(jvm.pid) < end and sampling.run.process.poll() is None:
            time.sleep(0.1)
        sampling.run.interrupt()
        result = sampling.result()
        virtual = any(kind.startswith("vt_") for kind in jvm.start["kinds"])
        names = [check_names(jvm.pid)] if mode == "z" and virtual else []
    yield from names
    yield compare(result, jvm.start["kinds"])
    yield java.check_complete(result, 1000)


def mode_test(mode):
    return yrt.measured(lambda: check(mode))


yrt.main({f"test_{mode}": mode_test(mode) for mode in os.environ.get("YRT_JAVA_MODES", "tiered interpreter").split()})
