# SPDX-License-Identifier: Apache-2.0
"""The oracle on a few programs of each language, and on profiles that are wrong on purpose: it has to find that."""

import contextlib
import dataclasses
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

import go  # noqa: E402
import peers  # noqa: E402
import pprof  # noqa: E402
import shares  # noqa: E402
import stability  # noqa: E402
import together  # noqa: E402
import views  # noqa: E402
import yrt  # noqa: E402
import java_edges  # noqa: E402
from edges import Checker  # noqa: E402
from lua_edges import Lua, Prototype  # noqa: E402
from machine import Process  # noqa: E402
from oracle import report, sample, show_stack  # noqa: E402
from perl_edges import Perl, parse  # noqa: E402


class Arguments:
    def __init__(self, pid, seconds=3, rate=499):
        self.pid, self.yrt, self.seconds, self.rate = pid, yrt.YRT, seconds, rate


@contextlib.contextmanager
def running(*command, warm=1.0, env=None):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env={**os.environ, **(env or {})})
    try:
        time.sleep(warm)
        yield process.pid
    finally:
        yrt.stop(process)


def profile_of(pid, **options):
    with tempfile.TemporaryDirectory(prefix="oracle-") as directory:
        path = os.path.join(directory, "x.pb.gz")
        sample(Arguments(pid, **options), path)
        return pprof.read(path)


def clean(pid, edges, most=0, **options):
    """No fault in at least so many edges, of all samples; of those that most allows the first are reported."""
    return proven(profile_of(pid, **options), Process(pid), edges, most)


def proven(profile, process, edges, most=0):
    findings = Checker(process).run(profile)
    text = "\n".join(report(findings))
    assert sum(findings.faults.values()) <= most, text
    assert findings.checked() >= edges, text
    assert findings.checked(("ok", "signal")) >= 0.3 * findings.checked(), text
    return text.splitlines()[:1] + [f"known: {why}" for why in findings.faults]


def source(directory, name):
    return os.path.join(yrt.SOURCE, "fixtures", directory, name)


PYTHON = (
    "def inner(n):\n    return sum(i * i for i in range(n))\n\n\ndef outer():\n    while True:\n       "
    " inner(1000)\n\n\nouter()\n"
)


def test_native():
    with running("openssl", "speed", "-seconds", "60", "rsa2048") as pid:
        return clean(pid, 1000)


def test_python():
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(PYTHON)
        file.flush()
        with running(sys.executable, file.name) as pid:
            return clean(pid, 1000)


def program(name):
    return os.path.join(HERE, "programs", name)


def test_lua():
    """
    A trace that ends before a call of a C function and calls the VM right before: the C function is not what calls.
    """
    with running("luajit", program("lua_template.lua")) as pid:
        return clean(pid, 1000)


def test_puc():
    """
    C functions that call each other without Lua between them stand each around its own code; errors, metamethods,
    coroutines.
    """
    for version in ("5.1", "5.3", "5.4"):
        with running(f"lua{version}", program("lua_calls.lua")) as pid:
            yield from clean(pid, 1000, most=1)  # of 1,500 samples: docs/limits.md


def test_perl():
    """A parser and writer in Perl, which says by its own ops what each line can call."""
    with tempfile.TemporaryDirectory(prefix="oracle-") as directory:
        env = {
            "PERL5OPT": f"-I{os.path.join(HERE, 'programs')} -Mperl_calls",
            "YRT_PERL_CALLS": os.path.join(directory, "calls"),
        }
        with running("perl", program("perl_json.pl"), env=env) as pid:
            return clean(pid, 1000)


