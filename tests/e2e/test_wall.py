# SPDX-License-Identifier: Apache-2.0
"""wall-flame: each thread's time by its state, against the thread's own clocks; and when, with --timeline."""

import collections
import json
import os
import re
import sys
import tempfile

import yrt

sys.path.insert(0, os.path.join(yrt.SOURCE, "tests", "tools"))
from webdriver import Browser  # noqa: E402

PROGRAM = """
import json, threading, time
told = {}
def burn(s):
    end = time.thread_time() + s
    while time.thread_time() < end:
        pass
def half():
    burn(0.15)
    time.sleep(0.15)
def quarter():
    burn(0.05)
    time.sleep(0.15)
def rest():
    time.sleep(0.2)
def work(f):
    wall, begin = time.monotonic(), time.thread_time()
    while time.monotonic() - wall < 3:
        f()
    told[f.__name__] = {"wall": time.monotonic() - wall, "on": time.thread_time() - begin}
threads = [threading.Thread(target=work, args=(f,), name=f.__name__) for f in (half, quarter, rest)]
for t in threads: t.start()
for t in threads: t.join()
print(json.dumps(told), flush=True)
"""
STATES = {"[running]": "running", "[run queue]": "runnable"}
EXACT = 0.02


def by_thread(stacks):
    """{thread: {state: s}} of folded stacks."""
    found = collections.defaultdict(collections.Counter)
    for frames, ns in stacks:
        thread = next((m[1] for m in (re.fullmatch(r"(\w+) \(tid \d+\)", f) for f in frames) if m), "")
        found[thread][STATES.get(frames[-1], "waiting")] += ns * 1e-9
    return found


def recorded(directory, *flags):
    path = os.path.join(directory, "x.yrt")
    stats = os.path.join(directory, "stats")
    done = yrt.run(
        "record",
        "--event",
        "wall",
        "-F",
        499,
        *flags,
        "--stats",
        stats,
        "-o",
        path,
        "--",
        "/usr/bin/python3",
        "-c",
        PROGRAM,
        output=False,
        stats=False,
    ).expect()
    with open(stats, encoding="utf-8") as f:
        return path, json.load(f), json.loads(done.stdout.splitlines()[0]), done.slack


def render(path, name, *flags):
    return yrt.run("render", path, "-f", name, "-o", "-", *flags, output=False, stats=False).expect().stdout


@yrt.measured
def test_threads():
    """Of each thread: on and off are its wall-clock time, and on is what it says itself."""
    with tempfile.TemporaryDirectory() as directory:
        path, stats, truth, slack = recorded(directory)
        stacks = yrt.parse_folded(render(path, "folded", "-t", "-U"))
    found, off = by_thread(stacks), stats["off"]
    for name, own in truth.items():
        of = found[name]
        total = sum(of.values())
        assert abs(total - own["wall"]) <= 2 * EXACT * own["wall"] + 0.05 + slack(
            own["wall"]
        ), f"{name}: {total} of {own}"
        assert abs(of["running"] - own["on"]) <= 0.1 * own["on"] + 0.05 + slack(own["on"]), f"{name}: {of} of {own}"
        yield f"{name}: {total:.3f} of {own['wall']:.3f} s, {of['running']:.3f} of {own['on']:.3f} s on the CPU"
    assert stats["event"] == "wall" and abs(off["wall_s"] - off["on_s"] - off["off_s"]) <= EXACT * off[
        "wall_s"
    ] + slack(off["wall_s"]), off
    assert abs(off["sampled_on_s"] - off["on_s"]) <= 0.05 * off["on_s"] + 0.05 + slack(off["on_s"]), off
    shown = sum(ns for _, ns in stacks) * 1e-9
    assert abs(shown - off["sampled_on_s"] - off["off_s"]) <= EXACT * shown, (shown, off)
    burning = [
        frames for frames, _ in stacks if frames[-1] == "[running]" and any(f.startswith("burn ") for f in frames)
    ]
    sleeping = [frames for frames, _ in stacks if frames[-1] == "[sleep]"]
    assert burning and sleeping and all(any(f.split(" ")[0] in truth for f in frames) for frames in sleeping), yrt.show(
        stacks
    )


