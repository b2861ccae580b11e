# SPDX-License-Identifier: Apache-2.0
"""
latency: every call of a function by its time, however it returns; stacks of slow ones; what can not be paired is
refused or counted.
"""

import json
import os
import re
import tempfile

import go
import yrt
from counted import Program, latencies, probed

ALL = ("--max-cpu", 0)  # no shifts, and each stack of a wait, whatever it costs


def latency(what, *flags, fixture="calls"):
    with yrt.Fixture(fixture) as fixture:
        at = yrt.Run("latency", "-e", what, "-p", fixture.pid, "-d", 600, *ALL, *flags).sampling()
        fixture.release()
        fixture.finish()
        return at.result().expect()


def slower(stats, ns):
    return sum(b["calls"] for b in stats["histogram"] if b["to_ns"] > ns)


def test_calls():
    """Returns and tail calls are paired; calls left by longjmp() are reported; only slow ones have stacks."""
    result = latency("calls:work", "--over", "19ms")
    stats = result.stats["latency"]
    assert stats["entered"] == 50 and stats["returned"] == 45 == sum(b["calls"] for b in stats["histogram"]), stats
    assert stats["left"] in (4, 5) and not stats["unpaired"], stats
    assert slower(stats, 2e6) == 45 and slower(stats, 20e6) >= 25, stats
    assert 25 * 20e6 <= sum(n for _, n in result.stacks) <= stats["sum_ns"], f"{stats}: {yrt.show(result.stacks)}"
    inside = {"work", "last"}  # what work() leaves to by a tail call, at the end of a call that others held up
    for frames, _ in result.stacks:
        names = {frame.partition(":")[0] for frame in frames}  # each with its line
        assert inside & names and "main" in names, yrt.show(result.stacks)
    assert "#" in result.stderr and "left without a return" in result.stderr, result.stderr
    yield f"{stats['returned']} of {stats['entered']} returned, {stats['left']} left, {stats['slow']} slow"


@yrt.both_tiers
def test_waits():
    """Slow calls are listed with what they waited for, and have its stacks: with what else they did, all their time."""
    result = latency("calls:work", "--over", "19ms")
    calls, slow = result.stats["latency"]["longest"], result.stats["latency"]["slow"]
    times = [c["ns"] for c in calls]
    assert len(calls) == slow >= 25 and times == sorted(times, reverse=True), calls
    waits = [sum(w["ns"] for w in c["waits"] if w["reason"] == "sleep") for c in calls]
    assert all(w <= c["ns"] for w, c in zip(waits, calls)), calls  # none: it lost the CPU for so long
    assert any(w >= 19e6 for w in waits), calls  # not each: a timer starts before its thread sleeps
    total, slept = sum(times), sum(n for f, n in result.stacks if yrt.leaf(f) == "[sleep]")
    assert sum(n for _, n in result.stacks) == total, f"{total}: {yrt.show(result.stacks, 9)}"
    assert slept == sum(waits), f"{sum(waits)}: {yrt.show(result.stacks, 9)}"
    assert "longest calls:" in result.stderr and ": sleep" in result.stderr, result.stderr
    assert not yrt.measuring() or (sum(w >= 19e6 for w in waits) >= 20 and slept >= 0.8 * total), calls
    yield f"{len(calls)} calls, {100 * slept / total:.1f} % of {total / 1e6:.0f} ms asleep"


HANDLE = (
    r'server::handle\(this = 0x[0-9a-f]+, path = "/a/path/that/is/too/long/for/the/string/itself", part = "view", '
    r"quoted = 0x[0-9a-f]+, number = 7, yes = true, letter = 'x', c = 1, d = \?, f = \?, by_value = \?, last = -7\)"
)
PLAIN = r'plain\(a = -3, text = "hello", n = -5, m = \?, u = 65535, small = -1\) = -3'


def test_arguments():
    """
    What slow calls were given, and returned: by debug information, in registers, in memory and behind pointers; by the system call of
    the name; by the registers that the code reads.
    """
    for fixture, what, wanted in (
        ("arguments", "plain", PLAIN),
        ("arguments_O0", "plain", PLAIN),
        ("arguments", "server::handle", HANDLE),
        ("arguments_O0", "server::handle", HANDLE),
        ("arguments_plain", "three", r'three\("some text", 42, 0\)'),
        ("arguments", "libc:poll", r"poll\(\[\d+ = pipe:\[\d+\]\], 1, 2 ms\) = 0"),
    ):
        calls = latency(what, "--over", "1ms", fixture=fixture).stats["latency"]["longest"]
        assert len(calls) == 10, f"{fixture}, {what}: {calls}"
        for call in calls:
            assert re.fullmatch(wanted, call["call"]), f"{fixture}: {call['call']}"
        yield calls[0]["call"]


