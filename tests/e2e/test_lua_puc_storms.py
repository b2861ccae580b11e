# SPDX-License-Identifier: Apache-2.0
"""
PUC-Lua under fixtures/lua/plain_storm.lua: while stacks and lists of calls are reallocated, coroutines, errors and
chunks come and go, each function stands below one that can call it, and the stacks are whole.
"""

import collections
import ctypes.util
import os
import re
import shutil
import signal
import subprocess
import sys

import yrt

SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "lua", "plain_storm.lua")
PLACE = re.compile(r"\(plain_storm\.lua(?::(\d+))?\)$")
SECONDS, RATE = 4, 1999
WRONG, CUT = 0.005, 0.01  # at an error's end; while stacks are moved


def nodes(frames):
    """The functions of a stack, outermost first: lines, 0 is the main chunk, "chunk" one that was loaded."""
    for frame in frames:
        place = PLACE.search(frame)
        if place:
            yield place[1] or "0"
        elif frame.startswith("main chunk (") or frame == "[gone]":
            yield "chunk"


def check(lua):
    process = subprocess.Popen([lua, SCRIPT, str(SECONDS + 30)], stdout=subprocess.PIPE, text=True)
    try:
        callers = {"chunk": None}
        for line in iter(process.stdout.readline, "end\n"):
            callee, *callers_of = line.split()
            callers[callee] = set(callers_of)
        chunks = list(callers)[-1]
        callers["chunk"] = {chunks}
        result = yrt.run("lua-flame", "-p", str(process.pid), "-d", str(SECONDS), "-F", str(RATE)).expect()
    finally:
        yrt.stop(process)
    wrong, seen = collections.Counter(), collections.Counter()
    for frames, count in result.stacks:
        chain = list(nodes(frames))
        seen.update({node: count for node in set(chain)})
        if frames[0].startswith("[truncated") or not chain:
            continue
        bad = [pair for pair in zip(chain, chain[1:]) if pair[0] not in callers.get(pair[1], ())]
        if bad or chain[0] != "0":
            wrong[tuple(bad or chain[:1]), frames[-1]] += count
    total, sum_ = result.samples, sum(wrong.values())
    assert total > 20, f"{lua}: {total} samples"
    assert sum_ <= WRONG * total, f"{lua}: {sum_} of {total} stacks can not be: {wrong.most_common(6)}"
    assert result.incomplete() <= CUT, f"{lua}: {result.stderr}"
    missing = [node for node in callers if not seen[node]]
    assert not missing, f"{lua}: never seen: {missing}"
    return f"{os.path.basename(lua)}: {total} stacks, {sum_} wrong, {result.incomplete():.2%} cut"


@yrt.measured
def test_storm():
    for version in ("5.1", "5.2", "5.3", "5.4"):
        yield check(shutil.which(f"lua{version}"))


# Of CPU time: how many times a state's work is done depends on how fast the machine is.
STATES = """
import ctypes, random, sys, time
LIFE_S = 0.002
lua, script, times = ctypes.CDLL(sys.argv[1]), open(sys.argv[2], "rb").read(), 3
lua.luaL_newstate.restype = ctypes.c_void_p
while True:
    begin = time.process_time()
    state = ctypes.c_void_p(lua.luaL_newstate())
    lua.luaL_openlibs(state)
    pad = b"{}," * random.randrange(60)  # else all would be where they were before
    text = b"local pad = {%b} times = %d " % (pad, times) + script
    assert not lua.luaL_loadbufferx(state, text, ctypes.c_size_t(len(text)), b"@short_states.lua", None)
    assert not lua.lua_pcallk(state, 0, 0, 0, ctypes.c_ssize_t(0), None)
    lua.lua_close(state)
    times = min(1000, round(times * LIFE_S / (time.process_time() - begin)) or 1)
"""


@yrt.measured
def test_short_states():
    """
    States that live for two milliseconds: what stands where a function was is not named like that one. Names are read
    from the state, so when it is gone some are wrong.
    """
    script = os.path.join(yrt.SOURCE, "fixtures", "lua", "short_states.lua")
    with open(script) as file:
        names = {n: m[1] for n, line in enumerate(file, 1) if (m := re.match(r"function (\w+)", line))}
    library = ctypes.util.find_library("lua5.3") or ctypes.util.find_library("lua5.4")
    process = subprocess.Popen([sys.executable, "-c", STATES, library, script])
    try:
        result = yrt.sample_busy("lua-flame", [process.pid], seconds=2, rate=RATE)
    finally:
        yrt.stop(process, signal.SIGKILL)
    wrong, seen = collections.Counter(), collections.Counter()
    for frames, n in result.stacks:
        for frame in frames:
            if (m := re.match(r"(.*) \(short_states\.lua:(\d+)\)$", frame)):
                seen[m[1] == names.get(int(m[2]))] += n
                if m[1] not in (names.get(int(m[2])), "function"):
                    wrong[frame] += n
    assert seen[True] > 1000, seen
    assert sum(wrong.values()) <= 0.06 * sum(seen.values()), f"{sum(wrong.values())} of {seen}: {wrong.most_common(9)}"
    yield f"{seen[True]} of {sum(seen.values())} frames have their names, {sum(wrong.values())} another's"


yrt.main(globals())
