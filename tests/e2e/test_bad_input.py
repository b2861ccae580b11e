# SPDX-License-Identifier: Apache-2.0
"""
What can go wrong: one clear line that says what, where, what next; the right exit code; what was gathered is kept.
"""

import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

import yrt
from yrt import clear, nobody


def free_pid():
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


def test_no_such_pid():
    pid = free_pid()
    clear(yrt.run("flame", "-p", pid, "-d", 1), yrt.NO_PROCESS, pid)


@yrt.measured
def test_one_of_two_pids_is_gone():
    """The other is still sampled, and the message names the one that is missing; or the command refuses by name."""
    pid = free_pid()
    with yrt.Fixture("deep30", wait=False) as fixture:
        result = yrt.run("flame", "-p", f"{fixture.pid},{pid}", "-d", 1, "-F", 999)
    assert re.search(rf"\b{pid}\b", result.stderr), result.stderr
    assert result.code == yrt.NO_PROCESS or result.share("f01") > 0.5, result.stderr


def test_usage():
    me = os.getpid()
    for args in (["flame", "--nonsense"], ["flame", "-p", "abc"], ["flame", "-p", "-5"], ["flame", "-p", "0"],
                 ["flame", "-p", ""], ["flame"], ["flame", "-p", me, "-d", "-1"], ["flame", "-p", me, "-d", "x"],
                 ["flame", "-p", me, "-F", "0"], ["flame", "-p", me, "-F", "1e99"], ["flame", "-p", me, "--depth", "0"],
                 ["flame", "-p", me, "--depth", "99999999"], ["flame", "-p", me, "stray"], ["frobnicate"],
                 ["cobol-flame", "-p", me], [], ["flame", "-p", "99999999999999999999"]):
        result = yrt.run(*args, output=False, stats=False, timeout=300)
        assert result.code in (
            (yrt.USAGE, yrt.NO_PROCESS) if "9999999999" in str(args) or "abc" in args else (yrt.USAGE,)
        ), f"{args}: code {result.code}: {result.stderr}"
        assert result.stderr.strip(), f"{args}: no message"


def test_unknown_format():
    with tempfile.TemporaryDirectory() as dir:
        result = yrt.run("flame", "-p", os.getpid(), "-d", 1, "-o", os.path.join(dir, "x.doc"), output=False)
    clear(result, yrt.USAGE, "x.doc|format|doc")


def kernel_thread():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        status = yrt.read(f"/proc/{pid}/status")
        if status and "VmSize" not in status and "State:\tZ" not in status:
            return pid
    raise AssertionError("no kernel thread is visible here, so this can not be tested")


def test_kernel_thread():
    pid = kernel_thread()
    result = yrt.run("flame", "-p", pid, "-d", 1)
    assert result.code in (yrt.NO_PROCESS, yrt.UNSUPPORTED), f"{result.code}: {result.stderr}"
    clear(result, result.code, rf"\b{pid}\b", "kernel")


def test_zombie():
    with subprocess.Popen(["true"]) as process:
        yrt.until(lambda: "State:\tZ" in yrt.read(f"/proc/{process.pid}/status"), "it has ended")
        clear(yrt.run("flame", "-p", process.pid, "-d", 1), yrt.NO_PROCESS, rf"\b{process.pid}\b", "zombie|exited|dead")


@yrt.measured
def test_first_thread_has_ended():
    """Others run on: the kernel shows memory and files of the process at them only."""
    program = ("import ctypes, threading\ndef spin():\n    while True: sum(range(100))\n"
               "open('/proc/self/comm', 'w').write('leaderless')\n"
               "threading.Thread(target=spin).start()\nctypes.CDLL(None).pthread_exit(None)\n")
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        try:
            yrt.until(lambda: "State:\tZ" in yrt.read(f"/proc/{process.pid}/status"), "its first thread has ended")
            result = yrt.run("python-flame", "-p", process.pid, "-d", 1).expect()
            assert result.share("spin (<string>:2)") > 0.95, yrt.show(result.stacks)
            rule = f"comm=leaderless,exe={os.path.realpath(sys.executable)}"
            found = yrt.run("python-flame", "--select", rule, "-d", 1).expect()
            assert found.share("spin (<string>:2)") > 0.95, yrt.show(found.stacks)
            assert yrt.run("probe", "-e", "PyLong_FromLong", "-p", process.pid, "-d", 1).expect().stacks
            dump = yrt.run("dump", "-p", process.pid, output=False, stats=False).expect()
            assert re.search(r"\n    spin +<string>:3 ", dump.stdout), dump.stdout
        finally:
            process.kill()


