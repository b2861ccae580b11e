# SPDX-License-Identifier: Apache-2.0
"""Where few files may be open (RLIMIT_NOFILE): an error that says so, never a crash or another's blame."""

import re
import resource
import sys

import java
import yrt

VIEWS = {
    "flame": [],
    "off-flame": [],
    "wall-flame": [],
    "lock-flame": [],
    "io-flame": [],
    "net-flame": [],
    "fault-flame": [],
    "probe": ["-e", "libc:getppid"],
    "latency": ["-e", "libc:getppid"],
    "record": ["--timeline"],
}
TINY = 4, 9, 24, 40
SLEEPS = [sys.executable, "-c", "import signal; signal.pause()"]


def limited(n, *args, **kw):
    """yrt where so many files may be open, and no more if it asks for them."""
    prefix = ["prlimit", f"--nofile={n}"]
    return yrt.run(*args, prefix=prefix, **kw)


def least(pid, *args):
    """How many yrt says that it needs."""
    result = limited(TINY[0], *args, "-p", pid, output=False, stats=False)
    yrt.clear(result, yrt.PERMISSION, "only 4 files may be open", "ulimit")
    return int(re.search(r"needs (\d+)", result.stderr)[1])


def test_error_names_the_limit():
    with yrt.Program(SLEEPS) as program:
        sampling, dump = least(program.pid, "flame", "-d", 1), least(program.pid, "dump")
        for n in (*TINY, sampling - 1):
            for view in ("flame", "top", "java-alloc", "probe"):
                result = limited(n, view, "-p", program.pid, "-d", 1, *VIEWS.get(view, []), output=False, stats=False)
                yrt.clear(result, yrt.PERMISSION, f"only {n} files may be open", f"needs {sampling}", "ulimit -Hn")
        for n in (*TINY, dump - 1):
            result = limited(n, "dump", "-p", program.pid, output=False, stats=False)
            yrt.clear(result, yrt.PERMISSION, f"only {n} files may be open", f"needs {dump}", "ulimit -Hn")


def test_that_many_are_enough():
    with yrt.Program(SLEEPS) as program:
        sampling = least(program.pid, "flame", "-d", 1)
        for view, options in VIEWS.items():
            result = limited(sampling, view, "-p", program.pid, "-d", 1, *options).expect()
            assert "open files" not in result.stderr, result.stderr
        dump = limited(least(program.pid, "dump"), "dump", "-p", program.pid, output=False, stats=False).expect()
        assert "pause" in dump.stdout, dump.stdout
    with java.Java("pulse", 300) as jvm:
        result = limited(sampling, "java-alloc", "-p", jvm.pid, "-d", 1).expect()
        assert "open files" not in result.stderr, result.stderr


def test_doctor():
    result = limited(50, "doctor", output=False, stats=False).expect(yrt.PERMISSION)
    assert re.search(r"^open files +MISSING +only 50 files may be open here", result.stdout, re.M), result.stdout
    result = yrt.run("doctor", output=False, stats=False)
    assert re.search(r"^open files +ok", result.stdout, re.M), result.stdout


def test_program_keeps_its_own():
    """yrt raises the limit for itself, not for what it starts."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    result = yrt.run("flame", "-d", 30, "--", "sh", "-c", "ulimit -Sn; ulimit -Hn", prefix=["prlimit", "--nofile=200:"])
    assert result.expect().stdout.split() == ["200", str(hard)], result.stdout


yrt.main(globals())
