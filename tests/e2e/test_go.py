# SPDX-License-Identifier: Apache-2.0
"""Go: stacks against runtime.CallersFrames() of the same places, in every kind of build."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import go
import yrt

RATE = 997


def chains(path, seconds=3, change=None):
    """Stacks are complete, and those of each leaf are what the runtime says."""
    with yrt.Fixture(path, seconds=None, wait=False) as f:
        if change:
            change(path)
        result = yrt.sample(f, view="go-flame", seconds=seconds, rate=RATE)
        assert result.incomplete() <= 0.001, f"{result.incomplete():.4%} cut: {result.stats['truncated']}"
        yield result.summary()
        yield from go.check_chains(result, f.chain)
    yield from check_c(result)


def check_c(result):
    """C between Go's functions, and below them. Stripped, it has no names, but stands there all the same."""
    def is_c(frame, name):
        return frame == name or frame.startswith("chains") and "+0x" in frame

    for outer, inner, between in (("main._Cfunc_c_outer", "main.goCallback", "c_outer"),
                                  ("main._Cfunc_c_nested", "main.goNested", "c_nested")):
        stacks = [frames for frames, _ in result.stacks if inner in frames]
        assert stacks, f"no sample of {inner}"
        for frames in stacks:
            assert any(is_c(f, between) for f in frames[frames.index(outer):frames.index(inner)]), frames
    below = sum(n for frames, n in result.stacks if "main._Cfunc_c_burn" in frames and is_c(frames[-1], "c_burn"))
    assert below, "no sample in C that Go called"
    yield f"C below main._Cfunc_c_burn: {below} samples"


@yrt.measured
def test_symbols():
    yield from chains(go.build("chains"))


@yrt.measured
def test_stripped():
    yield from chains(go.build("chains", "-ldflags=-s -w", name="chains-stripped"))


def test_top():
    with yrt.Fixture(go.build("chains"), seconds=None, wait=False) as f:
        row = yrt.says(r"^ +(\S+) +(\S+) +\d+  Go +main\.\S+ .*go$", "go-top", "-p", f.pid, "-d", 0.3, "-F", RATE)
    yield row[0]


def starts(profile):
    """Where pprof says that functions of package main begin, by name; each line that is executed lies behind that."""
    command = [go.GO, "tool", "pprof", "-raw", profile]
    raw = subprocess.run(command, capture_output=True, text=True, check=True, env=go.ENV).stdout
    found = {}
    for name, line, start in re.findall(r" main\.(\w+) \S+?:(\d+)(?::\d+)? s=(\d+)", raw):
        assert int(line) >= int(start), (name, line, start)
        found.setdefault(name, set()).add(int(start))
    return found


def test_profile_guided():
    """What `go build -pgo` asks for: lines of calls and where functions begin, inlined ones too, without symbols."""
    folder = os.path.join(yrt.SOURCE, "fixtures", "go", "split")
    with open(os.path.join(folder, "split.go")) as source:
        true = {m[1]: n for n, line in enumerate(source, 1) if (m := re.match(r"func (\w+)\(", line))}
    path = go.build("split", "-ldflags=-s -w", name="split-stripped")
    with tempfile.TemporaryDirectory() as at, yrt.Fixture(path, 1000, os.path.join(at, "own"), seconds=None) as f:
        paths = [os.path.join(at, name) for name in ("a.pgo", "a.yrt", "b.pgo")]
        f.release()
        for flags in (("-f", "pprof", "-o", paths[0]), ("-f", "yrt", "-o", paths[1])):
            yrt.sample_busy("go-flame", [f.pid], "--lines", *flags, seconds=0.5, rate=RATE, output=False)
        yrt.run("render", paths[1], "-f", "pprof", "-o", paths[2], output=False, stats=False).expect()
        for profile in (paths[0], paths[2]):
            found = starts(profile)
            known = {name for name, lines in found.items() if lines == {true[name]}}
            unknown = {name for name, lines in found.items() if lines == {0}}
            assert known | unknown == found.keys() and {"seven", "two", "one", "work"} <= known, (found, true)
            assert go.minor() < 20 or ("mix" in known and not unknown), found
            if go.minor() >= 23:  # what the compiler gets: caller, callee, lines behind the caller's first
                table = os.path.join(at, "table")
                subprocess.run([go.GO, "tool", "preprofile", "-i", profile, "-o", table], check=True, env=go.ENV)
                with open(table) as lines:
                    assert "\nmain.seven\nmain.mix\n0 " in lines.read(), table
            yield f"{len(found)} functions of main begin where the source says"


