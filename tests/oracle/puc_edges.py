# SPDX-License-Identifier: Apache-2.0
"""
Edges from and to functions of PUC-Lua, by the bytecode that luac5.1 to luac5.4 list of the sources. A caller's line has
to be one of its own, with an instruction that can call the callee; where it calls a local function that nothing else is
ever stored to, the callee has to be that one. A function in C encloses its own machine code.
"""

import os
import re
import shutil
import subprocess

NAME = re.compile(r"(?P<name>.*?) \((?P<file>[^()]*?)(?::(?P<first>\d+))?\)", re.S)
HEAD = re.compile(r"(?:main|function) <.*:(\d+),(\d+)> \(.* at (0x[0-9a-f]+)\)")
LINE = re.compile(r"\t(\d+)\t\[(-|\d+)\]\t(\w+)\s*([^;]*?)\s*(?:;\s?(.*))?")
LOCAL = re.compile(r"\t(\d+)\t(.*)\t(\d+)\t(\d+)")
# Calls nothing, whatever the values are. CLOSURE and its like may collect garbage, which is a frame of its own.
QUIET = set(
    """MOVE LOADK LOADKX LOADBOOL LOADNIL LOADI LOADF LOADFALSE LFALSESKIP LOADTRUE GETUPVAL SETUPVAL NOT JMP TEST TESTSET FORPREP FORLOOP TFORLOOP
    TFORPREP SETLIST NEWTABLE CLOSURE VARARG VARARGPREP EXTRAARG EQK EQI TBC RETURN0 RETURN1""".split()
)
BY_NAME = {"GETGLOBAL", "GETTABUP", "GETFIELD", "GETTABLE", "SELF"}  # read what the comment names
STORES = {"SETGLOBAL": 0, "SETTABUP": 2, "SETFIELD": 2, "SETTABLE": 2}  # which operand is stored
NO_A = {
    "SETTABLE",
    "SETFIELD",
    "SETTABUP",
    "SETGLOBAL",
    "SETUPVAL",
    "SETI",
    "SETLIST",
    "EQ",
    "LT",
    "LE",
    "EQK",
    "EQI",
    "LTI",
    "LEI",
    "GTI",
    "GEI",
    "TEST",
    "JMP",
    "RETURN",
    "RETURN0",
    "RETURN1",
    "TFORCALL",
    "TFORPREP",
    "MMBIN",
    "MMBINI",
    "MMBINK",
    "TBC",
    "CLOSE",
    "EXTRAARG",
    "VARARGPREP",
}
LIBRARY = re.compile(r"(?:(?:string|table|math|io|os|coroutine|debug|utf8|bit32)\.)?(\w+)")
OWN = set(
    """pcall xpcall sort gsub gmatch find match format rep byte char sub upper lower reverse concat insert remove unpack pack move resume wrap yield
    tostring tonumber type next ipairs pairs select setmetatable getmetatable rawget rawset rawequal error assert print require dofile load loadstring
    floor sqrt random max min read write lines close open clock time date getinfo traceback sethook collectgarbage""".split()
)
ALIASES = {"load": "loadstring", "loadstring": "load"}  # one function by two names
# Of the libraries: none of these calls a function in Lua.
LEAVES = re.compile(
    r"(string\.(rep|byte|sub|len|upper|lower|reverse|find|match|char)|math\.\w+|type|rawget|rawset|rawequal|rawlen"
    r"|select|os\.(time|clock|getenv|date))"
)


class Prototype:
    def __init__(self, first, last):
        self.first, self.last = first, last
        self.code, self.locals, self.names = [], [], set()  # names: those that it is stored by where it is made
        self.lines, self.calls = set(), {}  # {line: {(kind, how, name)}}

    def local(self, register, pc):
        """The name of the local variable that a register is at pc, and the pc that its life begins at."""
        alive = [v for v in self.locals if v[1] <= pc < v[2]]
        return alive[register] if register < len(alive) else None

    def sets(self, entry, register):
        _, _, op, operands, _ = entry
        if op in NO_A or not operands:
            return False
        if op in ("CALL", "TAILCALL", "TFORLOOP", "TFORCALL"):
            return register >= operands[0]
        if op == "LOADNIL":
            return register >= operands[0]
        return register == operands[0] or op == "SELF" and register == operands[0] + 1

    def origin(self, at, register):
        """(how, name) of what a register holds before the instruction code[at]: how it was read, and by which name."""
        for _ in range(4):
            variable = self.local(register, self.code[at][0])
            if variable:
                return "local", variable[0]
            setter = next((i for i in range(at - 1, max(at - 300, -1), -1) if self.sets(self.code[i], register)), None)
            if setter is None:
                return "?", "?"
            _, _, op, operands, comment = self.code[setter]
            if op == "GETUPVAL":
                return "upvalue", comment or "?"
            if op in BY_NAME:
                found = re.findall(r'"([^"]*)"', comment or "")
                if op == "GETGLOBAL":
                    return "global", (comment or "?").strip()
                return ("field", found[-1]) if found else ("?", "?")
            if op != "MOVE":
                return "?", "?"
            at, register = setter, operands[1]
        return "?", "?"


