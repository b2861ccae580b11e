# SPDX-License-Identifier: Apache-2.0
"""watch: recordings on time and on a condition, kept in a ring or sent; nothing of it in the kernel in between."""

import contextlib
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import dumps
import stores
import yrt

BUSY = "import time\nwhile True: sum(range(1000))"
PAUSE = "34 "  # of x86-64
BUSY_CHILD = "while True: sum(range(1000))"
IDLE = "import time\ntime.sleep(300)"
RISES = """
import signal
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.pause()
while True: sum(range(1000))
"""


class Python:
    def __init__(self, script):
        self.process = subprocess.Popen([sys.executable, "-c", script])
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        yrt.stop(self.process, signal.SIGKILL)


def watch(dir, *args, **kw):
    return yrt.Run("watch", *args, "--dir", dir, output=False, stats=False, **kw)


def kept(dir):
    return sorted(glob.glob(os.path.join(dir, "watch-*.yrt")))


def folded(path):
    out = subprocess.run([yrt.YRT, "render", path, "-o", "-"], capture_output=True, text=True, check=True).stdout
    return yrt.parse_folded(out)


def programs_loaded(pid):
    """BPF programs that a process holds."""
    links = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            pass
    return sum("bpf-prog" in link or "bpf_link" in link or "perf_event" in link for link in links)


def is_asleep(pid):
    """In nanosleep or clock_nanosleep (35, 230 of x86-64)."""
    return yrt.read(f"/proc/{pid}/syscall").partition(" ")[0] in ("35", "230")


def looks(at, n):
    """Waits until yrt has slept so many times more, as it does between its looks at a condition."""
    def slept():
        return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", yrt.read(f"/proc/{at.process.pid}/status"), re.M)[1])
    yrt.until(lambda: is_asleep(at.process.pid), "yrt waits")
    enough = slept() + n
    yrt.until(lambda: slept() >= enough, "yrt looks")


def cpu_s(pid):
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9


@yrt.measured
def test_every():
    """So many recordings, each whole; then nothing in the kernel and no CPU time until the next."""
    with tempfile.TemporaryDirectory() as dir, Python(BUSY) as target:
        at = watch(dir, "-p", target.pid, "-d", 1, "--every", 12, "-n", 2)
        end = time.monotonic() + 30
        while not (kept(dir) and is_asleep(at.process.pid)) and time.monotonic() < end:
            time.sleep(0.05)
        before = cpu_s(at.process.pid)
        assert programs_loaded(at.process.pid) == 0
        time.sleep(2)
        used = cpu_s(at.process.pid) - before
        assert programs_loaded(at.process.pid) == 0 and used < 0.002, f"{used} s in two seconds of waiting"
        at.result().expect()
        files = kept(dir)
        assert len(files) == 2, files
        for path in files:
            stacks = folded(path)
            assert sum(n for _, n in stacks) > 3 and any(
                "<module> (<string>:1)" in frames for frames, _ in stacks
            ), stacks[:3]


def test_ring():
    """The oldest go, whatever the clock said then; files of others stay."""
    with tempfile.TemporaryDirectory() as dir, Python(BUSY) as target:
        other, later = (os.path.join(dir, name) for name in ("watch-mine.yrt", "watch-20990101-000000.yrt"))
        for path in (other, later):
            with open(path, "w") as file:
                file.write("x" * 10000)
        watch(dir, "-p", target.pid, "-d", 0.5, "--every", 1, "-n", 3, "--ring", "1k").result().expect()
        newest = os.path.join(dir, "watch-20990101-000000-4.yrt")
        assert kept(dir) == [newest, other] and os.path.getsize(newest), kept(dir)


def test_names():
    """Each recording has one of its own: of one second, or of a clock that was set back, of two that watch at once."""
    with tempfile.TemporaryDirectory() as above, Python(BUSY) as target:
        dir = os.path.join(above, "%t")
        os.mkdir(dir)
        with open(os.path.join(dir, "watch-20990101-000000.yrt"), "w") as file:
            file.write("x")
        both = [watch(dir, "-p", target.pid, "-d", 0.1, "--every", 0.1, "-n", 3) for _ in range(2)]
        wrote = [line for at in both for line in at.result().expect().stderr.splitlines() if "wrote" in line]
        assert len(wrote) == len(set(wrote)) == 6, wrote
        files = kept(dir)
        assert len(files) == 7 and all(os.path.getsize(path) for path in files), files
        assert {os.path.basename(path)[:21] for path in files} == {"watch-20990101-000000"}, files


