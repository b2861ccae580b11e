# SPDX-License-Identifier: Apache-2.0
"""
What a new user meets first: an empty picture is explained, a file is written whole or not at all, no target steers the
terminal.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import yrt

BUSY = ["sh", "-c", "while :; do :; done"]
SOME_WORK = "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'"
CLOCK_NANOSLEEP = "230 "  # of x86-64


def is_sampling(pid):
    return yrt.read(f"/proc/{pid}/syscall").split(" ")[0] in map(str, yrt.EPOLL_WAITS)


def test_nothing_seen():
    sleeper = subprocess.Popen(["sleep", "1000"])
    try:
        yrt.until(lambda: yrt.read(f"/proc/{sleeper.pid}/syscall").startswith(CLOCK_NANOSLEEP), "it sleeps")
        asleep = yrt.run("flame", "-p", str(sleeper.pid), "-d", "0.5").expect()
        sleeper.send_signal(signal.SIGSTOP)
        yrt.waiting(sleeper.pid, 1, state="T")
        stopped = [
            yrt.run(*command, "-p", sleeper.pid, "-d", 0.2).expect()
            for command in (("flame",), ("io-flame",), ("latency", "-e", "libc:malloc"))
        ]
    finally:
        sleeper.kill()
        sleeper.wait()
    assert "complete" not in asleep.stderr, asleep.stderr  # of nothing
    assert (
        "used no CPU" in asleep.stderr
        and "its only thread sleeps in " in asleep.stderr
        and "off-flame" in asleep.stderr
    ), asleep.stderr
    assert all("is stopped" in s.stderr for s in stopped), [s.stderr for s in stopped]


def test_children():
    parent = subprocess.Popen(["sh", "-c", "sh -c 'while :; do :; done' & wait"], start_new_session=True)
    try:
        at = yrt.Run("flame", "-p", parent.pid, "-d", 600).sampling()
        yrt.busy_for(yrt.children(parent.pid, 1), 0.5)
        at.interrupt()
        result = at.result().expect()
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()
    assert "1 of its children did: add -s" in result.stderr, result.stderr


def test_other_language():
    busy = subprocess.Popen(["python3", "-c", "while True: pass"])
    try:
        yrt.busy_for([busy.pid], 0.1)
        result = yrt.run_busy("lua-flame", [busy.pid], seconds=0.3)
    finally:
        busy.kill()
        busy.wait()
    assert (
        "no Lua was found in python3" in result.stderr and "`yrt python-flame` shows it" in result.stderr
    ), result.stderr


def test_stripped():
    """Where names are missing, it is said whose, and where their symbols would be found."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "deep")
        subprocess.run(["strip", "--strip-all", "-o", path, yrt.fixture_path("deep30")], check=True)
        notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
        build_id = re.search(r"Build ID: (\w+)", notes)[1]
        with yrt.Program([path, "600"]) as program:
            result = yrt.run_busy("flame", [program.pid], seconds=0.3)
    assert f"are functions of {path} without a name" in result.stderr, result.stderr
    assert f"/.build-id/{build_id[:2]}/{build_id[2:]}.debug" in result.stderr, result.stderr


@yrt.measured
def test_whole_or_nothing():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "keep.folded")
        with open(path, "w") as f:
            f.write("before 1\n")
        subprocess.run([yrt.YRT, "flame", "-o", path, "--", "nosuchcommand"], capture_output=True)
        assert open(path).read() == "before 1\n" and os.listdir(directory) == ["keep.folded"], os.listdir(directory)
        with yrt.Program(BUSY) as busy:
            sampler = subprocess.Popen(
                [yrt.YRT, "flame", "-p", str(busy.pid), "-d", "600", "-o", path], stderr=subprocess.PIPE
            )
            deadline = time.monotonic() + 60
            while not is_sampling(sampler.pid) and time.monotonic() < deadline:
                time.sleep(0.05)
            time.sleep(3)
            assert open(path).read() == "before 1\n"  # until all is there
            sampler.send_signal(signal.SIGHUP)  # a dropped ssh
            said = sampler.communicate(timeout=300)[1].decode()
            busy.kill()
        assert sampler.returncode == 0 and yrt.parse_folded(open(path).read()), said
        assert open(path).read() != "before 1\n" and os.listdir(directory) == ["keep.folded"], os.listdir(directory)
        assert os.stat(path).st_mode & 0o777 == 0o644, oct(os.stat(path).st_mode)


