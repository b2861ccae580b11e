# SPDX-License-Identifier: Apache-2.0
"""
--source: lines of files that can be read where the page is drawn, and no others, whatever a target says its source is.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

import yrt

sys.path.insert(0, os.path.join(yrt.SOURCE, "tests", "tools"))
from webdriver import Browser  # noqa: E402

PROGRAM = """\
import sys

def busy(n):
    total = 0
    for i in range(n):
        total += i * i  # the line
    return total

secret = compile("def hidden(n):\\n return sum(range(n))\\n", sys.argv[1], "exec")
exec(secret)
while True:
    busy(10000)
    hidden(10000)
"""


def page(directory, *flags):
    """A recording drawn with --source, as data and as a file."""
    path = os.path.join(directory, "x.html")
    yrt.run("render", os.path.join(directory, "x.yrt"), "-o", path, *flags, output=False, stats=False).expect()
    return (
        json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', yrt.read(path), re.S)[1]),
        path,
    )


def record(directory):
    program, secret = os.path.join(directory, "<script>.py"), os.path.join(directory, "secret")
    for name, text, mode in (program, PROGRAM, 0o644), (secret, "root:secret:\n" * 9, 0o600):
        with open(name, "w", opener=lambda path, flags, mode=mode: os.open(path, flags, mode)) as f:
            f.write(text)
    with subprocess.Popen([sys.executable, program, secret]) as busy:
        yrt.sample_busy("record", [busy.pid], "--lines", "-o", os.path.join(directory, "x.yrt"), seconds=1, rate=499,
                        output=False)
        busy.kill()
    return program, secret


def test_source():
    with tempfile.TemporaryDirectory() as directory, Browser(1280, 800) as b:
        program, secret = record(directory)
        assert "source" not in page(directory)[0]
        data, path = page(directory, "--source")
        assert secret in data["strings"] and set(data["source"]) >= {program} and secret not in data["source"], list(
            data["source"]
        )
        blocks = data["source"][program]
        first = next(first for first, text in blocks if "# the line" in text)
        line = first + [i for i, s in enumerate(blocks[0][1].split("\n")) if "# the line" in s][0]
        assert line == 6, blocks
        b.open("file://" + path)
        assert not b.log()
        b.run("openSource([...plain.fn].find((f) => nameOf(f).startsWith('busy ') && field(f, 3) === 6))")
        current = b.run("return document.querySelector('#source [aria-current=true]').textContent")
        assert re.fullmatch(r"[\d.]+%[\d.]+%6 +total \+= i \* i  # the line", current), current
        b.keys("Escape")
        assert b.run("return document.getElementById('source').hidden") and not b.log()


yrt.main(globals())
