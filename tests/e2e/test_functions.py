# SPDX-License-Identifier: Apache-2.0
"""
probe and latency of functions of a language: as many hits as the program counts calls itself, of functions of all
kinds; what is not there, or is not clear, is refused by name.
"""

import json
import os
import re
import signal
import subprocess

import java
import yrt

CALLS = f"{yrt.SOURCE}/fixtures/python/counted_calls.py"
ROUNDS = 5
PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")


class Program:
    """A fixture that counts its own calls, and does what it is told by lines."""

    def __init__(self, *command):
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = json.loads(self.process.stdout.readline())["pid"]

    def do(self, word):
        """Its counts of calls, when it has done that."""
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        yrt.stop(self.process, signal.SIGKILL)


def python(rounds=ROUNDS, threads=1):
    return Program(PYTHON, CALLS, rounds, threads)


def probed(program, *what, words=("go",), command="probe", flags=()):
    """(the result, the program's counts) of what it does while functions are probed, all of them."""
    args = [arg for name in what for arg in ("-e", name)]
    at = yrt.Run(command, *args, "-p", program.pid, "-d", 60, "--max-cpu", 0, *flags).sampling()
    counts = {}
    for word in words:
        counts = program.do(word)
    at.interrupt()
    return at.result(), counts


def leaves(result, function):
    """Hits whose innermost frame is this function."""
    names = function, function.rpartition(".")[2]  # up to Python 3.10 code objects have only the last part
    return sum(n for frames, n in result.stacks if frames[-1].partition(" (")[0] in names)


# What is asked for, the name that stacks show, and the program's own word for it.
KINDS = [
    ("__main__.recursive", "recursive", "recursive"),
    ("__main__.raises", "raises", "raises"),
    ("__main__.generator", "generator", "generator"),
    ("__main__.coroutine", "coroutine", "coroutine"),
    ("outer.closure", "outer.<locals>.closure", "closure"),
    ("__main__.decorated", "decorated", "decorated"),
    ("Shop.place", "Shop.place", "method"),
    ("Shop.make", "Shop.make", "class_method"),
    ("Shop.tax", "Shop.tax", "static_method"),
    ("Shop.total", "Shop.total", "property"),
    ("Shop.Inner.deep", "Shop.Inner.deep", "deep"),
    ("__main__.several", "several", "several"),
]


def test_python_kinds():
    """Each kind of function: every call counts once, with its stack."""
    with python() as program:
        for name, shown, word in KINDS:
            before = program.do("nothing")
            result, after = probed(program, f"python:{name}")
            result.expect()
            due = after[word] - before[word]
            assert leaves(result, shown) == result.samples == due, f"{name}: {due} calls\n{yrt.show(result.stacks)}"
            assert result.incomplete() == 0, result.stats
            yield f"{name}: {due} calls"


def test_python_recursion():
    """Each depth of a recursion is a stack of its own."""
    with python() as program:
        result, _ = probed(program, "python:__main__.recursive")
        depths = {}
        for frames, n in result.expect().stacks:
            depth = sum(f.startswith("recursive (") for f in frames)
            depths[depth] = depths.get(depth, 0) + n
        assert depths == {1: ROUNDS, 2: ROUNDS, 3: ROUNDS, 4: ROUNDS}, depths


def test_python_threads():
    """Threads that begin after yrt are watched from their first instruction on."""
    with python(3, 60) as program:
        result, counts = probed(program, "python:Shop.place")
        assert leaves(result.expect(), "Shop.place") == counts["method"] == 180, (counts, yrt.show(result.stacks))
        yield f"{counts['method']} calls of 60 threads"


