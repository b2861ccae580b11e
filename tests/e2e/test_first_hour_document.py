# SPDX-License-Identifier: Apache-2.0
"""docs/first-hour.md is right: its commands are typed into a shell, and print what it says."""

import os
import re
import subprocess
import tempfile

import yrt

COMMANDS = 30
END = "--- end of a command: "


def document():
    """[(command, lines that it prints)]; and app.py, as the first command shows it."""
    text = yrt.read(os.path.join(yrt.SOURCE, "docs", "first-hour.md"))
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S):
        for line in block.splitlines():
            if line.startswith("# "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def shape(line):
    """What a line looks like: any number is one, runs of blanks are one, "…" is anything."""
    out = ""
    for part in re.split(r"(…|\d[\d.,]*|\s+)", line.rstrip()):
        number = part[:1].isdigit()
        out += ".*" if part == "…" else r"[\d.,]+" if number else r"\s+" if part.isspace() else re.escape(part)
    return out.removeprefix(r"\s+") if line[:1] == " " else out


# The program runs on while its heap is read; a fifth of the samples may lie in files without symbols.
BY_CHANCE = re.compile("^yrt: note: (the process changed blocks while|.* of all frames are functions of) .*\n", re.M)
# A sleep, and what others took after it.
QUEUED = re.compile(r": (run queue [0-9.]+ \w+, )?sleep( [0-9.]+ \w+)?(, run queue [0-9.]+ \w+)?(?=; ran )")
# Of few calls, on a busy machine, the probes' part is not known.
COST = "with the probes' time", "without the probes' 1 us"


def pattern(lines):
    """Of a whole output; a line that is "…" is any lines."""
    return "".join(r"(?:.*\n)*?" if line == "…" else r" *" + shape(line) + r"\s*\n" for line in lines)


class Shell:
    def __init__(self, directory):
        path = os.path.join(directory, "bin")
        os.mkdir(path)
        os.symlink(yrt.YRT, os.path.join(path, "yrt"))
        self.process = subprocess.Popen(
            ["bash"],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={**os.environ, "PATH": path + ":" + os.environ["PATH"]},
        )

    def type(self, command):
        """What a command prints."""
        self.process.stdin.write(f"{command}\necho '{END}'\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.startswith(END):
                return "".join(lines)
            lines.append(line)
        raise AssertionError(f"the shell ended at {command}\n{''.join(lines)}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, 9)
        self.process.communicate()


def test_document():
    commands = document()
    typed = [command for command, _ in commands if command.startswith(("yrt ", "sleep "))]
    assert len(typed) >= COMMANDS, len(typed)
    wrong = []
    with tempfile.TemporaryDirectory() as directory, Shell(directory) as shell:
        with open(os.path.join(directory, "app.py"), "w") as f:
            f.write("\n".join(commands[0][1]) + "\n")
        for command, lines in commands:
            printed = QUEUED.sub(": sleep", BY_CHANCE.sub("", shell.type(command)).replace(*COST))
            if not re.fullmatch(pattern(lines), printed):
                wrong.append(f"# {command}\n--- printed\n{printed}--- the document\n" + "\n".join(lines) + "\n")
    assert not wrong, f"{len(wrong)} of {len(commands)} are not as the document says\n" + "\n".join(wrong)
    yield f"{len(typed)} commands of yrt"


def test_shape():
    """It can fail."""
    lines = ["yrt: 9 samples of 9.5 expected", "…", "  x  … end"]
    assert re.fullmatch(pattern(lines), "yrt: 12 samples of 11 expected\na\nb\n    x  some end\n")
    for other in (
        "yrt: 12 samples\n",
        "yrt: 12 samples of 11 expected\na\nx end of\n",
        "yrt: some samples of 11 expected\nx at end\n",
    ):
        assert not re.fullmatch(pattern(lines), other), other


yrt.main(globals())
