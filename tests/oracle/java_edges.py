# SPDX-License-Identifier: Apache-2.0
"""Edges from a Java method: its line has to be one of its own, with an instruction that can call the callee."""

import dataclasses
import os
import re
import subprocess

NAME = re.compile(r"(?P<owner>[\w.$/+-]+)\.(?P<method>[\w$<>]+)(\(.*\))?", re.S)
CALL = re.compile(r"^ +(\d+): (invoke\w+|new|getstatic|putstatic) .*// \w+ (\S+)")
DYNAMIC = re.compile(r"java/lang/invoke/(MethodHandle|VarHandle)")
LAMBDA = re.compile(r"(?P<host>[\w.$]+?)\$\$Lambda\b.*")
BODY = re.compile(r"lambda\$")  # as javac names the bodies, which are private methods of the class that has the lambda


class Method:
    def __init__(self):
        self.calls, self.table, self.has_code = [], [], False

    def line_of(self, bci):
        """
        As HotSpot looks it up (Method::line_number_from_bci): of entries with one index the first if that is it, else
        the last.
        """
        exact = [line for line, at in self.table if at == bci]
        if exact:
            return exact[0]
        return max(enumerate(p for p in self.table if p[1] < bci), key=lambda e: (e[1][1], e[0]), default=(0, (0, 0)))[
            1
        ][0]

    def by_line(self):
        """{line: {(instruction, class, name)}}"""
        found = {line: set() for line, _ in self.table}
        for bci, op, reference in self.calls:
            line = self.line_of(bci)
            owner, _, name = reference.partition(":")[0].rpartition(".")
            found.setdefault(line, set()).add((op, owner, name.strip('"')))
        return found


def parse(text):
    """{method's name: [lines of each that has the name]}, and which of them are native or abstract."""
    methods, current = {}, None
    for line in text.splitlines():
        if line.startswith("  ") and line[2] != " " and line.endswith(";"):
            head = line.strip()
            name = "<clinit>" if head == "static {};" else re.search(r"([\w$.<>-]+)\(", head)
            if not name:
                current = None
                continue
            current = Method()
            name = name if isinstance(name, str) else name[1]
            methods.setdefault(name, []).append(current)
        elif current and (found := CALL.match(line)):
            current.calls.append((int(found[1]), found[2], found[3]))
        elif current and line.strip() == "Code:":
            current.has_code = True
        elif current and (found := re.match(r"^ +line (\d+): (\d+)$", line)):
            current.table.append((int(found[1]), int(found[2])))
    return methods


