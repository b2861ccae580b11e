# SPDX-License-Identifier: Apache-2.0
"""
Edges from a Perl sub: its line has to be one of its statements', with an op that can call what is below it. The program
reports its ops itself (programs/perl_calls.pm, which PERL5OPT loads); without that all edges are unknown.
"""

import os
import re
import signal
import time

NAME = re.compile(r"(?P<name>.*?) \((?P<file>.*):(?P<first>\d+)\)(?: \[(?P<why>\w+)\])?", re.S)
BLOCKS = {"eval {...}": "*block", "try {...}": "*block", 'eval "..."': "*eval", "sort {...}": "*sort"}
WAIT_S = 30
# What no op names: Perl calls it by itself.
SILENT = re.compile(r"::(DESTROY|AUTOLOAD|import|unimport|BEGIN|END|INC|\(.*)$|^BEGIN$")


def parse(lines):
    """({(name, first line): {line: words}}, {(file, line): words})"""
    subs, places, statements = {}, {}, None
    for line in lines:
        kind, *rest = line.rstrip("\n").split("\t")
        if kind == "S":
            statements = subs.setdefault((rest[0], int(rest[2])), {})
        else:
            file, number, words = rest[0], int(rest[1]), set(rest[2:])
            statements.setdefault(number, set()).update(words)
            places.setdefault((file, number), set()).update(words)
    return subs, places


class Perl:
    language = "perl"

    def __init__(self, process):
        self.process = process
        self.subs, self.places = {}, {}

    def load(self, stacks):
        """Has the program write what it knows of itself."""
        try:
            with open(f"/proc/{self.process.pid}/environ", "rb") as file:
                variables = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
        except OSError:
            return
        if b"YRT_PERL_CALLS" not in variables:
            return
        path = f"{variables[b'YRT_PERL_CALLS'].decode()}.{self.process.pid}"
        os.kill(self.process.pid, signal.SIGUSR2)
        end = time.monotonic() + WAIT_S
        while not os.path.exists(self.process.real(path)):
            if time.monotonic() > end:
                raise RuntimeError(f"the program does not write {path}")
            time.sleep(0.05)
        with open(self.process.real(path), errors="replace") as file:
            self.subs, self.places = parse(file)

    def words(self, frame):
        """What the line of a frame can call; None: unknown; False: the sub has no such statement."""
        found = NAME.fullmatch(frame.plain)
        if not found or not frame.line or found["name"] == 'eval "..."':
            return None  # which gives the place of the eval
        statements = self.subs.get((found["name"], int(found["first"])))
        if found["name"] in BLOCKS or found["name"] in ("(?{...})", "main program") or statements is None:
            return self.places.get((frame.file, frame.line))
        return statements.get(frame.line, False)

    def of_c(self, frame):
        """Is it an eval of call_sv()'s, because its statement has none?"""
        found = NAME.fullmatch(frame.plain)
        if not found or found["name"] != "eval {...}":
            return False
        return "*block" not in self.places.get((frame.file, int(found["first"])), {"*block"})

    def frame(self, frame):
        return "ok", ""  # the innermost one may not have run a statement yet: edge() looks at lines

    def approximate(self, outer, inner, between):
        """Of an edge that is wrong by lines, one of which is approximate."""
        return "approximate", ""

    def edge(self, outer, inner, between):
        words = self.words(outer)
        if words is False:
            return "fault", f"{outer.plain} has no line {outer.line}"
        if words is None or inner.script != self.language:
            return "unknown", ""
        found = NAME.fullmatch(inner.plain)
        name, why = (found["name"], found["why"]) if found else (inner.plain, None)
        word = "*file" if name.startswith("require") else BLOCKS.get(name)
        if word in words or name in words or f"*method {name.rsplit('::', 1)[-1]}" in words:
            return "ok", ""
        if self.of_c(outer) or why or between and (word or name == "(?{...})") or SILENT.search(name):
            return "dynamic", ""
        if not word and any(w == "*any" or w.startswith("*method") or w == "*sort" for w in words):
            return "dynamic", ""
        if word is None and between:
            return "dynamic", ""  # a destructor, an overloaded operator and the like, by C code
        calls = " and ".join(sorted(words)) or "nothing"
        return "fault", f"line {outer.line} of {outer.plain} calls {calls}, but {inner.plain} is below it"
