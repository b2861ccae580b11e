# SPDX-License-Identifier: Apache-2.0
"""
Programs from their first instruction on: started by yrt, or by a shell under -s, while they load one file after the
other.
"""

import os
import re
import sys
import tempfile

import yrt

IMPORTS = "import asyncio, ctypes, decimal, json, lzma, multiprocessing, sqlite3, ssl, unittest, xml.etree.ElementTree"
WORK = IMPORTS + "; import time\nend = time.process_time() + %s\nwhile time.process_time() < end: sum(range(1000))"


def cut(result, *but):
    """The share of stacks that are not whole, without these causes."""
    return sum(n for cause, n in result.stats["truncated"].items() if cause not in but) / result.samples


@yrt.measured
def test_python():
    """All that its imports load is seen: the stacks are whole while files are mapped whose code is not known yet."""
    result = yrt.run("python-flame", "-F", 1999, "--", sys.executable, "-c", WORK % 0.3, timeout=300).expect()
    assert cut(result) <= 0.06, result.stats["truncated"]
    yield result.summary()
    assert result.share("<module> (<string>:1)") > 0.6, yrt.show(result.stacks)


def test_one_program():
    """
    From the command's exec() on there is one program, also while the files that it maps are reported before its exec().
    """
    for _ in range(8):
        result = yrt.run("flame", "-s", "-F", 9999, "--", sys.executable, "-c", "pass", timeout=300).expect()
        strangers = [(frames, n) for frames, n in result.stacks if frames[0].startswith("yrt")]
        assert not strangers, yrt.show(strangers)


def test_name():
    """A command is a copy of yrt until it executes: the page is called after what it becomes."""
    command = yrt.fixture_path("deep30"), 1
    page = yrt.run("flame", "-f", "html", "-o", "-", "--", *command, output=False, stats=False).expect().stdout
    assert re.search(r'"target":"deep30 \(pid \d+\)"', page), re.findall('"target":[^,]*', page)


@yrt.measured
def test_programs_of_a_shell():
    """
    The first one is prepared, as the shell's arguments name it; the others are known to BPF while stacks of those
    before still wait for names.
    """
    script = 'for i in 1 2 3 4; do "$@"; done'
    result = yrt.run(
        "flame", "-s", "-F", 1999, "--", "sh", "-c", script, "sh", sys.executable, "-c", IMPORTS, timeout=300
    ).expect()
    assert cut(result) <= 0.08, f"{result.samples} samples, {result.stats['truncated']}"
    yield result.summary()


@yrt.measured
def test_short_commands():
    """They live for a millisecond: most have ended when yrt comes to look at them."""
    script = "for i in $(seq 100); do ls / >/dev/null; date >/dev/null; done"
    result = yrt.run("flame", "-s", "-F", 1999, "--", "sh", "-c", script, timeout=300).expect()
    assert cut(result) <= 0.2, f"{result.samples} samples, {result.stats['truncated']}"
    yield result.summary()


@yrt.both_tiers
def test_threads():
    """
    A thread that is still in the system call that made it has nothing above it on its stack, but perhaps what an
    earlier one left there.
    """
    threads = (
        "import threading, time\nend = time.monotonic() + 2\nwhile time.monotonic() < end:\n threads ="
        " [threading.Thread(target=int) for _ in range(20)]\n [t.start() for t in threads]\n [t.join() for t in"
        " threads]"
    )
    result = yrt.run("flame", "-F", 1999, "--", sys.executable, "-c", threads, timeout=300).expect()
    born = [(frames, n) for frames, n in result.stacks if any(f.startswith("ret_from_fork") for f in frames)]
    wrong = [(frames, n) for frames, n in born if not frames[1].startswith("ret_from_fork")]
    assert not wrong, yrt.show(wrong)
    assert result.samples, result.stderr
    assert not yrt.measuring() or cut(result, "no_process") <= 0.06, result.stats["truncated"]
    first = [
        (frames, n)
        for frames, n in result.stacks
        if frames[-1].startswith("clone") and any(f.startswith("[truncated") for f in frames)
    ]
    assert not first, yrt.show(first)  # back in user mode
    # none where the machine is busy
    yield f"{sum(n for _, n in born)} of {result.samples} samples in threads that begin"


def test_a_strangers_program():
    """
    Programs that the arguments name are prepared, by their own dynamic linker: not what others could have written.
    """
    with tempfile.TemporaryDirectory(prefix="yrt-") as folder:
        linker, program, ran = (f"{folder}/{name}" for name in ("ld", "p", "ran"))
        with open(linker, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\ntouch {ran}\n")
        os.chmod(linker, 0o755)
        with open("/bin/true", "rb") as file:
            code = file.read()
        path = b"/lib64/ld-linux-x86-64.so.2"
        assert path in code and len(linker) <= len(path), linker
        with open(program, "wb") as file:
            file.write(code.replace(path, linker.encode().ljust(len(path), b"\0")))
        script = f": {program}; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
        for mode in (0o757, 0o775, 0o755):
            os.chmod(program, mode)
            yrt.run("flame", "--", "sh", "-c", script).expect()
            assert os.path.exists(ran) == (mode == 0o755), oct(mode)


yrt.main(globals())