@yrt.measured
def test_full():
    """A volume that is full: the oldest goes, and it goes on. What an earlier run has left is sent at once."""
    with tempfile.TemporaryDirectory() as dir, Python(BUSY) as target:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", dir], check=True)
        try:
            old = [os.path.join(dir, f"watch-20200101-00000{n}.yrt") for n in range(2)]
            for path, size in zip(old, (24, 40)):
                with open(path, "wb") as file:
                    file.write(os.urandom(size << 10))
            at = watch(dir, "-p", target.pid, "-d", 0.3, "--every", 0.5, "-n", 3)
            result = at.result().expect()
            files = kept(dir)
            assert old[0] not in files and old[1] in files and len(files) > 1, (files, result.stderr)
            assert (
                result.stderr.count("No space left") == 1 and "the oldest recording was deleted" in result.stderr
            ), result.stderr
        finally:
            subprocess.run(["umount", dir], check=True)
    with tempfile.TemporaryDirectory() as dir, stores.Store() as store:
        yrt.made(dir, "watch-20200101-000000.yrt", "main;work 3\n")
        at = watch(dir, "--select", "comm=nobody-is-this", "--push", f"otlp+http://127.0.0.1:{store.port}")
        end = time.monotonic() + 30
        while kept(dir) and time.monotonic() < end:
            time.sleep(0.05)
        at.interrupt()
        at.result()
        assert len(store.requests) == 1 and not kept(dir), kept(dir)


def test_condition():
    """Nothing is recorded before the CPU is used for as long as was said."""
    with tempfile.TemporaryDirectory() as dir, Python(RISES) as target:
        yrt.until(lambda: yrt.read(f"/proc/{target.pid}/syscall").startswith(PAUSE), "it waits")
        at = watch(dir, "-p", target.pid, "-d", 1, "--every", 2, "-n", 1, "--when", "cpu > 0.1% for 2s")
        looks(at, 3)
        assert not kept(dir) and at.process.poll() is None
        target.process.send_signal(signal.SIGUSR1)
        result = at.result().expect()
        assert len(kept(dir)) == 1 and "cpu > 0.1% for 2s: it is" in result.stderr, result.stderr
    with tempfile.TemporaryDirectory() as dir, Python(IDLE) as target:
        result = watch(dir, "-p", target.pid, "-d", 0.3, "--every", 1, "-n", 1, "--when", "rss > 1m").result().expect()
        yrt.until(lambda: is_asleep(target.pid), "it sleeps")
        at = watch(dir, "-p", target.pid, "-d", 0.3, "--every", 1, "--when", "cpu > 50%")
        looks(at, 3)
        assert len(kept(dir)) == 1  # that of the memory
        at.interrupt()
        assert at.result().code == 0


def named(script):
    """A program of this test's own comm."""
    return f"open('/proc/self/comm', 'w').write('yrt{os.getpid()}')\n{script}"


# comes while yrt looks, with seconds of CPU time behind it
COMES = """
import time
while time.process_time() < 2: sum(range(1000))
open('/proc/self/comm', 'w').write('NAME')
time.sleep(300)
"""


@yrt.measured
def test_cpu_of_those_that_come_and_go():
    """CPU time that a process had used before it was a target does not count, and none is taken off when one ends."""
    rule = ["--select", f"comm=yrt{os.getpid()}", "-d", 0.3, "-n", 1, "--when"]
    with tempfile.TemporaryDirectory() as dir, Python(named(IDLE)):
        at = watch(dir, *rule, "cpu > 25%")
        with Python(COMES.replace("NAME", f"yrt{os.getpid()}")) as late:
            yrt.until(lambda: yrt.read(f"/proc/{late.pid}/comm") == f"yrt{os.getpid()}\n", "it is a target")
            time.sleep(7)  # targets are looked for every five seconds
            assert not kept(dir) and at.process.poll() is None, at.process.stderr.readline()
        at.interrupt()
        at.result()
    with tempfile.TemporaryDirectory() as dir, Python(named(BUSY)), contextlib.ExitStack() as stack:
        ends = [stack.enter_context(Python(named(BUSY))) for _ in range(2)]
        yrt.busy_for([python.pid for python in ends], 4)
        at = watch(dir, *rule, "cpu > 5% for 8s")
        for python in ends:
            time.sleep(2)
            yrt.stop(python.process, signal.SIGKILL)
        ended = time.monotonic()
        said = at.process.stderr.readline()
        assert "it is" in said and time.monotonic() - ended < 8, "the condition began anew when one ended"
        at.result().expect()
        assert len(kept(dir)) == 1
    with tempfile.TemporaryDirectory() as dir:
        at = watch(dir, *rule, "cpu < 50%")
        time.sleep(2.5)
        with Python(named(IDLE)):
            result = at.result().expect()
        assert len(kept(dir)) == 1, result.stderr