def milliseconds(result, word):
    number, unit = re.search(rf"{word} ([0-9.e+]+) (ns|us|ms)", result.stderr).groups()
    return float(number) * {"ns": 1e-6, "us": 1e-3, "ms": 1}[unit]


def test_own_name():
    """A program that yrt starts has a function whose name yrt has, too."""
    with tempfile.TemporaryDirectory() as at:
        flags = ("-o", os.path.join(at, "x.folded"), "--", yrt.fixture_path("calls"), 60)
        result = yrt.run("probe", "-e", "main", *flags, output=False, stats=False)
    assert result.code == 0 and "1 hits" in result.stderr, result.stderr


def test_summary():
    """The median is as near as buckets are wide: of 45 calls 25 take 20 ms and more."""
    result = latency("calls:work")
    median, most = milliseconds(result, "median"), milliseconds(result, "most")
    assert 17.7 <= median <= most, result.stderr
    yield f"median {median} ms, most {most} ms"


@yrt.measured
def test_known():
    """
    A function of known time is shown with that time: the probes' part is subtracted. One that takes nothing has less
    than can be known.
    """
    for us, flags in ((0, ()), (50, ()), (200, ()), (200, ALL), (5000, ALL)):
        with yrt.Fixture("spans", us, seconds=2) as fixture:
            at = yrt.Run("latency", "-e", "spans:span", "-p", fixture.pid, "-d", 600, *flags).sampling()
            fixture.release()
            fixture.finish()
            result = at.result().expect()
        known = result.stats["latency"]["without_probes"]
        assert known["known"] and known["price_ns"], known
        if not us:
            assert known["median_ns"] < known["under_ns"] and "median under " in result.stderr, result.stderr
        else:
            assert abs(known["median_ns"] - us * 1000) <= 20000 + us * 10, f"{us} us: {result.stderr}"
        yield f"{us} us: {known['median_ns'] / 1000:.2f} us, less {known['price_ns']} ns"


def test_page():
    """The page has the histogram, also of a recording."""
    with tempfile.TemporaryDirectory() as at, yrt.Fixture("calls") as fixture:
        path = os.path.join(at, "calls.yrt")
        flags = ("-p", fixture.pid, "-d", 600, "-o", path)
        run = yrt.Run("latency", "-e", "calls:work", "--over", "1ms", *ALL, *flags, output=False).sampling()
        fixture.release()
        fixture.finish()
        stats = run.result().expect().stats["latency"]
        page = yrt.run("render", path, "-f", "html", "-o", "-", output=False, stats=False).expect().stdout
        data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', page, re.S)[1])
        [[name, *printed]], longest = data["histograms"], data["longest"]
        assert name == "calls:work", name
        assert printed == [[b["from_ns"], b["to_ns"], b["calls"]] for b in stats["histogram"]], (printed, stats)
        wanted = [[c["ns"], c["at_ns"], f"{c['thread']} ({c['tid']})", c["call"]] for c in stats["longest"]]
        assert longest and [c[:4] for c in longest] == wanted, (longest, wanted)
        waits = [[w[k] for w in c["waits"] for k in ("reason", "ns")] for c in stats["longest"]]
        assert [c[4:] for c in longest] == waits, (longest, waits)


def test_system_call():
    """The second instruction is a system call, which no probe may be at: the program lives, each call returns."""
    with yrt.Fixture("syscalls", seconds=2) as fixture:
        at = yrt.Run("latency", "-e", "libc:getppid", "-p", fixture.pid, "-d", 600, *ALL).sampling()
        fixture.release()
        fixture.finish()
        stats = at.result().expect().stats["latency"]
    assert stats["entered"] == stats["returned"] >= 60 and not stats["without_probes"]["known"], stats
    libc = next(p for p in yrt.read("/proc/self/maps").split() if re.search(r"/libc\.so\.6$", p))
    with open(libc, "rb") as f:
        at = f.read().index(b"\xb8\x6e\x00\x00\x00\x0f\x05\xc3") + 5  # getppid
    with yrt.Fixture("syscalls") as fixture:
        refused = yrt.run("probe", "-e", f"libc+{at:#x}", "-p", fixture.pid, "-d", 1)
        assert refused.code == yrt.UNSUPPORTED and "system call" in refused.stderr, refused.stderr
    yield f"{stats['returned']} calls of getppid()"