def test_python_several():
    """Four functions at once, distinguished by the leaf; one that is never called."""
    with python() as program:
        what = [f"python:{name}" for name in ("Shop.place", "Shop.tax", "__main__.recursive", "__main__.never")]
        result, counts = probed(program, *what, flags=["-U"])
        seen = {}
        for frames, n in result.expect().stacks:
            seen[frames[-1]] = seen.get(frames[-1], 0) + n
        assert seen == {
            "[python:Shop.place]": counts["method"], "[python:Shop.tax]": counts["static_method"],
            "[python:__main__.recursive]": counts["recursive"]}, seen


def test_never_called():
    """A function that is there and was not called is not one that is missing."""
    with python() as program:
        result, _ = probed(program, "python:__main__.never")
        assert result.expect().samples == 0 and "no call was seen" in result.stderr, result.stderr


def test_list():
    """`yrt functions`: the names that -e takes, with their places; of a language, or of all."""
    with python() as program:
        flags = {"output": False, "stats": False}
        out = yrt.run("functions", "-p", program.pid, "python:__main__.Shop*", **flags).expect().stdout
        names = [line.split("\t")[0] for line in out.splitlines()]
        wanted = [f"python:__main__.Shop.{name}" for name in ("Inner.deep", "make", "place", "tax", "total")]
        assert names == wanted, out
        out = yrt.run("functions", "-p", program.pid, "*.generator", output=False, stats=False).expect().stdout
        line = next(line for line in out.splitlines() if line.startswith("python:__main__.generator\t"))
        assert re.search(r"calls\.py:\d+", line), out
        result = yrt.run("functions", "-p", program.pid, "*nowhere*", output=False, stats=False)
        yrt.clear(result, yrt.USAGE, "no function")


def test_python_names():
    """Names that do not lead to one function."""
    with python() as program:
        for name, *words in (
            ("python:__main__.recursiv", "no function", "near: .*__main__.recursive"),
            ("python:place", "2 functions", r"__main__\.Shop\.place, __main__\.Other\.place"),
            ("python:*", "functions match; at most 64"),
            ("python:nowhere.*.nothing", "no function"),
        ):
            result = yrt.run("probe", "-e", name, "-p", program.pid, "-d", 1)
            yrt.clear(result, yrt.USAGE, *words)
        program.do("go")


def latencies(result):
    return result.expect().stats["latency"]


def test_python_latency():
    """
    Calls and returns are as many as the program counts; those that an exception ended have no return. What a slow call
    waited for is said.
    """
    with python() as program:
        result, counts = probed(program, "python:__main__.recursive", command="latency")
        seen = latencies(result)
        assert seen["entered"] == seen["returned"] == counts["recursive"] and not seen["unpaired"], seen
        result, _ = probed(program, "python:__main__.raises", command="latency")
        seen = latencies(result)
        assert (seen["entered"], seen["returned"], seen["left"]) == (ROUNDS, 3, 2), seen
        result, _ = probed(program, "python:__main__.slow", words=["slow"], command="latency", flags=["--over", "20ms"])
        (call,) = latencies(result)["longest"]
        assert call["call"] == "__main__.slow(...)" and call["ns"] >= 30e6, call
        assert [wait["reason"] for wait in call["waits"]] and yrt.count(result.stacks, re.compile("slow_caller")), call


def within_own_clock(program, name):
    """Times lie between what the program's clock says inside and outside of the calls."""
    result, counts = probed(program, name, words=("time",), command="latency")
    seen = latencies(result)
    inner, outer = counts["inner_ns"], counts["outer_ns"]
    assert seen["entered"] == seen["returned"] == ROUNDS and inner <= seen["sum_ns"] <= outer, (inner, outer, seen)
    return f"{inner / 1e6:.3f} <= {seen['sum_ns'] / 1e6:.3f} <= {outer / 1e6:.3f} ms"


def test_python_latency_clock():
    with python() as program:
        yield within_own_clock(program, "python:__main__.timed")


