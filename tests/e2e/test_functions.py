# SPDX-License-Identifier: Apache-2.0
"""
probe and latency of functions of Python: as many hits as the program counts calls itself, of functions of all kinds;
what is not there, or is not clear, is refused by name.
"""

import os
import re
import subprocess
import sys

import yrt
from counted import ROUNDS, Program, kinds_of, latencies, probed, within_own_clock

CALLS = f"{yrt.SOURCE}/fixtures/python/counted_calls.py"
PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")


def python(rounds=ROUNDS, threads=1):
    return Program(PYTHON, CALLS, rounds, threads)


def names_of(function):
    return function, function.rpartition(".")[2]  # up to Python 3.10 code objects have only the last part


# Takes the four debug registers of a process, until it is killed.
HOLDER = """
import ctypes, struct, sys, time
libc, word, fds = ctypes.CDLL(None, use_errno=True), ctypes.c_uint64(), []
for _ in range(4):
    attr = bytearray(128)
    struct.pack_into("<IIQQ", attr, 0, 5, len(attr), 0, 1)  # PERF_TYPE_BREAKPOINT
    struct.pack_into("<IQQ", attr, 52, 2, ctypes.addressof(word), 8)  # HW_BREAKPOINT_W
    fds.append(libc.syscall(298, (ctypes.c_char * len(attr)).from_buffer(attr), int(sys.argv[1]), -1, -1, 0))
assert all(fd >= 0 for fd in fds), ctypes.get_errno()
print("held", flush=True)
time.sleep(1000)
"""

# What is asked for, the name that stacks show, and the program's own word for it.
KINDS = [
    ("__main__.recursive", "recursive", "recursive"),
    ("__main__.raises", "raises", "raises"),
    ("__main__.generator", "generator", "generator"),
    ("__main__.coroutine", "coroutine", "coroutine"),
    ("outer.closure", "outer.<locals>.closure", "closure"),
    ("__main__.decorated", "decorated", "decorated"),
    ("__main__.cached", "cached", "cached"),
    ("Shop.place", "Shop.place", "method"),
    ("Shop.make", "Shop.make", "class_method"),
    ("Shop.tax", "Shop.tax", "static_method"),
    ("Shop.total", "Shop.total", "property"),
    ("Shop.Inner.deep", "Shop.Inner.deep", "deep"),
    ("__main__.several", "several", "several"),
]


def test_python_kinds():
    """
    Each kind of function: every call counts once, with its stack. Innermost may be what the compiler has inlined in the
    interpreter before it fetches the first instruction (_PyFrame_GetStackPointer in builds of 3.12).
    """
    with python() as program:
        program.do("nothing")
        yield from kinds_of(
            program, "python:", KINDS, lambda frame, shown: frame.partition(" (")[0] in names_of(shown), innermost=2)


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
        seen = sum(n for frames, n in result.expect().stacks
                   if any(f.partition(" (")[0] in names_of("Shop.place") for f in frames[-2:]))
        assert seen == counts["method"] == 180, (counts, yrt.show(result.stacks))
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


def test_python_arguments():
    """Each value of each kind of argument, with the calls that had it; in stacks and in the list."""
    with python() as program:
        name = "python:__main__.takes"
        result, counts = probed(program, name, words=["values"], flags=["--arguments"])
        due = {f"__main__.{word}": n for word, n in counts.items() if word.startswith("takes(")}
        wide = next(text for text in due if "xxx" in text)  # how much of a text is read depends on its head
        calls = {call["call"]: call["hits"] for call in result.expect().stats["probe"]["calls"]}
        shown = next((text for text in calls if "xxx" in text), "")
        assert re.search(r"'x{70,90}'\.\.\.", shown), calls
        due[shown] = due.pop(wide)
        assert calls == due, {k: (due.get(k), calls.get(k)) for k in due.keys() | calls.keys()}
        leaves = {}
        for frames, n in result.stacks:
            leaves[frames[-1]] = leaves.get(frames[-1], 0) + n
            assert any(frame.startswith("takes (") for frame in frames[-3:-1]), frames
        assert leaves == due, leaves
        assert "__main__.takes(value = 'many'" in result.stderr, result.stderr
        yield f"{len(calls)} kinds of values"
        result, _ = probed(program, "python:__main__.encloses", words=["values"], flags=["--arguments"])
        (call,) = result.expect().stats["probe"]["calls"]
        first = "7" if versions(program) >= (3, 11) else "?"  # older Pythons put it into a cell before
        assert call == {"call": f"__main__.encloses(n = {first}, word = 'word')", "hits": 3}, call
        result = yrt.run("probe", "-e", "libc:malloc", "--arguments", "-p", program.pid, "-d", 1)
        yrt.clear(result, yrt.USAGE, "--arguments", "yrt y")


