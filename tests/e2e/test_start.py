# SPDX-License-Identifier: Apache-2.0
"""Programs from their first instruction on: started by yrt, or by a shell under -s, while they load one file after the other."""

import sys

import yrt

IMPORTS = "import asyncio, ctypes, decimal, json, lzma, multiprocessing, sqlite3, ssl, unittest, xml.etree.ElementTree"
WORK = IMPORTS + "; import time\nend = time.process_time() + %s\nwhile time.process_time() < end: sum(range(1000))"


def whole(result, limit):
    assert result.incomplete() <= limit, f"{result.incomplete():.4%} cut of {result.samples}: {result.stats['truncated']}"


def test_python():
    """All that its imports load is seen: the stacks are whole while files are mapped whose code is not known yet."""
    result = yrt.run("python-flame", "-F", 1999, "--", sys.executable, "-c", WORK % 0.3, timeout=120).expect()
    whole(result, 0.01)
    assert result.share("<module> (<string>:1)") > 0.8, yrt.show(result.stacks)


def test_programs_of_a_shell():
    """Each program is new to yrt, the files are known from the second one on."""
    script = 'for i in 1 2 3 4; do "$@"; done'
    result = yrt.run("flame", "-s", "-F", 1999, "--", "sh", "-c", script, "sh", sys.executable, "-c", IMPORTS, timeout=120).expect()
    whole(result, 0.03)


yrt.main(globals())
