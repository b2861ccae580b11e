# SPDX-License-Identifier: Apache-2.0
"""Licence headers, short functions and files, nothing left to do, no path of one machine."""

import ast
import os
import re
import sys

SOURCE = os.environ.get("YRT_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CODE = (".c", ".h", ".cc", ".S", ".py", ".sh", ".lua", ".cmake", ".js", ".css")
NAMED = ("CMakeLists.txt",)
SHARED = re.compile(r"^(unwind|runtimes)/.*_walk\.[ch]$|^unwind/shared/|^unwind/walk\.h$|^unwind/target/bpf/|\.bpf\.c$")
LONGEST = 60
LONG = 1000  # lines of a source: a file is one subject, cut where its seam is, not by count
WIDEST = 120  # columns, with tabs of 8
README_LINES, README_WIDEST = 150, 100
# What lies at the top: a package that somebody has loaded there is soon part of a commit.
TOP = {"CMakeLists.txt", "CMakePresets.json", "README.md", ".clang-format", ".gitignore", ".git"}
COMMENT = re.compile(r"/\*.*?\*/", re.S)
GLUED = re.compile(r"^\s*\*(?=[A-Za-z0-9(])", re.M)  # what clang-format makes where it wraps a comment
UNDONE = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
MACHINE = re.compile(r"(?<![\w.@$}])/(work|home|root|Users)/[\w.]")


# Text of targets reaches a terminal by way of say.c only (inspect's JSON is escaped by its library).
SAYS = re.compile(r"printf\([^;]*(->message|->hint|sampler_target\()")


def unclean(path, text):
    if path.startswith("frontends/cli/") and os.path.basename(path) != "say.c":
        for m in SAYS.finditer(text):
            yield f"{path}:{text.count(chr(10), 0, m.start()) + 1}: prints text of a target as it is: use say.h"


# What else is called to make an argument may change errno before it is read.
CHANGED = re.compile(r'error_hint\(\s*error_errno\(errno\b[^;]*,\s*"%s",\s*\w+\(')


def late_errno(path, text):
    for m in CHANGED.finditer(text):
        yield f"{path}:{text.count(chr(10), 0, m.start()) + 1}: errno is read after another call may have changed it"


def signalled(path, text):
    """A signal that another thread takes does not wake the main one."""
    if path.split("/")[0] in ("unwind", "runtimes", "probes", "frontends") and not path.endswith("thread_start.h"):
        for m in re.finditer(r"\bpthread_create\(", text):
            yield f"{path}:{text.count(chr(10), 0, m.start()) + 1}: a thread that takes signals: thread_start()"


def disassemblers(path, text):
    if not path.startswith(("unwind/code/", "tests/")) and (m := re.search(r"\bcs_open\(", text)):
        yield f"{path}:{text.count(chr(10), 0, m.start()) + 1}: opens capstone itself: disassembler.h"


def files():
    for at, dirs, names in os.walk(SOURCE):
        top = ("build", ".git") if at == SOURCE else ()
        dirs[:] = [d for d in dirs if d not in (*top, "__pycache__") and not d.startswith(".cache")]
        for name in names:
            yield os.path.relpath(os.path.join(at, name), SOURCE)


def licence(path, text):
    head = "\n".join(text.splitlines()[:3])
    wanted = "GPL-2.0-only OR Apache-2.0" if SHARED.search(path) else "(GPL-2.0-only OR )?Apache-2.0"
    if not re.search(rf"SPDX-License-Identifier: {wanted}", head):
        yield f"{path}: no 'SPDX-License-Identifier: {wanted}' at its top"


def long_functions(path, text):
    start = None
    for number, line in enumerate(text.splitlines(), 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            if number - start + 1 > LONGEST:
                yield f"{path}:{start}: a function of {number - start + 1} lines; {LONGEST} at most"
            start = None


def long_file(path, text):
    n = text.count("\n")
    if n > LONG:
        yield f"{path}: {n} lines; {LONG} at most: is it two subjects?"


def layout(path, text):
    """What clang-format does not see to."""
    for number, line in enumerate(text.splitlines(), 1):
        if len(line.expandtabs(8)) > WIDEST:
            yield f"{path}:{number}: {len(line.expandtabs(8))} columns; {WIDEST} at most"
    for comment in COMMENT.finditer(text):
        for glued in GLUED.finditer(comment[0]):
            yield (
                f"{path}:{text.count(chr(10), 0, comment.start() + glued.end()) + 1}: a comment's '*' without a space"
                " behind it"
            )


def inside_texts(text):
    """The numbers of lines that belong to texts of several lines, mostly of other languages."""
    texts = (n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.Constant, ast.JoinedStr)))
    return {i for n in texts if n.end_lineno > n.lineno for i in range(n.lineno, n.end_lineno + 1)}