def test_python_latency_refused():
    with python() as program:
        for name, *words in (
            ("python:__main__.generator", "makes a generator"),
            ("python:__main__.several", "returns at 4 places"),
        ):
            if versions(program) < (3, 11) and "makes" in words[0]:
                continue
            result = yrt.run("latency", "-e", name, "-p", program.pid, "-d", 1)
            yrt.clear(result, yrt.UNSUPPORTED, *words)


# A function as it is asked for, and the program's own word for it.
LUA = [
    ("recursive", "recursive"), ("tail", "tail"), ("raises", "raises"), ("varargs", "varargs"),
    ("Shop:place", "method"), ("Shop.tax", "tax"), ("Shop.__add", "metamethod"), ("generator", "generator"),
    ("callback", "callback"), ("loop", "loop"),
]


def lua(program, rounds, *flags):
    return Program(program, f"{yrt.SOURCE}/fixtures/lua/counted_calls.lua", rounds, *flags)


def lua_kinds(program, rounds, *flags):
    with lua(program, rounds, *flags) as program:
        program.do("warm")
        for name, word in LUA:
            before = program.do("go")
            result, after = probed(program, f"lua:counted_calls.lua:{name}")
            due = after[word] - before[word]
            assert result.expect().samples == due, f"{name}: {due} calls\n{yrt.show(result.stacks)}"
            assert all(f"counted_calls.lua:" in frames[-1] for frames, _ in result.stacks), yrt.show(result.stacks)
            yield f"{name}: {due} calls"


def test_luajit_interpreted():
    yield from lua_kinds("/usr/bin/luajit", ROUNDS, "joff")


# A function, and how its calls end: all return, n by an error or in a tail call, ...
ENDS = [
    ("recursive", {}), ("raises", {"left": 2, "open": 1}), ("tail", {"lost": 3 * ROUNDS}), ("Shop:place", {}),
    ("generator", {}), ("paused", {}), ("several", {}), ("closes", {}), ("callback", {}), ("loop", {}),
]


def ends_of(program, language, ends):
    for name, due in ends:
        before = program.do("go")
        result, after = probed(program, f"{language}{name}", command="latency")
        seen = latencies(result)
        word = {"Shop:place": "method"}.get(name, name.rpartition("::")[2].lower())
        entered = after[word] - before[word]
        left, lost = due.get("left", 0), due.get("lost", 0)
        wanted = entered, entered - left - lost - due.get("open", 0), left, lost, 0
        assert tuple(seen[k] for k in ("entered", "returned", "left", "lost", "unpaired")) == wanted, f"{name}: {seen}"
        yield f"{name}: {entered} calls, {wanted[1]} returns"


def test_luajit_latency():
    """Coroutines that take turns, errors, tail calls: each call is paired with its own end."""
    with lua("/usr/bin/luajit", ROUNDS, "joff") as program:
        yield from ends_of(program, "lua:counted_calls.lua:", ENDS)
        yield within_own_clock(program, "lua:counted_calls.lua:timed")
        result = yrt.run("latency", "-e", "lua:counted_calls.lua:varargs", "-p", program.pid, "-d", 1)
        yrt.clear(result, yrt.UNSUPPORTED, "tail calls only")


def test_luajit_latency_compiled():
    """A function that goes on in a trace, and comes back to the interpreter to return."""
    with lua("/usr/bin/luajit", ROUNDS) as program:
        yield within_own_clock(program, "lua:counted_calls.lua:timed")


def test_luajit_compiled():
    """
    With the JIT compiler calls from C (coroutines, table.sort()) are all seen, also once they go on in a trace; of
    others those that the interpreter makes, and none twice.
    """
    for name, word, whole in (("generator", "generator", True), ("callback", "callback", True),
                              ("recursive", "recursive", False), ("Shop:place", "method", False)):
        with lua("/usr/bin/luajit", 300) as program:
            result, counts = probed(program, f"lua:counted_calls.lua:{name}")
            seen = result.expect().samples
            assert 0 < seen <= counts[word] and (not whole or seen == counts[word]), f"{name}: {seen} of {counts[word]}"
            yield f"{name}: {seen} of {counts[word]} calls"