def test_too_short():
    """Nothing was seen of a busy process: not that it did nothing."""
    with yrt.Fixture("deep30", wait=False) as fixture:
        result = yrt.run("flame", "-p", fixture.pid, "-d", 0.01, "-F", 1).expect()
    assert "too short for a sample" in result.stderr and "used no CPU" not in result.stderr, result.stderr


@yrt.measured
def test_dies_during():
    with yrt.Fixture("deep30") as fixture:
        at = yrt.Run("flame", "-p", fixture.pid, "-d", 100, "-F", 999).sampling()
        fixture.release()
        yrt.busy_for([fixture.pid], 0.5)
        fixture.process.kill()
        result = at.result(timeout=300).expect()
    assert result.samples > 100 and abs(result.samples / result.stats["expected_samples"] - 1) < 0.1, result.stats
    assert result.share("f01") > 0.6, yrt.show(result.stacks)
    assert re.search(rf"\b{fixture.pid}\b", result.stderr), result.stderr


def test_dies_around_attach():
    """
    Killed at some moment between before and after attach: never a crash, a known code, and yrt ends then, though nobody
    has reaped the process.
    """
    codes = set()
    for delay in (0, 5, 10, 20, 30, 40, 60, 80, 100, 150, 200, 300):
        with yrt.Fixture("deep30", wait=False) as fixture:
            at = yrt.Run("flame", "-p", fixture.pid, "-F", 999)
            time.sleep(delay / 1000)
            fixture.process.kill()
            result = at.result(timeout=300)
        codes.add(result.code)
        assert result.code in (yrt.OK, yrt.NO_PROCESS), f"killed after {delay} ms: code {result.code}\n{result.stderr}"
        assert result.stderr.strip()


def tiny_elf32():
    """A whole 32-bit program: getpid for ever. No toolchain needed."""
    code = b"\xb8\x14\x00\x00\x00\xcd\x80\xeb\xf7"  # mov $20, %eax; int $0x80; jmp
    base, start = 0x08048000, 52 + 32
    header = (
        b"\x7fELF\x01\x01\x01"
        + bytes(9)
        + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + start, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    )
    segment = struct.pack("<IIIIIIII", 1, 0, base, base, start + len(code), start + len(code), 5, 4096)
    return header + segment + code


def test_32_bit():
    with tempfile.TemporaryDirectory() as dir:
        path = os.path.join(dir, "tiny32")
        with open(path, "wb") as f:
            f.write(tiny_elf32())
        os.chmod(path, 0o755)
        with subprocess.Popen([path]) as process:
            try:
                time.sleep(0.2)
                assert process.poll() is None, "this kernel runs no 32-bit programs"
                clear(yrt.run("flame", "-p", process.pid, "-d", 1), yrt.UNSUPPORTED, rf"\b{process.pid}\b", "32.bit")
            finally:
                process.kill()


@yrt.measured
def test_unwritable_output():
    with yrt.Fixture("deep30", wait=False) as fixture:
        for path in ("/nonexistent/dir/x.folded", "/proc/x.folded"):
            begin = time.monotonic()
            clear(yrt.run("flame", "-p", fixture.pid, "-d", 600, "-o", path, output=False), yrt.OUTPUT, path)
            assert time.monotonic() - begin < 30, "noticed only after sampling"


def test_full_disk():
    with yrt.Fixture("deep30", wait=False) as fixture:
        result = yrt.run("flame", "-p", fixture.pid, "-d", 1, "-f", "folded", "-o", "/dev/full", output=False)
        clear(result, yrt.OUTPUT, "/dev/full", "space")
        at = yrt.Run("flame", "-p", fixture.pid, "-d", 600, "--stats", "/dev/full", stats=False).sampling()
        yrt.busy_for([fixture.pid], 0.5)
        at.interrupt()
        full = clear(at.result(), yrt.OUTPUT, "/dev/full")
    assert full.samples > 0, "the picture is lost because the statistics could not be written"


def test_closed_stdout():
    """yrt -o - | head: no crash, no endless message."""
    with yrt.Fixture("recursion", 900) as fixture:
        fixture.release()
        result = yrt.run(
            "flame", "-p", fixture.pid, "-d", 1, "-o", "-", output=False, prefix=["sh", "-c", '"$@" | head -c 10', "sh"]
        )
        assert len(yrt.alone(result.stderr)) <= 4, result.stderr
        for command in ("dump",), ("top", "-d", 0.2), ("flame", "-d", 0.2, "-o", "/dev/null", "--stats", "-"):
            yrt.unread(*command, "-p", fixture.pid)