def wide_python(path, text):
    exempt = None
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > WIDEST:
            exempt = inside_texts(text) if exempt is None else exempt
            if number not in exempt:
                yield f"{path}:{number}: {len(line)} columns; {WIDEST} at most"


def large_readme(path, text):
    rows = text.splitlines()
    if len(rows) > README_LINES:
        yield f"{path}: {len(rows)} lines; {README_LINES} at most"
    for number, row in enumerate(rows, 1):
        if len(row) > README_WIDEST:
            yield f"{path}:{number}: {len(row)} columns; {README_WIDEST} at most"


LINK = re.compile(r"\]\(([^)\s:]+)\)")
PLACE = re.compile(r"`((?:docs|fixtures|frontends|library|probes|runtimes|tests|unwind)/[\w./-]+)`")
HEADING = re.compile(r"^#+ (.*)$", re.M)


def anchors(path):
    """Of the headings of a page, as GitHub makes them."""
    with open(os.path.join(SOURCE, path)) as f:
        headings = HEADING.findall(f.read())
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def dead_links(path, text):
    """Links of a page, and files and folders that it names from the top: without NAME or a star."""
    for link in LINK.findall(text):
        name, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if not os.path.exists(os.path.join(SOURCE, target)) or anchor and anchor not in anchors(target):
            yield f"{path}: a link to {link}, which is not there"
    for place in PLACE.findall(text):
        if "NAME" not in place and not os.path.exists(os.path.join(SOURCE, place)):
            yield f"{path}: names {place}, which is not there"


def lines(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if UNDONE.search(line):
            yield f"{path}:{number}: something is left to do: {line.strip()}"
        if MACHINE.search(line):
            yield f"{path}:{number}: a path of one machine: {line.strip()}"


def is_program(path):
    with open(os.path.join(SOURCE, path), "rb") as f:
        return f.read(4) == b"\x7fELF"


wrong, seen = [], 0
for path in sorted(files()):
    if os.sep not in path and path not in TOP:
        wrong.append(f"{path}: not one of the project's files")
    is_code = path.endswith(CODE) or os.path.basename(path) in NAMED
    if is_program(path):
        wrong.append(f"{path}: a compiled program")
    if not is_code and not path.endswith((".md", ".txt", ".in", ".html", ".json", "/run")):
        continue
    with open(os.path.join(SOURCE, path), errors="replace") as f:
        text = f.read()
    seen += 1
    if is_code:
        wrong += licence(path, text)
    if path.endswith((".c", ".h", ".cc")):
        wrong += long_functions(path, text)
        wrong += unclean(path, text)
        wrong += late_errno(path, text)
        wrong += signalled(path, text)
        wrong += disassemblers(path, text)
        wrong += layout(path, text)
        wrong += long_file(path, text)
    if path.endswith(".py"):
        wrong += wide_python(path, text)
        wrong += long_file(path, text)
    if path.endswith(".md"):
        wrong += dead_links(path, text)
    if path == "README.md":
        wrong += large_readme(path, text)
    wrong += lines(path, text)
print("\n".join(wrong) or f"{seen} files keep to the conventions")
sys.exit(bool(wrong) or seen < 30)
