# SPDX-License-Identifier: Apache-2.0
"""Time namespaces: yrt's CLOCK_MONOTONIC, the target's and the kernel's differ by a day, or by less than nothing."""

import contextlib
import re
import subprocess
import sys

import yrt

OFFSETS = 86400, -200
ABSOLUTE = """
import ctypes, time
class timespec(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
until = timespec(int(time.clock_gettime(time.CLOCK_MONOTONIC)) + 600, 0)
print(flush=True)
ctypes.CDLL(None).clock_nanosleep(time.CLOCK_MONOTONIC, 1, ctypes.byref(until), None)
"""
NAPS = "import time\nprint(flush=True)\nwhile True: time.sleep(0.02); sum(range(100000))"


def inside(offset):
    return ["unshare", "-T", "--monotonic", offset, "--fork", "--kill-child"]


@contextlib.contextmanager
def python(script, prefix=()):
    """Its pid, once it has said something."""
    command = [*map(str, prefix), sys.executable, "-c", script]
    with yrt.Program(command, stdout=subprocess.PIPE) as program:
        assert program.stdout.readline() == b"\n"
        yield yrt.children(program.pid, 1)[0] if prefix else program.pid


def test_waits():
    """One thread cannot wait for longer than it was watched."""
    with python(NAPS) as pid:
        for offset in OFFSETS:
            result = yrt.run("off-flame", "-U", "-p", pid, "-d", 1, prefix=map(str, inside(offset))).expect()
            whole = result.stats["duration_s"] * 1e9
            assert 0 < result.samples < whole + 100e9, f"{offset}: {result.samples} ns of {whole}"


def test_times_of_samples():
    with python("print(flush=True)\nwhile True: pass") as pid:
        for offset in OFFSETS:
            result = yrt.run(
                "record", "--timeline", "-p", pid, "-d", 3, "-F", 199, "-f", "perf", "-o", "-",
                output=False, prefix=map(str, inside(offset)),
            ).expect()
            times = [float(t) for t in re.findall(r" (\d+\.\d+): +\d+ cpu-clock", result.stdout)]
            duration = result.stats["duration_s"]
            assert times and 0 <= min(times) and max(times) < duration + 100, (offset, duration, times)


def test_moments():
    """What a target waits for is by its own clock, wherever yrt is."""
    for prefix in ((), inside(86400)):
        with python(ABSOLUTE, prefix) as pid:
            yrt.waiting(pid, 1)
            for own in ((), inside(-200)):
                result = yrt.run("dump", "-p", pid, output=False, stats=False, prefix=map(str, own)).expect()
                left = float(re.search(r"ABSTIME, ([\d.]+) s from now", result.stdout)[1])
                assert 500 < left <= 600, f"{prefix} seen from {own}: {left} s of 600"


yrt.main(globals())
