# SPDX-License-Identifier: Apache-2.0
"""
Handlers of Y where functions of a language are called and return: as many as the program counts calls itself, with
their stacks; what is not there is refused at its place.
"""

import counted
import java
import yrt
import ylang

ROUNDS = 5
SOURCE = """
long calls, returns, within; _map long n[_ustack];
_probe %(f)s { calls++; n[_ustack]++; within++; }
_probe %(f)s:return { returns++; within--; }
_probe _begin { printf("ready\\n"); }
_probe _end { printf("%%ld %%ld %%ld\\n", calls, returns, within); _print(n); }
"""


def stacks(lines):
    """(how many, its frames, innermost first) of each stack of a printed map."""
    found = []
    for line in lines:
        if line.startswith("    "):
            found[-1][1].append(line.strip())
        else:
            found.append((int(line), []))
    return found


def check(program, function, word, shown, left=lambda counts: 0):
    """Each call and each return runs its handler once. left: of the calls, those that an exception leaves."""
    before = program.do("go")
    at = ylang.Beside(SOURCE % {"f": function}, program.pid)
    after = program.do("go")
    lines = at.end()
    calls = after[word] - before.get(word, 0)
    gone = left(calls)
    assert lines[:2] == [f"{calls} {calls - gone} {gone}", "n"] and calls > 0, (function, calls, gone, lines)
    found = stacks(lines[2:])
    assert sum(n for n, _ in found) == calls, (function, calls, lines)
    assert all(any(shown in frame for frame in frames[:3]) for _, frames in found), (function, lines)
    return f"{function}: {calls} calls, {calls - gone} returns"


def test_python():
    with counted.Program("/usr/bin/python3", f"{yrt.SOURCE}/fixtures/python/counted_calls.py", ROUNDS, 1) as p:
        p.do("nothing")
        yield check(p, "python:__main__.recursive", "recursive", "recursive (counted_calls.py")
        yield check(p, "python:raises", "raises", "raises (counted_calls.py", left=lambda n: n // 2)
        yield check(p, "python:Shop.place", "method", "place (counted_calls.py")


def test_lua():
    script = f"{yrt.SOURCE}/fixtures/lua/counted_calls.lua"
    for command in (["/usr/bin/lua5.4", script, ROUNDS], ["/usr/bin/luajit", script, ROUNDS, "joff"]):
        with counted.Program(*command) as p:
            p.do("warm")
            yield check(p, "lua:counted_calls.lua:recursive", "recursive", "(counted_calls.lua:")


def test_perl():
    with counted.Program("/usr/bin/perl", f"{yrt.SOURCE}/fixtures/perl/counted_calls.pl", ROUNDS) as p:
        yield check(p, "perl:main::recursive", "recursive", "recursive")


def test_java():
    with java.Java("counted", options=["-Xint"]) as jvm:
        jvm.do = lambda _: jvm.ask()
        yield check(jvm, "java:counted.recursive", "recursive", "recursive")


def test_refused():
    cases = [
        ("_probe python:recursiv { }", 'recursiv: there is no function "recursiv"'),
        ("_probe lua:x.lua:f { }", "no target runs lua"),
        ("_probe python:raises { } _probe python:raises { }", "it has a handler already, at line 1"),
        ("_probe python:raises:return { } _probe python:recursive:return { } _probe python:Shop.place:return { }",
         "need more"),
    ]
    with counted.Program("/usr/bin/python3", f"{yrt.SOURCE}/fixtures/python/counted_calls.py", ROUNDS, 1) as p:
        p.do("nothing")
        for source, message in cases:
            done = ylang.run("-e", source, "-p", p.pid)
            assert done.returncode in (yrt.USAGE, yrt.UNSUPPORTED) and message in done.stderr, (source, done)
            assert done.stderr.startswith(("-e:1:", "yrt: -e:1:", "yrt: a thread has four")), done
    yield f"{len(cases)} programs are refused by what they ask"


yrt.main(globals())
