# SPDX-License-Identifier: Apache-2.0
"""
--timeline keeps when each sample was taken, and formats that show time contain it: text of perf script, trace events,
the Firefox Profiler. Without it those formats show the same stacks.
"""

import collections
import contextlib
import itertools
import json
import os
import re
import sys
import tempfile

import yrt

sys.path.insert(0, os.path.join(yrt.SOURCE, "tests", "tools"))
from webdriver import Browser  # noqa: E402

PROGRAM = """
import time
def first(n):
    return [str(x) for x in range(n)]
def second(n):
    return sorted((x * 7919) % 10007 for x in range(n))
for f in (first, second, first):
    end = time.process_time() + 0.3
    while time.process_time() < end:
        f(4000)
"""
RATE = 997


MADE = {}  # recordings by their flags: one serves all tests, until one fails


@contextlib.contextmanager
def recording(*flags):
    if flags not in MADE:
        MADE[flags] = tempfile.TemporaryDirectory()
        path = os.path.join(MADE[flags].name, "x.yrt")
        yrt.run(
            "record",
            "-q",
            "--max-cpu",
            0,
            *flags,
            "-F",
            RATE,
            "-o",
            path,
            "--",
            sys.executable,
            "-c",
            PROGRAM,
            output=False,
            stats=False,
        ).expect()
    try:
        yield os.path.join(MADE[flags].name, "x.yrt")
    except BaseException:
        MADE.pop(flags).cleanup()
        raise


def render(path, name, *flags):
    return yrt.run("render", path, "-f", name, "-o", "-", *flags, output=False, stats=False).expect().stdout


def perf_samples(text):
    """
    [(seconds, nanoseconds that it stands for, names from the root)], as perf-script(1) describes its default fields.
    """
    found = []
    for record in text.strip("\n").split("\n\n"):
        head, *frames = record.split("\n")
        seconds, period = re.fullmatch(r"\S.* \d+/\d+ \[000\] (\d+\.\d{6}): (\d+) cpu-clock: ", head).groups()
        names = [re.fullmatch(r"\t *[0-9a-f]+ (.*) \((?:[^()]|\([^()]*\))*\)", f)[1] for f in frames]
        found.append((float(seconds), int(period), names[::-1]))
    return found


def phases(samples):
    """Which of the two functions ran, one after the other; what is short is a line between two phases."""
    seen = ["second" if any(n.startswith("second ") for n in names) else "first" for _, names in samples
            if any(re.match("(first|second) ", n) for n in names)]
    runs = [(name, len(list(group))) for name, group in itertools.groupby(seen)]
    return [name for name, n in runs if n > 20]


def test_perf():
    with recording("--timeline") as path:
        stacks, text = yrt.parse_folded(render(path, "folded")), render(path, "perf")
    samples = perf_samples(text)
    assert [s[0] for s in samples] == sorted(s[0] for s in samples)
    assert phases([(s, names) for s, _, names in samples]) == ["first", "second", "first"]
    assert {period for _, period, _ in samples} == {round(1e9 / RATE)}
    kept, wanted = len(samples), sum(n for _, n in stacks)
    assert wanted * 0.99 <= kept <= wanted, (kept, wanted)
    yield f"{kept} of {wanted} samples have a time"


def firefox_stacks(profile):
    """{thread: [(ms, weight, names)]} of the tables of the processed format."""
    shared = profile["shared"]
    for table in (
        "stackTable",
        "frameTable",
        "funcTable",
        "resourceTable",
        "sources",
        "nativeSymbols",
        "sourceLocationTable",
    ):
        assert {len(c) for name, c in shared[table].items() if name != "length"} == {shared[table]["length"]}, table
    frames, prefixes = shared["stackTable"]["frame"], shared["stackTable"]["prefixOffset"]
    names = []
    for i, (frame, offset) in enumerate(zip(frames, prefixes)):
        name = shared["stringArray"][shared["funcTable"]["name"][shared["frameTable"]["func"][frame]]]
        names.append((names[i - offset] if offset else []) + [name])
    found = collections.defaultdict(list)
    for thread in profile["threads"]:
        s = thread["samples"]
        assert len(s["stack"]) == len(s["time"]) == s["length"] and s["time"] == sorted(s["time"])
        found[thread["name"]] += [(t, w, names[stack] if stack is not None else []) for stack, t, w
                                  in zip(s["stack"], s["time"], s["weight"] or [1] * s["length"])]
    return found


