# SPDX-License-Identifier: Apache-2.0
"""go-refs of a program that says what it holds; the same of a core, and without names."""

import os
import subprocess
import tempfile

import go
import yrt

HIDDEN = ["-ldflags=-s -w"]
SESSION, PAGE, CLOSURE = 80, 4864, 24
STACKS = 20  # of each, at most, are found on stacks too, where a word may be left from an earlier call


def run(command, *args, code=yrt.OK):
    return yrt.run(command, *args, output=False, stats=False).expect(code)


def tree(*args):
    """{path: bytes of its own} of folded stacks"""
    text = run("go-refs", *args, "-f", "folded").stdout
    return {tuple(line.rpartition(" ")[0].split(";")): int(line.rpartition(" ")[2]) for line in text.splitlines()}


def all_of(paths, name):
    """Bytes of all boxes of this type, whatever refers to them."""
    return sum(n for p, n in paths.items() if p[-1].split(": ")[-1].lstrip("?") == name)


def check_leak(paths, told):
    """The buffers of goroutines that wait are below their functions and what they wait for."""
    place = ("(goroutines)", "main.handle", "main.await", f"{told['waiting']} goroutines: chan receive")
    held = paths[(*place, f"?({told['buffer']} bytes, without pointers)")]
    assert (told["waiting"] - STACKS) * told["buffer"] <= held <= told["waiting"] * told["buffer"], held


def check_unsent(paths, told):
    """What goroutines send that nobody receives has its type, from the channel, and is below their function."""
    place = ("(goroutines)", "main.send", f"{told['unsent']} goroutines: chan send", ".done: main.report")
    held = paths[(*place, ".body: []uint8")]
    assert (told["unsent"] - STACKS) * told["body"] <= held <= told["unsent"] * told["body"], (held, told)


def check_cache(paths, told):
    """Below its variable, by fields and types; each object once."""
    assert all_of(paths, "main.session") == told["sessions"] * SESSION
    assert all_of(paths, "main.page") == (told["pages"] + told["noted"]) * PAGE
    assert all_of(paths, "closure of main.main.hook.func1") == told["hooks"] * CLOSURE
    cache = {p[1:]: n for p, n in paths.items() if p[0] == "main.cache"}
    sessions = (".sessions: []*main.session", "[]: main.session")
    assert cache[sessions] >= (told["sessions"] - STACKS) * SESSION, cache
    assert cache[(*sessions, ".history: [][]uint8", "[]: []uint8")] >= (told["sessions"] - STACKS) * told["history"]
    assert cache[(*sessions, ".note: main.page")] >= (told["noted"] - STACKS) * PAGE
    assert cache[(".hooks: []func() int", "[]: closure of main.main.hook.func1")] >= (told["hooks"] - STACKS) * CLOSURE


def check_map(paths):
    """A map of many tables (from 1.24 on): nothing on the way to its values is guessed."""
    ways = [p for p in paths if p[0] == "main.visited" and p[-1].endswith(": main.visit")]
    assert ways and not any(box.startswith("?") for p in ways for box in p), ways


def check_core(core, told):
    """Of one moment what the roots reach and what they do not are the heap; both say what was dropped."""
    alive, dead = tree("--core", core), tree("--core", core, "--unreachable")
    check_cache(alive, told)
    everything = int(run("go-heap", "--types", "--core", core).stdout.splitlines()[-1].split()[0])
    assert sum(alive.values()) + sum(dead.values()) == everything, (sum(alive.values()), sum(dead.values()), everything)
    lost = dead[("(nothing refers to it)", "main.lost")]
    assert lost >= (told["lost"] - STACKS) * PAGE and lost + all_of(alive, "main.lost") == told["lost"] * PAGE, lost


def test_held():
    """With DWARF all roots have names; a core says the same; nothing of the heap is missing."""
    if go.minor() < 22:
        return
    with yrt.Fixture(go.build("held"), seconds=None, wait=False) as f, tempfile.TemporaryDirectory() as d:
        paths = tree("-p", f.pid)
        check_leak(paths, f.start)
        check_unsent(paths, f.start)
        check_cache(paths, f.start)
        if go.minor() >= 24:
            check_map(paths)
        everything = int(run("go-heap", "--types", "-p", f.pid).stdout.splitlines()[-1].split()[0])
        dropped = f.start["lost"] * PAGE
        assert 0.98 * everything - dropped < sum(paths.values()) <= everything, (sum(paths.values()), everything)
        ways = tree("-p", f.pid, "--to", "main.session")
        assert ("main.cache", ".sessions: []*main.session", "[]: main.session") in ways, ways
        core = os.path.join(d, "core")
        subprocess.run(["gcore", "-o", core, str(f.pid)], check=True, capture_output=True)
        core = f"{core}.{f.pid}"
        check_core(core, f.start)
        for args in ("go-heap", "--types"), ("go-goroutines",):
            assert run(*args, "--core", core).stdout == run(*args, "-p", f.pid).stdout, args
        yield f"{len(paths)} boxes"


def test_stripped():
    """Without DWARF: variables are one root, which is said, and types are those that interfaces and headers say."""
    if go.minor() < 22:
        return
    with yrt.Fixture(go.build("held", *HIDDEN, name="held-stripped"), seconds=None, wait=False) as f:
        paths = tree("-p", f.pid)
        check_leak(paths, f.start)
        assert all_of(paths, "main.page") == (f.start["pages"] + f.start["noted"]) * PAGE
        assert "without DWARF global variables have no names" in run("go-refs", "-p", f.pid).stderr


def test_refused():
    """Spans of before 1.22 are refused by name."""
    if go.minor() < 22:
        with yrt.Fixture(go.build("sized"), seconds=None, wait=False) as f:
            yrt.clear(run("go-refs", "-p", f.pid, code=yrt.UNSUPPORTED), yrt.UNSUPPORTED, "go-refs is for Go 1.22")


yrt.main(globals())