def test_program_status():
    """
    How the program that yrt started ended is reported, and is not yrt's own exit code; it is killed by a closed pipe as
    elsewhere.
    """
    failed = yrt.run("flame", "--", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exit 7").expect()
    assert "sh ended with exit code 7" in failed.stderr and failed.stats["program_exit_code"] == 7, failed.stderr
    killed = yrt.run(
        "flame", "--", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; kill -9 $$"
    ).expect()
    assert "sh was ended by signal 9 (Killed)" in killed.stderr and killed.stats["program_signal"] == 9, killed.stderr
    piped = yrt.run(
        "flame", "-s", "--", "bash", "-c", "yes | head -n 1000000 >/dev/null; exit ${PIPESTATUS[0]}"
    ).expect()
    assert piped.stats["program_exit_code"] == 128 + signal.SIGPIPE, piped.stderr


def test_reader_has_enough():
    """`| head -1` is no error."""
    command = f"{yrt.YRT} flame -f folded -o - -- {SOME_WORK} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0 and len(yrt.alone(done.stderr)) == 1 and " samples of " in done.stderr, (
        done.returncode,
        done.stderr,
    )


def test_forks_all_the_time():
    """Children that are gone before they were looked at are no error."""
    parent = subprocess.Popen(
        ["sh", "-c", "while :; do /bin/true & /bin/true & /bin/true & /bin/true; done"], start_new_session=True
    )
    try:
        time.sleep(0.5)
        for _ in range(3):
            result = yrt.run("flame", "-s", "-p", parent.pid, "-d", "0.5").expect()
            assert "there is no process" not in result.stderr, result.stderr
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()


@yrt.measured
def test_terminated():
    """SIGTERM ends as Ctrl-C does: with the result."""
    with yrt.Program(BUSY) as busy:
        at = yrt.Run("flame", "-p", busy.pid, "-d", "600").sampling()
        yrt.busy_for([busy.pid], 0.5, 50)
        at.process.terminate()
        result = at.result().expect()
        busy.kill()
    assert result.samples > 10, result.stderr


def test_early_end():
    """The cost of a run that was ended at once is relative to the time that it took."""
    with yrt.Program(BUSY) as busy:
        at = yrt.Run("flame", "-p", busy.pid, "-d", "600", "-o", os.devnull, "-f", "txt", output=False).sampling()
        at.interrupt()
        result = at.result().expect()
        busy.kill()
    assert result.stats["cpu_percent"] <= 300, result.stderr  # of one CPU: it has a second thread, and BPF


def test_strange_inputs():
    """What is no file to read from ends with the exit code of unreadable input, soon, and with little memory."""
    with tempfile.TemporaryDirectory() as directory:
        fifo = os.path.join(directory, "fifo")
        os.mkfifo(fifo)
        for path in fifo, directory, os.path.join(directory, "missing"), "/dev/zero":
            result = yrt.run("symbolize", "-e", path, "0x10", output=False, stats=False, timeout=300).expect(yrt.INPUT)
            assert path in result.stderr and "give -e an ELF file" in result.stderr, result.stderr
        for path in "/dev/zero", endless(directory):
            out = os.path.join(directory, "x.txt")
            limited = ["prlimit", f"--as={1 << 30}"]
            result = yrt.run("render", path, "-o", out, output=False, stats=False, timeout=300, prefix=limited).expect(
                yrt.INPUT
            )
            assert "line 1: this is no text" in result.stderr and not os.path.exists(out), result.stderr


def test_cut_file():
    """A file that ends early is reported as such, besides the ?? that come of it."""
    with tempfile.TemporaryDirectory() as directory:
        cut = os.path.join(directory, "cut")
        with open(yrt.YRT, "rb") as whole, open(cut, "wb") as part:
            part.write(whole.read(20000))
        of_cut, of_whole = (
            yrt.run("symbolize", "-e", path, "0x10", output=False, stats=False).expect() for path in (cut, yrt.YRT)
        )
    assert f"{cut} is cut off: it has 20000 bytes" in of_cut.stderr and of_cut.stdout.startswith("??\n"), of_cut.stderr
    assert "cut off" not in of_whole.stderr, of_whole.stderr


def test_everything_is_counted():
    """Memory with that of naming, maps with spare ones, BPF with the programs that follow processes."""
    with yrt.Program(["sh", "-c", "while :; do /bin/true; done"]) as busy:
        stats = yrt.run_busy("flame", [busy.pid], "-s", seconds=0.1).stats
        busy.kill()
    assert stats["max_rss_kb"] >= stats["sampling_rss_kb"] > 1000 and stats["bpf_other_ns"] > 1000, stats


