# SPDX-License-Identifier: Apache-2.0
"""
lua-heap and lua-refs: objects by type against a walk of the program over its own registry, and the ways by which its
cache is kept.
"""

import collections
import os
import re
import subprocess
import tempfile

import lua
import yrt

HOSTS = os.environ.get("YRT_LUA", "luajit lua5.1 lua5.2 lua5.3 lua5.4").split(" ")
ROW = re.compile(r" *(\d+) +([\d.]+) +(\d+)  (.*)")
KINDS = ("table", "function", "thread", "userdata")


def start(host, *options):
    return waits(yrt.Fixture("/usr/bin/env", host, *options, lua.path("heaped.lua"), seconds=None))


def waits(fixture):
    """It has printed all, and reads its input."""
    yrt.in_call(fixture.pid, yrt.READ)
    return fixture


def heap(pid):
    """{type: (objects, bytes)}; functions and prototypes of all names are one each."""
    done = yrt.Run("lua-heap", "-p", pid, output=False, stats=False).result().expect()
    ret = collections.defaultdict(lambda: (0, 0))
    for line in done.stdout.splitlines()[1:]:
        size, _, n, name = ROW.fullmatch(line).groups()
        if name == "(all)":
            continue
        kind = name.split(" ")[0]
        ret[kind] = ret[kind][0] + int(n), ret[kind][1] + int(size)
    assert " 0 torn" in done.stderr, done.stderr
    return ret


def compare_counts(host):
    with start(host) as f:
        have, want = heap(f.pid), f.start["counts"]
        # The main thread; the handler of errors on its stack, which from 5.2 on is no object. 5.1 does not show
        # upvalues of functions in C: those of ipairs() and pairs(), the table of newproxy(). Of 5.4 the state of
        # math.random(), which a program cannot tell from a light userdata.
        old = "lua5.1" in host
        hidden = {"thread": 1, "function": 3 if old else int("lua5." not in host), "table": int(old),
                  "userdata": int("lua5.4" in host)}
        have = {kind: have[kind][0] - hidden.get(kind, 0) for kind in KINDS}
        assert have == want, (host, have, want)
        return f"{host}: {want}, as the program counts itself"


def test_counts():
    for host in HOSTS:
        yield compare_counts(host)


def test_total():
    """All bytes that LuaJIT's collector counts are there: it counts before the line that says so is made of strings."""
    for host in HOSTS:
        if "luajit" in host:
            with start(host, "-joff") as f:
                have, want = sum(size for _, size in heap(f.pid).values()), f.start["bytes"]
            assert -512 <= want - have <= 512, (have, want)
            yield f"{host}: {have} of {want} bytes"


def refs(*target):
    return yrt.Run("lua-refs", *target, "-f", "folded", output=False, stats=False).result().expect().stdout


def compare_paths(host):
    with start(host) as f, tempfile.TemporaryDirectory() as d:
        folded = refs("-p", f.pid)
        subprocess.run(["gcore", "-o", f"{d}/core", str(f.pid)], check=True, capture_output=True)
        dumped = refs("--core", f"{d}/core.{f.pid}")
    assert dumped == folded, (host, sorted(set(dumped.splitlines()) ^ set(folded.splitlines()))[:10])
    stacks = {tuple(path): n for path, n in yrt.parse_folded(folded)}
    entry = ("package.loaded", "app.cache: table", ".entries: table", "{}: table")
    assert stacks[entry] and stacks[*entry, ".points: table"] and stacks[*entry, ".points: table", "[]: table"], folded
    source = yrt.read(lua.path("heaped.lua")).splitlines()
    deep = next(i for i, text in enumerate(source, 1) if text.startswith("local function deep("))
    assert any(re.search(rf"heaped\.lua:{deep}\): table$", path[-1]) for path in stacks), folded
    assert any(path[-1] == "n: table" for path in stacks), folded


def test_paths():
    """Modules by names, tables by fields, upvalues by name, a coroutine's by its functions; a core says the same."""
    for host in HOSTS:
        compare_paths(host)


def compare_lost(host):
    """Pairs: one stands for both. What is still on the stack, or in a register of a trace, is not garbage."""
    options = ["-joff"] if "luajit" in host else []
    with waits(yrt.Fixture("/usr/bin/env", host, *options, lua.path("lost.lua"), seconds=None)) as f:
        done = yrt.Run("lua-refs", "-p", f.pid, "--unreachable", "-f", "folded", output=False, stats=False).result()
    stacks = {tuple(path): n for path, n in yrt.parse_folded(done.expect().stdout)}
    cycle = ("(cycles that only refer to themselves)", "table")
    single = ("(nothing refers to it)", "table")
    pairs, leaves = stacks[*cycle, ".lost_other: table"], stacks[*single, ".lost_leaf: table"]
    assert pairs == stacks[cycle] and not pairs % 500, (host, stacks)
    assert not leaves % 300 and 0 < leaves / 300 < pairs / 500, (host, stacks)
    return f"{host}: {pairs} bytes in pairs, {leaves} in leaves"


def test_unreachable():
    for host in HOSTS:
        yield compare_lost(host)


def readings(host, code, busy_s):
    """(pid, rows) of five readings, while a program runs."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(code)
        script.flush()
        with subprocess.Popen(["/usr/bin/env", host, script.name]) as program:
            try:
                yrt.busy_for([program.pid], busy_s)
                for _ in range(5):
                    text = yrt.run("lua-heap", "-p", program.pid, output=False, stats=False).expect().stdout
                    yield program.pid, [ROW.fullmatch(line) for line in text.splitlines()[1:]]
            finally:
                program.kill()


GROW = """
local log, n = {}, 0
while true do
  n = n + 1
  log[#log + 1] = "entry " .. n .. string.rep("x", n % 37)
  local garbage = {n, tostring(n)}
  if #log > 300000 then log = {} end
end
"""


@yrt.measured
def test_moving():
    """A table's array grows, and is freed, while it is read: what is torn is no object of gigabytes."""
    for host in HOSTS:
        for pid, rows in readings(host, GROW, 1):
            size, name = int(rows[-1][1]), rows[-1][4]
            peak = int(re.search(r"VmHWM:\s*(\d+)", yrt.read(f"/proc/{pid}/status"))[1])
            assert name == "(all)" and size < 1024 * peak, f"{host}: {size} bytes of {peak} kB"
        yield f"{host}: 5 of 5 below the resident set"


REPLACE = """
local app, new, n = {old = {}}, {}, 0
package.loaded.app = app
for i = 1, 300000 do app.old[i] = "old " .. i end
while true do
  n = n + 1
  new[#new + 1] = "entry " .. n .. string.rep("x", n % 37)
  if #new >= 300000 then app.old, new = new, {} end
end
"""


@yrt.measured
def test_replaced():
    """A table of 300,000 strings is replaced by one that grew meanwhile: in most readings none of them is lost."""
    for host in HOSTS:
        found = [next(int(row[3]) for row in rows if row[4] == "string") for _, rows in readings(host, REPLACE, 2)]
        assert sum(n >= 299000 for n in found) >= 4, (host, found)
        yield f"{host}: {found} strings, at least 300,000"


yrt.main(globals())
