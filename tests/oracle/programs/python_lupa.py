# SPDX-License-Identifier: Apache-2.0
"""LuaJIT inside Python, with callbacks both ways."""
import os

from lupa.luajit21 import LuaRuntime

lua = LuaRuntime()


def scale(x):
    return x * 2


def shift(x):
    return x + 1


run = lua.eval("dofile")(os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_lupa.lua"))
while True:
    run(scale, shift, 2000)