@yrt.measured
def test_cpu_of_new_ones():
    """Of those that start while yrt waits, within some seconds; of children, where they are targets too."""
    rule = ["--select", f"comm=yrt{os.getpid()}", "-d", 0.3, "-n", 1, "--when", "cpu > 10%"]
    with tempfile.TemporaryDirectory() as dir:
        at = watch(dir, *rule)
        yrt.until(lambda: is_asleep(at.process.pid), "it has looked")
        begin = time.monotonic()
        with Python(named(BUSY)):
            said = at.process.stderr.readline()
            assert "it is" in said and time.monotonic() - begin < 4.5, (said, time.monotonic() - begin)
            at.result().expect()
    script = f"import os\nif not os.fork():\n    {BUSY_CHILD}\nos.wait()"
    with tempfile.TemporaryDirectory() as dir, Python(script) as of:
        watch(dir, "-s", "-p", of.pid, "-d", 0.3, "-n", 1, "--when", "cpu > 10%").result().expect()
        assert len(kept(dir)) == 1
        subprocess.run(["pkill", "-9", "-P", str(of.pid)], check=True)


def test_memory_of_the_machine():
    with tempfile.TemporaryDirectory() as dir:
        result = watch(dir, "-a", "-d", 0.3, "--every", 1, "-n", 1, "--when", "rss > 1m").result().expect()
        assert len(kept(dir)) == 1 and re.search(r"rss > 1m: it is \d+m$", result.stderr, re.M), result.stderr


def test_folder():
    """One that is not there is made; where none can be made is said at once, not when the condition holds."""
    with tempfile.TemporaryDirectory() as dir, Python(BUSY) as target:
        new = os.path.join(dir, "new")
        watch(new, "-p", target.pid, "-d", 0.3, "--every", 1, "-n", 1).result().expect()
        assert len(kept(new)) == 1
        for nowhere in "/proc/nowhere", os.path.join(dir, "not", "there"):
            result = watch(nowhere, "-p", target.pid, "--when", "load > 100000").result().expect(yrt.OUTPUT)
            assert nowhere in result.stderr and "--dir" in result.stderr, result.stderr
        result = watch(".", "-p", target.pid, cwd="/proc/sys").result().expect(yrt.OUTPUT)
        assert "the folder /proc/sys:" in result.stderr, result.stderr  # "." is anywhere in a container


def is_running(pid):
    return yrt.read(f"/proc/{pid}/stat").rpartition(")")[2][:2] not in ("", " Z")


def test_command():
    """
    Of a command the exit status counts; one that hangs is killed, and does not hold up the end; one that is not there
    is an error.
    """
    with tempfile.TemporaryDirectory() as dir, Python(BUSY) as target:
        flag = os.path.join(dir, "flag")
        with open(flag, "w"):
            pass
        at = watch(
            dir,
            "-p",
            target.pid,
            "-d",
            0.3,
            "--every",
            1,
            "-n",
            1,
            "--when",
            f"exit(echo looked >&2; (test -e {flag})) > 0 for 1s",
        )
        assert [at.process.stderr.readline() for _ in range(3)] == ["looked\n"] * 3 and not kept(dir)
        os.unlink(flag)
        result = at.result().expect()
        assert len(kept(dir)) == 1 and "for 1s: it is 1" in result.stderr, result.stderr
        at = watch(
            dir, "-p", target.pid, "--when", "exit(sleep 100 & echo $$ $! >&2; sleep 8; echo late >&2; sleep 100) > 0"
        )
        started = [int(word) for word in at.process.stderr.readline().split()]
        try:
            at.interrupt()
            result = at.result().expect()
            assert "late" not in result.stderr, "the command was not killed at once"
            assert len(kept(dir)) == 1 and len(started) == 2
            yrt.until(lambda: not any(map(is_running, started)), "the command and its child are gone")
        finally:
            for pid in started:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        result = watch(dir, "-p", target.pid, "--when", "exit(/nowhere/check) > 0").result().expect(yrt.INPUT)
        assert "/nowhere/check" in result.stderr, result.stderr