@yrt.measured
def test_timeline():
    """
    Samples of time stand for as much as is counted, thread by thread; a strip shows the states. With a stack for each
    wait: one that stands for others as well is drawn as if all had been at its own time.
    """
    with tempfile.TemporaryDirectory() as directory, Browser(1280, 800) as b:
        path, stats, truth, slack = recorded(directory, "--timeline", "--max-cpu", 0)
        found = by_thread(yrt.parse_folded(render(path, "folded", "-t", "-U")))
        page = os.path.join(directory, "x.html")
        yrt.run("render", path, "-t", "-o", page, output=False, stats=False).expect()
        text, timed = render(path, "perf", "-t", "-U"), collections.defaultdict(collections.Counter)
        b.open("file://" + page)
        assert not b.log() and b.run("return hasStates() && !document.getElementById('time').hidden")
        strips = b.run("return strips.names.map((n) => n.split(' ')[0])")
        whole, count = b.run("return [whole.nowTotal[0], times.count.reduce((x, y) => x + y)]")
        part = b.run("""setRange([1000, 2000]);
            const of = {};
            for (let i = 1; i < whole.n; i++)
                if (kindOf(whole.fn[i]) === THREAD)
                    of[nameOf(whole.fn[i]).split(" ")[0]] = whole.nowTotal[i] / 1e9;
            return of""")
    for record in text.strip("\n").split("\n\n"):
        head, leaf = record.split("\n")[:2]
        name, period = re.match(r"(\S+) \d+/\d+ \[000\] \d+\.\d+: (\d+) nanoseconds: ", head).groups()
        timed[name][STATES.get(re.search(r"\[.*?\]", leaf)[0], "waiting")] += int(period) * 1e-9
    for name, own in truth.items():
        for state, s in found[name].items():
            assert abs(timed[name][state] - s) <= 0.03 * s + 0.05, f"{name}, {state}: {timed[name]} of {found[name]}"
        assert name in strips and abs(part[name] - 1) < 0.1 + slack(1), (name, strips, part)
        yield f"{name}: {dict(timed[name])}; {part[name]:.3f} s in the second second"
    assert abs(count - whole) < 0.03 * whole, (count, whole)


@yrt.measured
def test_views():
    """The view of a language hides the interpreter and waits by design; page and help know the command."""
    result = yrt.run(
        "python-wall-flame", "-U", "--", "/usr/bin/python3", "-c", PROGRAM.replace("< 3", "< 0.5")
    ).expect()
    assert not result.share("_PyEval_EvalFrameDefault"), yrt.show(result.stacks)
    assert {frames[-1] for frames, _ in result.stacks} >= {"[running]", "[sleep]"}, yrt.show(result.stacks)
    yrt.run("off-flame", "-p", 1, "--timeline", stats=False).expect(yrt.USAGE)


SHORT_LIVES = """
import json, os, threading, time
print(json.dumps({"pid": os.getpid(), "chain": []}), flush=True)
def life():
    time.sleep(0.3)
def again(end):
    while time.monotonic() < end:
        t = threading.Thread(target=life)
        t.start()
        t.join()
end = time.monotonic() + 60
for _ in range(200):
    threading.Thread(target=again, args=(end,), daemon=True).start()
time.sleep(60)
"""


@yrt.measured
def test_lives():
    """Threads end all the time, also after the run and before yrt looks at them: no more waits than life."""
    with yrt.Fixture("/usr/bin/python3", "-c", SHORT_LIVES, seconds=None, wait=False) as f:
        for view in ("wall-flame", "off-flame") * 2:
            off = yrt.run(view, "-p", f.pid, "-d", 1).expect().stats["off"]
            rest = off["wall_s"] - off["on_s"] - off["off_s"]
            assert -0.002 * off["wall_s"] <= rest, (view, off)
            yield f"{view}: of {off['wall_s']:.1f} s {off['off_s']:.1f} s waiting, {rest:.2f} s unknown"


yrt.main(globals())
