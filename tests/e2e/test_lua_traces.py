# SPDX-License-Identifier: Apache-2.0
"""Functions that traces have inlined, as the page shows them, and the options that change it."""

import re
import signal
import subprocess
import time

import lua
import yrt

FUNCTIONS = "abcdefh"


def frames(*flags, script="inlined_loads.lua"):
    """{(name, flags): samples with it} of the functions of a script, and the result."""
    program = subprocess.Popen([*lua.host(), lua.path(script)])
    try:
        time.sleep(0.5)
        result = lua.Sampling(program.pid, *flags, seconds=3).result()
    finally:
        yrt.stop(program, signal.SIGKILL)
    lua.check_complete(result, 1000)
    seen = {}
    for stack, count in result.stacks:
        for frame in {(f.name, f.flags) for f in stack if f.module == "luajit"}:
            seen[frame] = seen.get(frame, 0) + count
    return seen, result


def inlined(seen):
    return sum(n for (_, flags), n in seen.items() if flags & lua.INLINED)


@yrt.measured
def test_inlined():
    seen, result = frames()
    names = {name.split(" ")[0] for (name, flags) in seen if flags & lua.INLINED}
    assert len(names & set(FUNCTIONS)) >= 3, f"only {names} are shown as inlined\n{lua.show(result.stacks)}"
    for (name, flags), _ in seen.items():
        assert not flags & lua.INLINED or flags & lua.APPROX, f"{name} is inlined but not approximate"
    assert not any(name.startswith(("T:", "[gone]")) for (name, _) in seen), lua.show(result.stacks)
    yield f"inlined: {sorted(names)}"


@yrt.measured
def test_merged():
    seen, result = frames("--no-jit-inline")
    assert not inlined(seen), lua.show(result.stacks)
    loop = sum(n for (name, _), n in seen.items() if name.startswith("loop "))
    assert loop > 0.95 * result.samples, f"{loop} of {result.samples} in loop\n{lua.show(result.stacks)}"


@yrt.measured
def test_numbers():
    seen, result = frames("--traces", "--no-jit-inline")
    shown = sum(n for (name, _), n in seen.items() if re.fullmatch(r"T:\d+ \(inlined_loads\.lua:\d+\)", name))
    assert shown > 0.9 * result.samples, f"traces in {shown} of {result.samples} samples\n{lua.show(result.stacks)}"
    yield f"{shown} of {result.samples} samples in traces"


@yrt.measured
def test_not_compiled():
    """What a trace is about to leave for has not begun: its time is the caller's."""
    seen, result = frames(script="not_compiled.lua")
    for name in ("string.find", "traceback", "(not_compiled.lua:7)"):
        called = {flags: n for (shown, flags), n in seen.items() if shown.endswith(name)}
        assert called, f"{name} was never seen\n{lua.show(result.stacks, 20)}"
        false = sum(n for flags, n in called.items() if flags & lua.INLINED)
        assert not false, f"{name} runs on a trace in {false} of {result.samples} samples\n{lua.show(result.stacks)}"
    for stack, count in result.stacks:
        names = [f.name for f in stack]
        at = names.index("(trace compile)") if "(trace compile)" in names else 0
        below = next((f for f in reversed(stack[:at]) if f.module == "luajit"), None)
        assert not at or below.name not in (
            "string.find",
            "traceback",
        ), f"the compiler works in a function that has not begun\n{lua.show([(stack, count)])}"
    assert inlined(seen), lua.show(result.stacks)
    yield f"{inlined(seen)} of {result.samples} samples in what was inlined"


@yrt.measured
def test_definitions():
    """A function has the name of its definition, whatever its callers call it."""
    seen, result = frames(script="tail_calls.lua")
    names = {name for name, _ in seen if "tail_calls.lua:9" in name}
    assert names == {"M.substitute (tail_calls.lua:9)"}, f"{names}\n{lua.show(result.stacks)}"


yrt.main(globals())
