# SPDX-License-Identifier: Apache-2.0
"""
Edges from a Python function: its line has to be one of its own, with an instruction that can run another function.
"""

import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = re.compile(r"(?P<name>.*) \((?P<file>[^()]*):(?P<first>\d+)\)", re.S)
HOST = re.compile(
    r"_PyEval_EvalFrameDefault|_PyEval_EvalFrame|PyEval_EvalFrameEx|_TAIL_CALL_|_PyJIT|_PyEval_Vector|gen_send"
)


def split(frame):
    """(name, first line) of a frame's function."""
    found = NAME.fullmatch(frame.plain)
    return (found["name"], int(found["first"])) if found else (frame.plain, 0)


class Python:
    language = "python"

    def __init__(self, process):
        self.process = process
        self.files = {}

    def interpreters(self):
        """The target's own, started like any other program; else ours."""
        exe = os.readlink(f"/proc/{self.process.pid}/exe") if os.path.exists(f"/proc/{self.process.pid}/exe") else ""
        return [exe, sys.executable] if "python" in os.path.basename(exe) else [sys.executable]

    def load(self, stacks):
        named = {f.file for s in stacks for f in s.frames if f.script == "python" and f.file}
        wanted = sorted((real, path) for path in named if os.path.isfile(real := self.process.real(path)))
        for at in range(0, len(wanted), 200):
            paths = dict(wanted[at:at + 200])
            self.files.update((paths[real], lines) for real, lines in self.ask(list(paths)).items())

    def ask(self, paths):
        for interpreter in self.interpreters():
            run = subprocess.run(
                [interpreter, "-I", os.path.join(HERE, "python_calls.py"), *paths],
                capture_output=True,
                text=True,
                timeout=120,
            )
            if not run.returncode:
                return json.loads(run.stdout)
        return {}

    def line(self, frame):
        """
        [can call, names] of the line that a frame executes; None: there is no source; False: the function has no such
        line.
        """
        functions = self.files.get(frame.file)
        name, first = split(frame)
        if not functions or not first or not frame.line:
            return None
        plain = name.rsplit(".", 1)[-1].strip("<>")
        found = [lines for key, lines in functions.items()
                 if key.startswith(f"{first}:") and key.split(":", 1)[1].strip("<>").endswith(plain)]
        if not found:
            return None
        return next((lines[str(frame.line)] for lines in found if str(frame.line) in lines), False)

    def frame(self, frame):
        at = self.line(frame)
        if at is False:
            return "fault", f"{frame.plain} has no line {frame.line}"
        return ("unknown" if at is None else "ok"), ""

    def approximate(self, outer, inner, between):
        """Of an edge that is wrong by lines, one of which is approximate."""
        return "approximate", ""

    def edge(self, outer, inner, between):
        if "(gc)" in (outer.plain, inner.plain):
            return "dynamic", ""
        at = self.line(outer)
        if not at:
            return "unknown", ""
        names = split(inner)[0].split(".")
        if inner.script == self.language and any(n.strip("<>") in at[1] for n in names[-2:]):
            return "ok", ""
        if at[0] or names[-1] == "__del__":
            return "dynamic", ""
        return "fault", f"line {outer.line} of {outer.plain} calls nothing, but {inner.plain} is below it"