@yrt.measured
def test_position_independent():
    yield from chains(go.build("chains", "-buildmode=pie", "-ldflags=-s -w", name="chains-pie"))


@yrt.measured
def test_replaced():
    """The program's file makes room for another one of Go while it runs, as an update does: what runs is shown."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "chains")
        shutil.copy(go.build("chains", "-ldflags=-s -w", name="chains-stripped"), path)
        shutil.copy(go.build("depth"), path + ".new")
        yield from chains(path, change=lambda path: os.rename(path + ".new", path))


def in_library(outermost, *command):
    """A library of Go in another program: one stack from that one's main to the goroutine that its call runs on."""
    with yrt.Fixture(*command, seconds=None, wait=False) as f:
        result = yrt.sample(f, seconds=3, rate=RATE)
    called = own = 0
    for frames, n in result.stacks:
        if "main.burnShared" not in frames:
            continue
        at = frames.index("main.burnShared")
        if "main.Start.func1" in frames:
            assert frames[:at] == ["runtime.goexit", "main.Start.func1"], frames
            own += n
            continue
        for earlier, later in ((outermost, "Work"), ("Work", "crosscall2"), ("crosscall2", "main.Work")):
            assert earlier in frames[:at] and later in frames[frames.index(earlier):at], frames
        assert frames[0] in ("_start", "clone3", "clone"), frames
        called += n
    assert called and own, f"{called} samples in a call, {own} in the library's own goroutine"
    assert result.incomplete() <= 0.001, f"{result.incomplete():.4%} cut: {result.stats['truncated']}"
    yield f"{result.summary()}; {called} called by {outermost}, {own} in a goroutine of the library's own"


@yrt.measured
def test_library():
    library = go.build("shared", "-buildmode=c-shared", name="libshared.so")
    yield from in_library(
        "python_outer (host.py:13)",
        sys.executable,
        os.path.join(yrt.SOURCE, "fixtures", "go", "shared", "host.py"),
        library,
    )
    host = library.replace("libshared.so", "shared-host")
    subprocess.run(
        ["gcc", "-O2", "-o", host, os.path.join(yrt.SOURCE, "fixtures", "go", "shared", "c", "host.c"), "-ldl"],
        check=True,
    )
    yield from in_library("c_outer", host, library)


def two_libraries():
    return [
        go.build("shared", "-buildmode=c-shared", name="libshared.so"),
        go.build("shared", "-buildmode=c-shared", "-ldflags=-s -w", name="libshared-other.so"),
    ]


@yrt.measured
def test_two_libraries():
    """Two runtimes of Go on one thread that call each other through Python: each has a g0 and callbacks of its own."""
    host = os.path.join(yrt.SOURCE, "fixtures", "go", "shared", "two.py")
    want = ["python_outer", "main.Call", "python_next", "main.Call", "python_middle", "main.Call", "python_inner",
            "main.Work"]
    with yrt.Fixture(sys.executable, host, *two_libraries(), seconds=None, wait=False) as f:
        result = yrt.sample(f, view="go-flame", seconds=3, rate=RATE)
    inner = 0
    for frames, n in result.stacks:
        if frames[0] == "_start":
            have = [name for frame in frames if (name := frame.split(" ")[0]) in want]
            assert have == want[:len(have)], frames
            inner += n * (have == want)
    assert result.incomplete() <= 0.001, f"{result.incomplete():.4%} cut: {result.stats['truncated']}"
    assert inner > 100, f"{inner} samples in the innermost call"
    yield f"{result.summary()}; {inner} in the innermost of four calls"


@yrt.both_tiers
def test_two_libraries_latency():
    """A call during which the stack is copied is paired in each of two libraries."""
    host = os.path.join(yrt.SOURCE, "fixtures", "go", "shared", "two.py")
    with yrt.Fixture(sys.executable, host, *(both := two_libraries()), "grow", seconds=None, wait=False) as f:
        listed = yrt.run("probe", "--list", "-p", f.pid, "go:main.gro*", output=False, stats=False).expect().stdout
        for library in both:
            assert f"{os.path.basename(library)}:main.grown\tfunction" in listed.splitlines(), listed
            run = yrt.run_busy("latency", [f.pid], "-e", f"{library}:main.grown", "--max-cpu", 0, seconds=1)
            stats = run.stats["latency"]
            told = {name: stats[name] for name in ("entered", "returned", "unpaired", "left")}
            # one thread: of its calls one is under way as the run ends
            assert told["returned"] > 100 and told["returned"] >= told["entered"] - 1 and not told["left"], told
            # While probes are attached calls return whose beginning was not seen: the longer, the more.
            assert not yrt.measuring() or told["unpaired"] < 0.01 * told["entered"], told
            yield f"{os.path.basename(library)}: {told}"