def test_recursion():
    """Each activation of a function that calls itself has its own time."""
    result = latency("calls:deep")
    stats = result.stats["latency"]
    # 5 chains of 5, and those of table().
    assert stats["returned"] == stats["entered"] >= 25 and not stats["left"], stats
    depths = {frames.count("deep") for frames, _ in result.stacks}
    assert depths >= {1, 2, 3, 4, 5}, yrt.show(result.stacks, 9)


def test_jumps():
    """
    Functions that jump through tables and pointers, to their own start or out of themselves by a condition: each call
    is seen once, and each return.
    """
    for what in ("table", "through", "choose", "looping", "marked", "parting", "bare"):
        stats = latency(f"calls:{what}").stats["latency"]
        ended = stats["returned"] + stats["lost"]  # those that jump to where only the process knows, at first
        assert stats["entered"] == ended == 70 and not stats["left"] + stats["unpaired"], f"{what}: {stats}"
        assert what in ("through", "choose") or not stats["lost"], f"{what}: {stats}"
    for what in ("looping", "marked"):
        with yrt.Fixture("calls") as fixture:
            at = yrt.Run("probe", "-e", f"calls:{what}", "-p", fixture.pid, "-d", 600, "--max-cpu", 0).sampling()
            fixture.release()
            fixture.finish()
            hits = at.result().expect().samples
        assert hits == 70, f"{what}: {hits} hits"


def test_tail_calls():
    """
    A call that leaves by a jump to another function lasts until that one returns, whether the code, the linker's table
    or a pointer says where to; other calls of that function do not end it, nor does a jump back begin another one.
    """
    least = 5e6
    for what, calls in (("direct", 80), ("chained", 40), ("linked", 40), ("even", 40), ("stored", 40), ("through", 40)):
        stats = latency(f"tails:{what}", fixture="tails").stats["latency"]
        lost = stats["lost"] if what == "through" else 0  # until yrt has seen where to
        assert stats["entered"] == calls == stats["returned"] + lost, f"{what}: {stats}"
        assert not stats["left"] + stats["unpaired"] and stats["lost"] == lost, f"{what}: {stats}"
        assert slower(stats, least) == stats["returned"], f"{what}: {stats}"
        assert what != "through" or 0 < lost < calls, stats
        yield f"{what}: {stats['returned']} of {calls} calls of {least / 1e6:.0f} ms, {lost} without a time"


@yrt.measured
def test_shifts():
    """
    Past --max-cpu hits are counted in shifts and stand for the others; a call that outlasts its shift has its time.
    """
    calls, least = 800, 25e6
    with yrt.Fixture("calls", calls) as fixture:
        flags = ("-e", "calls:steady", "-p", fixture.pid, "-d", 600, "--max-cpu", 0.05)
        runs = [yrt.Run(command, *flags).sampling() for command in ("latency", "probe")]
        fixture.release()
        fixture.finish()
        results = [run.result().expect() for run in runs]
    stats = results[0].stats["latency"]
    hits = sum(n for _, n in results[1].stacks)
    assert all("in shifts" in r.stderr for r in results), [r.stderr for r in results]
    assert all(0 < r.stats["probed"] < 1 and "% of the time;" in r.stderr for r in results), [r.stderr for r in results]
    # Five shifts see some four calls each, which count for all others; what follows the last shift is not covered.
    assert calls / 8 < stats["returned"] < calls * 4 and calls / 8 < hits < calls * 4, f"{stats}, {hits} hits"
    assert stats["max_ns"] >= least and slower(stats, least) < stats["returned"] / 2, stats
    assert stats["returned"] >= stats["entered"] * 0.8 and not stats["left"], stats
    yield f"{stats['returned']} calls, {hits} hits estimated, of {calls}"