def test_never_called():
    """A function that is there and was not called is not one that is missing."""
    with python() as program:
        result, _ = probed(program, "python:__main__.never")
        assert result.expect().samples == 0 and "no call was seen" in result.stderr, result.stderr


def test_registers_in_use():
    """Who may have the debug registers is said by name."""
    with python() as program:
        holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(program.pid)], stdout=subprocess.PIPE, text=True)
        try:
            assert holder.stdout.readline() == "held\n"
            result = yrt.run("probe", "-e", "python:__main__.recursive", "-p", program.pid, "-d", 1)
            yrt.clear(result, yrt.UNSUPPORTED, "all debug registers of process .* are in use",
                      rf"who may have them: .*python3[^,]* \({holder.pid}\)")
        finally:
            yrt.stop(holder)


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
            ("python:recursiv", "no function", "near: .*__main__.recursive"),
            ("recursive", "no function", "a function of python has it: -e python:__main__.recursive"),
            ("__main__.recursive", "no function", "a function of python has it: -e python:__main__.recursive"),
            ("python:place", "2 functions", r"__main__\.Shop\.place, __main__\.Other\.place"),
            ("python:*", "functions match; at most 64"),
            ("python:nowhere.*.nothing", "no function", r"whole names: python:\*nowhere\.\*\.nothing"),
            ("python:time.sleep", "no function", "written in C is FILE:FUNCTION"),
            ("lua:app.lua:handle", "no function", "no target runs lua"),
        ):
            result = yrt.run("probe", "-e", name, "-p", program.pid, "-d", 1)
            yrt.clear(result, yrt.USAGE, *words)
        result = yrt.run("latency", "-e", "perl:recursive", "-p", program.pid, "-d", 1)
        yrt.clear(result, yrt.USAGE, "no function", "no target runs perl")
        program.do("go")


def test_python_latency_short_name():
    """The last part of a name is enough, as for probe."""
    with python() as program:
        before = program.do("nothing")
        result, after = probed(program, "python:recursive", command="latency")
        seen, due = latencies(result), after["recursive"] - before.get("recursive", 0)
        assert seen["entered"] == seen["returned"] == due > 0, (seen, due)
        yield f"{due} calls"


def test_python_latency():
    """
    Calls and returns are as many as the program counts; those that an exception ended have no return. What a slow call
    waited for is said.
    """
    with python() as program:
        newer = (3, 11) <= versions(program) < (3, 14)
        result, counts = probed(program, "python:__main__.recursive", command="latency")
        seen = latencies(result)
        assert seen["entered"] == seen["returned"] == counts["recursive"] and not seen["unpaired"], seen
        result, _ = probed(program, "python:__main__.raises", command="latency")
        seen = latencies(result)
        ends = seen["returned"], seen["raised"], seen["left"]
        assert seen["entered"] == ROUNDS and ends == ((ROUNDS, 2, 0) if newer else (3, 0, 2)), seen
        result, _ = probed(program, "python:__main__.slow", words=["slow"], command="latency", flags=["--over", "20ms"])
        (call,) = latencies(result)["longest"]
        assert call["call"] == "__main__.slow(seconds = 0.03)" and call["ns"] >= 30e6 and not call["raised"], call
        assert [wait["reason"] for wait in call["waits"]] and yrt.count(result.stacks, re.compile("slow_caller")), call


