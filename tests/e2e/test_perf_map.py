# SPDX-License-Identifier: Apache-2.0
"""Names that a JIT writes to perf-PID.map: of a real V8, also where pid and /tmp are those of a container."""

import glob
import os
import re
import shutil
import subprocess
import tempfile
import time

import yrt

SCRIPT = """
function hotInner(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
function hotOuter(n) { let t = 0; for (let i = 0; i < 50; i++) t += hotInner(n + i % 2); return t; }
let sum = 0;
console.log("ready");
for (const end = Date.now() + 60000; Date.now() < end;) sum += hotOuter(2000);
"""
# Sooner or later all is compiled into the script itself. V8 wrote its own kinds of functions before version 11.
HOT = re.compile(r"^(JS|LazyCompile|Function|Script|Eval):.*spin\.js")


class Node:
    """A node that runs the script, behind what command comes before it."""

    def __init__(self, *before, flags=("--perf-basic-prof",), inner=False):
        assert shutil.which("node"), "node is not here: see fixtures/setup.sh"
        self.directory = tempfile.TemporaryDirectory(dir="/var/tmp")
        script = os.path.join(self.directory.name, "spin.js")
        with open(script, "w") as f:
            f.write(SCRIPT)
        self.process = subprocess.Popen(
            [*before, "node", *flags, script], stdout=subprocess.PIPE, text=True, cwd=self.directory.name
        )
        assert self.process.stdout.readline() == "ready\n"
        time.sleep(1)
        self.pid = self.inner_pid() if inner else self.process.pid

    def inner_pid(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            return int(f.read().split()[0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        yrt.stop(self.process)
        self.directory.cleanup()
        for path in glob.glob(f"/tmp/perf-{self.process.pid}.map"):
            os.unlink(path)


def sample(node):
    return yrt.Run("flame", "-p", node.pid, "-d", 2, "-F", 499, "-U").result(60).expect()


@yrt.measured
def test_names():
    with Node() as node:
        result = sample(node)
    assert result.share(HOT) > 0.5, yrt.show(result.stacks)  # some is compiled later, on a slow host


@yrt.measured
def test_whole_stacks():
    """
    Frames of V8 keep frame pointers, also in its builtins, which have no unwind information: a stack goes on to main().
    """
    with Node() as node:
        result = sample(node)
    main = [(frames, n) for frames, n in result.stacks if has_script(frames)]
    whole = sum(n for frames, n in main if is_whole(frames))
    assert whole > 0.95 * sum(n for _, n in main) > 100, yrt.show(result.stacks)
    assert result.incomplete() < 0.1, result.stats


def has_script(frames):
    return any(HOT.search(f) for f in frames)


def is_whole(frames):
    """
    From node::Start() through V8's call of JavaScript into the script: its builtins in between have names in node's own
    executable, and none in Debian's libnode.so.108.
    """
    places = [
        next((i for i, f in enumerate(frames) if is_there(f)), -1)
        for is_there in (
            lambda f: f.startswith("node::Start("),
            lambda f: f.startswith("v8::internal::Execution::Call("),
            HOT.search,
        )
    ]
    return -1 < places[0] < places[1] < places[2]


@yrt.measured
def test_nothing_told():
    with Node(flags=()) as node:
        result = sample(node)
    assert result.share(HOT) == 0 and result.share("[anonymous]") > 0.5, yrt.show(result.stacks)


@yrt.measured
def test_in_namespaces_of_its_own():
    """There the pid is 1, and /tmp another one."""
    with Node("unshare", "--pid", "--fork", "--mount", "--mount-proc", "--kill-child", "sh", "-c",
              'mount -t tmpfs none /tmp && exec "$@"', "sh", inner=True) as node:
        with open(f"/proc/{node.pid}/status") as f:
            assert re.search(r"^NSpid:\s+\d+\s+1$", f.read(), re.M)
        assert not os.path.exists(f"/tmp/perf-{node.pid}.map") and not os.path.exists("/tmp/perf-1.map")
        result = sample(node)
    assert result.share(HOT) > 0.5, yrt.show(result.stacks)


yrt.main(globals())
