# SPDX-License-Identifier: Apache-2.0
"""
The functions of a BPF program share 512 bytes of stack along each chain of calls, of at most 8 functions. From Linux
6.13 on clock programs get a private stack that the verifier does not count so, and a newer kernel would load what an
older one refuses. So this counts it in the object, as kernels before 6.8 do: each function's bytes rounded up to 32.
"""

import os
import struct
import sys

OBJECT = os.path.join(os.environ["YRT_BUILD"], "bpf", "sample.bpf.o")
BYTES_MAX, FRAMES_MAX, ROUND = 512, 8, 32
SHT_SYMTAB, SHT_REL, SHF_EXECINSTR, STT_FUNC, STT_SECTION = 2, 9, 4, 2, 3
MOV_REG, ADD_IMM, CALL, LD_IMM64 = 0xBF, 0x07, 0x85, 0x18
LDX, ST, STX = 1, 2, 3
PSEUDO_CALL, FP = 1, 10


class Elf:
    """Sections, symbols and relocations of a relocatable 64-bit little-endian ELF file."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        at, = struct.unpack_from("<Q", self.data, 40)
        size, n, _ = struct.unpack_from("<HHH", self.data, 58)
        headers = [struct.unpack_from("<4xIQ8xQQII", self.data, at + i * size) for i in range(n)]
        self.code = {i for i, h in enumerate(headers) if h[1] & SHF_EXECINSTR}
        self.sections = [(kind, *rest) for kind, _, *rest in headers]  # type, offset, size, link, info
        self.symbols, self.relocations = [], {}
        for kind, offset, length, link, info in self.sections:
            if kind == SHT_SYMTAB:
                names = self.sections[link][1]
                for s in range(offset, offset + length, 24):
                    name, what, _, section, value, bytes_ = struct.unpack_from("<IBBHQQ", self.data, s)
                    end = self.data.index(b"\0", names + name)
                    self.symbols.append((self.data[names + name:end].decode(), what & 15, section, value, bytes_))
        for kind, offset, length, _, info in self.sections:
            for r in range(offset, offset + length, 16) if kind == SHT_REL else ():
                where, what = struct.unpack_from("<QQ", self.data, r)
                self.relocations[info, where] = self.symbols[what >> 32]


class Function:
    """What one function needs of the stack, and the (section, offset) of those that it calls."""

    def __init__(self, elf, name, section, value, size):
        self.name, self.bytes, self.calls = name, 0, set()
        frame_pointers = set()
        for at in range(value, value + size, 8):
            code, regs, off, imm = struct.unpack_from("<BBhi", elf.data, elf.sections[section][1] + at)
            dst, src = regs & 15, regs >> 4
            if (code & 7 == LDX and src == FP) or (code & 7 in (ST, STX) and dst == FP):
                self.bytes = max(self.bytes, -off)
            elif code == MOV_REG and src == FP:
                frame_pointers.add(dst)
            elif code == ADD_IMM and dst in frame_pointers:
                self.bytes = max(self.bytes, -imm)
                frame_pointers.discard(dst)
            elif code == CALL and src == PSEUDO_CALL:
                self.calls.add(self.target(elf, section, at, at + 8 + imm * 8, imm * 8 + 8))
            elif code == LD_IMM64 and (section, at) in elf.relocations:
                if elf.relocations[section, at][2] in elf.code:  # a callback
                    self.calls.add(self.target(elf, section, at, None, imm))

    @staticmethod
    def target(elf, section, at, near, addend):
        if (section, at) not in elf.relocations:
            return section, near
        _, kind, there, value, _ = elf.relocations[section, at]
        return there, value + (addend if kind == STT_SECTION else 0)


def deepest(functions, at, seen=()):
    """The chain from here that needs the most stack: (bytes, names)."""
    f = functions[at]
    assert at not in seen, f"{f.name} calls itself"
    below = [deepest(functions, c, (*seen, at)) for c in f.calls]
    bytes_, names = max(below, default=(0, []), key=lambda b: b[0])
    return bytes_ + -(-max(f.bytes, 1) // ROUND) * ROUND, [(f.name, f.bytes), *names]


def longest(functions, at):
    return 1 + max((longest(functions, c) for c in functions[at].calls), default=0)


elf = Elf(OBJECT)
functions = {(s[2], s[3]): Function(elf, s[0], *s[2:]) for s in elf.symbols if s[1] == STT_FUNC}
called = {c for f in functions.values() for c in f.calls}
programs = [at for at in functions if at not in called]
assert "on_clock" in {functions[at].name for at in programs}, f"no clock program in {OBJECT}"
wrong = []
for at in programs:
    bytes_, names = deepest(functions, at)
    print(f"{functions[at].name}: {bytes_} bytes of stack, {longest(functions, at)} functions deep")
    if bytes_ > BYTES_MAX or longest(functions, at) > FRAMES_MAX:
        wrong.append(
            f"{functions[at].name}: too much for kernels before 6.13: " + " > ".join(f"{n} {b}" for n, b in names)
        )
print("\n".join(wrong), end="\n" if wrong else "")
sys.exit(bool(wrong))