def parse(text):
    """All functions of a listing, in its order, and {address: prototype}."""
    found, by_address, prototype, part = [], {}, None, ""
    for line in text.splitlines():
        head = HEAD.match(line)
        if head:
            prototype, part = Prototype(int(head[1]), int(head[2])), "code"
            found.append(prototype)
            by_address[head[3]] = prototype
        elif prototype and re.match(r"(constants|locals|upvalues) \(", line):
            part = line.split(" ", 1)[0]
        elif prototype and part == "code" and (entry := LINE.fullmatch(line)):
            operands = [int(x.rstrip("k")) for x in entry[4].split() if re.fullmatch(r"-?\d+k?", x)]
            prototype.code.append(
                (int(entry[1]), int(entry[2]) if entry[2] != "-" else 0, entry[3], operands, entry[5])
            )
        elif prototype and part == "locals" and (entry := LOCAL.fullmatch(line)):
            prototype.locals.append((entry[2], int(entry[3]), int(entry[4])))
    return found, by_address


def understand(found, by_address):
    """
    What each line calls, what functions are called where they are made, and (the names that only ever mean functions
    made here).
    """
    made, other = set(), set()  # names of variables that hold a function from the start, or something else
    for prototype in found:
        parameters = {v[0] for v in prototype.locals if v[1] <= 1}
        other |= parameters
        for variable, begin, _ in prototype.locals:
            # the instruction before its life begins gives it its value; a local function's life begins behind CLOSURE,
            # too
            maker = next((e for e in prototype.code if e[0] == begin - 1), None)
            closure = maker and maker[2] == "CLOSURE" and (prototype.local(maker[3][0], begin) or ("",))[0] == variable
            if closure and by_address.get((maker[4] or "").split()[-1] if maker[4] else ""):
                by_address[maker[4].split()[-1]].names.add(variable)
                made.add(variable)
            else:
                other.add(variable)
        for at, entry in enumerate(prototype.code):
            pc, line, op, operands, comment = entry
            prototype.lines.add(line)
            calls = prototype.calls.setdefault(line, set())
            if op in ("CALL", "TAILCALL"):
                calls.add(("tail" if op == "TAILCALL" else "call", *prototype.origin(at, operands[0])))
            elif (
                op in ("TFORCALL", "TFORLOOP")
                and len(operands) >= 2
                and not (op == "TFORLOOP" and any(e[2] == "TFORCALL" for e in prototype.code))
            ):
                calls.add(("iter", "?", "?"))
            elif op == "RETURN" or op == "CLOSE":
                calls.update(
                    {("meta", "?", "?")}
                    if op == "CLOSE" or (comment or "") and any(e[2] == "TBC" for e in prototype.code)
                    else ()
                )
            elif op not in QUIET:
                calls.add(("meta", "?", "?"))
            if op == "SETUPVAL":
                other.add(comment)
            elif (
                operands
                and op not in NO_A
                and op not in ("CALL", "TAILCALL")
                and (variable := prototype.local(operands[0], pc))
                and op != "CLOSURE"
            ):
                other.add(variable[0])
            if op == "CLOSURE" and comment and by_address.get(comment.split()[-1]):
                name_closure(prototype, at, by_address[comment.split()[-1]])
        for line in [n for n, calls in prototype.calls.items() if not calls]:
            del prototype.calls[line]
    return made - other


def name_closure(prototype, at, inner):
    """By where the instructions right behind CLOSURE store it."""
    register = prototype.code[at][3][0]
    for _, _, op, operands, comment in prototype.code[at + 1:at + 4 + 2 * len(inner.locals)]:
        if op == "SETUPVAL" and operands[0] == register:
            inner.names.add(comment)
            return
        if op in STORES and len(operands) > STORES[op] and operands[STORES[op]] == register:
            found = [comment.strip()] if op == "SETGLOBAL" else re.findall(r'"([^"]*)"', comment or "")[-1:]
            inner.names.update(found)
            return


