# SPDX-License-Identifier: Apache-2.0
"""Goes through all stacks of a profile and has each edge checked by who knows that kind of code."""

import collections
import itertools
import os
import re
import struct

import go_code
import native
import pprof
import together
from java_edges import Java
from lua_edges import Lua
from perl_edges import Perl
from puc_edges import Puc
from python_edges import HOST, Python

GOOD = ("ok", "signal", "landing")
OPEN = ("indirect", "tail", "dynamic", "approximate", "missing", "unknown")
MISSING = "[native frames missing here"  # where yrt says that it goes on by what a language's runtime knows
THREAD_START = re.compile(r"__?clone3?$|clone3?$|thread_start|_start|__libc_start|rewind_stack|runtime\.")
CLONE = (
    bytes.fromhex("b838000000"),  # mov eax, the number of clone()
    bytes.fromhex("b8b3010000"),  # or clone3()
    bytes.fromhex("31ed5f41ffd1"),  # musl's: xor %ebp, %ebp; pop %rdi; call *%r9
)


class Findings:
    """What was checked: samples and distinct edges by language and verdict, and what is wrong with an example each."""

    def __init__(self):
        self.samples, self.distinct = collections.Counter(), collections.Counter()
        self.faults, self.examples = collections.Counter(), {}
        self.stacks = self.truncated = 0
        self.seen = set()

    def add(self, language, key, verdict, why, stack):
        self.samples[language, verdict] += stack.count
        if (language, key) not in self.seen:
            self.seen.add((language, key))
            self.distinct[language, verdict] += 1
        if verdict == "fault":
            self.faults[language, why] += stack.count
            self.examples.setdefault((language, why), stack)

    def add_fault(self, language, why, count, stack):
        """One that is no edge's."""
        self.faults[language, why] += count
        self.examples.setdefault((language, why), stack)

    def checked(self, verdicts=GOOD + OPEN + ("fault",)):
        return sum(n for (_, verdict), n in self.samples.items() if verdict in verdicts)


