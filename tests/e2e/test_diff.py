# SPDX-License-Identifier: Apache-2.0
"""
diff as a test: runs of one program are alike, a known change is found, whoever asks: people by --summary, CI by the
exit code.
"""

import itertools
import os
import re
import sys
import tempfile

import yrt

PROGRAM = """
import random, sys, time
def same(n):
    return [str(x) for x in range(n)]
def other(n):
    return {x: x * x for x in range(n)}
def grows(n):
    return sorted((x * 7919) % 10007 for x in range(n))
end = time.process_time() + 0.6
while time.process_time() < end:
    same(900), other(900), grows(int(900 * float(sys.argv[1])))
"""


def record(path, factor):
    yrt.run(
        "record",
        "-q",
        "-F",
        997,
        "-o",
        path,
        "--",
        sys.executable,
        "-c",
        PROGRAM,
        str(factor),
        output=False,
        stats=False,
    ).expect()


def diff(*args, code=yrt.OK):
    result = yrt.run("diff", *args, output=False, stats=False)
    return result if code is None else result.expect(code)


def compare_runs(directory):
    paths = {}
    for factor in (1, 3):
        paths[factor] = [os.path.join(directory, f"{factor}-{i}.yrt") for i in range(3)]
        for path in paths[factor]:
            record(path, factor)
    alike = [diff(a, b, "--summary", "--fail-over", "5%", code=None) for a, b in itertools.combinations(paths[1], 2)]
    found = [r.stdout for r in alike if "Nothing changed beyond chance" not in r.stdout]
    assert len(found) <= 1, found
    assert sum(r.code == 9 for r in alike) <= 1, [r.stderr for r in alike]
    changed = diff(*paths[1], "--", *paths[3], "--summary", "--fail-over", "5%", code=9)
    row = re.search(r"^ *([\d.]+)% +([\d.]+)% +\+([\d.]+) .*total +grows", changed.stdout, re.M)
    assert row and float(row[2]) > 1.3 * float(row[1]), changed.stdout
    assert re.search(r"^ .*-[\d.]+ .*total +(same|other)", changed.stdout, re.M), changed.stdout
    assert "grew by more than 5%" in changed.stderr, changed.stderr


def test_change():
    """Three runs a side whose counts are known: the change is found, printed, on the page, and in the exit code."""
    with tempfile.TemporaryDirectory() as directory:
        paths = {grows: [os.path.join(directory, f"{grows}-{i}.folded") for i in range(3)] for grows in (150, 450)}
        for grows, runs in paths.items():
            for i, path in enumerate(runs):
                counts = {"same": 297 + 3 * i, "other": 202 - 2 * i, "grows": grows - 1 + i}
                open(path, "w").write("".join(f"main;work;{name} {n}\n" for name, n in counts.items()))
        few, many = paths.values()
        alike = diff(*few[:2], "--summary", "--fail-over", "5%").stdout
        assert "Nothing changed beyond chance: 3 functions" in alike, alike
        changed = diff(*few, "--", *many, "--summary", "--fail-over", "5%", code=9)
        assert re.search(r"^ +23.08% +47.37% +\+24.29 .* self +grows$", changed.stdout, re.M), changed.stdout
        assert re.search(r"^ +46.15% +31.58% +-14.57 .* self +same$", changed.stdout, re.M), changed.stdout
        assert "grows grew by more than 5%: from 23.08 % to 47.37 %" in changed.stderr, changed.stderr
        diff(*many, "--", *few, "--fail-over", "60%")
        page = os.path.join(directory, "d.html")
        diff(*few, "--", *many, "-o", page)
        text = open(page).read()
        assert '"chance":"3 changes beyond chance' in text and '"chance":{"' in text


@yrt.measured
def test_runs():
    """The same of recordings of a program."""
    with tempfile.TemporaryDirectory() as directory:
        compare_runs(directory)


def refuse(directory):
    a = os.path.join(directory, "a.folded")
    open(a, "w").write("main;f 10\nmain;g 5\n")
    for args, said in (
        ((a, a, a, "--summary"), "several of each side"),
        (("--", a, "--summary"), "several of each side"),
        ((a, a), "no output was given"),
        ((a, a, "--fail-over", "much"), "takes percent"),
        ((a, a, "--fail-over", "-1%"), "takes percent"),
    ):
        assert said in diff(*args, code=yrt.USAGE).stderr, args
    assert "Nothing changed beyond chance" in diff(a, "--summary", "--", a).stdout


def test_bad_usage():
    with tempfile.TemporaryDirectory() as directory:
        refuse(directory)


yrt.main(globals())
