# SPDX-License-Identifier: Apache-2.0
"""LuaJIT inside Python, with callbacks both ways."""
from lupa.luajit21 import LuaRuntime

lua = LuaRuntime()


def scale(x):
    return x * 2


def shift(x):
    return x + 1


run = lua.eval(
    "function(f, g, n) local s = 0 for i = 1, n do s = s + f(i) + g(i) + #string.rep('x', i % 7) end return s end"
)
while True:
    run(scale, shift, 200)
