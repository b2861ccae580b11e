# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: start a fixture, run yrt on it, read what yrt wrote. Not a test itself."""

import contextlib
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

SOURCE = os.environ.get("YRT_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("YRT_BUILD") or os.path.join(SOURCE, "build", "release"))
os.environ["YRT_BUILD"] = BUILD
YRT = os.environ.setdefault("YRT", os.path.join(BUILD, "yrt"))

EPOLL_WAITS = 232, 281  # of x86-64: epoll_wait, epoll_pwait

# The exit codes of unwind/error.h.
OK, INTERNAL, USAGE, NO_PROCESS, PERMISSION, UNSUPPORTED, LOST, INPUT, OUTPUT = 0, 1, 2, 3, 4, 5, 6, 7, 8


def fixture_path(name):
    return os.path.join(BUILD, "fixtures", name)


def stop(process, how=signal.SIGTERM):
    """Ends a process that this test started, whatever its state."""
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            with contextlib.suppress(OSError):
                stream.close()


class Program(subprocess.Popen):
    """Ends with the block that needs it, also if that fails."""

    def __exit__(self, *details):
        self.kill()
        super().__exit__(*details)


class Fixture:
    """
    A program of fixtures/native (or any command that prints truth lines); its work waits for release(). cpu: its
    seconds are of CPU time, so that parts of its work have their shares also where others use the machine meanwhile.
    """

    def __init__(self, *command, seconds=1000, wait=True, cpu=False):
        path = fixture_path(command[0]) if os.sep not in command[0] else command[0]
        wanted = {"FIXTURE_WAIT": wait, "FIXTURE_CPU": cpu}
        env = {name: value for name, value in os.environ.items() if name not in wanted}
        env.update((name, "1") for name in wanted if wanted[name])
        self.process = subprocess.Popen(
            [path, *([str(seconds)] if seconds else []), *map(str, command[1:])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.lines = []
        line = self.process.stdout.readline()
        assert line, f"{path} ended without a word"
        self.start = json.loads(line)
        self.pid = self.start["pid"]
        self.chain = self.start["chain"]

    def release(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def finish(self, timeout=300):
        """Waits for the natural end; returns the truth of its last line."""
        out, _ = self.process.communicate(timeout=timeout)
        assert self.process.returncode == 0, f"fixture ended with {self.process.returncode}"
        return json.loads(out.strip().splitlines()[-1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        stop(self.process, signal.SIGKILL)


def cpu_times():
    """Of all CPUs: (seconds of work, seconds in which the host of this virtual machine let them wait)"""
    user, nice, system, _, _, irq, softirq, steal = map(int, read("/proc/stat").split("\n", 1)[0].split()[1:9])
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / tick, steal / tick


class Result:
    """What one run of yrt gave. stolen_s: of cpu_times(), meanwhile."""

    def __init__(self, code, stdout, stderr, folded, stats, stolen_s):
        self.code, self.stdout, self.stderr, self.stats, self.stolen_s = code, stdout, stderr, stats, stolen_s
        self.text = folded
        self.stacks = parse_folded(folded)

    @property
    def samples(self):
        return sum(count for _, count in self.stacks)

    def expect(self, code=OK):
        assert self.code == code, f"yrt ended with {self.code}, not {code}\n--- stderr\n{self.stderr}"
        assert not self.stats or self.stats["bpf_ns_per_sample"] >= 0, self.stats
        return self

    def lost(self):
        return sum(self.stats["lost"].values())

    def lost_beside(self, rate):
        """What was lost but for the ticks that the host took."""
        return self.lost() - min(self.stats["lost"].get("clock", 0), rate * self.stolen_s)

    def slack(self, s):
        """By how much a time may be off because the host took CPUs away: not by more than half of it."""
        return min(self.stolen_s, s / 2)

    def missing(self, n):
        """How many of n samples may be missing because yrt says that it lost some: not more than half."""
        return min(self.lost(), n / 2)

    def incomplete(self):
        """The share of samples whose walk did not end at a root, by what the statistics say."""
        whole = self.stats["complete"]
        cut = sum(self.stats["truncated"].values())
        assert whole + cut > 0, f"no samples: {self.stats}"
        return cut / (whole + cut)

    def summary(self):
        """What of it a test that passed prints."""
        return (f"{self.samples} samples, {self.incomplete():.4%} cut, lost {self.lost()}, "
                f"{self.stats['bpf_ns_per_sample']} ns a sample")

    def near(self, frame, due, within=0.05):
        """Whether a frame has this share of the samples, but for so much or chance."""
        return abs(self.share(frame) - due) < max(within, 4 * math.sqrt(due * (1 - due) / max(self.samples, 1)))

    def share(self, frame):
        """The share of samples that have this frame: a name or a compiled pattern."""
        return count(self.stacks, frame) / max(self.samples, 1)


def count(stacks, frame):
    return sum(n for frames, n in stacks if has(frames, frame))


def has(frames, frame):
    if isinstance(frame, str):
        return frame in frames
    return any(frame.search(f) for f in frames)


MARKS = re.compile(r"^(\? )?(~ )?(?=.)")  # a guess, approximate


def parse_folded(text):
    """[(frames from the root to the leaf, without the marks of what is not certain, count)]"""
    stacks = []
    for line in text.splitlines():
        path, _, count = line.rpartition(" ")
        assert path and count.isdigit(), f"not a folded line: {line!r}"
        stacks.append(([MARKS.sub("", frame) for frame in path.split(";")], int(count)))
    return stacks


def made(directory, name, stacks, *members, format="yrt"):
    """A file of stacks, as tests/tools/mkprofile.c takes them; members: of the meta section, "loss=none"."""
    path = os.path.join(directory, name)
    with open(path, "wb") as out:
        subprocess.run(
            [os.path.join(BUILD, "yrt-mkprofile"), format, *members], input=stacks.encode(), stdout=out, check=True
        )
    return path


class Run:
    """yrt at work. sampling() waits until it has its events in place; result() until it ends."""

    def __init__(self, *args, output=True, stats=True, env=None, prefix=(), binary=None, **popen):
        self.dir = tempfile.mkdtemp(prefix="yrt-e2e-")
        os.chmod(self.dir, 0o777)
        self.folded, self.stats = os.path.join(self.dir, "out.folded"), os.path.join(self.dir, "stats.json")
        extra = (["-o", self.folded] if output else []) + (["--stats", self.stats] if stats else [])
        self.stolen_s = cpu_times()[1]
        args = [str(a) for a in args]
        at = args.index("--") if "--" in args else len(args)
        self.args = args[:at] + extra + args[at:]
        self.process = subprocess.Popen([*prefix, binary or YRT, *self.args], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                        env={**os.environ, **(env or {})}, **popen)

    def is_polling(self):
        """
        Whether its main thread waits for samples, which it does only once it takes them. False if it may not be looked
        into.
        """
        call = re.match(r"(\d+) ", read(f"/proc/{self.process.pid}/syscall"))
        return call is not None and int(call[1]) in EPOLL_WAITS

    def sampling(self, timeout=300):
        """Returns once yrt takes samples, or once it ended."""
        end = time.monotonic() + timeout
        while time.monotonic() < end and self.process.poll() is None and not self.is_polling():
            time.sleep(0.005)
        return self

    def noting(self, words):
        """Returns once yrt has said this on stderr. What it said until then is not in the result."""
        for line in self.process.stderr:
            if words in line:
                return self
        raise AssertionError(f"yrt {' '.join(self.args)} ended without {words}")

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def result(self, timeout=300):
        try:
            out, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            raise AssertionError(f"yrt {' '.join(self.args)} did not end in {timeout} s\n{err}") from None
        finally:
            folded = read(self.folded)
            stats = read(self.stats)
            shutil.rmtree(self.dir, ignore_errors=True)
        return Result(
            self.process.returncode,
            out,
            err,
            folded,
            json.loads(stats) if stats else None,
            cpu_times()[1] - self.stolen_s,
        )


def until(condition, what, seconds=300):
    """Waits for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not so within {seconds} s: {what}"
        time.sleep(0.02)


def waiting(pid, n, seconds=120, state="S"):
    """Waits until this number of threads, including the main thread, sleep or are in the given state."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        states = [
            read(f"/proc/{pid}/task/{t}/stat").rpartition(")")[2].split()[:1]
            for t in os.listdir(f"/proc/{pid}/task")
        ]
        if states.count([state]) >= n:
            return
        time.sleep(0.05)
    raise AssertionError(f"{states} of {pid}: {n} threads are not in state {state}")


def in_call(pid, number):
    """Waits until the first thread of a process is in this system call of x86-64."""
    until(lambda: read(f"/proc/{pid}/syscall").startswith(f"{number} "), f"{pid} is in system call {number}")


READ, PAUSE, CLOCK_NANOSLEEP = 0, 34, 230


def read(path):
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def run(*args, timeout=300, **kw):
    return Run(*args, **kw).result(timeout)


def sample(fixture, *flags, view="flame", seconds=3, rate=1999, env=None):
    """
    Samples a waiting fixture, which computes all the time, from the moment of its release: for some seconds; in the
    gate, where others have the CPUs, too, until it has used a third of that.
    """
    at = Run(view, "-p", fixture.pid, "-d", seconds if measuring() else 600, "-F", rate, *flags, env=env).sampling()
    fixture.release()
    if not measuring():
        busy_for([fixture.pid], seconds / 3)
        at.interrupt()
    return at.result().expect()


def says(pattern, *args):
    """The match of the first line that yrt prints of this kind; then it ends."""
    command = [YRT, *map(str, args)]
    with Program(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        for line in process.stdout:
            if found := re.search(pattern, line):
                return found
    raise AssertionError(f"{' '.join(command)} ended without {pattern}")


def children(pid, n):
    """The processes that this one has made, as soon as there are n."""
    path = f"/proc/{pid}/task/{pid}/children"
    until(lambda: len(read(path).split()) >= n, f"{n} children of {pid}")
    return list(map(int, read(path).split()))


def busy_for(pids, seconds, timeout=300):
    """Returns once processes have together used so much more CPU time, however busy the machine is."""
    end = sum(map(cpu_seconds, pids)) + seconds
    until(lambda: sum(map(cpu_seconds, pids)) >= end, f"{end} s of CPU time used by {pids}", timeout)


def run_busy(command, pids, *flags, seconds, **kw):
    """Looks at processes that are at work until they have together used so much more CPU time."""
    at = Run(command, "-p", ",".join(map(str, pids)), "-d", 600, *flags, **kw).sampling()
    try:
        busy_for(pids, seconds)
        at.interrupt()
        return at.result().expect()
    finally:
        stop(at.process, signal.SIGKILL)


def sample_busy(view, pids, *flags, seconds, rate=1999, **kw):
    return run_busy(view, pids, "-F", rate, *flags, seconds=seconds, **kw)


def of_process(result, pid):
    """Its stacks, of a result of several processes."""
    return [(frames[1:], n) for frames, n in result.stacks if frames[0].endswith(f"(pid {pid})")]


def sample_whole(fixture, *flags, view="flame", rate=1999, timeout=300, **kw):
    """(result, truth): samples a waiting fixture from its release to its end."""
    at = Run(view, "-p", fixture.pid, "-d", timeout, "-F", rate, *flags, **kw).sampling()
    fixture.release()
    truth = fixture.finish(timeout)
    return at.result(timeout).expect(), truth


def check_shares(seen, due, exact, lost):
    """
    Samples by name are in proportion to what is due, within exact (of the whole), chance and what was lost. What to
    report.
    """
    n, whole = sum(seen.values()), sum(due.values())
    assert n > 1000, f"{n} samples: {seen}"
    for name, own in due.items():
        share = own / whole
        limit = max(exact, 4 * math.sqrt(share * (1 - share) / n)) + min(lost / n, share / 2)
        assert abs(seen[name] / n - share) < limit, f"{name}: {seen[name]} of {n} samples, but {share:.4f} of the time"
    return f"{n} samples of {len(due)} kinds, each within {exact:.0%} or chance of {whole:.2f} s"


def below_main(frames, root="main"):
    """The frames from root on, or None."""
    return frames[frames.index(root):] if root in frames else None


def plain(name):
    """A C++ function without its parameters, and without the word for its unlikely half."""
    return re.sub(r"\(.*\)( const)?$", "", name.removesuffix(" [clone .cold]"))


NO_FRAME = re.compile(r"\[no stack\]|.* \((pid \d+|\d+ processes)\)")  # while a process ends it has no user stack

INLINED = {"burn", "burn_ns", "truth_clock", "truth_running"}
CLOCK = re.compile("clock_gettime|vdso|@plt")


def leaf(frames):
    """The last frame that is not inlined from truth.h."""
    return next((f for f in reversed(frames) if f not in INLINED), None)


def follows(frames, chain):
    """
    Whether frames (root first) go along chain (root first): one is the beginning of the other. Functions of truth.h
    may be shown as inlined frames, and any function of a fixture may be asking for the time.
    """
    frames = [f for f in frames if f not in INLINED]
    for i, (a, b) in enumerate(zip(frames, chain)):
        if a != b:
            return i > 0 and bool(CLOCK.search(frames[i]))
    return True


def wrong_chains(result, *chains, names=plain):
    """
    [(frames, count)] of the stacks that follow none of the chains (given innermost first, the last is the root), but
    for a fixture's start and end.
    """
    wrong = []
    for frames, count in result.stacks:
        cut = [names(f) for f in frames]
        ends = len(cut) == 1 and NO_FRAME.fullmatch(cut[0]) or {"exit", "_exit", "_Exit", "truth_end"} & {*cut}
        if "truth_start" not in cut and not ends and not any(
            (below := below_main(cut, c[-1])) and follows(below, c[::-1]) for c in chains
        ):
            wrong.append((frames, count))
    return wrong


def show(stacks, n=5):
    """The n heaviest stacks, for a failure's message."""
    heavy = sorted(stacks, key=lambda s: -s[1])[:n]
    return "\n".join(f"  {count:6g}  {';'.join(frames)[-600:]}" for frames, count in heavy)


def alone(text):
    """The lines of a message that are neither empty nor progress, nor the note on files without symbols."""
    lines = [line for line in re.split(r"[\r\n]+", text) if line.strip()]
    return [line for line in lines if " of all frames are functions of " not in line]


def unread(*args):
    """Nobody reads what it prints: it says nothing of that."""
    command = ["sh", "-c", '"$@" | true', "sh", YRT, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert not re.search("cannot|Broken pipe", done.stderr), done.stderr


def cpu_seconds(pid):
    """What the scheduler counted for the threads of a process that are alive."""
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError, IndexError):  # it has ended just now
            total += int(read(f"/proc/{pid}/task/{tid}/schedstat").split()[0])
    return total * 1e-9


def thread_cpu_seconds(pid, name):
    """Of its thread of this name; 0 if there is none."""
    tids = [t for t in os.listdir(f"/proc/{pid}/task") if read(f"/proc/{pid}/task/{t}/comm") == name + "\n"]
    return int(read(f"/proc/{pid}/task/{tids[0]}/schedstat").split()[0]) * 1e-9 if tids else 0


def clear(result, code, *words):
    """The exit code, a short message with these words in it, and no result file left half written."""
    result.expect(code)
    lines = alone(result.stderr)
    assert 1 <= len(lines) <= 4, f"not a clear line: {result.stderr!r}"
    for word in words:
        assert re.search(str(word), result.stderr, re.I), f"no {word!r} in {result.stderr!r}"
    assert "Segmentation" not in result.stderr and "Assert" not in result.stderr
    return result


@contextlib.contextmanager
def nobody():
    """A copy of yrt that the user nobody may run, and the words to run it so."""
    with tempfile.TemporaryDirectory() as dir:
        os.chmod(dir, 0o755)
        copy = os.path.join(dir, "yrt")
        shutil.copy(YRT, copy)
        os.chmod(copy, 0o755)
        yield {"binary": copy, "prefix": ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]}


# The tiers of docs/testing.md. A test of the gate has an exact answer, and fails at its first failure. A measurement
# depends on the scheduler or on chance, and is red if it fails three times in a row: what is broken always does.
MEASUREMENTS = 3
SERIES = os.path.join(BUILD, "measured.tsv")  # a line for each measurement: when, which, how it ended, what it says
SKIPPED = 77  # the exit code if no test could run; CMake's SKIP_RETURN_CODE
NOTES = os.path.join(BUILD, "notes.txt")  # what a module's result hides: tests/run.sh shows it


class Skipped(Exception):
    """What a test needs is not here; main() says so."""


def measured(test):
    """Marks a test whose assertion depends on the scheduler or on chance: it belongs to the measurements."""
    test.measured = True
    return test


def both_tiers(test):
    """Marks a test with an exact part, which the gate has, and limits that it asserts if measuring()."""
    test.both_tiers = True
    return test


def measuring():
    return os.environ.get("YRT_TIER") != "gate"


def failure(test):
    """None if it passes; prints what it says either way."""
    try:
        for line in test() or ():
            print(f"     {line}", flush=True)
        return None
    except Skipped:
        raise
    except Exception as e:
        print(traceback.format_exc(), flush=True)
        line = traceback.extract_tb(e.__traceback__)[-1].lineno
        return f"{type(e).__name__} in line {line}: {' '.join(str(e).split())}"[:600]


def append(path, line):
    with open(path, "a") as file:
        file.write(line + "\n")


def passes(name, test):
    """Whether a test does; each measurement is added to the series."""
    here, begin = os.path.basename(sys.argv[0]), time.monotonic()
    is_measured = hasattr(test, "measured") or (hasattr(test, "both_tiers") and measuring())
    for _ in range(MEASUREMENTS if is_measured else 1):
        why = failure(test)
        if is_measured:
            append(SERIES, f"{time.time():.0f}\t{here}\t{name}\t{'failed' if why else 'passed'}\t{why or ''}")
        print(f"{'FAIL' if why else 'ok  '} {name}, {time.monotonic() - begin:.1f} s", flush=True)
        if not why:
            return True
    append(NOTES, f"failed: {here} {name}: {why}")
    return False


def main(scope):
    """
    Runs the test_* functions of a module, those of the tier that YRT_TIER says ("gate", "measured"; without it all), or
    those named on the command line, and says what failed.
    """
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever started the tests may ignore it, as nohup does
    tests = {name: f for name, f in scope.items() if name.startswith("test_") and callable(f)}
    tier = os.environ.get("YRT_TIER")
    wanted = sys.argv[1:] or [
        name for name, f in tests.items()
        if not tier or hasattr(f, "both_tiers") or hasattr(f, "measured") == (tier == "measured")]
    failed, skipped = [], []
    for name in wanted:
        try:
            if not passes(name, tests[name]):
                failed.append(name)
        except Skipped as why:
            print(f"skip {name}: {why}", flush=True)
            skipped.append(name)
            append(NOTES, f"skipped: {os.path.basename(sys.argv[0])} {name}: {why}")
    print(
        f"{len(wanted) - len(failed) - len(skipped)} of {len(wanted)} passed"
        + (f"; failed: {', '.join(failed)}" if failed else "")
        + (f"; skipped: {', '.join(skipped)}" if skipped else "")
    )
    assert wanted, "no test of this tier is here"
    sys.exit(SKIPPED if len(skipped) == len(wanted) else bool(failed))
