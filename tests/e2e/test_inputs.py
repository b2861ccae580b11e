# SPDX-License-Identifier: Apache-2.0
"""What other tools write, as render reads it: packed or not, with two counts or fractions, pprof of any writer."""

import gzip
import os
import tempfile

import yrt


def render(name, data, *flags, code=yrt.OK):
    """(stacks, what render says) of a file with these bytes."""
    with tempfile.TemporaryDirectory() as at:
        path, out = os.path.join(at, name), os.path.join(at, "out.folded")
        with open(path, "wb") as file:
            file.write(data)
        result = yrt.run("render", path, "-o", out, *flags, output=False, stats=False).expect(code)
        return (yrt.read(out).splitlines() if code == yrt.OK else None), result.stderr


def number(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(tag, value):
    if isinstance(value, int):
        return number(tag << 3) + number(value)
    return number(tag << 3 | 2) + number(len(value)) + value


def pprof():
    """3 and 7 samples of main, work, at lines 31 and 35 of work, which has no start line."""
    location = lambda key, function, line: field(4, field(1, key) + field(4, field(1, function) + field(2, line)))
    function = lambda key, name: field(5, field(1, key) + field(2, name))
    ret = field(1, field(1, 1) + field(2, 2))
    ret += field(2, field(1, b"\2\1") + field(2, b"\3")) + field(2, field(1, b"\3\1") + field(2, b"\7"))
    ret += location(1, 1, 20) + location(2, 2, 31) + location(3, 2, 35) + function(1, 3) + function(2, 4)
    return ret + b"".join(field(6, text) for text in (b"", b"samples", b"count", b"main", b"work"))


def test_pprof():
    """One box for a function without a start line, packed or not."""
    for data in (pprof(), gzip.compress(pprof())):
        assert render("x.pb", data)[0] == ["main;work 10"]


def test_packed():
    """Folded stacks and perf's text in a gzip file."""
    assert render("x.gz", gzip.compress(b"main;f 3\nmain;g 7\n"))[0] == ["main;f 3", "main;g 7"]
    text = b"app 10 1.000000: 1 cycles:\n\t401000 busy+0x0 (/app)\n\n"
    assert render("x.gz", gzip.compress(text))[0] == ["busy 1"]
    assert render("x.txt", b"\nmain;f 3\n")[0] == ["main;f 3"]
    assert render("x.txt", b"Proc;f 3\n")[0] == ["Proc;f 3"]


def test_counts():
    """Two counts where all lines have them; a name that ends in a number; fractions are refused by name."""
    stacks, said = render("d.folded", b"a;b 10 30\na;c 20 20\na;gone 5 0\n")
    assert stacks == ["a;b 30", "a;c 20"] and "second" in said, (stacks, said)
    assert render("x.folded", b"a;worker 1 30\na;c 20\n")[0] == ["a;c 20", "a;worker 1 30"]
    said = render("x.folded", b"a;b 1.5\n", code=yrt.INPUT)[1]
    assert "line 1: a count with a fraction" in said and "whole" in said, said


def test_diff_again():
    """What diff writes, render reads."""
    with tempfile.TemporaryDirectory() as at:
        for name, data in (("1", "a;b 10\na;c 20\n"), ("2", "a;b 30\na;c 20\n")):
            with open(os.path.join(at, name), "w") as file:
                file.write(data)
        out = os.path.join(at, "d.folded")
        yrt.run("diff", f"{at}/1", f"{at}/2", "-o", out, output=False, stats=False).expect()
        with open(out, "rb") as file:
            assert render("d.folded", file.read())[0] == ["a;b 30", "a;c 20"]


def test_others():
    """Files that yrt does not read are named, with what to do."""
    said = render("x.data", b"PERFILE2\x68\0\0\0\0\0\0\0", code=yrt.INPUT)[1]
    assert "perf.data file" in said and "perf script -i" in said, said
    for data in (b"FLR\0\0\2\0\0", gzip.compress(b"FLR\0\0\2\0\0")):
        said = render("x", data, code=yrt.INPUT)[1]
        assert "JFR" in said and "jfrconv" in said, said


def test_events():
    """Samples of the first event only, and a note of the others."""
    text = b"a 1 2.3: 4 cycles:\n\t1 f (x)\n\na 1 2.4: 1 page-faults:\n\t2 g (x)\n\n"
    stacks, said = render("x.txt", text)
    assert stacks == ["f 1"] and "only samples of cycles" in said and "page-faults" in said, (stacks, said)


yrt.main(globals())