def test_perl_places():
    """
    Two files of the same name, and a statement of a sub that no walk over packages finds: it is looked up in its own
    file.
    """
    perl_code = Perl(None)
    perl_code.subs, perl_code.places = parse(
        ["S\tHTTP::Response::new\t/lib/HTTP/Response.pm\t110\n", "L\t/lib/HTTP/Response.pm\t121\n"]
    )
    frame = pprof.Frame(
        "Dancer2::Core::Response::__ANON__ (Response.pm:110)", "/lib/Dancer2/Core/Response.pm", 121, 0, "[perl]"
    )
    assert perl_code.words(frame) is None, perl_code.words(frame)
    frame = pprof.Frame("HTTP::Response::__ANON__ (Response.pm:120)", "/lib/HTTP/Response.pm", 121, 0, "[perl]")
    assert perl_code.words(frame) == set(), perl_code.words(frame)


def test_java():
    """Streams, which a lambda calls that is on each stack of the main thread."""
    with tempfile.TemporaryDirectory(prefix="oracle-") as directory:
        subprocess.run(["javac", "-nowarn", "-g", "-d", directory, program("Work.java")], check=True)
        with running("java", "-Xmx300m", "-cp", directory, "Work", "streams", warm=3) as pid:
            profile, process = profile_of(pid), Process(pid)
            yield from proven(profile, process, 1000)
            lines, wrong = views.check(yrt.YRT, pid, 1, 499)
            assert not wrong, lines
            foreign_lambda(profile, process)
            findings = Checker(process).run(profile)
            assert any("a lambda of Work calls" in why for _, why in findings.faults), "\n".join(report(findings))


def test_go():
    """Changes of stacks, signals, C both ways; what is inlined is what DWARF says, which yrt does not read for Go."""
    path = go.build("chains")
    with running(path) as pid:
        yield from clean(pid, 1000)
        findings = Checker(Process(pid)).run(profile_of(pid))
        assert findings.samples["inlined", "ok"] >= 20, report(findings)
    with running(go.build("chains", "-ldflags=-s -w", name="chains-stripped")) as pid:
        yield from clean(pid, 1000)


def test_names_and_shares():
    """Equal counts do not differ, others do; a name that one run lacks is reported."""
    equal = {"a": 500, "b": 480, "c": 20}
    assert shares.differences(Counter(equal), Counter(a=495, b=484, c=21)) == (3, [])
    number, wrong = shares.differences(Counter(equal), Counter(a=380, b=600, c=20))
    assert number == 3 and len(wrong) == 2, wrong

    assert peers.compare(Counter(equal), 1000, Counter(a=245, b=251, c=14), 500) == (3, [])
    number, wrong = peers.compare(Counter(equal), 1000, Counter(a=150, b=345, c=14), 500)
    assert number == 3 and len(wrong) == 2, wrong
    hidden = "W$$Lambda$4.0x00007f3d84006a28.run"
    assert peers.java_theirs(["java/lang/Thread.run", "W.main", hidden, "clone3", "memcpy.cold"]) == {
        "java.lang.Thread.run",
        "W.main",
        "W$$run",
    }
    assert peers.python_theirs(["<module> (a.py:3)", "C.f (dir/b.py:17)"]) == {("f", "b.py")}

    class Run:
        def __init__(self, *names):
            self.stacks = [pprof.Stack((pprof.Frame(n, "", 0, 0, "[luajit]"),), 100) for n in names]
    assert not stability.differences(Run("f", "g"), Run("g", "f"))
    assert not stability.differences(Run("f (a/b.py:3)"), Run("f (b.py:3)"))
    assert len(stability.differences(Run("f", "getline"), Run("f", "foldclosed"))) == 2


JAVA = """Compiled from "C.java"
class C {
  void f();
    Code:
       0: invokestatic  #1  // Method g:()V
       3: return
    LineNumberTable:
      line 3: 0
      line 4: 3
}
"""


def test_approximate_edges():
    """Though a place is approximate, a method has to call the other one somewhere."""
    java = java_edges.Java(None)
    java.take(JAVA)
    f, g, h = (pprof.Frame(f"C.{n}", "C.java", line, 0, "[hotspot]", frozenset({"approx"}))
               for n, line in (("f", 4), ("g", 0), ("h", 0)))
    assert java.edge(f, g, False)[0] == "fault"
    assert java.approximate(f, g, False)[0] == "approximate"
    assert java.approximate(f, h, False)[0] == "fault"


