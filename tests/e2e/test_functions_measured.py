# SPDX-License-Identifier: Apache-2.0
"""
Functions of a language where the scheduler decides: more functions than debug registers, a rate beyond the budget, a
function that is defined anew during the run.
"""

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


@yrt.measured
def test_budget():
    """A function that is called without pause is watched in shifts."""
    result, truth = busy(1, 0)
    whole = sum(truth.values())
    assert "in shifts" in result.stderr, result.stderr
    yield f"{result.samples:.0f} of {whole} calls; {result.stats['cpu_percent']} % of a CPU"


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


yrt.main(globals())