def test_sent_later():
    """What a store does not take stays, and is sent with the next."""
    with tempfile.TemporaryDirectory() as dir, Python(BUSY) as target, stores.Store((401, {}), (200, {})) as store:
        at = watch(
            dir, "-p", target.pid, "-d", 0.5, "--every", 2, "-n", 2, "--push", f"otlp+http://127.0.0.1:{store.port}"
        )
        result = at.result().expect()
        assert len(store.requests) == 3 and not kept(dir), (len(store.requests), kept(dir), result.stderr)
        assert "sent with the next" in result.stderr, result.stderr


@yrt.measured
def test_store_that_holds_up():
    """A store that hangs, or asks for a pause, gets its pause, and recordings are made on time all the same."""
    with tempfile.TemporaryDirectory() as dir, Python(BUSY) as target, stores.Store(None) as store:
        at = watch(
            dir, "-p", target.pid, "-d", 0.2, "--every", 1, "--push", f"otlp+http://127.0.0.1:{store.port}",
            "--push-timeout", 1,
        )
        time.sleep(13)
        at.interrupt()
        result = at.result().expect(yrt.OUTPUT)
        assert len(kept(dir)) >= 7 and len(store.requests) <= 5, (kept(dir), len(store.requests), result.stderr)
    busy = (429, {"Retry-After": "6"}), (200, {})
    with tempfile.TemporaryDirectory() as dir, Python(BUSY) as target, stores.Store(*busy) as store:
        begin = time.monotonic()
        at = watch(
            dir, "-p", target.pid, "-d", 0.2, "--every", 2, "-n", 5, "--push", f"otlp+http://127.0.0.1:{store.port}"
        )
        result = at.result().expect()
        took, pause = time.monotonic() - begin, store.times[1] - store.times[0]
        assert took < 12 and pause >= 6 and len(store.requests) == 6 and not kept(dir), (took, pause, result.stderr)


def test_sent_while_nobody_is_there():
    """What is left is sent although there is nothing more to record."""
    script = f"open('/proc/self/comm', 'w').write('gone{os.getpid()}')\n{BUSY}"
    with tempfile.TemporaryDirectory() as dir, stores.Store((503, {}), (503, {}), (200, {})) as store:
        for more in [], ["--when", "cpu > 5%"]:
            at = watch(
                dir, "--select", f"comm=gone{os.getpid()}", "-d", 0.3, "--every", 2, "--push",
                f"otlp+http://127.0.0.1:{store.port}", "--push-tries", 1, *more,
            )
            with Python(script):
                yrt.until(lambda: store.requests, "a recording was offered")
            yrt.until(lambda: len(store.requests) > 2 and not kept(dir), "it is sent")
            at.interrupt()
            at.result().expect()
            store.answers[:] = (503, {}), (503, {}), (200, {})
            store.requests.clear()


def test_one_refused():
    """One that the store will not take does not hold up the next, is not sent again, and shows in the exit code."""
    with tempfile.TemporaryDirectory() as dir, Python(BUSY) as target, stores.Store((413, {}), (200, {})) as store:
        at = watch(
            dir, "-p", target.pid, "-d", 0.5, "--every", 2, "-n", 3, "--push", f"otlp+http://127.0.0.1:{store.port}"
        )
        result = at.result().expect(yrt.OUTPUT)
        one, = kept(dir)
        assert len(store.requests) == 3 and result.stderr.count("HTTP 413") == 1, result.stderr
        assert f"{one} is kept" in result.stderr, (one, result.stderr)
    with tempfile.TemporaryDirectory() as dir, Python(BUSY) as target, stores.Store((401, {})) as store:
        at = watch(dir, "-p", target.pid, "-d", 0.5, "-n", 1, "--push", f"otlp+http://127.0.0.1:{store.port}")
        result = at.result().expect(yrt.OUTPUT)
        assert len(kept(dir)) == 1, result.stderr