class Puc:
    language = "lua"

    def __init__(self, process):
        self.process = process
        self.files = {}

    def path(self, frame):
        name = frame.file
        if not name.startswith("/"):
            try:
                name = os.path.join(os.readlink(f"/proc/{self.process.pid}/cwd"), name)
            except OSError:
                pass
        return name

    def versions(self):
        """Of the programs that list bytecode: those of the releases that the process has, else all."""
        text = " ".join({m[4] for m in self.process.maps})
        found = [v for v in ("5.1", "5.2", "5.3", "5.4") if re.search(rf"lua-?{re.escape(v)}", text)]
        return [p for p in (shutil.which(f"luac{v}") for v in found or ("5.1", "5.2", "5.3", "5.4")) if p]

    def load(self, stacks):
        wanted = sorted({self.path(f) for s in stacks for f in s.frames if f.script == "lua" and f.file})
        for path in wanted:
            real = self.process.real(path)
            for luac in self.versions() if os.path.isfile(real) else ():
                run = subprocess.run(
                    [luac, "-l", "-l", "-p", real], capture_output=True, text=True, errors="replace", timeout=120
                )
                found, by_address = parse(run.stdout)
                known = self.files.setdefault(path, ([], set()))
                known[1].update(understand(found, by_address))
                known[0].extend(found)

    def prototypes(self, frame):
        """Of the function that a frame shows; None: there is no source."""
        found, known = NAME.fullmatch(frame.plain), self.files.get(self.path(frame))
        if not found or not known:
            return None
        return [p for p in known[0] if p.first == int(found["first"] or 0)]

    def frame(self, frame):
        if not frame.file:
            return "ok", ""
        prototypes = self.prototypes(frame)
        if not prototypes or not frame.line:
            return "unknown", ""
        if any(frame.line in p.lines or frame.line == p.first for p in prototypes):
            return "ok", ""
        return "fault", f"{frame.plain} has no line {frame.line}"

    def approximate(self, outer, inner, between):
        """Of an edge that is wrong by lines, one of which is approximate."""
        return "approximate", ""

    def edge(self, outer, inner, between):
        if inner.plain[0] in "([" or outer.plain[0] in "([":
            return "unknown", ""
        if not outer.file:
            if LEAVES.fullmatch(outer.plain) and inner.file:
                return "fault", f"{outer.plain}, which calls nothing in Lua, is said to call {inner.plain}"
            return "dynamic", ""
        prototypes = self.prototypes(outer)
        if not prototypes or not outer.line:
            return "unknown", ""
        calls = set().union(*(p.calls.get(outer.line, set()) for p in prototypes))
        if not calls:
            return "fault", f"line {outer.line} of {outer.plain} calls nothing, but {inner.plain} is below it"
        if inner.script != self.language:
            return "dynamic", ""
        return self.callee(outer, inner, calls)

    def callee(self, outer, inner, calls):
        """Can one of these instructions have called it?"""
        found = NAME.fullmatch(inner.plain)
        shown = found["name"] if found else inner.plain
        if shown.endswith("tail called"):
            return "tail", ""
        if inner.file and all(kind == "tail" for kind, _, _ in calls):
            return (
                "fault",
                (
                    f"line {outer.line} of {outer.plain} only has tail calls, after which it is gone, but {inner.plain}"
                    " is below it"
                ),
            )
        last = re.split(r"[.:]", shown)[-1]
        names = {name for kind, _, name in calls if name != "?"}
        prototypes = self.prototypes(inner) if inner.file else None
        defined = set().union(*(p.names for p in prototypes)) if prototypes else set()
        if defined & names or last == "for iterator" and any(kind == "iter" for kind, _, _ in calls):
            return "ok", ""
        if any(n.startswith("__") for n in defined) and any(kind == "meta" for kind, _, _ in calls):
            return "ok", ""
        open_ = any(name == "?" for _, _, name in calls)
        fixed = self.files.get(self.path(outer), ((), set()))[1]
        if not open_ and names <= fixed:
            return (
                "fault",
                (
                    f"line {outer.line} of {outer.plain} calls {' and '.join(sorted(names))}, which is another function"
                    f" than {inner.plain}"
                ),
            )
        if last in names:
            return ("dynamic" if defined else "ok"), ""
        if (
            inner.file
            or open_
            or any(how in ("local", "upvalue") for _, how, _ in calls)
            or not re.fullmatch(r"[A-Za-z_]\w*", last)
            or last.startswith("__")
        ):
            return "dynamic", ""
        return "fault", f"line {outer.line} of {outer.plain} calls {' and '.join(sorted(names))}, not {inner.plain}"

    def enter(self, script, natives):
        """
        The machine code right inside of a frame: a function in Lua is run by the VM, which calls one in C only below a
        frame of it.
        """
        inside = next((f for f in natives if "vm" not in f.marks), None)
        found = LIBRARY.fullmatch(inside.plain) if inside else None
        if not found or found[1] not in OWN or script.plain[0] in "([":
            return "ok", ""
        if script.file:
            # a function in C that has no other name than its code's is that frame
            calls = set().union(*(p.calls.get(script.line, set()) for p in self.prototypes(script) or ()))
            if not self.prototypes(script) or any(
                name in ("?", found[1]) or how in ("local", "upvalue") for _, how, name in calls
            ):
                return "dynamic", ""
            return "fault", f"{script.plain} is said to enclose {inside.plain}, which is not its own"
        last = re.split(r"[.:]", script.plain)[-1]
        if last == found[1] or last not in OWN or ALIASES.get(last) == found[1]:
            return "ok", ""
        return "fault", f"{script.plain} is said to enclose {inside.plain}"