def test_refusals():
    """A function that never returns, a name without a function, and times that are no times."""
    with yrt.Fixture("calls") as fixture:
        result = yrt.run("latency", "-e", "libc:abort", "-p", fixture.pid, "-d", 1).expect(yrt.UNSUPPORTED)
        assert "never returns" in result.stderr, result.stderr
        for flags in (
            ("-e", "sched:sched_switch"),
            ("-e", "calls:work", "--over", "soon"),
            (),
            ("-e", "calls:nothing"),
        ):
            yrt.run("latency", *flags, "-p", fixture.pid, "-d", 1).expect(yrt.USAGE)


def test_growing_stacks():
    """
    A function that looks for room on its stack first, and begins again behind that, is paired, too; also without
    symbols.
    """
    for path in (go.build("labels"), go.build("labels", "-ldflags=-s -w", name="labels-stripped")):
        with yrt.Fixture(path, seconds=None, wait=False) as fixture:
            result = yrt.run_busy("latency", [fixture.pid], "-e", "main.changing.func1", *ALL, seconds=1)
        stats = result.stats["latency"]
        # one goroutine calls it: one call is under way as the run ends
        assert stats["returned"] > 100 and stats["returned"] >= stats["entered"] - 1, stats
        assert all("main.changing" in frames for frames, _ in result.stacks), yrt.show(result.stacks, 9)
        yield f"{stats['returned']} of {stats['entered']} returned, {stats['unpaired']} were not paired"


def test_parked():
    """A goroutine that waits without a thread: the call has waited, not run, and its stack says where."""
    with Program(go.build("parks")) as program:
        for what, inside in (("nap", "time.Sleep"), ("enter", "sync.(*Mutex).Lock")):
            result, after = probed(
                program, f"go:main.{what}", words=["go"] * 5, command="latency", flags=["--over", "1us"])
            seen = latencies(result)
            assert seen["returned"] == seen["entered"] == 5, (seen, after)
            for call in seen["longest"]:
                parked = sum(w["ns"] for w in call["waits"] if w["reason"] == "goroutine: parked")
                stacks = [s["frames"] for s in call["stacks"] if "goroutine: parked" in s["frames"]]
                assert call["ran_ns"] == call["ns"] - sum(w["ns"] for w in call["waits"]), call
                assert parked or what != "nap", call  # a mutex may be free again when it is asked for
                assert not parked or any(inside in s and f"main.{what}:" in s for s in stacks), call
            yield f"{what}: {seen['longest'][0]['ns'] / 1e6:.1f} ms, ran {seen['longest'][0]['ran_ns'] / 1e3:.0f} us"


@yrt.both_tiers
def test_moving_stacks():
    """
    A goroutine whose stack is copied elsewhere during the call is paired, and the call that made it grow counts once.
    """
    for what, depth in (("main.grown", 1), ("main.descend", 2001)):
        with yrt.Fixture(
            go.build("storms", "-ldflags=-s -w", name="storms-stripped"), "grow", 600, seconds=None, wait=False
        ) as fixture:
            result = yrt.run_busy("latency", [fixture.pid], "-e", what, *ALL, seconds=2)
        # when it ends: three, and as many that have just started the next one
        stats, under_way = result.stats["latency"], 6 * depth
        assert stats["returned"] > depth and not stats["left"], stats
        assert stats["entered"] - stats["returned"] <= under_way, stats
        assert not yrt.measuring() or stats["unpaired"] <= under_way, stats  # and those of the time of attaching
        yield (
            f"{what}: {stats['returned']} of {stats['entered']} returned, {stats['unpaired']} were not paired,"
            f" {stats['left']} left"
        )


@yrt.both_tiers
def test_other_thread():
    """A goroutine that returns on another thread than the one that it called on is paired."""
    with yrt.Fixture(
        go.build("moments", "-ldflags=-s -w", name="moments-stripped"), "storm", seconds=None, wait=False
    ) as fixture:
        result = yrt.run_busy("latency", [fixture.pid], "-e", "main.alpha", *ALL, seconds=2)
    stats = result.stats["latency"]
    under_way = 400  # goroutines, when it begins and when it ends
    assert stats["returned"] > 1000 and stats["entered"] - stats["returned"] <= under_way, stats
    assert not yrt.measuring() or stats["unpaired"] <= under_way, stats
    yield (
        f"{stats['returned']} of {stats['entered']} returned, {stats['unpaired']} were not paired, {stats['left']} left"
    )


yrt.main(globals())
