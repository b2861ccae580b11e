# SPDX-License-Identifier: Apache-2.0
"""The machine code of a process: its files, their functions, and what its memory holds now."""

import bisect
import functools
import os
import re
import struct
import sys

import go_code

try:
    import capstone
except ImportError:  # Debian's package serves any Python 3
    sys.path.append("/usr/lib/python3/dist-packages")
    import capstone

MACHINE = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
FUNCTION_MAX = 1 << 20  # bytes that are disassembled of one
CONDITIONAL = re.compile(r"j(?!mp)\w+|loop\w*|jrcxz|jecxz")
CALL_BYTES = (5, 2, 3, 4, 6, 7, 8)


class Function:
    """A range of code with one beginning. Addresses are of its file."""

    def __init__(self, file, start, end, name):
        self.file, self.start, self.end, self.name = file, start, end, name

    def __str__(self):
        return self.name or f"{os.path.basename(self.file.path)}+{self.start:#x}"

    @functools.cached_property
    def instructions(self):
        """[(address, size, mnemonic, operands)]"""
        code, found, at = self.file.code(self.start, min(self.end - self.start, FUNCTION_MAX)), [], 0
        while True:
            found += MACHINE.disasm_lite(code[at:], self.start + at)
            at = found[-1][0] + found[-1][1] - self.start if found else 0
            size = vector_length(code[at:at + 16])
            if not size or at + size > len(code):
                return found
            found.append((self.start + at, size, "vector", ""))
            at += size

    @functools.cached_property
    def by_end(self):
        return {at + size: (at, size, name, operands) for at, size, name, operands in self.instructions}

    @functools.cached_property
    def decoded(self):
        """Where the instructions that the disassembler knows end."""
        return max(self.by_end, default=self.start)

    @functools.cached_property
    def leaves(self):
        """
        (addresses outside that it jumps to or runs into, slots that it jumps through, does it jump to what a register
        holds, does it jump by a table)
        """
        out, slots, tail, table = set(), set(), False, False
        name = ""
        for i, (at, size, name, operands) in enumerate(self.instructions):
            table |= "notrack" in name
            name = name.removeprefix("bnd ").removeprefix("notrack ")
            if name != "jmp" and not CONDITIONAL.fullmatch(name):
                continue
            if operands.startswith("0x"):
                target = int(operands, 16)
                if not self.start <= target < self.end:
                    out.add(target)
            elif (slot := rip_slot(at, size, operands)) is not None:
                slots.add(slot)
            elif self.is_table(i, operands):
                table = True
            else:
                tail = True
        if self.instructions and name not in ("jmp", "ret", "ud2", "hlt", "call", "int3"):
            out.add(self.end)
        return out, slots, tail or self.decoded < self.end, table

    def is_table(self, i, operands):
        """
        Is instruction i a jump by a table of this function: is what it takes read with a scaled index, or added to
        where the table lies?
        """
        if "*" in operands:
            return self.has_table(i, operands)
        for _, _, name, before in reversed(self.instructions[max(i - 8, 0):i]):
            if before.split(",")[0] == operands and name in ("mov", "add", "movsxd"):
                return name == "add" or "*" in before and self.has_table(i, before)
        return False

    def has_table(self, i, operands):
        """
        May what is read there, 8 bytes by a scaled index, be places in this function? In code that can be anywhere that
        is an array of functions, if it is in no table.
        """
        base = re.search(r"\[(\w+) \+ \w+\*8", operands)
        if not self.file.anywhere or not base:
            return True
        for at, size, name, before in reversed(self.instructions[:i]):
            found = re.fullmatch(rf"{base[1]}, \[rip ([+-]) (0x[0-9a-f]+|\d+)\]", before) if name == "lea" else None
            if found:
                return self.start <= self.file.relocated(at + size + int(found[1] + found[2], 0)) < self.end
        return False