def boxes(trace):
    """{name: microseconds} of all boxes, of which none overlaps another one of its thread without lying in it."""
    total, of_thread = collections.Counter(), collections.defaultdict(list)
    for e in trace["traceEvents"]:
        if e["ph"] == "X":
            total[e["name"]] += e["dur"]
            of_thread[e["pid"], e["tid"]].append((e["ts"], -e["dur"]))
    for events in of_thread.values():
        ends = []
        for start, duration in sorted(events):
            while ends and ends[-1] <= start + 1e-3:
                ends.pop()
            assert not ends or start - duration <= ends[-1] + 1e-2, (start, duration, ends[-1])
            ends.append(start - duration)
    return total


@yrt.both_tiers
def test_firefox_and_chrome():
    with recording("--timeline") as path:
        timed = {name: json.loads(render(path, name)) for name in ("firefox", "chrome")}
        copy = path + ".copy"
        yrt.run("render", path, "-f", "yrt", "-o", copy, output=False, stats=False).expect()
        samples, copied = (perf_samples(render(p, "perf")) for p in (path, copy))
        hidden = perf_samples(render(path, "perf", "-I", "^second "))
    assert samples == copied
    assert [s for s in samples if any(n.startswith("second ") for n in s[2])] == hidden
    threads = firefox_stacks(timed["firefox"])
    busiest = max(threads.values(), key=len)
    assert phases([(t, names) for t, _, names in busiest]) == ["first", "second", "first"]
    assert sum(map(len, threads.values())) == len(samples)
    total = boxes(timed["chrome"])
    for name in ("first", "second"):
        of_samples = sum(any(n.startswith(name + " ") for n in names) for _, _, names in samples) / RATE
        of_boxes = sum(us for n, us in total.items() if n.startswith(name + " ")) / 1e6
        # a box also covers what the program waited for the CPU, which is no sample
        assert of_boxes > 0.9 * of_samples > 0, (name, of_samples, of_boxes)
        assert not yrt.measuring() or of_boxes < 2.5 * of_samples + 0.1, (name, of_samples, of_boxes)


def test_without_times():
    """The same stacks, one after the other."""
    with recording() as path:
        stacks = collections.Counter()
        for frames, n in yrt.parse_folded(render(path, "folded")):
            stacks[tuple(frames)] += n
        perf, fire, chrome = (
            perf_samples(render(path, "perf")),
            json.loads(render(path, "firefox")),
            json.loads(render(path, "chrome")),
        )
    clean = [collections.Counter() for _ in range(2)]
    for _, _, names in perf:
        clean[0][tuple(yrt.MARKS.sub("", n) for n in names)] += 1
    for samples in firefox_stacks(fire).values():
        for _, weight, names in samples:
            clean[1][tuple(names)] += weight
    plain = collections.Counter()  # as perf's readers take them: they cut names at a bracket
    for names, n in stacks.items():
        plain[tuple(re.sub(r" \(([^()]*:[^()]*)\)$", r" \1", name) for name in names)] += n
    assert clean[0] == plain, (clean[0] - plain, plain - clean[0])
    assert clean[1] == stacks, (clean[1] - stacks, stacks - clean[1])
    total, wanted = (
        boxes(chrome),
        sum(n for frames, n in stacks.items() if any(f.startswith("second ") for f in frames)) / RATE,
    )
    got = sum(us for n, us in total.items() if n.startswith("second ")) / 1e6
    assert abs(got - wanted) < 0.01, (got, wanted)


def share(b, word):
    """Of all samples drawn, those in functions whose names begin so."""
    return b.run(
        """let sum = 0;
        for (let i = 0; i < plain.n; i = nameOf(plain.fn[i]).startsWith(arguments[0] + " (") ? (sum += plain.nowTotal[i], plain.end[i]) : i + 1);
        return sum / plain.nowTotal[0]""",
        word,
    )