def test_not_permitted():
    """Somebody else's process, without rights."""
    with nobody() as how, yrt.Fixture("deep30", wait=False) as fixture:
        result = yrt.run("flame", "-p", fixture.pid, "-d", 1, **how)
    clear(result, yrt.PERMISSION, "permi|root|CAP_|privileg")


def test_no_capabilities():
    """Root in name only: all capabilities dropped (BPF is refused)."""
    prefix = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    with yrt.Fixture("deep30", wait=False) as fixture:
        result = yrt.run("flame", "-p", fixture.pid, "-d", 1, prefix=prefix)
    clear(result, yrt.PERMISSION, "permi|root|CAP_|privileg")


def test_doctor_without_rights():
    with nobody() as how:
        result = yrt.run("doctor", output=False, stats=False, **how)
    assert result.code in (yrt.OK, yrt.PERMISSION) and re.search("no|not|lack|miss", result.stdout), result.stdout


def test_interrupted_at_once():
    """Ctrl-C while starting: an empty result or none, but an orderly end."""
    with yrt.Fixture("deep30", wait=False) as fixture:
        for delay in (0.005, 0.02, 0.05, 0.1, 0.2):
            at = yrt.Run("flame", "-p", fixture.pid, "-d", 600)
            time.sleep(delay)
            at.interrupt()
            result = at.result(timeout=300)
            assert result.code in (yrt.OK, 130, -signal.SIGINT), f"after {delay} s: {result.code}: {result.stderr}"


@yrt.measured
def test_corrupt_library():
    """The target maps a file that begins as ELF and is garbage from there: its other stacks are whole."""
    with tempfile.TemporaryDirectory() as dir:
        path = os.path.join(dir, "garbage.so")
        with open(yrt.fixture_path("libspin.so"), "rb") as f:
            data = bytearray(f.read())
        data[64:] = bytes((i * 37 + 11) & 255 for i in range(len(data) - 64))
        with open(path, "wb") as f:
            f.write(data)
        script = "import mmap, sys, time\n" \
                 f"f = open({path!r}, 'rb')\n" \
                 "m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)\n" \
                 "print(flush=True)\n" \
                 "end = time.monotonic() + 30\n" \
                 "while time.monotonic() < end: sum(range(1000))\n"
        with subprocess.Popen(["python3", "-c", script], stdout=subprocess.PIPE) as process:
            try:
                process.stdout.readline()
                result = yrt.run("flame", "-p", process.pid, "-d", 2, "-F", 999).expect()
            finally:
                process.kill()
    assert result.samples > 100 and result.incomplete() < 0.01, result.stats


@yrt.measured
def test_cache_is_checked():
    """A corrupt cache of unwind rows is noticed and made anew; one that can not be written is no error."""
    with tempfile.TemporaryDirectory() as dir, yrt.Fixture("deep30", wait=False) as fixture:
        env = {"XDG_CACHE_HOME": dir, "HOME": dir}
        command = ("flame", "-U", "-p", fixture.pid, "-d", 1, "-F", 999)
        first = yrt.run(*command, env=env).expect()
        files = [os.path.join(at, f) for at, _, names in os.walk(dir) for f in names]
        assert files, f"nothing is cached below {dir}"
        for name in files:
            with open(name, "r+b") as f:
                size = os.path.getsize(name)
                for at in range(0, size, 97):
                    f.seek(at)
                    f.write(b"\xa5")
        second = yrt.run(*command, env=env).expect()
        for name in files:
            os.truncate(name, os.path.getsize(name) // 2) if os.path.exists(name) else None
        third = yrt.run(*command, env=env).expect()
        unwritable = yrt.run(*command, env={"XDG_CACHE_HOME": "/proc/nothing", "HOME": "/proc/nothing"}).expect()
    for result in (first, second, third, unwritable):
        wrong = yrt.wrong_chains(result, fixture.chain)
        assert result.samples > 20 and result.incomplete() <= 0.005, result.stats
        assert sum(n for _, n in wrong) <= 0.005 * result.samples, yrt.show(wrong)


def test_killed():
    """Nothing is left of a page whose yrt was killed."""
    with tempfile.TemporaryDirectory() as directory, yrt.Fixture("threads", seconds=60) as fixture:
        run = subprocess.Popen([yrt.YRT, "flame", "-p", str(fixture.pid), "-d", "600", "-o", directory + "/a.html"],
                               stderr=subprocess.DEVNULL)
        time.sleep(1)
        assert run.poll() is None
        run.kill()
        run.wait()
        assert not os.listdir(directory), os.listdir(directory)


yrt.main(globals())
