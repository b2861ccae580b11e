# SPDX-License-Identifier: Apache-2.0
"""
LuaJIT inside of a Python package: lupa from PyPI, whose Lua calls functions of Python. Ends with 77 if the package can
not be had.
"""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

import lua  # noqa: E402
import yrt  # noqa: E402

VERSION = "2.8"
ROOT = os.path.join(yrt.BUILD, "suites", f"lupa-{VERSION}")
PROGRAM = """
import time, lupa.luajit21 as luajit
state = luajit.LuaRuntime()
def first(x): return sum(range(200)) + x
def second(x): return len([i for i in range(300)]) + x
run = state.eval('''function(first_callback, second_callback, n)
    local s, t = 0, {}
    for i = 1, n do s = s + first_callback(i) + second_callback(i) end
    for i = 1, n * 10 do
        t[#t + 1] = {i}
        if i % 3 == 0 then s = s + #string.format("%d", i) end
        if i % 100 == 0 then s = s + (string.find(s .. i, "[0-9]x") or 0) end
    end
    return s
end''')
print("ready", flush=True)
while True:
    run(first, second, 2000)
"""

# Traces are left because finalizers wait, which then run below the handler of trace exits.
FINALIZERS = """
import lupa.luajit21 as luajit
print("ready", flush=True)
luajit.LuaRuntime().execute('''
local kept = {}
function finalized(k) local s = 0 for i = 1, 3000 do s = s + (i * k) % 7 end kept[k % 8] = s end
local function make(i) local p = newproxy(true); getmetatable(p).__gc = function() finalized(i) end end
local function fill(n) for i = 1, n do make(i) end end
local function burn(n) local t for i = 1, n do t = { i, i + 1 } end return t end
while true do fill(300); burn(200000) end''')
"""


def install():
    if os.path.isdir(os.path.join(ROOT, "lupa")):
        return
    done = subprocess.run(
        [sys.executable, "-m", "pip", "-q", "install", "--no-deps", "--target", ROOT, f"lupa=={VERSION}"]
    )
    if done.returncode:
        raise yrt.Skipped(f"pip could not install lupa {VERSION} (see above)")


def sample(source):
    install()
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(source)
        script.flush()
        with subprocess.Popen(
            [sys.executable, script.name], env={**os.environ, "PYTHONPATH": ROOT}, stdout=subprocess.PIPE
        ) as program:
            try:
                assert program.stdout.readline() == b"ready\n"
                return lua.Sampling(program.pid, seconds=6).result()
            finally:
                program.kill()


def test_lupa():
    result = sample(PROGRAM)
    yield lua.check_complete(result, 1000)
    for name, callback in (("first", "first_callback"), ("second", "second_callback")):
        wrong = [(frames, n) for frames, n in result.stacks if any(f.name.startswith(name + " ") for f in frames)
                 and not any(f.name == callback for f in frames)]
        assert not wrong, f"{name} is not called as {callback}\n{lua.show(wrong)}"


def test_finalizers():
    result = sample(FINALIZERS)
    yield lua.check_complete(result, 1000)
    below = {f.name for frames, _ in result.stacks for i, f in enumerate(frames)
             if any(g.name.startswith("finalized") for g in frames[i + 1:])}
    assert {"burn", "fill"} <= {name.split(" ")[0] for name in below}, below


yrt.main(globals())
