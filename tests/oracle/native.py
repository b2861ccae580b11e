# SPDX-License-Identifier: Apache-2.0
"""
Edges between frames of machine code. The instruction before a return address has to be a call; if it names its target,
the callee has to be there, or where jumps lead from there: through the PLT, thunks, the other half of a split function,
tail calls.
"""

import re
import struct

import go_code
from machine import CALL_BYTES, MACHINE, rip_slot

JUMPS_MAX = 400  # functions that are looked at from one target on
RESTORER = bytes.fromhex("48c7c00f0000000f05")  # mov rax, 15; syscall: where a signal's handler returns to

EH_INSTALL = 160  # bytes before that from which on libgcc has made its own frame the other's
EH_RETURNS = bytes.fromhex("4889cc59ffe1"), bytes.fromhex("4889ccc3")


class Place:
    """An address in a file, or in none, of a process."""

    def __init__(self, process, file, address):
        self.process, self.file, self.address = process, file, address

    @property
    def function(self):
        return self.file.function(self.address) if self.file else None

    def bytes(self, before, after):
        at = self.address - before
        return self.file.code(at, before + after) if self.file else self.process.memory(at, before + after)

    def __str__(self):
        if self.file:
            return f"{self.function or self.file.path}[{self.address:#x}]"
        return f"[no file][{self.address:#x}]"


def place_of(process, frame):
    """Where a frame's code is; None if its file can not be read."""
    if frame.mapping.startswith("/") or frame.mapping == "[vdso]":
        file = process.file(frame.mapping)
        return Place(process, file, frame.address) if file else None
    return Place(process, None, frame.address)


def is_restorer(place):
    """
    Is it where a signal's handler returns to? Its address may be given as the byte before, or, while the kernel
    returns, as that behind it.
    """
    return RESTORER in place.bytes(9, 18)


def goes_to_landing_pad(place, before=0):
    """
    Is it in the last instructions of gcc's __builtin_eh_return(), mov rsp, rcx; pop rcx; jmp rcx (before gcc 12: ret),
    or up to `before` bytes ahead of them? All registers are those of the function that catches an exception, which
    called nothing there.
    """
    code = place.bytes(4, before + 6)
    return any(end in code[: 4 + before + len(end)] for end in EH_RETURNS)


class Calls:
    """Which functions a call can end up in."""

    def __init__(self, process):
        self.process = process
        self.known = {}

    def resolve(self, file, target):
        return self.process.place(target) if file is None else (file, target)

    def through(self, file, slot):
        """Where a pointer in memory leads."""
        word = self.process.word(file, slot)
        return self.process.place(word) if word else None

    def reach(self, file, target):
        """
        (functions that a call of target may end up in, are there jumps whose target is unknown, or jumps by tables)
        """
        key = (id(file), target)
        if key in self.known:
            return self.known[key]
        todo, seen, dynamic, tables = [(file, target)], set(), False, False
        while todo and len(seen) < JUMPS_MAX:
            at_file, at = todo.pop()
            function = at_file.function(at) if at_file else None
            if not function:
                dynamic |= self.follow_stub(at_file, at, todo)
                continue
            if function in seen:
                continue
            seen.add(function)
            out, slots, jumps, table = function.leaves
            dynamic, tables = dynamic | jumps, tables | table
            todo += [(at_file, t) for t in out]
            for slot in slots:
                there = self.through(at_file, slot)
                if there:
                    todo.append(there)
                else:
                    dynamic = True
        self.known[key] = seen, dynamic or len(seen) >= JUMPS_MAX, tables
        return self.known[key]

    def follow_stub(self, file, at, todo):
        """Code that nothing describes: a stub of the PLT leads on through its slot, anything else is not followed."""
        if not file:
            return True

        for address, size, name, operands in MACHINE.disasm_lite(file.code(at, 32), at):
            if name.endswith("jmp"):
                slot = rip_slot(address, size, operands)
                there = (
                    self.through(file, slot)
                    if slot is not None
                    else (file, int(operands, 16)) if operands.startswith("0x") else None
                )
                if there:
                    todo.append(there)
                    return False
                return True
            if name not in ("endbr64", "push", "nop"):
                return True
        return True


def call_before(place):
    """
    (the call that returns behind place, which is its last byte, is it certain that an instruction begins there): of
    what a function's instructions are, or, of code without known beginning, of the bytes before.
    """
    end = place.address + 1
    function = place.function
    if function:
        found = function.by_end.get(end)
        if found or function.decoded >= end:
            return found, True
    
    for n in CALL_BYTES:
        data = place.bytes(n - 1, 1)
        found = list(MACHINE.disasm_lite(data, end - n)) if len(data) == n else []
        if len(found) == 1 and found[0][1] == n and found[0][2].endswith("call"):
            return found[0], False
    return None, False


def begins_fiber(place):
    """Does the first function of a stack return behind place, to what ends the process (Boost.Context)?"""
    return re.match(rb".{1,4}?\x48?\x31\xff\xe8....\xf4", place.bytes(0, 15), re.DOTALL)


def check_edge(calls, outer, inner):
    """
    (verdict, what is wrong). Verdicts: ok, indirect, tail (an indirect jump lies between), signal, landing, unknown,
    fault.
    """
    if is_restorer(outer) or is_restorer(inner) or go_code.injected(outer, inner):
        return "signal", ""
    if goes_to_landing_pad(inner):
        return "landing", ""
    if go_code.starts_goroutine(outer) or begins_fiber(outer):
        return "indirect", ""
    try:
        call, sure = call_before(outer)
    except struct.error:
        return "unknown", ""
    if go_code.goes_to_deferreturn(outer, inner):
        return "ok", ""
    if not call:
        if goes_to_landing_pad(inner, EH_INSTALL):
            return "landing", ""
        if not outer.file:
            return "unknown", ""  # a JIT's code may be another one by now
        return "fault", f"no call before the return address {outer.address + 1:#x} in {outer}"
    at, size, name, operands = call
    if not name.endswith("call"):
        return (
            "fault" if sure else "unknown"
        ), f"'{name} {operands}' before the return address {outer.address + 1:#x} in {outer}"
    if operands.startswith("0x"):
        file, target = calls.resolve(outer.file, int(operands, 16))
    elif outer.file and (slot := rip_slot(at, size, operands)) is not None:
        there = calls.through(outer.file, slot)
        if not there or writable(calls.process, outer.file, slot):
            return "indirect", ""
        file, target = there
    else:
        return "indirect", ""
    return check_target(calls, file, target, outer, inner)


def writable(process, file, slot):
    """May a pointer have been another one at the time?"""
    mapping = process.mapping(file.base + slot)
    return not mapping or "w" in mapping[2]


def may_be_half(function):
    """May it be the unlikely half of another function, that is reached by a table?"""
    return not function.name or ".cold" in function.name or ".part" in function.name


def check_target(calls, file, target, outer, inner):
    where = inner.function
    if file and file is inner.file and where and where is file.function(target):
        return "ok", ""
    functions, dynamic, tables = calls.reach(file, target)
    if where and where in functions:
        return "ok", ""
    if not inner.file or not where:
        near = file is inner.file and 0 <= inner.address - target < 1 << 16
        return ("ok" if near else "tail"), ""
    if dynamic or tables and may_be_half(where):
        return "tail", ""
    if not functions:
        return "unknown", ""
    shown = file.function(target) if file else None
    return "fault", f"{outer} calls {shown or hex(target)}, which does not lead to {inner}"
