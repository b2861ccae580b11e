# SPDX-License-Identifier: Apache-2.0
"""perl-heap and perl-refs, against what the program counts itself, and against Devel::MAT's dump of the same moment."""

import os
import re
import subprocess
import tempfile

import yrt

PERL = os.environ.get("YRT_PERL", "/usr/bin/perl")
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "perl", "keeps.pl")
N = 500
CACHE = ("main", "$cache: Cache")
CYCLES = """package Session; sub new { my $self = bless {n => $_[1]}, 'Session'; $self->{end} = sub { $self->{n} } }
new('Session', $_) for 1 .. 5000; $| = 1; print qq({"pid": $$, "chain": []}\n); <STDIN>"""
# As Devel::MAT sorts them, blessed or not.
KINDS = ("CODE", "GLOB", "INVLIST", "PAD", "REF", "STASH")


def keeps(*more):
    return waits(yrt.Fixture(PERL, SCRIPT, N, *more, seconds=None, wait=False))


def keeps_cycles():
    """5,000 sessions, each with a closure that refers to it."""
    return waits(yrt.Fixture(PERL, "-e", CYCLES, seconds=None, wait=False))


def waits(fixture):
    """It has printed all, and reads its input."""
    yrt.in_call(fixture.pid, yrt.READ)
    return fixture


def run(command, *args, code=yrt.OK):
    return yrt.run(command, *args, output=False, stats=False).expect(code)


def types(text):
    ret = {}
    for line in text.splitlines()[1:]:
        size, _, count, name = line.split(None, 3)
        name = re.sub("^CODE of .*", "CODE", name)
        before = ret.get(name, (0, 0))
        ret[name] = before[0] + int(count), before[1] + int(size)
    return ret


def tree(pid, *args):
    """{path: (bytes of its own)} of folded stacks"""
    ret = {}
    for line in run("perl-refs", "-p", pid, "-f", "folded", *args).stdout.splitlines():
        path, _, size = line.rpartition(" ")  # names of some variables are control characters: all the same here
        ret[tuple(path.split(";"))] = ret.get(tuple(path.split(";")), 0) + int(size)
    return ret


def below(paths, *begin):
    return sum(n for p, n in paths.items() if p[: len(begin)] == begin)


