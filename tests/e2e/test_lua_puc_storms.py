# SPDX-License-Identifier: Apache-2.0
"""
PUC-Lua under fixtures/lua/plain_storm.lua: while stacks and lists of calls are reallocated, coroutines, errors and
chunks come and go, each function stands below one that can call it, and the stacks are whole.
"""

import collections
import os
import re
import shutil
import subprocess

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
    assert total > 300, f"{lua}: {total} samples"
    assert sum_ <= WRONG * total, f"{lua}: {sum_} of {total} stacks can not be: {wrong.most_common(6)}"
    assert result.incomplete() <= CUT, f"{lua}: {result.stderr}"
    missing = [node for node in callers if not seen[node]]
    assert not missing, f"{lua}: never seen: {missing}"
    return f"{os.path.basename(lua)}: {total} stacks, {sum_} wrong, {result.incomplete():.2%} cut"


def test_storm():
    for version in ("5.1", "5.2", "5.3", "5.4"):
        yield check(shutil.which(f"lua{version}"))


yrt.main(globals())
