# SPDX-License-Identifier: Apache-2.0
"""
Go's functions by the table that its linker puts into every program, stripped or not (pclntab): runtime/symtab.go and
runtime/runtime2.go of Go 1.12 to 1.26. And what its assembly does that no call instruction shows.
"""

import bisect
import re
import struct
import subprocess

MAGICS = {0xfffffffb: 2, 0xfffffffa: 16, 0xfffffff0: 18, 0xfffffff1: 20}
SECTIONS = (".gopclntab", ".data.rel.ro.gopclntab")
HEAD = re.compile(rb"[\xfb\xfa\xf0\xf1]\xff\xff\xff\x00\x00\x01\x08")  # of a table on this machine
MODULE_TEXT = 22  # word of runtime.moduledata since 1.16
# by a signal's handler, or it jumps back there
INJECTED = re.compile(r"runtime\.(asyncPreempt|sigpanic|sigpanic0|debugCall\w*|panicmem|gogo)$|gogo$")
ROOTS = re.compile(
    r"runtime\.(goexit|mstart|mstart0|mstart1|rt0_go|mcall|clone|morestack|sigreturn\S*|rawVforkSyscall)$|_rt0_\S+$"
)


def section(file, *names):
    """(address, bytes) of one of these; None."""
    headers = [
        struct.unpack_from("<IIQQQQIIQQ", file.data, file.sections_at + i * file.section_size)
        for i in range(file.nsections)
    ]
    index = struct.unpack_from("<H", file.data, 62)[0]
    for header in headers:
        if index < len(headers) and file.name(headers[index][4] + header[0]) in names:
            return header[3], file.data[header[4]:header[4] + header[5]]
    return None


class Table:
    """Sorted starts of functions, and their names."""

    def __init__(self, process, file, address, data):
        self.data = data
        self.layout = MAGICS[struct.unpack_from("<I", data)[0]]
        number = struct.unpack_from("<Q", data, 8)[0]
        if self.layout == 2:
            self.names, self.functions, form, base = 0, 0, "<QQ", 0
            at = 16
        else:
            words = struct.unpack_from("<8Q", data, 8)
            part = 3 if self.layout >= 18 else 2
            self.names, self.functions = words[part], words[part + 4]
            form, base = ("<II", self.text(process, file, address)) if self.layout >= 18 else ("<QQ", 0)
            at = self.functions
        size = struct.calcsize(form)
        entries = list(struct.iter_unpack(form, data[at:at + size * number]))
        end = struct.unpack_from(form[:2], data, at + size * number)[0]
        bias = 0 if self.layout >= 18 or not file.base or entries[0][0] else None
        if bias is None:
            raise ValueError("the dynamic linker fills in its addresses")
        self.starts = [base + e[0] for e in entries] + [base + end]
        self.at = [e[1] for e in entries]

    def text(self, process, file, address):
        """What entries are relative to: given by runtime.firstmoduledata, which begins with the table's address."""
        want = struct.pack("<Q", address + file.base)
        for start, end, access, _, path in process.maps:
            if path.removesuffix(" (deleted)") != file.path:
                continue
            held = process.memory(start, end - start)
            at = -1
            while (at := held.find(want, at + 1)) >= 0:
                words = struct.unpack_from("<24Q", held, at) if at % 8 == 0 and at + 192 <= len(held) else [0] * 24
                if words[1] == address + file.base + self.names and words[16] == address + file.base + self.functions:
                    return words[MODULE_TEXT] - file.base
        raise ValueError(f"no moduledata in {file.path}")

    def find(self, address):
        """(start, end, name) of a function; None."""
        i = bisect.bisect_right(self.starts, address) - 1
        if not 0 <= i < len(self.at):
            return None
        entry = self.functions + self.at[i]
        name = self.names + struct.unpack_from("<i", self.data, entry + (4 if self.layout >= 18 else 8))[0]
        return (
            self.starts[i],
            self.starts[i + 1],
            self.data[name : self.data.index(b"\0", name)].decode("utf-8", "replace"),
        )