def test_names_at_calls():
    """A function in C with the name that another line calls it by, where sources are missing, too."""
    lua, prototype = Lua(None), Prototype(1, 9)
    prototype.calls = {2: {("method", "getline")}, 3: {("method", "range")}}
    lua.learn({"/a.lua": ([prototype], set())})
    lua.sources_miss = True
    outer = pprof.Frame("f (a.lua:1)", "/a.lua", 2, 0, "[luajit]")
    for name, verdict in (("getline", "ok"), ("range", "fault"), ("call", "dynamic"), ("tostring", "dynamic")):
        found = lua.edge(outer, pprof.Frame(name, "", 0, 0, "[luajit]"), False)
        assert found[0] == verdict, (name, found)


def stacks(*found):
    """A profile of (samples, frames)."""
    class Found:
        stacks = [pprof.Stack(tuple(frames), n) for n, frames in found]
    return Found()


def test_files():
    """Two files of one name need more of their paths; a chunk that is no file is shown as it is."""
    def named(*pairs):
        return [what for _, what, _, _ in together.files(stacks(
            *((9, [pprof.Frame(name, file, 1, 0, "[python]")]) for name, file in pairs)))]
    assert named(("f (a/base.py:1)", "/x/a/base.py"), ("g (b/base.py:1)", "/x/b/base.py")) == []
    assert len(named(("f (base.py:1)", "/x/a/base.py"), ("g (base.py:1)", "/x/b/base.py"))) == 1
    assert len(named(("f (as.py:1)", "/x/bas.py"))) == 1
    text = '[string "a/b.c (d)..."]'
    assert named((f"main chunk ({text})", text), ("f (@x:3)", "=@x"), (f"g ({text}:5)", text)) == []
    assert len(named(('main chunk (b.c (d)..."])', text))) == 1


def test_views():
    """What a view of Java has around its first method, and marks that folded stacks lack."""
    method, collector = pprof.Frame("C.f", "C.java", 1, 0, "[hotspot]"), pprof.Frame("(gc)", "", 0, 0, "[hotspot]")
    start = pprof.Frame("invokeStaticMainWithArgs", "", 0, 1, "/lib/libjvm.so")
    assert not list(views.outside_methods(stacks((3, [method, start]), (2, [start]), (1, [start, collector, start]))))
    assert len(list(views.outside_methods(stacks((3, [method]), (2, [start, method]))))) == 1
    approximate = dataclasses.replace(method, marks=frozenset({"approx", "jit"}))
    profile = stacks((3, [method, approximate]), (2, [method]))
    assert not list(views.dropped_marks(profile, "C.f;~ C.f_[j] 3\nC.f 2\n"))
    assert len(list(views.dropped_marks(profile, "C.f;C.f_[j] 3\nC.f 2\n"))) == 1


def test_pool():
    """
    Threads that each work a little have the samples that the scheduler's CPU time demands; half of them is found. Not
    the first one, which only wakes them: it runs for microseconds at a time (docs/limits.md, virtual machines).
    """
    with yrt.Fixture("pool", "thread", 64, 1000, 60, seconds=20) as fixture, tempfile.TemporaryDirectory() as directory:
        fixture.release()
        path, watch, stolen = os.path.join(directory, "x.pb.gz"), shares.Watch(fixture.pid), yrt.cpu_times()[1]
        sample(Arguments(fixture.pid, seconds=4, rate=999), path)
        watch.end()
        stolen = (yrt.cpu_times()[1] - stolen) / 4 / os.cpu_count()
        profile = pprof.read(path)
        number, wrong = shares.thread_differences(profile, watch, 999)
        wrong = [what for what in wrong if not what.startswith(f"thread {fixture.pid}:")]
        if wrong and stolen > yrt.DISTURBED:  # samples count that time, the scheduler does not
            raise yrt.Skipped(f"the host took {stolen:.1%} of the CPUs")
        assert number > 60 and not wrong, wrong
        for stack in profile.stacks[::2]:
            stack.count = 0
        wrong = shares.thread_differences(profile, watch, 999)[1]
        assert any(what.startswith("all threads") for what in wrong), wrong


