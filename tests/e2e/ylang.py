# SPDX-License-Identifier: Apache-2.0
"""Cases of tests/ylang, the engines that run them, and programs that are probed. Not a test itself."""

import glob
import json
import os
import re
import select
import shutil
import signal
import subprocess
import time

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


LIMIT_S = 60


class Probed:
    """yrt y beside the fixture: serve() once the probes are placed, then end()."""

    def __init__(self, *arguments, env=None):
        self.fixture = yrt.Fixture("called", seconds=None, wait=False)
        self.y = subprocess.Popen(
            [yrt.YRT, "y", *arguments, "-p", str(self.fixture.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=dict(os.environ, **(env or {})))
        self.ready()

    def ready(self):
        """Its probes are placed and its handlers run once a first call is seen: the program prints it."""
        end = time.monotonic() + LIMIT_S
        self.before = ""
        while "ready" not in self.before and self.y.poll() is None:
            assert time.monotonic() < end, "no probe was hit"
            self.serve(0)
            self.look()

    def look(self):
        if select.select([self.y.stdout], [], [], 0.05)[0]:
            self.before += os.read(self.y.stdout.fileno(), 65536).decode()

    def serve(self, many):
        self.fixture.process.stdin.write(f"{many}\n")
        self.fixture.process.stdin.flush()
        return json.loads(self.fixture.process.stdout.readline())

    def end(self):
        self.y.send_signal(signal.SIGINT)
        out, err = self.y.communicate(timeout=LIMIT_S)
        return (self.before + out).replace("ready\n", ""), err

    def __enter__(self):
        return self

    def __exit__(self, *_):
        yrt.stop(self.y, signal.SIGKILL)
        yrt.stop(self.fixture.process, signal.SIGKILL)


READY = '_probe begin_serving { printf("ready\\n"); }\n'


def probed(source, options=(), **kw):
    return Probed("-e", READY + source, *options, **kw)