def test_selected_later():
    """A program that does not run yet is waited for; that it is not there is said once."""
    with tempfile.TemporaryDirectory() as dir:
        at = watch(dir, "--select", f"comm=late{os.getpid()}", "-d", 1, "--every", 1, "-n", 1)
        assert "no process matches" in at.process.stderr.readline()
        looks(at, 3)
        assert not kept(dir)
        with Python(f"open('/proc/self/comm', 'w').write('late{os.getpid()}')\n{BUSY}"):
            result = at.result().expect()
        assert len(kept(dir)) == 1 and "no process matches" not in result.stderr, result.stderr


def test_usage():
    for args in (
        [],
        ["-p", 1, "--when", "cpu"],
        ["-p", 1, "--when", "disk > 3"],
        ["-p", 1, "--when", "exit() > 0"],
        ["-p", 1, "--when", "exit(true)"],
        ["-p", 1, "--when", "exit true > 0"],
        ["-p", 1, "--when", "cpu > 3 for"],
        ["-p", 1, "-d", 61],
        ["-p", 1, "--ring", "x"],
        ["-p", 1, "x"],
        ["-p", 1, "--push", "nowhere"],
    ):
        result = yrt.run("watch", *args, output=False, stats=False)
        assert result.code == yrt.USAGE and result.stderr, (args, result.code, result.stderr)
    result = yrt.run("watch", "-p", os.getpid(), "--dir", "/proc/nowhere", "-d", 1, output=False, stats=False)
    assert result.code == yrt.OUTPUT and "/proc/nowhere" in result.stderr, result.stderr


def test_event():
    """What is recorded while a condition holds need not be time on the CPU: the lock that a thread waits for."""
    with yrt.Fixture("waits", wait=False) as fixture, tempfile.TemporaryDirectory() as directory:
        dumps.settle(fixture.pid, [name for name, thread in fixture.start["threads"].items() if thread["call"]])
        options = ("--event", "lock", "--when", "exit(true) < 1", "-n", 1, "-d", 0.5, "--every", 0.5)
        yrt.run("watch", "-p", fixture.pid, *options, "--dir", directory, output=False, stats=False).expect()
        (name,) = os.listdir(directory)
        shown = yrt.run("render", os.path.join(directory, name), "-f", "folded", "-o", "-", output=False, stats=False)
        assert "[mutex cycle]" in shown.expect().stdout, shown.stdout
        refused = yrt.run("watch", "-a", "--event", "lock", output=False, stats=False)
        yrt.clear(refused, yrt.USAGE, "time on the CPU only")


def test_dumps():
    """A dump at the moment of the condition: a file of text each, within the ring, and never sent as a profile."""
    with yrt.Fixture("waits", wait=False) as fixture, tempfile.TemporaryDirectory() as directory:
        options = ("--event", "dump", "--when", "exit(true) < 1", "-n", 3, "-d", 0.1, "--every", 0.1, "--ring", 1)
        dumps.settle(fixture.pid, [name for name, thread in fixture.start["threads"].items() if thread["call"]])
        result = yrt.run(
            "watch", "-p", fixture.pid, *options, "--dir", directory, output=False, stats=False).expect()
        (name,) = os.listdir(directory)  # the newest stays
        text = yrt.read(os.path.join(directory, name))
        assert re.fullmatch(r"watch-[-0-9]+\.txt", name) and f"wrote {os.path.join(directory, name)}" in result.stderr
        assert text.startswith("DEADLOCK: ") and "wait_accept" in text, text
        with stores.Store() as store:
            url = f"otlp+http://127.0.0.1:{store.port}"
            sent = ("-n", 1, "-d", 0.1, "--push", url, "--dir", directory)
            yrt.run("watch", "-p", fixture.pid, *sent, output=False, stats=False).expect()
        assert os.listdir(directory) == [name]
    pushed = ("-p", os.getpid(), "--push", "otlp+http://127.0.0.1:1")
    for more, word in (("-a",), "takes no -a"), (pushed, "writes text"):
        refused = yrt.run("watch", "--event", "dump", *more, output=False, stats=False)
        yrt.clear(refused, yrt.USAGE, word)


yrt.main(globals())
