# SPDX-License-Identifier: Apache-2.0
"""
Functions of a language where the scheduler decides: more functions than debug registers, a rate beyond the budget, a
function that is defined anew during the run.
"""

import re
import subprocess
import tempfile
import time

import java
import yrt
from counted import Program

PYTHON = "/usr/bin/python3"
BUSY = """
import json, os, sys, time
counts = {}
%s
print(json.dumps({"pid": os.getpid(), "chain": []}), flush=True)
sys.stdin.readline()
end = time.monotonic() + 6
while time.monotonic() < end:
    for f in functions:
        f()
    time.sleep(%s)
print(json.dumps(counts), flush=True)
"""
FUNCTION = """
def f%d():
    counts["f%d"] = counts.get("f%d", 0) + 1
"""


def busy(n, pause):
    """(result, what the program counted) of n functions, all probed."""
    text = "".join(FUNCTION % (i, i, i) for i in range(n)) + f"functions = [{', '.join(f'f{i}' for i in range(n))}]"
    with yrt.Fixture(PYTHON, "-c", BUSY % (text, pause), seconds=None, wait=False) as fixture:
        result = yrt.Run("probe", "-e", "python:__main__.f*", "-p", fixture.pid, "-d", 30).sampling()
        fixture.release()
        truth = fixture.finish()
        return result.result().expect(), truth


@yrt.measured
def test_tiers():
    """While a method of Java is compiled by one compiler after the other, a hundredth of its calls is missed."""
    options = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,counted*::*"]
    with java.Java("counted", options=options) as jvm:
        run = yrt.Run("probe", "-e", "java:counted.place", "-p", jvm.pid, "-d", 600, "--max-cpu", 0).sampling()
        for _ in range(60):
            calls = jvm.ask()["place"]
            time.sleep(0.02)
        run.interrupt()
        result = run.result().expect()
        assert 0.97 * calls <= result.samples <= calls, f"{result.samples} of {calls}\n{result.stderr}"
        yield f"{result.samples} of {calls} calls"


@yrt.measured
def test_turns():
    """Eight functions in turns: their calls stand for all, about."""
    result, truth = busy(8, 0.002)
    whole = sum(truth.values())
    assert "in turns" in result.stderr, result.stderr
    assert abs(result.samples - whole) < 0.3 * whole, f"{result.samples} of {whole}"
    yield f"{result.samples} of {whole} calls"


# As it is in between: CPU bound, at a fixed rate, or with a wait after each call.
PACES = {
    "CPU bound, 9,000 calls a second": "f(); sum(range(2000)); sum(range(2000)); sum(range(2000))",
    "1,000 calls a second": "f(); at += 0.001; time.sleep(max(0, at - time.monotonic()))",
    "4,000 calls a second, in fours": "f(); f(); f(); f(); at += 0.001; time.sleep(max(0, at - time.monotonic()))",
    "a wait after each call": "f(); time.sleep(0)",
}
PACED = """
import json, os, sys, time
calls = 0
def f():
    global calls
    calls += 1
print(json.dumps({"pid": os.getpid(), "chain": []}), flush=True)
sys.stdin.readline()
at = time.monotonic()
end = at + 8
while time.monotonic() < end:
    %s
print(json.dumps(calls), flush=True)
"""


@yrt.measured
def test_budget():
    """A function that is called often is watched in shifts: calls are weighted by the program's progress."""
    for name, body in PACES.items():
        ratios, said = [], []
        for _ in range(5):
            with yrt.Fixture(PYTHON, "-c", PACED % body, seconds=None, wait=False) as fixture:
                run = yrt.Run("probe", "-e", "python:__main__.f", "-p", fixture.pid, "-d", 30).sampling()
                fixture.release()
                truth = fixture.finish()
                result = run.result().expect()
            off = re.search(r"number may be (\d+) % off", result.stderr)
            assert off and "in shifts" in result.stderr, result.stderr
            ratios.append(result.samples / truth)
            said.append(int(off[1]))
        text = f"{name}: {', '.join(f'{r:.3f}' for r in ratios)} of all calls, said to be {said} % off"
        assert all(0.75 < r < 1.3 for r in ratios), text
        yield text


@yrt.measured
def test_short():
    """In runs of a second calls that stand for others are as many as all."""
    ratios = []
    for _ in range(5):
        body = PACES["1,000 calls a second"]
        with yrt.Fixture(PYTHON, "-c", PACED % body, seconds=None, wait=False) as fixture:
            fixture.release()
            result = yrt.run("latency", "-e", "python:__main__.f", "-p", fixture.pid, "-d", 1).expect()
            assert "in shifts" in result.stderr, result.stderr
            ratios.append(result.stats["latency"]["returned"] / result.stats["duration_s"] / 1000)
    text = f"{', '.join(f'{r:.3f}' for r in ratios)} of all calls"
    assert all(0.85 < r < 1.15 for r in ratios), text
    yield text


@yrt.measured
def test_redefined():
    """A function that is defined anew is found within a second, also if the end of its name was given."""
    for name in "python:__main__.redefined", "python:redefined":
        with Program(PYTHON, f"{yrt.SOURCE}/fixtures/python/counted_calls.py", 5) as program:
            at = yrt.Run("probe", "-e", name, "-p", program.pid, "-d", 30).sampling()
            for word in ("go", "redefine", "go"):
                program.do(word)
                time.sleep(2)
            at.interrupt()
            result = at.result().expect()
            assert result.samples == 10, f"{name}\n{yrt.show(result.stacks)}"


CHURN = """
local kept, n = {}, 0
function handler(i)
  local t = {i, tostring(i), function() return i end}
  kept[i % 20000] = t
  return #t
end
while true do n = n + handler(n) end
"""


def functions_of(pid):
    return yrt.run("functions", "-p", pid, output=False, stats=False).stdout


@yrt.measured
def test_lua_churn():
    """The list of Lua's objects changes all the time: it is read again until it fits together."""
    for program in ("/usr/bin/luajit", "/usr/bin/lua5.1", "/usr/bin/lua5.4"):
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
            script.write(CHURN)
            script.flush()
            with subprocess.Popen([program, script.name]) as lua:
                time.sleep(1)
                found = sum(":handler" in functions_of(lua.pid) for _ in range(10))
                lua.kill()
        assert found == 10, f"{program}: in {found} of 10 readings"
        yield f"{program}: 10 of 10"


yrt.main(globals())
