# SPDX-License-Identifier: Apache-2.0
"""What `yrt heap --all --bytes` prints."""

import collections
import re

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