def drag(b, css, start, end):
    """From one share of a canvas's width to another, along its middle."""
    r = b.run(
        "const r = document.querySelector(arguments[0]).getBoundingClientRect(); return [r.left, r.top + r.height / 2,"
        " r.width]",
        css,
    )
    at = [{"type": "pointerMove", "x": round(r[0] + x * r[2]), "y": round(r[1]), "duration": 0} for x in (start, end)]
    b.actions(
        "pointer",
        [at[0], {"type": "pointerDown", "button": 0}, at[1], {"type": "pointerUp", "button": 0}],
        "mouse",
        parameters={"pointerType": "mouse"},
    )


@yrt.measured
def test_page():
    with recording("--timeline") as path, Browser(1280, 800) as b:
        page = os.path.join(os.path.dirname(path), "x.html")
        yrt.run("render", path, "-t", "-o", page, output=False, stats=False).expect()
        moments = [
            1000 * s
            for s, _, names in perf_samples(render(path, "perf"))
            if any(n.startswith("second ") for n in names)
        ]
        b.open("file://" + page)
        assert not b.log() and b.run(
            "return times.count.reduce((x, y) => x + y) === whole.nowTotal[0] &&"
            " !document.getElementById('time').hidden"
        )
        both, end = share(b, "second"), b.run("return times.end")
        begin, length = moments[0], moments[-1] - moments[0]
        drag(b, "#strips canvas", (begin + 0.2 * length) / end, (begin + 0.8 * length) / end)
        assert both < 0.6 and share(b, "second") > 0.9 and share(b, "first") < 0.05, (
            both,
            share(b, "second"),
            share(b, "first"),
        )
        wanted = b.run("return [plain.nowTotal[0], part, location.hash]")
        b.click("#range button")
        assert b.run(
            "return isDiff && whole.baseTotal[0] > 0 && Math.abs(whole.baseTotal[0] - whole.nowTotal[0]) < 1e-6 *"
            " whole.nowTotal[0]"
        )
        b.open("about:blank")
        b.open("file://" + page + wanted[2])
        assert b.run("return [plain.nowTotal[0], part]") == wanted[:2]
        b.keys("Escape")
        assert (
            b.run("return part === null && !isDiff && plain.nowTotal[0] === whole.nowTotal[0]")
            and abs(share(b, "second") - both) < 1e-9
        )
        cell = b.run(
            "const [low] = [arguments[0]]; return [Math.floor(low / 1000), Math.floor(low / 20) * 20]",
            begin + length / 2,
        )
        drag(
            b, "#heat", (cell[0] + 0.5) / b.run("return times.seconds"), (cell[0] + 0.5) / b.run("return times.seconds")
        )
        assert (
            b.run("return part[0] % 20 === 0 && part[1] - part[0] === 20 && Math.floor(part[0] / 1000)") == cell[0]
        ), b.run("return part")
        b.keys("x")
        assert b.run("return document.getElementById('time').hidden")
        assert not b.log()


MINUTE = 2 * 999 * 60  # samples of two CPUs


@yrt.measured
def test_size():
    """At 999 Hz a minute of 100 busy threads takes at most 5 MB."""
    with tempfile.TemporaryDirectory() as directory, yrt.Fixture("threads", 100) as fixture:
        path = os.path.join(directory, "x.yrt")
        at = yrt.Run(
            "record", "--timeline", "-t", "-p", fixture.pid, "-d", 3, "-F", 999, "-o", path, output=False
        ).sampling()
        fixture.release()
        stats = at.result().expect().stats
        each = os.path.getsize(path) / stats["samples"]
    assert stats["samples"] > 300 and each * MINUTE < 5e6, (each, stats)
    yield f"{each:.2f} bytes a sample, {each * MINUTE / 1e6:.2f} MB a minute"


def test_refused():
    result = yrt.run("record", "--timeline", "--event", "fault", "-p", os.getpid(), stats=False).expect(yrt.USAGE)
    assert "--timeline works for time on the CPU and wall-clock time only" in result.stderr, result.stderr


yrt.main(globals())