def test_python_latency_arguments():
    """Slow calls have their own arguments, also those that an exception ended, with waits of within the call."""
    with python() as program:
        if not (3, 11) <= versions(program) < (3, 14):
            return
        result, _ = probed(
            program, "python:__main__.fails", words=["failures"], command="latency", flags=["--over", "1ms"])
        calls = latencies(result)["longest"]
        assert sorted(call["call"] for call in calls) == [f"__main__.fails(n = {n})" for n in range(ROUNDS)], calls
        assert all(sum(wait["ns"] for wait in call["waits"]) <= call["ns"] and call["raised"] for call in calls), calls
        assert result.stderr.count(": left by an exception\n") == ROUNDS, result.stderr
        yield calls[0]["call"]


def test_python_latency_several():
    """Of several functions at once each has its own times, slow calls and waits, also one that calls the other."""
    with python() as program:
        names = ["python:__main__.slow_caller", "python:__main__.slow", "libc:getppid"]
        result, _ = probed(program, *names, words=["slow"], command="latency", flags=["--over", "20ms"])
        functions = latencies(result)["functions"]
        assert [f["function"] for f in functions] == names, functions
        caller, called, _ = functions
        assert [f["returned"] for f in functions] == [1, 1, 0] and caller["sum_ns"] > called["sum_ns"] > 30e6, functions
        for f in (caller, called):
            (call,) = f["longest"]
            assert sum(b["calls"] for b in f["histogram"]) == 1 and call["ns"] == f["sum_ns"], f
            assert 0 < sum(wait["ns"] for wait in call["waits"]) <= call["ns"], call
        said = result.stderr
        assert f"{names[0]}: 1 calls in" in said and "2 calls of 3 functions in" in said, said
        result = yrt.run("latency", "-e", names[0], "-e", "python:*.slow_caller", "-p", program.pid, "-d", 1)
        yrt.clear(result, yrt.USAGE, "slow_caller is a function of -e python:__main__.slow_caller, too")


def test_python_latency_running():
    """What a slow call ran has the time that it did not wait."""
    with python() as program:
        flags = ["--over", "20ms"]
        result, _ = probed(program, "python:__main__.computes", words=["compute"], command="latency", flags=flags)
        (call,) = latencies(result)["longest"]
        ran = [s["ns"] for s in call["stacks"] if s["frames"].startswith("[running]") and "computes (" in s["frames"]]
        assert ran and sum(ran) <= call["ran_ns"] and call["ran_ns"] >= 0.4e9, call
        assert sum(n for _, n in result.stacks) == call["ns"], (call, yrt.show(result.stacks))
        yield f"{len(ran)} stacks of {sum(ran) / 1e6:.0f} ms"


def test_python_latency_references():
    """Functions with more returns than registers, or none: exceptions end calls where they leave them."""
    with python() as program:
        if not (3, 11) <= versions(program) < (3, 14):
            return
        for name, word, raised in (("several", "go", 0), ("handles", "failures", 0), ("fails", "failures", ROUNDS)):
            before = program.do("nothing")
            result, counts = probed(program, f"python:__main__.{name}", words=[word], command="latency")
            seen = latencies(result)
            due = counts[name] - before.get(name, 0)
            ends = tuple(seen[k] for k in ("entered", "returned", "raised", "left", "unpaired"))
            assert ends == (due, due, raised, 0, 0), f"{name}: {seen}"
            yield f"{name}: {due} calls, {raised} of them left by an exception"
        inner, outer = (counts[k] - before[k] for k in ("inner_ns", "outer_ns"))
        assert inner <= seen["sum_ns"] <= outer, (inner, outer, seen)


def test_python_latency_suspended():
    """Coroutines and generators: each from its first step to its return, a hundred under way at once."""
    with python() as program:
        if versions(program) >= (3, 15):
            return
        for name, raised in (("waits", 0), ("yields", 0), ("breaks", 50)):
            before = program.do("nothing")
            result, counts = probed(program, f"python:__main__.{name}", words=["await"], command="latency")
            seen = latencies(result)
            ends = seen["entered"], seen["returned"] - seen["raised"], seen["unpaired"]
            by_exception = seen["raised"] + seen["left"]  # known once another call takes the frame
            assert ends == (100, 100 - raised, 0) and by_exception <= raised, f"{name}: {seen}"
            inner, outer = (counts[k] - before.get(k, 0) for k in ("inner_ns", "outer_ns"))
            assert name != "waits" or inner <= seen["sum_ns"] <= outer, (inner, outer, seen)
            yield f"{name}: {by_exception} of {raised} were seen to end by an exception"


