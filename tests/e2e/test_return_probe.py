# SPDX-License-Identifier: Apache-2.0
"""
Return probes of another tool on the stack: the kernel puts its own return address in the place of the true one, and
keeps that.
"""

import contextlib
import ctypes
import os
import re
import struct
import subprocess

import yrt

PERF_EVENT_OPEN = 298
PROBED = "inner", "middle", "middle"  # two in one place: the second finds the address of the first


def offset_of(path, function):
    """Where in the file its code is."""
    symbols = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, check=True).stdout
    value = int(re.search(rf"([0-9a-f]{{16}}) .* {function}$", symbols, re.M)[1], 16)
    segments = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
    for offset, vaddr, size in re.findall(r"LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", segments):
        if int(vaddr, 16) <= value < int(vaddr, 16) + int(size, 16):
            return value - int(vaddr, 16) + int(offset, 16)
    raise AssertionError(f"{function} of {path} is in no segment")


@contextlib.contextmanager
def return_probes(pid, path, functions):
    with open("/sys/bus/event_source/devices/uprobe/type") as f:
        kind = int(f.read())
    name, libc, fds = ctypes.create_string_buffer(os.fsencode(path)), ctypes.CDLL(None, use_errno=True), []
    for function in functions:
        attr = bytearray(128)
        struct.pack_into("<IIQ", attr, 0, kind, len(attr), 1)  # config: a return probe
        struct.pack_into("<QQ", attr, 56, ctypes.addressof(name), offset_of(path, function))
        fd = libc.syscall(PERF_EVENT_OPEN, (ctypes.c_char * len(attr)).from_buffer(attr), pid, -1, -1, 0)
        assert fd >= 0, os.strerror(ctypes.get_errno())
        fds.append(fd)
    try:
        yield
    finally:
        for fd in fds:
            os.close(fd)


@contextlib.contextmanager
def probed(*args):
    """held, once it has hit the probes: their return addresses are on its stack until the end."""
    path = yrt.fixture_path("held")
    with yrt.Fixture("held", *args) as fixture, return_probes(fixture.pid, path, PROBED):
        fixture.release()
        yrt.until(lambda: "[uprobes]" in yrt.read(f"/proc/{fixture.pid}/maps"), "the kernel has made its page")
        yield fixture


def check(result, chain):
    assert result.samples > 0 and result.incomplete() == 0, result.stats
    result.stacks = [([f for f in frames if f[0] != "["], n) for frames, n in result.stacks]  # waits for a CPU
    wrong = yrt.wrong_chains(result, chain)
    assert not wrong, yrt.show(wrong)


def test_on_the_stack():
    with probed() as fixture:
        for view in ("flame", "wall-flame"):
            check(yrt.sample_busy(view, [fixture.pid], "-U", seconds=0.5, rate=999), fixture.chain)


def test_wait_below_probes():
    with probed("waits") as fixture:
        yrt.in_call(fixture.pid, yrt.READ)
        result = yrt.run("off-flame", "-U", "-p", fixture.pid, "-d", 1).expect()
        assert result.incomplete() == 0 and len(result.stacks) == 1, (result.stats, result.text)
        frames = [f for f in result.stacks[0][0] if f in fixture.chain]
        assert frames == fixture.chain[::-1], result.text


def test_dump():
    with probed("waits") as fixture:
        yrt.in_call(fixture.pid, yrt.READ)
        result = yrt.run("dump", "-p", fixture.pid, output=False, stats=False).expect()
        names = [line.split()[0] for line in result.stdout.splitlines() if line.startswith("    ")]
        at = names.index("inner")
        assert names[at : at + 4] == fixture.chain and "truncated" not in result.stdout, result.stdout


yrt.main(globals())
