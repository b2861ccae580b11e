# SPDX-License-Identifier: Apache-2.0
"""Cases of tests/ylang, the engines that run them, and programs that are probed. Not a test itself."""

import contextlib
import glob
import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import tempfile
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


# analysers that run in the kernel
PROBING = {
    "func-args", "func-latency", "func-times", "ngx-latency", "ngx-status", "lj-newfunc", "lua-exits", "lua-phase-time"}
VERIFIED_MOST = 200000  # instructions that the kernel looks at for a handler


def verified(name, *where):
    """How many instructions of each of an analyser's handlers the kernel looked at."""
    done = run(name, "--check", *where)
    looked = [int(n) for n in re.findall(r"the kernel looked at (\d+)", done.stdout)]
    assert name in PROBING and "bpf: yes" in done.stdout and looked, done
    assert all(0 < n <= VERIFIED_MOST for n in looked), done
    return looked


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
    command = ["lldb", "--no-lldbinit", "--batch",
               "-O", "settings set plugin.process.gdb-remote.packet-timeout 300", *map(str, where)]
    for script in scripts:
        command += ["-o", f"command script import {script}"]
    modules = [p for p in glob.glob("/usr/lib/llvm-*/lib/python3.*/dist-packages") if os.path.isdir(p + "/lldb")]
    modules.append("/usr/lib/python3/dist-packages")  # its six
    env = dict(os.environ, PYTHONPATH=":".join(modules))
    return subprocess.run(command, capture_output=True, text=True, timeout=300, errors="replace", env=env)


def available(debugger):
    return shutil.which(debugger) is not None


LIMIT_S = 300


def serve(fixture, many):
    """Tells the fixture to serve `many` orders; returns its own account of them."""
    fixture.process.stdin.write(f"{many}\n")
    fixture.process.stdin.flush()
    return json.loads(fixture.process.stdout.readline())