def test_measured_by_another():
    """The kernel measures BPF for whoever asks: what it did so for another yrt says nothing of the cost of this one."""
    with yrt.Program(BUSY) as busy:
        at = yrt.Run("flame", "-p", busy.pid, "-F", 999, "-d", 600, stats=False).sampling()
        yrt.busy_for([busy.pid], 1)
        yrt.run("flame", "-p", busy.pid, "-d", 0.05).expect()
        at.interrupt()
        said = at.result().expect().stderr
        busy.kill()
    assert float(re.search(r"([0-9.]+) us a sample", said)[1]) >= 0.5, said


def test_cache():
    """It is shown, cleared, and nothing but its files goes."""
    with tempfile.TemporaryDirectory() as directory, yrt.Program(BUSY) as busy:
        cache = {"YRT_CACHE_DIR": os.path.join(directory, "cache")}
        yrt.run_busy("flame", [busy.pid], seconds=0.3, env=cache)
        busy.kill()
        with open(os.path.join(cache["YRT_CACHE_DIR"], "other"), "w"):
            pass
        shown, cleared, empty = (
            yrt.run("cache", *args, output=False, stats=False, env=cache).expect().stdout
            for args in ([], ["--clear"], [])
        )
        left = os.listdir(cache["YRT_CACHE_DIR"])
    n = int(shown.split(": ")[1].split(" ")[0])
    assert n > 0 and shown.startswith(cache["YRT_CACHE_DIR"]) and shown.endswith("of 64 MiB\n"), shown
    assert f"removed {n} files" in cleared and ": 0 files" in empty and left == ["other"], (cleared, empty, left)


def endless(directory):
    """A line that is longer than any stack."""
    path = os.path.join(directory, "long")
    with open(path, "w") as f:
        for _ in range(80):
            f.write("a" * (1 << 20))
    return path


def test_options_of_peers():
    """
    What hands type that know py-spy, asprof and perf is taken where it means the same, and answered where it does not.
    """
    with yrt.Program(BUSY) as busy:
        same = yrt.run_busy("flame", [busy.pid], "--native", "--nonblocking", "-e", "cpu", seconds=0.5)
        alloc, wall = (yrt.run("flame", "-e", event, "-p", busy.pid) for event in ("alloc", "wall"))
        busy.kill()
    assert same.samples > 0, same.stderr
    assert (
        alloc.code == wall.code == yrt.USAGE and "yrt java-alloc" in alloc.stderr and "yrt wall-flame" in wall.stderr
    ), (alloc.stderr, wall.stderr)


def noted(*command):
    """What yrt says of a program that keeps a CPU busy."""
    with tempfile.TemporaryDirectory() as directory, yrt.Program(command, cwd=directory) as busy:
        yrt.until(lambda: "running" in yrt.read(os.path.join(directory, "state")), "the program runs")
        said = yrt.sample_busy("flame", [busy.pid], seconds=0.3).stderr
        busy.kill()
    return said


def test_names_of_a_jit():
    """Node writes the names of what it compiled only if it is asked to."""
    script = ["-e", "require('fs').writeFileSync('state', 'running'); while (1) Math.sqrt(Math.random())"]
    without, given = noted("node", *script), noted("node", "--perf-basic-prof", *script)
    assert "runs JavaScript" in without and "--perf-basic-prof" in without and "runs JavaScript" not in given, (
        without,
        given,
    )


def test_other_interpreter():
    """Of a language that yrt does not read it says so, and not of a program that is named alike."""
    with tempfile.TemporaryDirectory() as directory:
        for name, note in ("tclsh8.6", True), ("tclsh_exporter", False):
            path = os.path.join(directory, name)
            shutil.copy("/usr/bin/dash", path)
            said = noted(path, "-c", "echo running >state; while :; do :; done")
            assert ("runs Tcl: stacks show the functions of its interpreter" in said) == note, said


def test_terminal():
    """The name of a process, in the notes and in top."""
    name = b"s\x1b[7mp"
    busy = subprocess.Popen(
        ["python3", "-c", f"import ctypes\nctypes.CDLL(None).prctl(15, {name!r}, 0, 0, 0)\nwhile True: pass"]
    )
    try:
        yrt.until(lambda: yrt.read(f"/proc/{busy.pid}/comm").startswith("s"), "the process has its name")
        flame = subprocess.run(
            [yrt.YRT, "lua-flame", "-p", str(busy.pid), "-d", "1", "-o", os.devnull, "-f", "txt"], capture_output=True
        )
        top = subprocess.run(
            [yrt.YRT, "top", "-p", str(busy.pid), "-n", "1"], capture_output=True, stdin=subprocess.DEVNULL
        )
    finally:
        busy.kill()
        busy.wait()
    assert b"no Lua was found in s" in flame.stderr, flame.stderr
    for said in flame.stderr, top.stdout, top.stderr:
        assert b"\x1b[7m" not in said, said


yrt.main(globals())