def places(file):
    """(address, bytes) of what may be a table: a C linker puts a PIE's into a section with others."""
    found = section(file, *SECTIONS)
    if found:
        yield found
    elif found := section(file, ".data.rel.ro"):
        address, data = found
        for match in HEAD.finditer(data):
            if match.start() % 32 == 0:
                yield address + match.start(), data[match.start():]


def table_of(process, file):
    """The table of a file that has one and whose addresses need no dynamic linker; None."""
    for found in places(file) if file.base is not None else ():
        try:
            return Table(process, file, *found)
        except (ValueError, KeyError, struct.error, IndexError):
            continue
    return None


def is_go(place):
    return bool(place.file and place.file.more and place.file.more.find(place.address))


def injected(outer, inner):
    """Does inner lie on outer's stack though outer did not call it?"""
    return is_go(inner) and INJECTED.match(str(inner.function))


def starts_goroutine(outer):
    """goexit's address is put below a goroutine's first function, which nothing calls."""
    return is_go(outer) and str(outer.function) == "runtime.goexit"


def calls_deferreturn(place, address):
    at = next((i for i in place.function.instructions if i[0] == address), None)
    target = at and at[2] == "call" and at[3].startswith("0x") and place.file.function(int(at[3], 16))
    return bool(target) and str(target) == "runtime.deferreturn"


def goes_to_deferreturn(outer, inner):
    """
    Up to 1.16 a deferred function returns to the very call of deferreturn(), which calls the next one. recovery() lets
    a goroutine that has recovered go on there.
    """
    if not is_go(outer):
        return False
    recovers = is_go(inner) and str(inner.function) in ("runtime.mcall", "runtime.recovery")
    return calls_deferreturn(outer, outer.address if recovers else outer.address + 1)


def is_root(place):
    return bool(ROOTS.match(str(place.function)))


def shown(name):
    """Type arguments as yrt and Go print them."""
    begin, end = name.find("["), name.rfind("]")
    return name if begin < 0 or end < begin + 4 else name[:begin] + "[...]" + name[end + 1:]


def check_name(frame, place):
    """(verdict, what is wrong) of a function's name beside the table's."""
    want = shown(str(place.function))
    if want.startswith("_Z"):  # C++ that the linker took from an object file
        return "ok", ""
    return ("ok", "") if frame.plain in (want, str(place.function)) else ("fault", f"{want} is shown as {frame.plain}")


def debug_chains(path, addresses):
    """{address: [functions there, innermost first]} by DWARF, which the linker makes beside its own table."""
    run = subprocess.run(
        ["llvm-symbolizer", "--inlines", "-e", path],
        input="".join(f"{a:#x}\n" for a in addresses),
        capture_output=True,
        text=True,
        check=True,
    )
    names = [part.splitlines()[::2] for part in run.stdout.split("\n\n")]
    return {address: [n.removesuffix(".abi0") for n in chain] for address, chain in zip(addresses, names)}


def inlined(process, profile):
    """
    [(path, address, verdict, what is wrong)] of the functions at each place in Go's code of files with debug
    information.
    """
    for path in sorted({path for path, _ in profile.inlined}):
        file = process.file(path) if path.startswith("/") else None
        if not file or not file.more or not section(file, ".debug_info", ".zdebug_info"):
            continue
        places = sorted(
            address
            for at, address in profile.inlined
            if at == path and (found := file.more.find(address)) and not found[2].startswith("_Z")
        )
        by_debug = debug_chains(f"/proc/{process.pid}/root{path}", places)
        for address in places:
            have, want = profile.inlined[path, address], [shown(name) for name in by_debug[address]]
            # debug information has main.f·dwrap·1 of 1.17 with full stops
            have = [name.replace("·", ".") if "·dwrap·" in name else name for name in have]
            yield path, address, *(
                ("ok", "")
                if have == want
                else ("fault", f"at {address:#x} {want} are inlined by DWARF, {have} are shown")
            )
