# SPDX-License-Identifier: Apache-2.0
"""What `yrt heap --all --bytes` prints."""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile

import yrt

ROW = re.compile(r" *(\d+) +(\d+) +(\d+) {1,12}(\d*)   ( *)(\S.*)")
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}  # of sizes of blocks
Row = collections.namedtuple("Row", "resident swapped size blocks")


def size(name):
    """Bytes of a block, by its row's name."""
    n, unit = name.split()
    return int(n) * UNITS[unit]


def table(text):
    """{path of names: Row}"""
    rows, path = {}, []
    for line in text.splitlines():
        m = ROW.fullmatch(line)
        if m:
            path = path[:len(m[5]) // 2] + [m[6]]
            rows[tuple(path[1:])] = Row(int(m[1]), int(m[2]), int(m[3]), int(m[4] or 0))
    assert () in rows, text
    return rows


def heap(*args):
    """{path of names: Row} of a run, its text, and its notes."""
    done = yrt.Run("heap", *args, "--all", "--bytes", output=False, stats=False).result().expect()
    return table(done.stdout), done.stdout, done.stderr


def stopped(program, library, absent, *core, **env):
    """
    Rows and text of a Python program that stops itself, with a library preloaded, live or of a core of this name, and
    what it prints when it goes on. absent: what no note may say.
    """
    env = {**os.environ, "LD_PRELOAD": library, **env}
    with yrt.Program([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, text=True) as running:
        yrt.waiting(running.pid, 1, state="T")
        target = ["-p", running.pid]
        if core:
            subprocess.run(["gcore", "-o", *core, str(running.pid)], check=True, capture_output=True)
            target = ["--core", f"{core[0]}.{running.pid}"]
        rows, text, notes = heap(*target)
        assert not any(words in notes for words in absent), notes
        os.kill(running.pid, 18)
        return rows, text, json.loads(running.stdout.readline())


def of_cores(check, libraries):
    """check(library, core) of each."""
    with tempfile.TemporaryDirectory(prefix="yrt-heap-") as directory:
        for library in libraries:
            yield check(library, os.path.join(directory, "core"))
