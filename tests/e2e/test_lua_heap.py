# SPDX-License-Identifier: Apache-2.0
"""
lua-heap and lua-refs: objects by type against a walk of the program over its own registry, and the ways by which its
cache is kept.
"""

import collections
import os
import re

import lua
import yrt

HOST = os.environ.get("YRT_LUA", "luajit").split(" ")
ROW = re.compile(r" *(\d+) +([\d.]+) +(\d+)  (.*)")
KINDS = ("table", "function", "thread", "userdata")


def start():
    return yrt.Fixture("/usr/bin/env", *HOST, lua.path("heaped.lua"), seconds=None)


def heap(pid):
    """{type: (objects, bytes)}; functions and prototypes of all names are one each."""
    done = yrt.Run("lua-heap", "-p", pid, output=False, stats=False).result().expect()
    ret = collections.defaultdict(lambda: (0, 0))
    for line in done.stdout.splitlines()[1:]:
        size, _, n, name = ROW.fullmatch(line).groups()
        kind = name.split(" ")[0]
        ret[kind] = ret[kind][0] + int(n), ret[kind][1] + int(size)
    assert " 0 torn" in done.stderr, done.stderr
    return ret


def test_counts():
    with start() as f:
        have, want = heap(f.pid), f.start["counts"]
        hidden = {"thread": 1, "function": 1}  # the main thread, the handler of errors on its stack
        have = {kind: have[kind][0] - hidden.get(kind, 0) for kind in KINDS}
        assert have == want, (have, want)
        yield f"{want}, as the program counts itself"


def test_paths():
    """Modules by their names, tables by fields, upvalues by name, what a coroutine holds by its functions."""
    with start() as f:
        folded = yrt.Run("lua-refs", "-p", f.pid, "-f", "folded", output=False, stats=False).result().expect().stdout
    stacks = {tuple(path): n for path, n in yrt.parse_folded(folded)}
    cache = ("package.loaded", "app.cache: table", ".entries: table")
    assert stacks[*cache, "{}: table"], folded
    assert stacks[*cache, "{}: table", ".points: table"], folded
    assert stacks[*cache, "{}: table", ".points: table", "[]: table"], folded
    parked = [path for path in stacks if any("deep (" in frame for frame in path) and path[-1].endswith(": table")]
    assert parked, folded


yrt.main(globals())