def vector_length(code):
    """The length of a vector instruction that capstone does not know, by its VEX or EVEX prefix; 0: it is none."""
    if len(code) < 7 or code[0] not in (0xc4, 0xc5, 0x62):
        return 0
    space, at = {0xc4: (code[1] & 31, 3), 0xc5: (1, 2), 0x62: (code[1] & 7, 4)}[code[0]]
    opcode, mode, low = code[at], code[at + 1] >> 6, code[at + 1] & 7
    if space == 1 and opcode == 0x77:  # vzeroupper, vzeroall
        return at + 1
    size, base = at + 2, low
    if mode != 3 and low == 4:
        base = code[at + 2] & 7
        size += 1
    size += 1 if mode == 1 else 4 if mode == 2 or (mode == 0 and base == 5) else 0
    return size + (space == 3 or space == 1 and (0x70 <= opcode <= 0x73 or opcode in (0xc2, 0xc4, 0xc5, 0xc6)))


def rip_slot(at, size, operands):
    """The address of "qword ptr [rip + 0x1234]", or None."""
    found = re.fullmatch(r"qword ptr \[rip ([+-]) (0x[0-9a-f]+|\d+)\]", operands)
    return at + size + int(found[1] + found[2], 0) if found else None


class File:
    """An ELF file; base: where its address 0 lies in the process (None: not known)."""

    def __init__(self, path, data, base):
        self.path, self.data, self.base = path, data, base
        self.more = None  # a language's own table of functions: find(address) is (start, end, name) or None
        if data[:4] != b"\x7fELF" or data[4] != 2 or struct.unpack_from("<H", data, 18)[0] != 62:
            raise ValueError(f"{path} is no ELF file for x86-64")
        offset, self.sections_at = struct.unpack_from("<QQ", data, 32)
        size, count, self.section_size, self.nsections = struct.unpack_from("<HHHH", data, 54)
        self.segments = [struct.unpack_from("<IIQQQQQQ", data, offset + i * size) for i in range(count)]
        self.loads = [s for s in self.segments if s[0] == 1]
        self.cache = {}

    @functools.cached_property
    def anywhere(self):
        """Is it position independent?"""
        return struct.unpack_from("<H", self.data, 16)[0] == 3

    @functools.cached_property
    def relocations(self):
        """{address: what is there, relative to the file's address 0}"""
        found = {}
        for i in range(self.nsections):
            header = struct.unpack_from("<IIQQQQIIQQ", self.data, self.sections_at + i * self.section_size)
            if header[1] == 4:  # SHT_RELA
                table = self.data[header[4]:header[4] + header[5] // 24 * 24]
                found.update(
                    (at, addend) for at, info, addend in struct.iter_unpack("<QQq", table) if info & 0xFFFFFFFF == 8
                )  # R_X86_64_RELATIVE
        return found

    def relocated(self, address):
        """The pointer at an address, relative to the file's address 0; 0: not known."""
        data = self.code(address, 8)
        return self.relocations.get(address) or (int.from_bytes(data, "little") if len(data) == 8 else 0)

    def code(self, address, size):
        """What of these bytes the file has."""
        for _, _, offset, start, _, filesz, _, _ in self.loads:
            if start <= address < start + filesz:
                at = offset + address - start
                return self.data[at:at + min(size, start + filesz - address)]
        return b""

    @functools.cached_property
    def symbols(self):
        """Sorted [(start, end, name)] of functions; of those with one start the longest."""
        found = {}
        for i in range(self.nsections):
            header = struct.unpack_from("<IIQQQQIIQQ", self.data, self.sections_at + i * self.section_size)
            if header[1] not in (2, 11):
                continue
            strings = struct.unpack_from("<IIQQQQIIQQ", self.data, self.sections_at + header[6] * self.section_size)
            table = self.data[header[4]:header[4] + header[5] // 24 * 24]
            for name, info, _, section, value, size in struct.iter_unpack("<IBBHQQ", table):
                if info & 15 in (2, 10) and section and value and size >= found.get(value, (0,))[0]:
                    found[value] = (size, strings[4] + name)
        return [(start, start + size, at) for start, (size, at) in sorted(found.items())]

    def name(self, at):
        return self.data[at:self.data.index(b"\0", at)].decode("utf-8", "replace")

    @functools.cached_property
    def symbol_starts(self):
        return [s[0] for s in self.symbols]

    @functools.cached_property
    def descriptions(self):
        """Sorted ([starts], [addresses]) of the entries of .eh_frame."""
        header = next((s for s in self.segments if s[0] == 0x6474e550), None)
        if not header:
            return [], []
        at, data = header[3], self.code(header[3], header[6])
        if len(data) < 12 or data[:4] != b"\x01\x1b\x03\x3b":
            return [], []
        count = struct.unpack_from("<I", data, 8)[0]
        pairs = [(at + a, at + b) for a, b in struct.iter_unpack("<ii", data[12:12 + 8 * count])]
        return [p[0] for p in pairs], [p[1] for p in pairs]

    def description(self, address):
        """(start, end) of the entry of .eh_frame that covers an address, or None."""
        starts, entries = self.descriptions
        i = bisect.bisect_right(starts, address) - 1
        if i < 0:
            return None
        entry = self.code(entries[i], 24)
        if len(entry) < 24:
            return None
        end = starts[i] + struct.unpack_from("<I", entry, 12)[0]
        return (starts[i], end) if address < end else None

    def symbol(self, address):
        i = bisect.bisect_right(self.symbol_starts, address) - 1
        if i < 0:
            return None
        start, end, name = self.symbols[i]
        return (start, end, self.name(name)) if address < end else None

    def function(self, address):
        """The function around an address; None: neither symbols nor .eh_frame have one."""
        symbol = self.more.find(address) if self.more else None
        described = None if symbol else self.description(address)
        symbol = symbol or self.symbol(address)
        if not described and not symbol:
            return None
        start, end = described or symbol[:2]
        key = (start, end)
        if key not in self.cache:
            name = symbol[2] if symbol else ""
            self.cache[key] = Function(self, start, end, name)
        return self.cache[key]


class Process:
    """What runs as pid: files as it has mapped them, and its memory while it lives."""

    def __init__(self, pid):
        self.pid, self.files = pid, {}
        self.maps = []
        with open(f"/proc/{pid}/maps") as lines:
            for line in lines:
                words = line.rstrip("\n").split(None, 5)
                start, end = (int(x, 16) for x in words[0].split("-"))
                self.maps.append((start, end, words[1], int(words[2], 16), words[5] if len(words) > 5 else ""))
        if not self.maps:
            raise OSError(f"process {pid} has ended: its code can not be read any more")
        self.starts = [m[0] for m in self.maps]

    def mapping(self, address):
        i = bisect.bisect_right(self.starts, address) - 1
        return self.maps[i] if i >= 0 and address < self.maps[i][1] else None

    def real(self, path):
        """Where we find a file that the process names: in a root of its own it may have another release's."""
        rooted = f"/proc/{self.pid}/root{path}"
        return rooted if path.startswith("/") and os.path.isfile(rooted) else path

    def memory(self, address, size):
        try:
            with open(f"/proc/{self.pid}/mem", "rb", 0) as memory:
                memory.seek(address)
                return memory.read(size)
        except (OSError, OverflowError, ValueError):
            return b""

    def file(self, path):
        """The file of a mapping's name; None if it can not be read."""
        if path not in self.files:
            try:
                self.files[path] = self.open(path)
                self.files[path].more = go_code.table_of(self, self.files[path])
            except (OSError, ValueError, struct.error):
                self.files[path] = None
        return self.files[path]

    def open(self, path):
        ranges = [m for m in self.maps if m[4] == path or m[4] == path + " (deleted)"]
        if path == "[vdso]":
            start, end = ranges[0][:2]
            return File(path, self.memory(start, end - start), start)
        if not path.startswith("/"):
            raise OSError("no file")
        data = b""
        if ranges:
            with open(f"/proc/{self.pid}/map_files/{ranges[0][0]:x}-{ranges[0][1]:x}", "rb") as file:
                data = file.read()
        else:
            with open(f"/proc/{self.pid}/root{path}", "rb") as file:
                data = file.read()
        file = File(path, data, None)
        for start, end, _, offset, _ in ranges:
            for _, _, at, virtual, _, filesz, _, _ in file.loads:
                if at & ~0xfff <= offset < at + filesz:
                    file.base = start - offset + at - virtual
                    return file
        return file

    def place(self, address):
        """(file or None, address in it) of an address of the process."""
        m = self.mapping(address)
        file = self.file(m[4].removesuffix(" (deleted)")) if m and m[4] else None
        return (file, address - file.base) if file and file.base is not None else (None, address)

    def word(self, file, address):
        """The eight bytes at an address of a file, as the process has them now; None if they can not be read."""
        if file.base is None:
            return None
        data = self.memory(file.base + address, 8)
        return int.from_bytes(data, "little") if len(data) == 8 else None
