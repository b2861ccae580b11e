# SPDX-License-Identifier: Apache-2.0
"""go-heap --types, against runtime.MemStats of a program that allocates nothing any more."""

import re

import go
import yrt

OWN = {"main.large": 500, "main.huge": 3, "*main.small": 40}  # the last: arrays of them
SINCE = 20  # objects that the runtime may have made since it counted: it starts threads
HIDDEN = ["-ldflags=-s -w"]


def told(pid, *options, code=yrt.OK):
    return yrt.Run("go-heap", "--types", "-p", pid, *options, output=False, stats=False).result().expect(code)


def rows(text):
    """[(bytes, objects, of bytes, type)]"""
    found = re.findall(r"^ *(\d+) +[\d.]+ +(\d+) +(\d+)  (.*)$", text, re.M)
    return [(int(size), int(count), int(each), name) for size, count, each, name in found]


def check(path):
    with yrt.Fixture(path, seconds=None, wait=False) as f:
        text = told(f.pid).stdout
        table = rows(text)
        sizes = {}
        for size, count, each, name in table:
            assert size == count * each, (size, count, each, name)
            sizes[each] = sizes.get(each, 0) + count
        for size, count in f.start["sizes"].items():
            assert 0 <= sizes.get(int(size), 0) - count <= SINCE, (size, sizes.get(int(size)), count)
        assert 0 <= sum(sizes.values()) - f.start["objects"] <= SINCE, (sum(sizes.values()), f.start["objects"])
        types = {name: count for _, count, _, name in table}
        for name, count in OWN.items():
            assert types[name] == count, (name, types.get(name), count)
        assert types["(1408 bytes, without pointers)"] == 700
        assert "#" not in text, text
        folded = dict(line.rsplit(" ", 1) for line in told(f.pid, "-f", "folded").stdout.splitlines())
        assert int(folded["main.large"]) == 500 * 1152, folded
        assert rows(told(f.pid, "--watch", 0.1).stdout) == []
        return len(table)


def test_types():
    """By size class as many as the runtime counts, and all of the program's own types; stripped or not."""
    if go.minor() >= 22:
        yield f"{check(go.build('sized'))} rows"
        yield f"{check(go.build('sized', *HIDDEN, name='sized-stripped'))} rows, stripped"


def test_refused():
    """Spans of before 1.22 are refused by name."""
    if go.minor() < 22:
        with yrt.Fixture(go.build("sized"), seconds=None, wait=False) as f:
            yrt.clear(told(f.pid, code=yrt.UNSUPPORTED), yrt.UNSUPPORTED, "--types is for Go 1.22")


yrt.main(globals())
