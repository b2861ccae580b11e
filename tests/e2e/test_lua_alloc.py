# SPDX-License-Identifier: Apache-2.0
"""lua-alloc: the bytes that LuaJIT's own count grows by, in the function that makes the objects; stripped or not."""

import subprocess

import yrt

CODE = """
jit.off()
collectgarbage("stop")
local function tables(n) for i = 1, n do local t = {i, i, i} end end
local function functions(n) for i = 1, n do local f = function() return i end end end
io.read()
local function grows(f, n)
    local before = collectgarbage("count")
    f(n)
    return (collectgarbage("count") - before) * 1024
end
io.write(("%d %d\\n"):format(grows(tables, 500), grows(functions, 300)))
io.flush()
io.read()
"""


def test_luajit():
    """Every stack, so that bytes are exact."""
    with yrt.Program(["luajit", "-e", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as lua:
        at = yrt.Run("lua-alloc", "-p", lua.pid, "-d", 60, "--max-cpu", 0).sampling()
        lua.stdin.write("\n")
        lua.stdin.flush()
        made = dict(zip((4, 5), map(int, lua.stdout.readline().split())))
        at.interrupt()
        result = at.result().expect()
        lua.kill()
    for line, due in made.items():
        seen = sum(n for frames, n in result.stacks if f"f ((command line):{line})" in frames)
        assert due > 10000 and seen == due, f"line {line}: {seen} of {due}\n{yrt.show(result.stacks)}"
        yield f"line {line}: {seen} bytes"


def test_refused():
    """A stripped PUC-Lua has no function that is known: where its memory comes from is said."""
    with yrt.Program(["lua5.4", "-e", "io.read()"], stdin=subprocess.PIPE) as lua:
        result = yrt.run("lua-alloc", "-p", lua.pid, "-d", 1)
        lua.kill()
    assert result.code == yrt.UNSUPPORTED and "yrt alloc" in result.stderr, result.stderr


yrt.main(globals())
