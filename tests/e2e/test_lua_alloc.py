# SPDX-License-Identifier: Apache-2.0
"""lua-alloc: the bytes that Lua's own count grows by, in the function that makes the objects; stripped or not."""

import subprocess

import yrt

CODE = """
if jit then jit.off() end
collectgarbage("stop")
local function tables(n) for i = 1, n do local t = {i, i, i} end end
local function functions(n) for i = 1, n do local f = function() return i end end end
local function grows(f, n)
    local before = collectgarbage("count")
    f(n)
    return (collectgarbage("count") - before) * 1024
end
local function both(n, m) return grows(tables, n), grows(functions, m) end
made, more = both(1, 1) -- the stack is large enough now
io.read()
made, more = both(500, 300)
io.write(("%d %d\\n"):format(made, more))
io.flush()
io.read()
"""


def check(lua):
    """Every stack, so that bytes are exact."""
    with yrt.Program([lua, "-e", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        yrt.until(lambda: "pipe_read" in yrt.read(f"/proc/{program.pid}/wchan"), "it reads its input")
        at = yrt.Run("lua-alloc", "-p", program.pid, "-d", 600, "--max-cpu", 0).sampling()
        program.stdin.write("\n")
        program.stdin.flush()
        made = dict(zip((4, 5), map(int, program.stdout.readline().split())))
        at.interrupt()
        result = at.result().expect()
        program.kill()
    for line, due in made.items():
        seen = sum(n for frames, n in result.stacks if any(f.endswith(f" ((command line):{line})") for f in frames))
        assert due > 10000 and seen == due, f"{lua}, line {line}: {seen} of {due}\n{yrt.show(result.stacks)}"
        yield f"{lua}, line {line}: {seen} bytes"


def test_luajit():
    """Its VM has the function that makes all objects."""
    yield from check("luajit")


def test_lua():
    """So does each state of PUC-Lua, in Debian's stripped programs."""
    for version in ("5.1", "5.2", "5.3", "5.4"):
        yield from check(f"lua{version}")


yrt.main(globals())