def test_luajit_names():
    """By the end of a path, by the line of the definition, by no name that is there."""
    with lua("/usr/bin/luajit", ROUNDS, "joff") as program:
        line = next(i for i, text in enumerate(open(f"{yrt.SOURCE}/fixtures/lua/counted_calls.lua"), 1)
                    if "function recursive" in text)
        result, counts = probed(program, f"lua:counted_calls.lua:{line}")
        assert result.expect().samples == counts["recursive"], result.stderr
        result = yrt.run("probe", "-e", "lua:counted_calls.lua:recursiv", "-p", program.pid, "-d", 1)
        yrt.clear(result, yrt.USAGE, "no function", "near: .*counted_calls.lua:recursive")


PERL = ["main::recursive", "main::raises", "main::loops", "main::tail", "main::redefined", "Shop::Order::new",
        "Shop::Order::place", "Shop::Order::DESTROY", "main::by_number"]


def test_perl_kinds():
    """Subs, methods, destructors, tail calls by goto, those that sort() and eval call."""
    with Program("/usr/bin/perl", f"{yrt.SOURCE}/fixtures/perl/counted_calls.pl", ROUNDS) as program:
        for name in PERL:
            word = name.rpartition("::")[2].lower()
            before = program.do("go")
            result, after = probed(program, f"perl:{name}")
            due = after[word] - before[word]
            shown = name.removeprefix("main::")
            assert result.expect().samples == due, f"{name}: {due} calls\n{yrt.show(result.stacks)}"
            assert all(any(shown in f for f in frames[-3:]) for frames, _ in result.stacks), yrt.show(result.stacks)
            yield f"{name}: {due} calls"
        result = yrt.run("probe", "-e", "perl:main::recursiv", "-p", program.pid, "-d", 1)
        yrt.clear(result, yrt.USAGE, "no function", "near: main::recursive")


def test_perl_latency():
    """Each way out of a sub ends its call: return, die, goto, the end of sort()'s block."""
    with Program("/usr/bin/perl", f"{yrt.SOURCE}/fixtures/perl/counted_calls.pl", ROUNDS) as program:
        yield from ends_of(program, "perl:", [(name, {}) for name in [*PERL, "main::several"]])
        yield within_own_clock(program, "perl:main::timed")


JAVA = [("place", {}), ("recursive", {}), ("raises", {"left": 100}), ("several", {})]


def java_latency(*options):
    with Program(*java.words(), *options, "-cp", java.class_path(), "counted") as program:
        program.do("go")
        before = program.do("time")
        yield from ends_of(program, "java:counted.", JAVA)
        result, after = probed(program, "java:counted.timed", words=("time",), command="latency")
        inner, outer = (after[word] - before[word] for word in ("inner_ns", "outer_ns"))
        seen = latencies(result)
        assert seen["entered"] == seen["returned"] == 5 and inner <= seen["sum_ns"] <= outer, (inner, outer, seen)
        yield f"{inner / 1e6:.3f} <= {seen['sum_ns'] / 1e6:.3f} <= {outer / 1e6:.3f} ms"


def test_java_latency_interpreted():
    """As many returns as calls; exceptions leave them."""
    yield from java_latency("-Xint")


def test_java_latency_compiled():
    """The same of compiled code."""
    yield from java_latency("-Xcomp", "-XX:TieredStopAtLevel=1", "-XX:CompileCommand=quiet",
                            "-XX:CompileCommand=compileonly,counted*::*", "-XX:CompileCommand=dontinline,counted*::*")


def versions(program):
    """(3, 11): of the Python that runs it."""
    path = os.readlink(f"/proc/{program.pid}/exe")
    return tuple(map(int, re.search(r"(3)\.(\d+)", path).groups()))


yrt.main(globals())
