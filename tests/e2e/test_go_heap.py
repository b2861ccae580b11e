# SPDX-License-Identifier: Apache-2.0
"""go-heap and go-alloc: the runtime's own heap profile, read from outside, against runtime/pprof's text of it."""

import re

import go
import yrt

STRIPPED = "-ldflags=-s -w"


def records(text):
    """{pcs: [(numbers, lines)]} of debug=1; what has no objects is left out."""
    ret = {}
    for part in text.split("\n\n"):
        m = re.search(r"^(\d+: \d+ \[\d+: \d+\]) @((?: 0x\S+)+)$", part, re.M)
        if m and m[1] != "0: 0 [0: 0]":
            lines = tuple(re.sub(r"\s+", " ", line) for line in part.splitlines() if re.match(r"#\s+0x", line))
            ret.setdefault(m[2], []).append((m[1], lines))
    return {pcs: sorted(all_of) for pcs, all_of in ret.items()}


def told(command, pid, *options):
    return yrt.Run(command, "-p", pid, *options, output=False, stats=False).result().expect().stdout


def compare(path):
    with yrt.Fixture(path, seconds=None, wait=False) as f:
        have, want = told("go-heap", f.pid), f.start["heap"]
        head = want.splitlines()[0]
        assert have.splitlines()[0] == head, (have.splitlines()[0], head)
        want, have = records(want), records(have)
        assert want == have, f"only runtime/pprof: {want.keys() - have.keys()}\nonly yrt: {have.keys() - want.keys()}"
        seen = sum(int(numbers.split(":")[0]) for all_of in want.values() for numbers, lines in all_of
                   if any("main.holdLarge+" in line for line in lines))
        assert seen == 2 or go.minor() < 24, want  # each thread of an old one takes up the new rate at its next sample
        yield f"{len(want)} stacks, equal to those of runtime/pprof; {head}"
        folded = told("go-heap", f.pid, "-f", "folded")
        large = sum(int(n) for n in re.findall(r"main\.holdLarge;main\.hold (\d+)$", folded, re.M))
        assert large == seen << 20, folded


@yrt.measured
def test_symbols():
    yield from compare(go.build("moments"))


@yrt.measured
def test_stripped():
    yield from compare(go.build("moments", STRIPPED, name="moments-stripped"))


def test_alloc():
    """Bytes of two sites, of which one allocates twice as much; and as much as was asked for."""
    with yrt.Fixture(go.build("moments", STRIPPED, name="moments-stripped"), "alloc", seconds=None, wait=False) as f:
        at = yrt.Run("go-alloc", "-p", f.pid, "-d", 600, "-f", "folded", output=False, stats=False)
        yrt.until(lambda: "nanosleep" in yrt.read(f"/proc/{at.process.pid}/wchan"), "it waits for the second moment")
        yrt.busy_for([f.pid], 0.5)
        at.interrupt()
        folded = at.result().expect().stdout
        whole = sum(int(n) for n in re.findall(r"main\.drop;main\.hold (\d+)$", folded, re.M))
        half = sum(int(n) for n in re.findall(r"main\.dropHalf;main\.hold (\d+)$", folded, re.M))
        assert half > 1 << 20 and abs(whole / half - 2) < 0.1, folded
        yield f"{whole} and {half} bytes"


def test_fresh():
    """
    Before the first garbage collection, or where it is off, all that was recorded counts, as runtime/pprof has it.
    """
    with yrt.Fixture(go.build("moments", STRIPPED, name="moments-stripped"), "fresh", seconds=None, wait=False) as f:
        folded = told("go-heap", f.pid, "-f", "folded")
    large = sum(int(n) for n in re.findall(r"main\.holdLarge;main\.hold (\d+)$", folded, re.M))
    assert large == 2 << 20, folded


def test_off():
    """A program that never asks for the profile keeps none since 1.17, and that is said."""
    with yrt.Fixture(go.build("chains"), seconds=None, wait=False) as f:
        off = go.minor() >= 17
        done = (
            yrt.Run("go-heap", "-p", f.pid, output=False, stats=False)
            .result()
            .expect(yrt.UNSUPPORTED if off else yrt.OK)
        )
        assert ("MemProfileRate is 0" in done.stderr) == off, done.stderr
        yield (done.stderr or done.stdout).splitlines()[0]


yrt.main(globals())