@yrt.measured
def test_race():
    """Go's own linker takes the race detector's C++ into the program, without unwind information."""
    if go.minor() < 21:
        yield "not tried: detectors of old releases do not know this kernel's address space"
        return
    with yrt.Fixture(go.build("moments", "-race", name="moments-race"), "alloc", seconds=None, wait=False) as f:
        result = yrt.sample(f, view="go-flame", seconds=3, rate=RATE)
    assert result.incomplete() <= 0.001, f"{result.incomplete():.4%} cut: {result.stats['truncated']}"
    detector = result.share(re.compile("^__tsan"))
    assert (
        detector > 0.1 and result.share("main.alloc") > 0.3
    ), f"{detector:.3f} in the detector, {result.share('main.alloc'):.3f} below main.alloc"
    assert not result.share(re.compile("^_Z")), "names are mangled"
    yield f"{result.summary()}; {detector:.3f} in the detector"


@yrt.measured
def test_assembly():
    """Assembly that aligns its stack, or makes room on it by arithmetic: pclntab's sizes do not lead to its caller."""
    if go.minor() < 17:
        yield "not tried: releases before 1.17 do not mark such functions"
        return
    for flags, name in (
        ((), "assembly"),
        (("-ldflags=-s -w",), "assembly-stripped"),
        (("-buildmode=pie", "-ldflags=-s -w"), "assembly-pie"),
    ):
        with yrt.Fixture(go.build("assembly", *flags, name=name), seconds=None, wait=False) as f:
            result = yrt.sample(f, view="go-flame", seconds=3, rate=RATE)
        assert not result.incomplete(), f"{result.stats['truncated']}\n{yrt.show(result.stacks, 9)}"
        for leaf in ("main.aligned", "main.reloaded", "main.lowered", "main.random", "main.spin"):
            stacks = [frames for frames, _ in result.stacks if leaf in frames]
            callers = ["main.called", "main.told"] if leaf == "main.spin" else []
            assert stacks, f"no sample of {leaf}"
            for frames in stacks:
                assert frames[:frames.index(leaf)] == ["runtime.main", *f.chain, *callers], frames
        yield f"{name}: {result.summary()}"


@yrt.measured
def test_libgo():
    """A goroutine of gccgo begins where libgo's first function does, over a return address of 0."""
    with yrt.Fixture("libgo") as fixture:
        result = yrt.sample(fixture, "-U", rate=RATE)
    wrong = yrt.wrong_chains(result, ["leaf", "mid", "runtime.kickoff"])
    assert not result.incomplete() and not wrong, f"{result.stats['truncated']}\n{yrt.show(wrong)}"
    assert "TinyGo" not in result.stderr, result.stderr
    yield result.summary()


@yrt.measured
def test_tinygo():
    """TinyGo's programs are refused by name, and shown as what they are: native code."""
    with yrt.Fixture("tinygo") as fixture:
        refused = yrt.run("go-goroutines", "-p", fixture.pid, output=False, stats=False).expect(yrt.UNSUPPORTED)
        result = yrt.sample(fixture, "-U", view="go-flame", rate=RATE)
    assert all("was made by TinyGo" in told for told in (refused.stderr, result.stderr)), (
        refused.stderr,
        result.stderr,
    )
    wrong = yrt.wrong_chains(result, fixture.chain)
    assert not result.incomplete() and not wrong, f"{result.stats['truncated']}\n{yrt.show(wrong)}"
    yield result.summary()


def test_inspect():
    """inspect shows what the program was built by, and where the offsets are from."""
    with yrt.Fixture(go.build("chains", "-ldflags=-s -w", name="chains-stripped"), seconds=None, wait=False) as f:
        done = yrt.Run("inspect", "-p", f.pid, output=False, stats=False).result().expect()
    told = subprocess.run([go.GO, "version"], capture_output=True, text=True, check=True, env=go.ENV).stdout
    release = told.split()[2]  # go version go1.26.8 linux/amd64
    for word in (release, "pclntab", "g.sched.sp", "code of runtime.systemstack"):
        assert word in done.stdout, f"no {word!r} in\n{done.stdout}"
    yield f"{release}, stripped"


yrt.main(globals())
