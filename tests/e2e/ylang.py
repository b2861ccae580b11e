# SPDX-License-Identifier: Apache-2.0
"""Cases of tests/ylang, and the engines that run them. Not a test itself."""

import glob
import os
import re
import shutil
import subprocess

import yrt

CASES = os.path.join(yrt.SOURCE, "tests", "ylang")


class Case:
    def __init__(self, path, name, text):
        self.path, self.name = path, f"{os.path.basename(path)}: {name}"
        marks = re.findall(r"^//([=?!x]) ?(.*)$", text, re.M)
        self.source = re.sub(r"^//[=?!x].*\n?", "", text, flags=re.M)
        self.out = "".join(line + "\n" for kind, line in marks if kind == "=")
        self.err = [line for kind, line in marks if kind == "?"]
        self.refused = [line for kind, line in marks if kind == "!"]
        self.engines_refuse = [line for kind, line in marks if kind == "x"]


def cases():
    for path in sorted(glob.glob(os.path.join(CASES, "*.y"))):
        with open(path, encoding="utf-8") as f:
            parts = re.split(r"^//--- (.*)\n", f.read(), flags=re.M)
        for name, text in zip(parts[1::2], parts[2::2]):
            yield Case(path, name, text)


def run(*arguments, **kw):
    return subprocess.run(
        [yrt.YRT, "y", *map(str, arguments)], capture_output=True, text=True, timeout=300, errors="replace", **kw
    )


def target(*where, steps=1000000):
    return [*where, "--max-steps", steps]


def export(case, debugger, where):
    done = run("-e", case.source, "--emit", debugger, *where)
    assert done.returncode == 0, f"{case.name}: {done.stderr}"
    return done.stdout


def gdb(scripts, *where):
    """One gdb for all scripts."""
    command = ["gdb", "-nx", "-batch", *map(str, where)]
    for script in scripts:
        command += ["-x", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, errors="replace")


def lldb(scripts, *where):
    command = ["lldb", "--no-lldbinit", "--batch", *map(str, where)]
    for script in scripts:
        command += ["-o", f"command script import {script}"]
    modules = [p for p in glob.glob("/usr/lib/llvm-*/lib/python3.*/dist-packages") if os.path.isdir(p + "/lldb")]
    modules.append("/usr/lib/python3/dist-packages")  # its six
    env = dict(os.environ, PYTHONPATH=":".join(modules))
    return subprocess.run(command, capture_output=True, text=True, timeout=300, errors="replace", env=env)


def available(debugger):
    return shutil.which(debugger) is not None

