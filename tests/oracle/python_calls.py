# SPDX-License-Identifier: Apache-2.0
"""
Run by the interpreter whose program is checked: of each file given, what each line of each function can call, as JSON:
{file: {"first line of a function:its name": {line: [can it call at all, [names that stand on it]]}}}
"""

import dis
import json
import sys
import types

# What runs no function of the language: anything else may, by an operator's method, a descriptor, an iterator, an
# import.
QUIET = {
    "LOAD_CONST",
    "LOAD_FAST",
    "LOAD_FAST_AND_CLEAR",
    "LOAD_FAST_CHECK",
    "LOAD_FAST_LOAD_FAST",
    "LOAD_FAST_BORROW",
    "LOAD_SMALL_INT",
    "LOAD_CLOSURE",
    "LOAD_DEREF",
    "LOAD_CLASSDEREF",
    "NOP",
    "RESUME",
    "PUSH_NULL",
    "COPY",
    "SWAP",
    "DUP_TOP",
    "ROT_TWO",
    "ROT_THREE",
    "ROT_FOUR",
    "CACHE",
    "EXTENDED_ARG",
    "KW_NAMES",
    "MAKE_CELL",
    "COPY_FREE_VARS",
    "SETUP_FINALLY",
    "POP_BLOCK",
    "JUMP_FORWARD",
    "NOT_TAKEN",
    "IS_OP",
}


def walk(code, found):
    lines = found.setdefault(f"{code.co_firstlineno}:{code.co_name}", {})
    line = code.co_firstlineno
    for op in dis.get_instructions(code):
        positions = getattr(op, "positions", None)
        line = (positions.lineno if positions else op.starts_line) or (line if not positions else 0)
        at = lines.setdefault(line, [False, []])
        if op.opname not in QUIET:
            at[0] = True
        if isinstance(op.argval, str) and op.argval not in at[1]:
            at[1].append(op.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            walk(constant, found)


def main():
    out = {}
    for path in sys.argv[1:]:
        try:
            with open(path, "rb") as file:
                source = file.read()
            walk(compile(source, path, "exec", dont_inherit=True), out.setdefault(path, {}))
        except (OSError, SyntaxError, ValueError, RecursionError):
            out.pop(path, None)
    json.dump(out, sys.stdout)


main()