def left_out(profile, process):
    """The root is shown as the caller of the leaf."""
    for stack in profile.stacks:
        leaf = next((f for f in reversed(stack.frames) if f.native), None)
        stack.frames = (stack.frames[0], leaf) if leaf else stack.frames


def wrong_return(profile, process):
    """The address of a caller is moved by a byte: no call ends there."""
    for stack in profile.stacks:
        stack.frames = tuple(
            f if i == len(stack.frames) - 1 or not f.native else moved(f) for i, f in enumerate(stack.frames)
        )


def moved(frame):
    return pprof.Frame(frame.name, frame.file, frame.line, frame.address - 1, frame.mapping, frame.marks)


def wrong_root(profile, process):
    """The outer half of each stack is missing."""
    for stack in profile.stacks:
        stack.frames = stack.frames[len(stack.frames) // 2:]


def wrong_line(profile, process):
    """A language's frames are at a line that their function does not have."""
    for stack in profile.stacks:
        stack.frames = tuple(
            pprof.Frame(f.name, f.file, 9999, f.address, f.mapping, f.marks) if f.script else f for f in stack.frames
        )


def foreign_lambda(profile, process):
    """The bodies of a class's lambdas become those of another class."""
    for stack in profile.stacks:
        stack.frames = tuple(
            dataclasses.replace(f, name=f.name.replace("Work.lambda$", "Play.lambda$")) for f in stack.frames
        )


def collector_outside(profile, process):
    """The collector is shown outside of the functions in C that led to it."""
    for stack in profile.stacks:
        at = next((i for i, f in enumerate(stack.frames) if f.plain == "(gc)"), 0)
        script = max((i for i, f in enumerate(stack.frames[:at]) if f.script), default=0)
        if at and script:
            frames = list(stack.frames)
            frames.insert(script + 1, frames.pop(at))
            stack.frames = tuple(frames)


def cut_off(profile, process):
    """Of a tenth of the samples only the innermost frame is known."""
    for stack in profile.stacks[::10]:
        stack.frames = (pprof.Frame("[truncated: no_cfi]", "", 0, 0, ""), stack.frames[-1])


def test_finds_faults_of_lua():
    """What all stacks together show."""
    always = "collectgarbage('setpause', 100)"  # the collector begins again at once
    with running("luajit", "-e", always, source("lua", "collecting.lua")) as pid:
        profile, process = profile_of(pid, rate=1999), Process(pid)
        yield from proven(profile, process, 1000)
        for damage, words in ((collector_outside, "which .* samples have without"), (cut_off, "have no callers")):
            profile = profile_of(pid, rate=1999)
            damage(profile, process)
            findings = Checker(process).run(profile)
            found = sum(n for (_, why), n in findings.faults.items() if re.search(words, why))
            assert found, f"{damage.__name__}: " + "\n".join(report(findings))
            yield f"{damage.__name__}: {found} of {findings.stacks} samples"


def test_finds_faults():
    """Each kind of damage that is done to a good profile is found."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(PYTHON)
        file.flush()
        with running(sys.executable, file.name) as pid:
            for damage, words in ((left_out, "does not lead to"), (wrong_return, "no call|before the return"),
                                  (wrong_root, "begins in"), (wrong_line, "has no line")):
                profile, process = profile_of(pid, seconds=1), Process(pid)
                damage(profile, process)
                findings = Checker(process).run(profile)
                found = sum(n for (_, why), n in findings.faults.items() if re.search(words, why))
                assert found > 0.1 * findings.stacks, (
                    f"{damage.__name__}: " + "\n".join(report(findings)) + show_stack(profile.stacks[0])
                )
                yield f"{damage.__name__}: {found} of {findings.stacks} samples"


if __name__ == "__main__":
    yrt.main(globals())
