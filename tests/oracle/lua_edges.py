# SPDX-License-Identifier: Apache-2.0
"""
Edges from and to Lua functions. A caller's line has to be one of its own, with an instruction that can call the callee;
a C function can only be running where the interpreter has called it: never on top of a trace's machine code, unless its
own code is there.
"""

import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = re.compile(r"(?P<name>.*?) \((?P<file>[^()]*?)(?::(?P<first>\d+))?\)", re.S)
# builtins that call a metamethod in their own place, which may end in a tail call (FFH_TAILCALL)
REPLACED = {"tostring", "pairs", "ipairs"}
# what has its name from the library, not from its calls
STANDARD = {"assert", "collectgarbage", "dofile", "error", "getfenv", "getmetatable", "ipairs", "load", "loadfile",
            "loadstring", "module", "newproxy", "next", "pairs", "pcall", "print", "rawequal", "rawget", "rawset",
            "require", "select", "setfenv", "setmetatable", "tonumber", "tostring", "type", "unpack", "xpcall"}
OWN = re.compile(r"lib(lua|luajit)[^/]*\.so|/luajit[^/]*$")


class Prototype:
    def __init__(self, first, last):
        self.first, self.last, self.lines, self.calls = first, last, set(), {}


def parse(text, files):
    prototypes = functions = prototype = None
    for line in text.splitlines():
        word, *rest = line.split("\t")
        if word == "F":
            prototypes, functions = files.setdefault(rest[0], ([], set()))
        elif word == "P":
            prototype = Prototype(int(rest[0]), int(rest[1]))
            prototypes.append(prototype)
        elif word == "L":
            prototype.lines.add(int(rest[0]))
        elif word == "C":
            prototype.calls.setdefault(int(rest[0]), set()).add((rest[1], rest[2]))
        elif word == "D":
            functions.add(rest[0])


class Lua:
    language = "luajit"

    def __init__(self, process):
        self.process = process
        self.files = {}
        self.called = set()  # by lines of the files that could be read
        self.sources_miss = False  # of a frame: what a line calls may be defined there, and go on by a tail call

    def path(self, frame):
        name = frame.file.removeprefix("@")
        if not name.startswith("/"):
            try:
                name = os.path.join(os.readlink(f"/proc/{self.process.pid}/cwd"), name)
            except OSError:
                pass
        return name

    def load(self, stacks):
        wanted = sorted({self.path(f) for s in stacks for f in s.frames if f.script == "luajit" and f.file})
        real = {path: self.process.real(path) for path in wanted}
        self.sources_miss = any(p.endswith(".lua") and not os.path.isfile(real[p]) for p in wanted)
        wanted = [p for p in wanted if os.path.isfile(real[p])]
        files = {}
        for at in range(0, len(wanted), 100):
            run = subprocess.run(
                ["luajit", os.path.join(HERE, "lua_calls.lua"), *(real[p] for p in wanted[at : at + 100])],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=120,
            )
            parse(run.stdout, files)
        self.learn({path: files[real[path]] for path in wanted if real[path] in files})

    def learn(self, files):
        self.files = files
        prototypes = [p for known, _ in self.files.values() for p in known]
        self.called = {name for p in prototypes for calls in p.calls.values() for kind, name in calls if kind != "meta"}
        self.called -= STANDARD
        self.defined = set().union(*(names for _, names in self.files.values())) if self.files else set()

    def prototypes(self, frame):
        """Of the function that a frame shows; None: there is no source."""
        found, known = NAME.fullmatch(frame.plain), self.files.get(self.path(frame))
        if not found or not known:
            return None
        first = int(found["first"] or 0)
        return [p for p in known[0] if p.first == first]

    def frame(self, frame):
        if not frame.file:
            return "ok", ""
        prototypes = self.prototypes(frame)
        if not prototypes or not frame.line:
            return "unknown", ""
        if any(frame.line in p.lines or frame.line == p.first or frame.line == p.last for p in prototypes):
            return "ok", ""
        return "fault", f"{frame.plain} has no line {frame.line}"

    def approximate(self, outer, inner, between):
        """Of an edge that is wrong by lines, one of which is approximate."""
        return "approximate", ""

    def edge(self, outer, inner, between):
        prototypes = self.prototypes(outer)
        if not prototypes or inner.plain[0] in "([" or outer.plain[0] in "([":
            return "unknown", ""
        calls = set().union(*(p.calls.get(outer.line, set()) for p in prototypes))
        if not calls:
            return "fault", f"line {outer.line} of {outer.plain} calls nothing, but {inner.plain} is below it"
        if inner.script != self.language:
            return "dynamic", ""
        found = NAME.fullmatch(inner.plain)
        last = re.split(r"[.:]", found["name"] if found else inner.plain)[-1]
        names = {name for kind, name in calls if kind != "meta"}
        if last in names:
            return "ok", ""
        if (
            inner.file
            or self.sources_miss
            and last not in self.called
            or not names
            or "?" in names
            or names & (self.defined | REPLACED)
            or not re.fullmatch(r"[A-Za-z_]\w*", last)
            or last.startswith("__")
        ):
            return "dynamic", ""  # another name of it, an operator's, or a tail call of what was called here
        return "fault", f"line {outer.line} of {outer.plain} calls {' and '.join(sorted(names))}, not {inner.plain}"

    def host(self, stack, at, physical, inside):
        """
        The innermost script frame is frames[at], of a C function. physical: the frame of machine code that it is shown
        in, inside: that which it is said to have called.
        """
        frame = stack[at]
        if frame.file or not inside or not physical or physical.mapping or frame.plain[0] in "([":
            return "ok", ""
        return "fault", f"{frame.plain} is said to run on a trace's machine code, which calls {inside.name}"

    def collector(self, inside):
        """What may (gc) have called first?"""
        if inside.name.startswith("lj_gc_") or OWN.search(inside.mapping) and not re.match(r"luaL?_", inside.name):
            return "ok", ""
        stripped = inside.mapping.startswith("/usr/sbin") or re.search(r"\+0x[0-9a-f]+$", inside.name)
        return ("unknown" if stripped else "fault"), f"(gc) is above {inside.name}, which led to it"
