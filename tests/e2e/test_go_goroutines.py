# SPDX-License-Identifier: Apache-2.0
"""go-goroutines: all goroutines, read from outside, against runtime/pprof's own profile of them."""

import json
import os
import re
import sys
import time

import go
import yrt

STRIPPED = "-ldflags=-s -w"


def told(pid, *options):
    return yrt.Run("go-goroutines", "-p", pid, *options, output=False, stats=False).result().expect().stdout


def groups(text):
    """{(pcs, labels): (number, lines)} of debug=1; the goroutine that asked for the profile is left out."""
    ret = {}
    for part in text.split("\n\n"):
        m = re.search(r"^(\d+) @( 0x\S+)+$", part, re.M)
        lines = tuple(re.sub(r"\s+", " ", line) for line in part.splitlines() if re.match(r"#\s+0x", line))
        # up to 1.13 the place of a fault was one byte before that of a call
        other = any(" main.main+" in line or (go.minor() < 14 and " main.faulting+" in line) for line in lines)
        if m and not other:
            ret[m[0].split(" @ ")[1], "".join(re.findall("^# labels: .*", part, re.M))] = (int(m[1]), lines)
    return ret


def without_labels(found):
    """As runtime/pprof has them up to 1.14."""
    ret = {}
    for (pcs, _), (number, lines) in found.items():
        ret[pcs, ""] = (ret.get((pcs, ""), (0,))[0] + number, lines)
    return ret


PACKAGES = "main.", "net.", "sync.", "time.", "internal", "testing", "runtime.run", "runtime.goexit"


def each(text):
    """{number: lines} of debug=2, without the values of arguments, which yrt does not show."""
    ret = {}
    for part in text.strip().split("\n\n"):
        lines = [
            (
                re.sub(r"\([^()]*\)$", "(...)", line)
                if line.startswith(PACKAGES)
                else line
            )
            for line in part.splitlines()
        ]
        while go.minor() < 25 and "runtime.runfinq(...)" in lines:
            del lines[(at := lines.index("runtime.runfinq(...)")) : at + 2]  # printed since then
        lines = [re.sub(r"^panic\(.*", "panic(...)", line) for line in lines]
        # the runtime prints labels from 1.27 on, if the module is of 1.27, too
        lines[0] = re.sub(r" \{.*\}:$", ":", lines[0])
        lines[0] = re.sub(r", \d+ minutes", "", lines[0])  # it has waited for longer by now
        if go.minor() < 14 and lines[1].startswith("runtime."):
            del lines[1:3]  # old ones print what is inlined into the function at the top, though it is the runtime's
        number = int(re.match(r"goroutine (\d+) \[", lines[0])[1])
        if number != 1:  # it asked for the profile
            ret[number] = lines
    return ret


def compare(path, *arguments):
    with yrt.Fixture(path, *arguments, seconds=None, wait=False) as f:
        yrt.unread("go-goroutines", "-p", f.pid)
        want, have = groups(f.start["groups"]), groups(told(f.pid))
        have_labels = have
        if go.minor() < 15:
            have = without_labels(have)
        assert (
            want == have
        ), f"only runtime/pprof: {want.items() - have.items()}\nonly yrt: {have.items() - want.items()}"
        yield f"{sum(n for n, _ in want.values())} goroutines in {len(want)} groups, equal to those of runtime/pprof"
        want, have = each(f.start["each"]), each(told(f.pid, "--each"))
        assert want.keys() == have.keys(), want.keys() ^ have.keys()
        in_bubble = sum("synctest bubble 1]" in lines[0] for lines in want.values())
        assert in_bubble == (8 if go.minor() >= 25 else 0), in_bubble
        for number, lines in want.items():
            assert lines == have[number], "\n".join(["runtime/pprof:", *lines, "yrt:", *have[number]])
        yield f"{len(want)} goroutines, each equal to that of runtime/pprof"
        system = groups(told(f.pid, "--system"))
        assert any("runtime.bgsweep" in line for _, lines in system.values() for line in lines), system
        assert (
            sum(labels == '# labels: {"kind":"a \\"b\\", c=d", "tier":"1"}' for _, labels in have_labels) == 1
        ), have_labels
        folded = told(f.pid, "-f", "folded", "--labels")
        assert re.search(
            r"^labels: kind=a \"b\"\\, c=d, tier=1;(main\.nested;){2}.*;\[chan receive\] 2$", folded, re.M
        ), folded
        assert '{kind: "a \\"b\\", c=d", tier: 1}:' in told(f.pid, "--each")
        folded = told(f.pid, "-f", "folded", "--creators")
        assert re.search(
            r"^created by main\.park;(main\.nested;){3}main\.inlined;main\.\(\*receiver\)\.receive;.*;\[chan"
            r" receive\] 4$",
            folded,
            re.M,
        ), folded


def test_symbols():
    yield from compare(go.build("moments"))


def test_dump():
    """
    dump --logical: each goroutine that stands, with its state, functions and lines, as debug=2 of runtime/pprof has
    them.
    """
    with yrt.Fixture(go.build("moments", STRIPPED, name="moments-stripped"), seconds=None, wait=False) as f:
        want, ignored, frames = {}, re.compile(r"runtime\.|created by |panic\(|.*\.gowrap\d+$"), 0
        for part in f.start["each"].strip().split("\n\n"):
            lines = part.splitlines()
            number, state = re.match(r"goroutine (\d+) \[(.*?)\](?: \{.*\})?:", lines[0]).groups()
            want[number] = state, [[name[:name.rindex("(")], int(re.search(r":(\d+)", place)[1])]
                                   for name, place in zip(lines[1::2], lines[2::2]) if not ignored.match(name)]
        printed = json.loads(
            yrt.run("dump", "-p", f.pid, "--logical", "--json", output=False, stats=False).expect().stdout
        )
        tasks = {t["name"]: t for t in printed["tasks"] if t["kind"] == "goroutine"}
        assert tasks.keys() == want.keys(), tasks.keys() ^ want.keys()
        del want["1"]  # it asked for the profile
        for number, (state, told_of) in want.items():
            own = [
                [x["name"], x["line"]]
                for x in printed["stacks"][tasks[number]["stack"]]
                if not ignored.match(x["name"])
            ]
            assert tasks[number]["state"] == state and own == told_of, f"{tasks[number]}:\n{own}\n{told_of}"
            frames += len(own)
        yield f"{len(want)} goroutines, {frames} frames, as runtime/pprof has them"