class Java:
    language = "hotspot"

    def __init__(self, process):
        self.process = process
        self.classes, self.lines = {}, {}

    def words(self):
        with open(f"/proc/{self.process.pid}/cmdline", "rb") as file:
            return file.read().decode(errors="replace").split("\0")

    def class_path(self):
        words, found = self.words(), []
        for i, word in enumerate(words):
            if word in ("-cp", "-classpath", "--class-path", "-p", "--module-path", "-jar") and i + 1 < len(words):
                found += words[i + 1].split(":")
        cwd = os.readlink(f"/proc/{self.process.pid}/cwd")
        found = [os.path.join(cwd, p) for p in found]
        found += [m[4] for m in self.process.maps if m[4].endswith(".jar")]
        for path in list(found):
            if path.endswith("*"):
                found += [os.path.join(path[:-1], n) for n in os.listdir(path[:-1]) if n.endswith(".jar")]
        fds = f"/proc/{self.process.pid}/fd"
        for fd in os.listdir(fds):
            try:
                path = os.readlink(os.path.join(fds, fd))
            except OSError:
                continue
            found += [path] if path.endswith(".jar") else []
        return ":".join(dict.fromkeys(found)) or "."

    def javap(self):
        if os.environ.get("JAVAP"):  # of a JVM in a root of its own, whose programs do not run here
            return os.environ["JAVAP"]
        java = os.readlink(f"/proc/{self.process.pid}/exe")
        own = os.path.join(os.path.dirname(java), "javap")
        return own if os.path.exists(own) else "javap"

    def load(self, stacks):
        frames = {f for s in stacks for f in s.frames if f.script == "hotspot" and f.file}
        names = {found["owner"] for f in frames if (found := NAME.fullmatch(f.plain))}
        hosts = {found["host"] for s in stacks for f in s.frames if (found := LAMBDA.fullmatch(f.plain))}
        names = sorted(names | hosts)
        path = self.class_path()
        for at in range(0, len(names), 300):
            run = subprocess.run(
                [self.javap(), "-J-Xmx256m", "-c", "-l", "-p", "-cp", path, *names[at : at + 300]],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=300,
            )
            self.take(run.stdout)

    def take(self, text):
        for part in re.split(r"(?m)^(?=Compiled from )", text):
            head = re.search(r"(?m)^(?:[\w@]+ )*(?:class|interface|enum) ([\w.$-]+)", part)
            if head:
                self.classes[head[1]] = parse(part)

    def methods(self, frame):
        """[{line: calls}] of the methods of this name; None: the class is not known."""
        key = frame.plain
        if key in self.lines:
            return self.lines[key]
        found = NAME.fullmatch(key)
        methods = self.classes.get(found["owner"]) if found else None
        if methods is not None:
            name = found["method"]
            owner = found["owner"]
            known = methods.get(owner if name == "<init>" else name, [])
            methods = [(m.has_code, m.by_line()) for m in known]
        self.lines[key] = methods
        return methods

    def frame(self, frame):
        methods = self.methods(frame)
        if not methods or not frame.line:
            return "unknown", ""
        if any(frame.line in lines for _, lines in methods):
            return "ok", ""
        return "fault", f"{frame.plain} has no line {frame.line}"

    def approximate(self, outer, inner, between):
        """Of an edge that is wrong by lines, one of which is approximate: some line has to call the other method."""
        verdict = self.edge(dataclasses.replace(outer, line=0), inner, between)
        return verdict if verdict[0] == "fault" else ("approximate", "")

    def edge(self, outer, inner, between):
        if not NAME.fullmatch(inner.plain) or inner.marks & {"stub"} or "(gc)" in (outer.plain, inner.plain):
            return "dynamic", ""
        if outer.marks & {"stub"}:
            return "dynamic", ""
        made = LAMBDA.fullmatch(outer.plain)
        if made and not between:
            return self.lambda_reaches(made["host"], inner)
        methods = self.methods(outer)
        if not methods:
            return "unknown", ""
        if not any(code for code, _ in methods):
            if between:
                return "dynamic", ""  # a native method that calls back
            return "fault", f"{outer.plain} is native, but {inner.plain} is right below it"
        if between:
            return "dynamic", ""  # by way of the VM: a class is initialised, a method handle linked
        calls = set().union(*(lines.get(outer.line, set()) for _, lines in methods)) if outer.line else \
            set().union(*(c for _, lines in methods for c in lines.values()))
        return self.reaches(outer, inner, calls)

    def lambda_reaches(self, host, inner):
        """The class that is made of a lambda calls its body, or the method that it stands for, which may be any."""
        found = NAME.fullmatch(inner.plain)
        if not BODY.match(found["method"]) or host not in self.classes:
            return "dynamic", ""
        if found["owner"] == host and found["method"] in self.classes[host]:
            return "ok", ""
        return "fault", f"a lambda of {host} calls {inner.plain}"

    def reaches(self, outer, inner, calls):
        found = NAME.fullmatch(inner.plain)
        method = found["method"]
        if any(name == method and op.startswith("invoke") for op, _, name in calls):
            return "ok", ""
        if any(op == "invokedynamic" or DYNAMIC.match(owner) for op, owner, _ in calls) or method == "<clinit>":
            return "dynamic", ""
        if "$$Lambda" in inner.plain or re.search(r"LambdaForm|\$\$|/0x", inner.plain):
            return "dynamic", ""
        names = sorted({name for op, _, name in calls if op.startswith("invoke")})
        where = f"line {outer.line} of " if outer.line else ""
        return "fault", f"{where}{outer.plain} calls {', '.join(names) or 'nothing'}, not {inner.plain}"
