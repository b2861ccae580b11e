# SPDX-License-Identifier: Apache-2.0
"""
probe and latency of functions of LuaJIT and PUC-Lua: as many hits as the program counts calls itself.
"""

import os
import re
import subprocess
import tempfile

import yrt
from counted import ROUNDS, Program, ends_of, kinds_of, latencies, probed, within_own_clock

# A function as it is asked for, a word of its frame, and the program's own word for it.
PLACE = "(counted_calls.lua:"
LUA = [
    ("recursive", PLACE, "recursive"), ("tail", PLACE, "tail"), ("raises", PLACE, "raises"),
    ("varargs", PLACE, "varargs"), ("Shop:place", PLACE, "method"), ("Shop.tax", PLACE, "tax"),
    ("Shop.__add", PLACE, "metamethod"), ("generator", PLACE, "generator"), ("callback", PLACE, "callback"),
    ("loop", PLACE, "loop"), ("paused", PLACE, "paused"), ("several", PLACE, "several"),
]
PUC = [os.environ["YRT_PUC_LUA"]] if os.environ.get("YRT_PUC_LUA") else [f"/usr/bin/lua5.{i}" for i in (1, 2, 3, 4)]


SCRIPT = f"{yrt.SOURCE}/fixtures/lua/counted_calls.lua"


def lua(program, rounds, *flags):
    return Program(program, SCRIPT, rounds, *flags)


def lua_kinds(program, rounds, *flags):
    with lua(program, rounds, *flags) as program:
        program.do("warm")
        yield from kinds_of(program, "lua:counted_calls.lua:", LUA, lambda frame, shown: shown in frame)


def ends_early(program):
    """One that always returns what another function returns is measured up to there, and that is said."""
    before = program.do("nothing")
    result, after = probed(program, "lua:counted_calls.lua:varargs", command="latency")
    seen = latencies(result.expect())
    assert seen["returned"] == seen["entered"] == after["varargs"] - before["varargs"] > 0, seen
    assert "varargs ends in tail calls (return f())" in result.stderr, result.stderr


def test_luajit_interpreted():
    yield from lua_kinds("/usr/bin/luajit", ROUNDS, "joff")


def test_luajit_block():
    """Functions whose source is no file, as in a block of nginx.conf: by what their bytecode stores them in."""
    load = f"arg = {{'{ROUNDS}', 'joff'}} loadstring(io.open('{SCRIPT}'):read('*a'), '=block')()"
    with Program("/usr/bin/luajit", "-e", load) as program:
        program.do("warm")
        yield from kinds_of(program, "lua:block:", LUA, lambda frame, _: "(block:" in frame)


def test_puc():
    """All kinds of functions of 5.1 to 5.4."""
    for program in PUC:
        yield program
        yield from lua_kinds(program, ROUNDS)


def test_puc_latency():
    """The same, and how their calls end."""
    for program in PUC:
        yield program
        with lua(program, ROUNDS) as at:
            yield from ends_of(at, "lua:counted_calls.lua:", ENDS)
            ends_early(at)


def test_puc_names():
    """By the line of the definition; by the ends of the file's and the function's name; a near name."""
    program = PUC[-1]
    with lua(program, ROUNDS) as at:
        line = next(i for i, text in enumerate(open(SCRIPT), 1)
                    if "function recursive" in text)
        result, counts = probed(at, f"lua:counted_calls.lua:{line}")
        assert result.expect().samples == counts["recursive"], result.stderr
        result, after = probed(at, "lua:counted_calls.lua:place")
        assert result.expect().samples == after["method"] - counts["method"] > 0, result.stderr
        result = yrt.run("probe", "-e", "lua:counted_calls.lua:recursiv", "-p", at.pid, "-d", 1)
        yrt.clear(result, yrt.USAGE, "no function", "near: .*counted_calls.lua:recursive")


MODULE = """
local function work() local x = 0 for i = 1, 1e4 do x = x + i end return x end
local M = {}
M.run = function(n)
    return work() + n
end
return M
"""
USER = "local run = dofile(arg[1]).run collectgarbage() collectgarbage() print('ready') io.stdout:flush()"
REPEAT = " while true do local ok = pcall(run, 1) end"


def test_puc_module():
    """Functions of a module have names when what made them, which ran once, is long gone."""
    for program in PUC:
        with tempfile.TemporaryDirectory() as directory:
            for name, text in ("module.lua", MODULE), ("user.lua", USER + REPEAT):
                with open(f"{directory}/{name}", "w") as file:
                    file.write(text)
            command = [program, f"{directory}/user.lua", f"{directory}/module.lua"]
            with yrt.Program(command, stdout=subprocess.PIPE, text=True) as at:
                assert at.stdout.readline() == "ready\n"
                done = yrt.run("functions", "-p", at.pid, output=False, stats=False).expect()
        names = dict(line.split("\t") for line in done.stdout.splitlines())
        place = f"{directory}/module.lua"
        for name, line in ("work", 2), ("M.run", 4):
            assert names.get(f"lua:{place}:{name}") == f"{place}:{line}", f"{program}: {names}"