def test_dump_moving():
    """dump --logical: a goroutine is complete only if it has a stack that was walked to its beginning."""
    with yrt.Fixture(go.build("moments", STRIPPED, name="moments-stripped"), "storm", seconds=None, wait=False) as f:
        without = {}
        for _ in range(20):
            printed = json.loads(
                yrt.run("dump", "-p", f.pid, "--logical", "--json", output=False, stats=False).expect().stdout
            )
            for task in printed["tasks"]:
                frames = [x for x in printed["stacks"][task["stack"]] if not x["name"].startswith("[truncated")]
                assert bool(frames) == (task["walk"] in ("root_runtime", "depth")), f"{task}: {frames}"
                if not frames:
                    without[task["state"]] = without.get(task["state"], 0) + 1
        assert without.keys() & {"running", "torn"}, without
        yield f"without a stack: {without}"


def test_stripped():
    yield from compare(go.build("moments", STRIPPED, name="moments-stripped"))


@yrt.measured
def test_stopped():
    """Goroutines that have not run yet, of a process that can not run."""
    if go.minor() < 14:
        yield "not tried: places of such goroutines had another form up to 1.13"
        return
    yield from compare(go.build("moments", STRIPPED, name="moments-stripped"), "stopped")


def test_library():
    """Goroutines that C called: they call C, which calls them, or have returned to it."""
    library = go.build("shared", "-buildmode=c-shared", name="libshared.so")
    host = os.path.join(yrt.SOURCE, "fixtures", "go", "shared", "host.py")
    with yrt.Fixture(sys.executable, host, library, seconds=None, wait=False) as f:
        text = told(f.pid, "--each")
        want, have = (
            [lines for lines in each(t).values() if "main.Park(...)" in lines] for t in (f.start["each"], text)
        )
        assert want and want == have, f"runtime/pprof: {want}\nyrt: {have}"
        if go.minor() >= 21:  # an older one forgets such a goroutine when it returns
            assert re.search(r"\[syscall, locked to thread\]:\nruntime\.goexit\(\.\.\.\)\n\t\S+ \+0x1\n\n", text), text
        yield f"{len(want[0])} lines, equal to those of runtime/pprof"


def test_position_independent():
    yield from compare(go.build("moments", "-buildmode=pie", STRIPPED, name="moments-pie"))


def test_watch():
    """What leaks comes first."""
    with yrt.Fixture(go.build("moments", STRIPPED, name="moments-stripped"), "leak", seconds=None, wait=False) as f:
        at = yrt.Run("go-goroutines", "-p", f.pid, "--watch", 300, output=False, stats=False)
        yrt.until(lambda: "nanosleep" in yrt.read(f"/proc/{at.process.pid}/wchan"), "it waits for the second moment")
        yrt.busy_for([f.pid], 0.005)
        at.interrupt()
        text = at.result().expect().stdout
        first = text.split("\n\n")[0]
        assert re.search(r"^\+\d+, from \d+ to \d+ @", first, re.M) and "main.leaked+" in first, text
        yield first.splitlines()[0]


def test_leaked():
    """What the runtime's profile of leaks has found is said to be leaked."""
    if go.minor() < 27:
        yield "not tried: there is no such profile before 1.27"
        return
    with yrt.Fixture(go.build("moments", STRIPPED, name="moments-stripped"), "forget", seconds=None, wait=False) as f:
        for _ in range(600):
            text = told(f.pid)
            if "(leaked)" in text:
                break
            time.sleep(0.5)
        forgotten = [part for part in text.split("\n\n") if "main.leaked+" in part]
        assert len(forgotten) == 1 and "# state: chan receive (leaked) 3\n" in forgotten[0], text
        assert told(f.pid, "--each").count("[chan receive (leaked)]:") >= 3
    yield "3 leaked"


CALLED = "alpha", "beta"


@yrt.both_tiers
def test_storm():
    """Goroutines that run all the time: whatever is reported of one is a chain that exists."""
    with yrt.Fixture(go.build("moments", STRIPPED, name="moments-stripped"), "storm", seconds=None, wait=False) as f:
        seen, without = 0, {}
        for _ in range(20):
            for m in re.finditer(r"^(.*) (\d+)$", told(f.pid, "-f", "folded"), re.M):
                frames = m[1].split(";")
                seen += int(m[2])
                if len(frames) == 1:
                    without[m[1]] = without.get(m[1], 0) + int(m[2])
                elif "main.storming" in frames:
                    own = [x for x in frames if x.startswith("main.")]
                    # preempted on the way there, it may stand further out
                    assert any(own == ["main.storming", f"main.{f}", f"main.{f}Wait"][:len(own)] for f in CALLED), m[0]
        assert seen > 20 * 400 and "[not walked]" not in without, (seen, without)
        assert not yrt.measuring() or without.get("[torn]", 0) < seen / 4, (seen, without)
        yield f"{seen} goroutines, without a stack {without}"


yrt.main(globals())