def test_python_latency_awaits():
    """A slow coroutine shows the lines where it was suspended, of all that it awaited in turn."""
    with open(CALLS) as file:
        lines = [n for n, line in enumerate(file, 1) if line.rstrip().endswith(("# it waits here", "# and here"))]
    with python() as program:
        if versions(program) >= (3, 15):
            return
        result, _ = probed(
            program, "python:__main__.suspended", words=["suspend"], command="latency", flags=["--over", "20ms"])
        (call,) = latencies(result)["longest"]
        places = [place["frames"].split("; ") for place in call["suspended"]]
        waits = [frames for frames in places if frames[1].startswith("asks (")]
        assert call["call"] == "__main__.suspended(n = 3)" and len(waits) == 1, call
        assert len(waits[0]) == 3 and waits[0][0].startswith("sleep ("), call
        assert [int(frame.rpartition(":")[2]) for frame in waits[0][1:]] == lines, call
        assert sum(place["ns"] for place in call["suspended"]) <= call["ns"], call
        assert re.search("suspended .*sleep .* < asks .* < suspended ", result.stderr), result.stderr
        yield " < ".join(waits[0])


def test_python_requests():
    """Calls of a function are requests, told apart by what an argument has under a key; else by the function."""
    with python() as program:
        flags = ["--begin", "python:__main__.application", "--key", "environ[REQUEST_METHOD],0[PATH_INFO]"]
        result, counts = probed(program, words=["serve"], command="requests", flags=flags)
        stats = result.expect().stats["requests"]
        due = {"GET /orders/:id": ROUNDS, "POST /orders": counts["POST /orders?now"], "GET -": 1}
        routes = {r["route"]: r["requests"] for r in stats["routes"]}
        assert routes == due, (due, stats)
        assert (stats["begun"], stats["ended"]) == (2 * ROUNDS + 2, 2 * ROUNDS + 1), stats  # one raises an exception
        assert all(sum(s["time_ns"].values()) == s["ns"] for s in stats["slowest"]), stats["slowest"]
        assert "POST /orders?now" in [s["request"] for s in stats["slowest"]], stats["slowest"]
        flags = ["--begin", "python:__main__.recursive"]
        result, counts = probed(program, words=["go"], command="requests", flags=flags)
        routes = {r["route"]: r["requests"] for r in result.expect().stats["requests"]["routes"]}
        assert routes == {"__main__.recursive": counts["recursive"]}, routes
        yield str(routes)
        for key in ("nothing", "environ[REQUEST_METHOD_THAT_IS_LONGER_THAN_IT]", "7"):
            flags = ["--begin", "python:__main__.application", "--key", key]
            result = yrt.run("requests", *flags, "-p", program.pid, "-d", 1)
            yrt.clear(result, yrt.USAGE, re.escape(f"--key {key}:"), "environ,start_response")


def test_python_latency_clock():
    with python() as program:
        yield within_own_clock(program, "python:__main__.timed")


def test_python_latency_refused():
    with python() as program:
        for name, *words in (
            ("python:__main__.generator", "makes a generator"),
            ("python:__main__.coroutine", "makes a coroutine"),
        ) if versions(program) >= (3, 15) else (
            ("python:__main__.four_ways" if (3, 11) <= versions(program) < (3, 14) else "python:__main__.several",
             r"returns at \d places"),
        ):
            result = yrt.run("latency", "-e", name, "-p", program.pid, "-d", 1)
            yrt.clear(result, yrt.UNSUPPORTED, *words)


def versions(program):
    """(3, 11): of the Python that runs it."""
    path = os.readlink(f"/proc/{program.pid}/exe")
    return tuple(map(int, re.search(r"(3)\.(\d+)", path).groups()))


yrt.main(globals())