class Several:
    """yrt y beside several of these fixtures, once each of them has had a hit: the program prints "ready" then."""

    def __init__(self, arguments, fixtures):
        self.y = subprocess.Popen([yrt.YRT, "y", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True)
        self.out = ""
        end = time.monotonic() + LIMIT_S
        while self.out.count("ready") < len(fixtures) and self.y.poll() is None:
            assert time.monotonic() < end, f"no probe was hit: {self.out}"
            for fixture in fixtures:
                if not re.search(rf"\(pid {fixture.pid}\) <==\nready", self.out):
                    serve(fixture, 0)
            self.look()

    def look(self):
        if select.select([self.y.stdout], [], [], 0.05)[0]:
            self.out += os.read(self.y.stdout.fileno(), 65536).decode()

    def until(self, text):
        end = time.monotonic() + LIMIT_S
        while text not in self.out:
            assert time.monotonic() < end and self.y.poll() is None, f"no {text}: {self.out}"
            self.look()

    def end(self):
        self.y.send_signal(signal.SIGINT)
        out, err = self.y.communicate(timeout=LIMIT_S)
        return (self.out + out).replace("ready\n", ""), err

    def __enter__(self):
        return self

    def __exit__(self, *_):
        yrt.stop(self.y, signal.SIGKILL)


class Probed:
    """yrt y beside the fixture: serve() once the probes are placed, then end()."""

    def __init__(self, *arguments, env=None, fixture="called"):
        self.fixture = yrt.Fixture(fixture, seconds=None, wait=False)
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
        return serve(self.fixture, many)

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


TYPES = ["signed char", "unsigned char", "short", "unsigned short", "int", "unsigned", "long", "unsigned long"]
HARD = [0, 1, -1, 2, 127, 128, 255, 32767, 65535, 2**31 - 1, -(2**31), 2**32 - 1, 2**63 - 1, -(2**63), 2**64 - 1]


def expression(r, names, depth):
    """A random expression that C defines, but for overflow (-fwrapv)."""
    if not depth or r.random() < 0.1:
        return r.choice([*names, f"{r.choice(HARD[:10])}", f"({r.choice(TYPES)}){r.choice(names)}"])
    a, b, c = (expression(r, names, depth - 1) for _ in range(3))
    return r.choice([
        f"({a} {r.choice(['+', '-', '*', '&', '|', '^', '<', '>', '<=', '>=', '==', '!=', '&&', '||'])} {b})",
        f"({a} {r.choice(['+', '-', '*', '&', '|', '^'])} {b})",
        f"({a} {r.choice(['/', '%'])} (({b} & 0xff) + 1))",
        f"({r.choice(['int', 'unsigned', 'long', 'unsigned long'])}){a} {r.choice(['<<', '>>'])} ({b} & 31)",
        f"({r.choice(['-', '~', '!', '+'])}{a})",
        f"({a} ? {b} : {c})",
        f"(({r.choice(TYPES)}){a})",
    ]).join("()")


PART = 50  # expressions in a function


@contextlib.contextmanager
def expressions(seed, many):
    """A program that has printed what so many random expressions are: it, the lines, the expressions, a directory."""
    r = random.Random(seed)
    names = [f"v{i}" for i in range(24)]
    types = [TYPES[i % 8] for i in range(24)]
    values = "".join(f"{t} v{i} = ({t}){r.choice(HARD)}UL;\n" for i, t in enumerate(types))
    all_of = [expression(r, names, r.randint(1, 4)) for _ in range(many)]
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        source, program = os.path.join(directory, "e.c"), os.path.join(directory, "e")
        prints = "".join(f'printf("%ld\\n", (long)({e}));\n' for e in all_of)
        with open(source, "w", encoding="utf-8") as f:
            f.write("#include <stdio.h>\n#include <unistd.h>\n" + values)
            f.write("__attribute__((noinline)) void hit(void) { __asm__ volatile(\"\"); }\n")
            f.write(f"int main(void) {{\n{prints}fclose(stdout); while (getchar() != EOF) hit(); }}\n")
        subprocess.run(["gcc", "-w", "-O0", "-g", "-fwrapv", "-o", program, source], check=True)
        with yrt.Program([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            truth = p.stdout.read().splitlines()
            yield p, truth, [all_of[i : i + PART] for i in range(0, many, PART)], directory


def functions(parts):
    """part0(), part1() …, which print their expressions with their numbers; and their names."""
    names, texts = [f"part{i}" for i in range(len(parts))], []
    for i, part in enumerate(parts):
        prints = "".join(f'printf("{i * PART + k} %ld\\n", (long)({e}));\n' for k, e in enumerate(part))
        texts.append(f"void {names[i]}(void) {{ {prints} }}\n")
    return "".join(texts), names


def equal(seed, parts, truth, done):
    """Whatever order the parts ran in."""
    said = dict(line.split() for line in done.stdout.splitlines())
    all_of = [e for part in parts for e in part]
    wrong = [(e, t, said.get(str(i))) for i, (e, t) in enumerate(zip(all_of, truth)) if said.get(str(i)) != t]
    text = f"seed {seed}: {len(said)} of {len(truth)}; {wrong[:3]}\n{done.stderr[-2000:]}"
    assert len(truth) == len(all_of) == len(said) and not wrong, text


class Beside:
    """yrt y beside a program, once its handlers are in place."""

    def __init__(self, source, pid):
        self.y = subprocess.Popen([yrt.YRT, "y", "-e", source, "-p", str(pid)], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        line = self.y.stdout.readline()
        assert line == "ready\n", (line, self.y.communicate())

    def end(self):
        self.y.send_signal(signal.SIGINT)
        out, err = self.y.communicate(timeout=LIMIT_S)
        assert self.y.returncode == 0 and ", 0 ended by an error" in err and "lost" not in err, (out, err)
        return out.splitlines()