def lua_arguments(program):
    """Each value of each kind of argument, with the calls that had it; what is not given; "..."; in coroutines."""
    for name in ("takes", "takes_more"):
        before = program.do("nothing")
        result, counts = probed(
            program, f"lua:counted_calls.lua:{name}", words=["values"], flags=["--arguments"])
        due = {f"{SCRIPT}:{call}": n - before.get(call, 0) for call, n in counts.items() if call.startswith(f"{name}(")}
        calls = {call["call"]: call["hits"] for call in result.expect().stats["probe"]["calls"]}
        assert len(due) > 20 and calls == due, {k for k in due.keys() | calls.keys() if due.get(k) != calls.get(k)}
        yield f"{name}: {len(calls)} kinds of calls"


def lua_slow_arguments(program):
    """The longest calls, of all that there are, have arguments that as many calls had."""
    name = "lua:counted_calls.lua:takes"
    result, due = probed(program, name, words=["values"], command="latency", flags=["--over", "1us"])
    seen, calls = latencies(result), [call["call"].removeprefix(f"{SCRIPT}:") for call in latencies(result)["longest"]]
    assert seen["entered"] == seen["returned"] == sum(n for call, n in due.items() if call.startswith("takes(")), seen
    assert len(calls) == 100 and all(calls.count(call) <= due[call] for call in calls), calls
    yield f"{len(set(calls))} kinds of calls"


def test_luajit_arguments():
    with lua("/usr/bin/luajit", ROUNDS, "joff") as program:
        yield from lua_arguments(program)
    with lua("/usr/bin/luajit", ROUNDS, "joff") as program:
        yield from lua_slow_arguments(program)


def test_luajit_arguments_compiled():
    """With the JIT compiler no call has arguments that it was not given."""
    with lua("/usr/bin/luajit", ROUNDS) as program:
        name = "lua:counted_calls.lua:takes"
        result, due = probed(program, name, words=["values"] * 8, flags=["--arguments"])
        calls = result.expect().stats["probe"]["calls"]
        assert calls and all(call["hits"] <= due[call["call"].removeprefix(f"{SCRIPT}:")] for call in calls), calls
        yield f"{sum(call['hits'] for call in calls)} calls"


def test_puc_arguments():
    for program in PUC:
        yield program
        with lua(program, ROUNDS) as at:
            yield from lua_arguments(at)
    with lua(PUC[-1], ROUNDS) as at:
        yield from lua_slow_arguments(at)


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
        ends_early(program)


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


INLINING = """
local ffi = require("ffi")
ffi.cdef("int getpid(void);")
local calls = 0
local function inlined(n) calls = calls + 1 return n + 1 end
local function outer() local n = 0 for i = 1, 1000 do n = inlined(n) end return n end
print('{"pid": ' .. ffi.C.getpid() .. '}')
io.flush()
for _ in io.lines() do
	outer()
	print('{"inlined": ' .. calls .. '}')
	io.flush()
end
"""


def test_luajit_inlined():
    """Calls that are not seen, as a trace has them inlined, are said, with the function where the trace begins."""
    with tempfile.TemporaryDirectory() as directory:
        script = f"{directory}/inlining.lua"
        with open(script, "w", encoding="ascii") as out:
            out.write(INLINING)
        with Program("/usr/bin/luajit", script) as program:
            result, counts = probed(program, "lua:inlining.lua:inlined")
            note = r"inlined: calls that are inlined into compiled code are not counted: of \S*inlining.lua:outer"
            whole = result.expect().samples == counts["inlined"]  # LuaJIT may find no memory for code
            assert whole or re.search(note, result.stderr), result.stderr
            yield f"{result.samples} of {counts['inlined']} calls"


def test_luajit_names():
    """By the end of a path, by the line of the definition, by no name that is there."""
    with lua("/usr/bin/luajit", ROUNDS, "joff") as program:
        line = next(i for i, text in enumerate(open(SCRIPT), 1)
                    if "function recursive" in text)
        result, counts = probed(program, f"lua:counted_calls.lua:{line}")
        assert result.expect().samples == counts["recursive"], result.stderr
        result, after = probed(program, "lua:counted_calls.lua:place")
        assert result.expect().samples == after["method"] - counts["method"] > 0, result.stderr
        result = yrt.run("probe", "-e", "lua:counted_calls.lua:recursiv", "-p", program.pid, "-d", 1)
        yrt.clear(result, yrt.USAGE, "no function", "near: .*counted_calls.lua:recursive")


yrt.main(globals())
