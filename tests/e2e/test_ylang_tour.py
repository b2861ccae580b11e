# SPDX-License-Identifier: Apache-2.0
"""
The tour of docs/y.md: its programs print what it says, or compile for their engine. With YRT_WRITE=1 the outputs there
are written anew.
"""

import os
import re
import tempfile

import ylang
import yrt

DOCS = os.path.join(yrt.SOURCE, "docs", "y.md")
PROGRAM = re.compile(r"^```c\n(.*?)^```\n(?:^```\n(.*?)^```\n)?", re.M | re.S)
COMMAND = re.compile(r"^```\n\$ yrt y -e '([^']*)' -p PID\n(.*?)^```\n", re.M | re.S)


def without_last_line(text):
    return "".join(line for line in text.splitlines(True) if not line.startswith("yrt: "))


def tour():
    """Each program, what the page says that it prints (None: nothing), and where that stands."""
    text = yrt.read(DOCS)
    text = text[text.index("## A tour"):text.index("## Reference")]
    found = [(m.start(), m[1], m[2], m) for m in PROGRAM.finditer(text) if "_probe" in m[1]]
    found += [(m.start(), m[1], without_last_line(m[2]), m) for m in COMMAND.finditer(text)]
    return [(source, out, m) for _, source, out, m in sorted(found, key=lambda f: f[0])]


def run(source, pid):
    """As the page shows it: what it prints, then its errors."""
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        path = os.path.join(directory, "a.y")
        with open(path, "w", encoding="utf-8") as f:
            f.write(source)
        done = ylang.run(path, "-p", pid, "-d", "600")
    return done.stdout + without_last_line(done.stderr).replace(directory + "/", "")


def rewrite(m, out):
    text = yrt.read(DOCS)
    assert text.count(m[0]) == 1, m[0]
    with open(DOCS, "w", encoding="utf-8") as f:
        f.write(text.replace(m[0], f"```c\n{m[1]}```\n```\n{out}```\n"))


def test_tour():
    programs = tour()
    printed = compiled = 0
    with yrt.Fixture("asked", seconds=None, wait=False) as asked, \
            yrt.Fixture("called", seconds=None, wait=False) as called:
        for source, out, m in programs:
            if "_oneshot" in source or "_begin" in source:
                said = run(source, asked.pid)
                if os.environ.get("YRT_WRITE") and m[0].startswith("```c") and said != out:
                    rewrite(m, said)
                    out = said
                assert said == out, f"{source}\n{said}--- the page:\n{out}"
                printed += 1
                continue
            done = ylang.run("-e", source, "-p", called.pid, "--check")
            assert done.returncode == 0 and "bpf: yes" in done.stdout, (source, done)
            compiled += 1
    assert printed >= 15 and compiled >= 8, (printed, compiled)
    yield f"{printed} programs print what the page says, {compiled} are taken by the kernel"


yrt.main(globals())