def test_types():
    """All values of the program's packages; of kinds of values as many as Devel::MAT finds, but for one of its own."""
    with tempfile.TemporaryDirectory() as d:
        dump = os.path.join(d, "dump.pmat")
        with keeps(dump) as f:
            seen = types(run("perl-heap", "-p", f.pid).stdout)
        for name, count in f.start["counts"].items():
            assert seen[name][0] == count, (name, seen[name], count)
        text = subprocess.run(["pmat", dump, "count"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=300).stdout
        theirs = {kind: int(n) for kind, n in re.findall(r"^\s+(\w+|\(total\))\s+(\d+)", text, re.M)}
        for kind in KINDS:
            assert seen[kind][0] == theirs[kind], (kind, seen[kind], theirs)
        assert abs(seen["(all)"][0] - theirs["(total)"]) <= 2, (seen["(all)"], theirs)


def test_refs():
    """Each value is drawn where it is kept alive, and counts once; a cycle that nothing reaches is not there."""
    with keeps() as f:
        everything = types(run("perl-heap", "-p", f.pid).stdout)
        result = run("perl-heap", "--live", "-p", f.pid)
        live, paths = types(result.stdout), tree(f.pid)
        assert " references; 0 torn;" in result.stderr, result.stderr
        assert sum(paths.values()) == live["(all)"][1]
        assert everything["Lost"][0] == 1 and "Lost" not in live
        for name in ("Point", "Record", "Node", "Cache", "Held"):
            assert live[name] == everything[name], (name, live[name], everything[name])
        points = ("{}: Record", "{points}: ARRAY", "[]: Point")
        alone = below(paths, *CACHE, "{entries}: HASH", *points)
        ways = {("{entries}: HASH", *points): "{recent}: ARRAY",
                ("{recent}: ARRAY", "[]: Record", *points[1:]): "{entries}: HASH"}  # one is drawn, the other named
        shared = sum(below(paths, *CACHE, "shared by 2 paths, also " + other, *way) for way, other in ways.items())
        each = (alone + shared) // (3 * N)
        assert each * 3 * N == alone + shared and shared * 9 == alone, (alone, shared)
        # with its two numbers, a point has what its values have
        assert each == live["Point"][1] // (3 * N) + 2 * 24, (each, live["Point"])
        assert below(paths, "main", "$chain: Node") == live["Node"][1] + (N - 1) * 24 + 24, paths
        held = [p for p in paths if p[-1].endswith(": Held")]
        # the program and its sub both have %lexical
        lexical = ("shared by 2 paths", "(main program)", "%lexical: HASH", "{held}: Held")
        line = 1 + yrt.read(SCRIPT)[: yrt.read(SCRIPT).index("return sub { $kept }")].count("\n")
        code = f"$count: CODE of main::__ANON__ ({SCRIPT}:{line})"
        assert set(held) == {lexical, ("main", code, "$kept: Held")}, held
        assert below(paths, *lexical) > 5000


def test_unreachable():
    """A cycle is drawn below what says so, with what it keeps, and nothing that is reached is there."""
    with keeps() as f:
        paths = tree(f.pid, "--unreachable")
        lost = below(paths, "(cycles that only refer to themselves)", "Lost")
        assert 3000 < lost < 3500, paths
        assert not [p for p in paths if p[-1].endswith((": Point", ": Record", ": Held"))], paths
        assert "no root leads to" not in run("perl-refs", "-p", f.pid).stderr
    with keeps_cycles() as f:
        alive, dead = run("perl-heap", "--live", "-p", f.pid), run("perl-refs", "--unreachable", "-p", f.pid)
        told = re.search(r"note: no root leads to (\d+) of (\d+) values: cycles", alive.stderr)
        assert told and int(told[1]) == int(re.search(r"yrt: (\d+) values", dead.stderr)[1]) > 20000, alive.stderr
        paths = tree(f.pid, "--unreachable")
        beside = tree(f.pid)  # so much is shown without being asked for, too
        assert below(beside, "(no root leads to it)") == sum(paths.values()), beside
        assert int(told[2]) == types(run("perl-heap", "-p", f.pid).stdout)["(all)"][0]
        assert not below(tree(f.pid, "--to", "Session"), "main"), beside
        assert not [p for p in paths if p[:2] == ("(cycles that only refer to themselves)", "PAD")], paths
        code = "CODE of Session::__ANON__ (-e:1)"  # either may be the first of a cycle
        cycles = sum(n for p, n in paths.items() if p[0] == "(cycles that only refer to themselves)"
                     and any(name.endswith(code) or name.endswith("Session") for name in p))
        assert cycles > 0.9 * sum(paths.values()) and any(name.endswith(code) for p in paths for name in p), paths


def test_ways_and_core():
    """--to: by type, and the same of a core."""
    with keeps() as f, tempfile.TemporaryDirectory() as d:
        assert list(tree(f.pid, "--to", "Cache")) == [CACHE]
        alive = run("perl-heap", "-p", f.pid).stdout
        core = os.path.join(d, "core")
        subprocess.run(["gcore", "-o", core, str(f.pid)], check=True, capture_output=True)
        assert run("perl-heap", "--core", f"{core}.{f.pid}").stdout == alive


REPLACE = """
package Order; package main; our %cache; my $n = 0;
while (1) { my $i = $n++ % 20000; $cache{$i} = bless { id => $i, items => [ { qty => $n }, "name $n" ] }, 'Order'; }
"""


@yrt.measured
def test_replaced():
    """Objects are replaced at full speed: 99 % of those that are alive are found from the roots."""
    with subprocess.Popen([PERL, "-e", REPLACE]) as program:
        yrt.busy_for([program.pid], 1)
        found = sorted(types(run("perl-heap", "--live", "-p", program.pid).stdout)["Order"][0] for _ in range(3))
        program.kill()
    assert found[1] >= 19800 and found[2] <= 20200, found
    yield f"{found} of 20,000"


yrt.main(globals())
