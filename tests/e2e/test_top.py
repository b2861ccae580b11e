# SPDX-License-Identifier: Apache-2.0
"""yrt top: tables of a real program by the period, and the live picture on a terminal."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import yrt

ROW = re.compile(r"^ *(\d+\.\d\d) +(\d+\.\d\d) +(\d+)  (.*)$")


def tables(text):
    """
    [(samples, [(self, total, count, rest)], samples since the start)] of what top prints where there is no terminal.
    """
    found = []
    for block in text.strip().split("\n\n"):
        head, loss, columns, *rows = block.splitlines()
        samples = int(re.search(r"(\d+) samples in", head)[1])
        taken = re.search(r"^(\d+) samples (of \d+ expected|in) .* lost", loss)
        assert taken, loss
        assert re.search(r"SELF%  TOTAL%  SAMPLES", columns), columns
        parsed = [ROW.match(row) for row in rows]
        assert all(parsed), rows
        found.append((samples, [(float(m[1]), float(m[2]), int(m[3]), m[4]) for m in parsed], int(taken[1])))
    return found


def top(*flags, fixture="deep30", args=(), count=2, delay=1):
    with yrt.Fixture(fixture, *args) as f:
        f.release()
        if not yrt.measuring():
            return top_in_gate(f.pid, flags, count, delay), None
        result = yrt.run(
            "top", "-p", f.pid, "-d", delay, "-n", count, "-F", 999, *flags, output=False, stats=False
        ).expect()
    return tables(result.stdout), result


def top_in_gate(pid, flags, count, delay):
    """As many tables, from the first one on before which the program got a CPU."""
    at = yrt.Run("top", "-p", pid, "-d", delay, "-F", 999, *flags, output=False, stats=False).sampling()
    try:
        text = ""
        while len(found := [table for table in whole_tables(text) if table[0]]) < count:
            line = at.process.stdout.readline()
            assert line, text
            text += line
        return found[:count]
    finally:
        yrt.stop(at.process, signal.SIGKILL)


def whole_tables(text):
    """Those that are followed by another one."""
    return tables(text.rpartition("\n\n")[0]) if "\n\n" in text.strip() else []


def share(rows, name, column):
    return next((row[column] for row in rows if re.search(rf"\b{name}\b", row[3])), 0)


@yrt.measured
def test_tables():
    found, _ = top("--rows", 60)
    assert len(found) == 2, found
    assert abs(found[1][0] - (found[1][2] - found[0][2])) < 20, "the second table is not that of its period"
    for samples, rows, _ in found:
        assert samples > 100, samples
        assert share(rows, "main", 1) > 98 and share(rows, "main", 0) < 5, rows
        assert abs(share(rows, "f01", 1) - 71) < max(10, 180 / samples**0.5), rows
        assert [row[0] for row in rows] == sorted((row[0] for row in rows), reverse=True), "not sorted by self"
        assert abs(sum(row[2] for row in rows) - samples) <= samples * 0.02, "self counts do not add up"


def test_sort_and_rows():
    found, _ = top("-k", "total", "--rows", 5, count=1)
    rows = found[0][1]
    assert len(rows) == 5 and rows[0][1] > 98
    assert [row[1] for row in rows] == sorted((row[1] for row in rows), reverse=True), "not sorted by total"
    rows = top("-k", "name", "--rows", 100, count=1)[0][0][1]
    names = [row[3].split()[1] for row in rows]
    assert names == sorted(names), names


@yrt.measured
def test_whole_machine():
    """-a needs no process, as in the other commands."""
    with yrt.Fixture("deep30") as f:
        f.release()
        result = yrt.run("top", "-a", "--processes", "-d", 2, "-n", 1, output=False, stats=False).expect()
    assert "deep30" in result.stdout, result.stdout


def test_cumulative():
    found, _ = top("-A", count=3, delay=0.5)
    counts, taken = [samples for samples, *_ in found], [taken for *_, taken in found]
    # what was taken until a table was drawn is in the next one
    assert len(found) == 3 and counts[1] >= taken[0] and counts[2] >= taken[1] > 0, (counts, taken)


@yrt.measured
def test_threads():
    rows = top("-t", "--rows", 100, fixture="threads", args=(3,), count=1, delay=2)[0][0][1]
    for n in range(3):
        assert 15 < max(row[1] for row in rows if f"worker-{n} " in row[3]) < 50, rows


@yrt.measured
def test_subprocesses():
    """-s: what is below the given process, though it does nothing itself."""
    with contextlib.ExitStack() as stack:
        shell = subprocess.Popen(["sh", "-c", f"{yrt.fixture_path('deep30')} 20 & wait"], stdout=subprocess.DEVNULL)
        stack.callback(yrt.stop, shell)
        child, = yrt.children(shell.pid, 1)
        stack.callback(os.kill, child, signal.SIGKILL)
        result = yrt.run(
            "top", "-p", shell.pid, "-s", "-d", 1, "-n", 1, "-F", 999, "--rows", 60, output=False, stats=False
        ).expect()
    assert share(tables(result.stdout)[0][1], "f01", 1) > 50, result.stdout


def test_command():
    at = yrt.Run("top", "-d", 0.5, "-F", 999, "--", yrt.fixture_path("deep30"), 1000, output=False, stats=False)
    text = ""
    while text.count("SELF%") < 2:
        line = at.process.stdout.readline()
        assert line, text
        text += line
    at.interrupt()
    at.result().expect()


def test_interrupt():
    with yrt.Fixture("deep30") as f:
        f.release()
        command = [yrt.YRT, "top", "-p", str(f.pid), "-d", "0.2"]
        with yrt.Program(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            text = process.stdout.readline()  # a table is there
            process.send_signal(signal.SIGINT)
            text += process.stdout.read()
            code = process.wait()
    assert code == 0 and tables(text), (code, text)


def test_closed_pipe():
    """`yrt top … | head -1` ends without a word, as other programs do."""
    with yrt.Fixture("deep30") as f:
        f.release()
        process = subprocess.Popen(
            [yrt.YRT, "top", "-p", str(f.pid), "-d", "0.2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process.stdout.readline()
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(timeout=300)
    assert process.returncode == 0 and not err, (process.returncode, err)


def test_usage():
    for flags in (["-k", "size"], ["-d", "0"], ["-n", "x"], []):
        pid = ["-p", os.getpid()] if flags else []
        assert yrt.run("top", *pid, *flags, output=False, stats=False).code == yrt.USAGE, flags
    assert yrt.run("top", "-p", 1 << 29, output=False, stats=False).code == yrt.NO_PROCESS


class Terminal:
    """
    yrt top on a terminal of its own. screen() gives what it shows, by a small emulation of the sequences that top uses.
    """

    def __init__(self, *args, rows=24, columns=100, **env):
        self.main, other = pty.openpty()
        self.before = termios.tcgetattr(other)
        self.other = os.dup(other)
        self.resize(rows, columns)
        self.process = subprocess.Popen([yrt.YRT, "top", *map(str, args)], stdin=other, stdout=other, stderr=other,
                                        env={**os.environ, "TERM": "xterm-256color", **env}, start_new_session=True)
        os.close(other)
        self.raw = ""

    def resize(self, rows, columns):
        self.rows = rows
        fcntl.ioctl(self.other, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def read(self, seconds=0.0):
        end = time.monotonic() + seconds
        while select.select([self.main], [], [], max(0, end - time.monotonic()))[0]:
            self.raw += os.read(self.main, 65536).decode(errors="replace")

    def press(self, keys):
        os.write(self.main, keys.encode())

    def screen(self):
        last = self.raw.rpartition("\033[H")[2]
        return re.sub(r"\033\[[\d;?]*[A-Za-z]", "", last).replace("\r", "")

    def wait(self, what, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not re.search(what, self.screen()):
            self.read(0.1)
        assert re.search(what, self.screen()), f"no {what!r} in\n{self.screen()}"

    def close(self):
        yrt.stop(self.process, signal.SIGKILL)
        os.close(self.main)
        os.close(self.other)


def test_views_and_json():
    """python-top hides the interpreter as python-flame does; a line of JSON a period says what the table says."""
    program = "def spin():\n while True: pass\nprint(flush=True)\nspin()"
    with yrt.Program(["python3", "-c", program], stdout=subprocess.PIPE) as busy:
        busy.stdout.readline()  # what a start runs would fill the table
        whole, view = (
            json.loads(yrt.says(r"\{.*", command, "-p", busy.pid, "-d", 3, "-F", 499, "--json")[0])
            for command in ("top", "python-top")
        )
        busy.kill()
    names = {row["function"].split(" ")[0] for row in view["rows"]}
    assert "spin" in names and not any("PyEval" in n for n in names), names
    assert any("PyEval" in row["function"] for row in whole["rows"]), whole
    for table in whole, view:
        assert table["samples"] > 5 and 0 < table["cpus"] < 1.3 and "lost" in table["loss"], table
        assert table["rows"][0]["self"] >= table["rows"][-1]["self"] and f"pid {busy.pid}" in table["target"], table


def test_last_column():
    """Nothing is in the last column: terminals put what follows, even what only erases, over it."""
    with yrt.Fixture("deep30") as f, contextlib.closing(Terminal("-p", f.pid, "-d", 0.3, columns=60)) as t:
        f.release()
        t.wait(r"f\d\d")
        t.wait(r"(?m)^.{59}$")
        lines = t.screen().split("\n")
    assert max(map(len, lines)) == 59, [len(line) for line in lines]


@yrt.measured
def test_processes():
    """--processes: a row for each; without it their level is none of the functions."""
    with subprocess.Popen(
        ["sh", "-c", "sh -c 'while :; do :; done' & sh -c 'while :; do :; done' & wait"], start_new_session=True
    ) as parent:
        children = set(yrt.children(parent.pid, 2))
        yrt.busy_for(children, 0.1)  # each is a shell by then
        each, functions = (
            json.loads(
                yrt.run(
                    "top",
                    "-s",
                    "-p",
                    parent.pid,
                    "-d",
                    2,
                    "-n",
                    1,
                    "-F",
                    499,
                    "--json",
                    *flags,
                    output=False,
                    stats=False,
                )
                .expect()
                .stdout
            )["rows"]
            for flags in (["--processes"], [])
        )
        os.killpg(parent.pid, signal.SIGKILL)
    assert {row["pid"] for row in each} == children and {row["kind"] for row in each} == {"process"}, (each, children)
    assert functions and not any(row["kind"] == "process" for row in functions), functions


@yrt.measured
def test_suspend():
    """Ctrl-Z gives the terminal back and stops the job; fg goes on."""
    with yrt.Fixture("deep30") as f:
        f.release()
        pid, main = pty.fork()
        if not pid:
            os.execvp("bash", ["bash", "-m", "-c", f"{yrt.YRT} top -p {f.pid} -d 0.5; echo CODE=$?; fg; echo THEN=$?"])
        raw = ""

        def wait(what):
            nonlocal raw
            end = time.monotonic() + 20
            while not re.search(what, raw) and time.monotonic() < end:
                if select.select([main], [], [], 0.2)[0]:
                    raw += os.read(main, 65536).decode(errors="replace")
            assert re.search(what, raw), f"no {what!r} in {raw[-2000:]!r}"
            raw = raw[re.search(what, raw).end():]

        wait("SELF%")
        os.write(main, b"\x1a")
        wait(r"\033\[\?1049l")
        wait("CODE=148")
        wait(r"\033\[\?1049h")
        wait("SELF%")
        os.write(main, b"q")
        wait("THEN=0")
        os.waitpid(pid, 0)
        os.close(main)


def test_live():
    with yrt.Fixture("deep30") as f, contextlib.closing(Terminal("-p", f.pid, "-d", 0.5, "-F", 999)) as t:
        f.release()
        t.wait(r"by self\n.* lost.*\n  SELF%")
        assert "\033[?1049h" in t.raw and "\033[34m" in t.raw, "neither a screen of its own nor colours"
        t.press("t")
        t.wait(r"by total\n.*\n.*\n +\d+\.\d\d +(100|9\d)\.\d\d ")
        t.press("r")
        t.wait("by total, reversed")
        t.press("a")
        t.wait("samples in all")
        t.press(" ")
        t.wait(r"\[held\]")
        t.press(" n\033[B")
        t.wait("by name")
        t.press("/f0")
        t.wait("/f0  .Enter.")
        t.press("\r")
        t.wait(r"(?s)SELF%[^\n]*\n([^\n]* f0\d[^\n]*\n){3,}.*filter: f0")
        assert "main" not in t.screen().split("SELF%")[1], t.screen()
        t.press("/\r")
        t.wait("__libc_start_main")
        t.press("?")
        t.wait(r"p +a row for each process")
        t.press("?")
        t.wait("__libc_start_main")
        t.press("p")
        t.wait(rf"PID PROCESS[^\n]*\n[^\n]*process +{f.pid} ")
        t.press("p")
        t.resize(10, 60)
        t.wait(r"(?s)\A[^\n]*\n[^\n]*\n[^\n]*\n([^\n]*\n){1,5}s?elf")
        t.press("q")
        t.read(0.5)
        assert t.process.wait(300) == 0
        t.read()
        assert re.search(r"\033\[\?1049lyrt: .* lost[^\n]*\s*\Z", t.raw), t.raw[-300:]
        assert termios.tcgetattr(t.other) == t.before, "the terminal is not as before"


def test_no_color():
    with yrt.Fixture("deep30") as f, contextlib.closing(Terminal("-p", f.pid, "-d", 0.3, NO_COLOR="1")) as t:
        f.release()
        t.wait("SELF%")
        assert not re.search(r"\033\[\d+m", t.raw), "NO_COLOR is ignored"
        t.process.send_signal(signal.SIGINT)
        assert t.process.wait(300) == 0
        t.read(0.2)
        assert (
            termios.tcgetattr(t.other) == t.before and "\033[?1049l" in t.raw
        ), "an interrupt leaves the terminal as it was taken"


yrt.main(globals())
