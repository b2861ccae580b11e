# SPDX-License-Identifier: Apache-2.0
"""
probe and latency of functions of a language: as many hits as the program counts calls itself, of functions of all
kinds; what is not there, or is not clear, is refused by name.
"""

import os
import re

import yrt
from counted import ROUNDS, Program, ends_of, latencies, probed, within_own_clock

CALLS = f"{yrt.SOURCE}/fixtures/python/counted_calls.py"
PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")


def python(rounds=ROUNDS, threads=1):
    return Program(PYTHON, CALLS, rounds, threads)


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


def versions(program):
    """(3, 11): of the Python that runs it."""
    path = os.readlink(f"/proc/{program.pid}/exe")
    return tuple(map(int, re.search(r"(3)\.(\d+)", path).groups()))


yrt.main(globals())