class Checker:
    def __init__(self, process):
        self.process = process
        self.calls = native.Calls(process)
        self.languages = {
            c.language: c for c in (Python(process), Lua(process), Java(process), Perl(process), Puc(process))
        }
        self.cache = {}
        exe = os.readlink(f"/proc/{process.pid}/exe").removesuffix(" (deleted)")
        self.entries = {}
        for path in {exe, *(m[4] for m in process.maps if re.search(r"/ld[-.][^/]*$", m[4]))}:
            file = process.file(path)
            if file:
                self.entries[id(file)] = struct.unpack_from("<Q", file.data, 24)[0]

    def run(self, profile):
        findings = Findings()
        for language in self.languages.values():
            if any(f.script == language.language for s in profile.stacks for f in s.frames):
                language.load(profile.stacks)
        for stack in profile.stacks:
            findings.stacks += stack.count
            findings.truncated += stack.count if stack.truncated else 0
            self.check(stack, findings)
        for path, address, *verdict in go_code.inlined(self.process, profile):
            findings.add("inlined", (path, address), *verdict, pprof.Stack((), 1))
        for language, why, count, stack in together.faults(self.process, profile):
            findings.add_fault(language, why, count, stack)
        return findings

    def once(self, key, check):
        if key not in self.cache:
            self.cache[key] = check()
        return self.cache[key]

    def check(self, stack, findings):
        frames = [f for f in stack.frames if f.native or f.script or f.name.startswith(MISSING)]
        if not frames:
            return
        if not stack.truncated and frames[0].native:
            verdict = self.once(("root", frames[0]), lambda: self.root(frames[0]))
            findings.add("root", frames[0], *verdict, stack)
        outer = None
        script = None  # the index of the innermost frame of a language so far
        for i, frame in enumerate(frames):
            if frame.name.startswith(MISSING):
                findings.add("native", ("missing", frames[i - 1], frame), "missing", "", stack)
                outer = script = None
            elif frame.native:
                self.native_name(frame, stack, findings)
                if outer is not None:
                    self.native_edge(frames[outer], frame, stack, findings)
                if script is not None and script == i - 1:
                    self.enter_native(frames, script, outer, frame, stack, findings)
                outer = i
            else:
                self.script_at(frames, i, script, outer, stack, findings)
                # which is a frame of machine code itself, whose address is not given
                outer = None if frame.script == "hotspot" else outer
                script = i

    def script_at(self, frames, i, script, outer, stack, findings):
        """A frame of a language, by itself and below what is around it."""
        frame = frames[i]
        self.script_frame(frame, stack, findings)
        if script is not None and frames[script].script == frame.script:
            self.script_edge(frames[script], frame, script + 1 < i, stack, findings)
        elif outer is not None and outer == i - 1:
            self.host(frames[outer], frame, stack, findings)

    def native_edge(self, outer, inner, stack, findings):
        def check():
            if "guess" in outer.marks or "guess" in inner.marks:
                return "approximate", ""
            a, b = native.place_of(self.process, outer), native.place_of(self.process, inner)
            return native.check_edge(self.calls, a, b) if a and b else ("unknown", "")
        findings.add("native", (outer, inner), *self.once((outer, inner), check), stack)

    def native_name(self, frame, stack, findings):
        """Of a function that its language's own table names."""
        def check():
            place = native.place_of(self.process, frame)
            return go_code.check_name(frame, place) if place and go_code.is_go(place) else None
        verdict = self.once(("name", frame), check)
        if verdict:
            findings.add("go", ("name", frame), *verdict, stack)

    def root(self, frame):
        """Does a process or a thread begin there?"""
        place = native.place_of(self.process, frame)
        if not place or not place.file:
            return "unknown", ""
        function = place.function
        entry = self.entries.get(id(place.file))
        if go_code.is_go(place):
            return ("ok", "") if go_code.is_root(place) else ("fault", f"a whole stack begins in {frame.plain} of Go")
        if entry is not None and (
            0 <= place.address - entry < 96 or function and function.start <= entry < function.end
        ):
            return "ok", ""
        if os.path.basename(frame.mapping).startswith("_greenlet."):
            return "ok", ""  # a greenlet's first function runs on the stack of whoever started it
        if THREAD_START.match(frame.plain) or any(c in place.bytes(160, 16) for c in CLONE):
            return "ok", ""
        if native.begins_fiber(place):
            return "ok", ""
        return "fault", f"a whole stack begins in {frame.plain} of {os.path.basename(frame.mapping)}"

    def script_frame(self, frame, stack, findings):
        checker = self.languages.get(frame.script)
        if not checker or "approx" in frame.marks:
            return
        verdict = self.once(("frame", frame), lambda: checker.frame(frame))
        if verdict[0] == "fault":
            findings.add(frame.script, ("frame", frame), *verdict, stack)

    def script_edge(self, outer, inner, between, stack, findings):
        checker = self.languages.get(outer.script)
        verdict = (
            self.once((outer, inner, between), lambda: checker.edge(outer, inner, between))
            if checker
            else ("unknown", "")
        )
        if verdict[0] == "fault" and "approx" in outer.marks | inner.marks:
            verdict = self.once(("whole", outer, inner, between), lambda: checker.approximate(outer, inner, between))
        findings.add(outer.script, (outer, inner, between), *verdict, stack)

    def host(self, outer, frame, stack, findings):
        """The frame of machine code around the outermost one of a language: is it the interpreter?"""
        if frame.script != "python" or not outer.mapping or re.search(r"\+0x|^\[", outer.plain):
            return
        verdict = ("ok", "") if HOST.match(outer.plain) else ("fault", f"{frame.plain} is said to run in {outer.plain}")
        findings.add("python", ("host", outer, frame), *verdict, stack)

    def enter_native(self, frames, script, outer, inside, stack, findings):
        """The machine code that a frame of a language has called."""
        frame = frames[script]
        if frame.script == "lua":
            natives = tuple(itertools.takewhile(lambda f: f.native, frames[script + 1:]))
            verdict = self.once(("enter", frame, natives), lambda: self.languages["lua"].enter(frame, natives))
            findings.add("lua", ("enter", frame, natives), *verdict, stack)
        if frame.script != "luajit":
            return
        lua = self.languages["luajit"]
        if frame.plain == "(gc)":
            verdict = lua.collector(inside)
        else:
            verdict = lua.host(frames, script, frames[outer] if outer is not None else None, inside)
        findings.add("luajit", ("enter", frame, frames[outer] if outer is not None else None, inside), *verdict, stack)
