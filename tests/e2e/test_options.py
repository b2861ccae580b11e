# SPDX-License-Identifier: Apache-2.0
"""Flags and commands: what each changes in the result."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile

import yrt

STATS = ("samples", "complete", "truncated", "lost", "expected_samples", "frames", "unresolved_frames", "unique_stacks",
         "bpf_ns_per_sample", "cpu_percent", "max_rss_kb", "map_kb", "first_sample_ms", "duration_s")


def syscalls(*flags, view="flame"):
    with yrt.Fixture("syscalls") as fixture:
        return yrt.sample(fixture, *flags, view=view, seconds=2, rate=999)


@yrt.measured
def test_stats():
    result = syscalls()
    missing = [key for key in STATS if key not in result.stats]
    assert not missing, f"--stats lacks {missing}: {result.stats}"
    assert result.stats["samples"] == result.samples, (result.stats["samples"], result.samples)
    assert result.stats["complete"] + sum(result.stats["truncated"].values()) == result.samples, result.stats
    assert result.stats["unique_stacks"] >= 2 and result.stats["frames"] > result.samples
    assert 2 < result.stats["duration_s"] < 10 and 0 < result.stats["bpf_ns_per_sample"] < 1e6, result.stats
    assert 1000 < result.stats["max_rss_kb"] < 200000 and 0 < result.stats["map_kb"] < 100000, result.stats


def test_loss_line_is_last():
    last = yrt.alone(syscalls().stderr)[-1]
    assert re.search(r"\d+ samples", last) and re.search(r"lost|truncated|complete", last), last


def kernel_share(result):
    return result.share(re.compile(r"^(do_syscall_64|entry_SYSCALL_64\w*|__x64_sys_\w+|vfs_read|ksys_read)"))


@yrt.measured
def test_user_and_kernel_only():
    both, user, kernel = syscalls(), syscalls("-U"), syscalls("-K")
    assert kernel_share(both) > 0.3, yrt.show(both.stacks)
    assert kernel_share(user) == 0 and user.share("zero") > 0.4, yrt.show(user.stacks)
    assert kernel_share(kernel) > 0.3 and kernel.share("zero") == 0 and kernel.share("main") == 0, yrt.show(
        kernel.stacks
    )


def test_include_and_exclude():
    only, without = syscalls("-I", "^ask$"), syscalls("-X", "^ask$")
    assert only.stacks and all("ask" in frames for frames, _ in only.stacks), yrt.show(only.stacks)
    assert without.stacks and not any("ask" in frames for frames, _ in without.stacks), yrt.show(without.stacks)


def test_pattern_of_nothing():
    """A picture without a stack says why."""
    result = syscalls("-I", "no_such_function")
    assert not result.stacks and "no stack matches -I" in result.stderr, result.stderr


def test_durations():
    for text, seconds in (("300ms", 0.3), ("0.5s", 0.5), ("0.4", 0.4)):
        result = yrt.run("flame", "-p", os.getpid(), "-d", text).expect()
        assert abs(result.stats["duration_s"] - seconds) < 0.25 or result.stats["duration_s"] > seconds, result.stats
    for text in ("10x", "s", "1 s", ""):
        yrt.clear(yrt.run("flame", "-p", os.getpid(), "-d", text), yrt.USAGE, "--duration takes seconds")


def test_units_everywhere():
    """What takes a time takes its units; what is none is refused before anything else is done."""
    for args in (("go-goroutines", "--watch"), ("go-alloc", "-d"), ("heap", "--watch"), ("python-heap", "--watch"),
                 ("top", "-d"), ("watch", "--every"), ("watch", "-d"), ("dump", "--interval"), ("pools", "--older"),
                 ("report", "-d"), ("off-flame", "--min"), ("y", "--max-time")):
        yrt.clear(yrt.run(*args, "10x", output=False, stats=False), yrt.USAGE, "10x")
        for text in ("10s", "2m", "500ms" if args[0] != "report" else "1m"):
            result = yrt.run(*args, text, output=False, stats=False)
            assert result.code == yrt.USAGE and text not in result.stderr, (args, result.stderr)


TWO_THREADS = """
import threading
def first():
    while True: pass
def second():
    while True: pass
for f in (first, second):
    threading.Thread(target=f, daemon=True).start()
print(*[t.native_id for t in threading.enumerate()], flush=True)
threading.Event().wait()
"""


def test_thread():
    """--tid: stacks of that thread alone, whose process need not be named."""
    with yrt.Program([sys.executable, "-c", TWO_THREADS], stdout=subprocess.PIPE) as program:
        main, first, second = map(int, program.stdout.readline().split())
        for tid, own, other in ((first, "first", "second"), (second, "second", "first")):
            at = yrt.Run("python-flame", "--tid", tid, "-d", 600, "-F", 499).sampling()
            enough = cpu_of(tid) + 500_000_000
            yrt.until(lambda: cpu_of(tid) > enough, "it runs")
            at.process.send_signal(signal.SIGINT)
            stacks = at.result().expect().stacks
            assert stacks and all(any(f.split(" ")[0] == own for f in frames) for frames, _ in stacks), yrt.show(stacks)
            assert not any(f.split(" ")[0] == other for frames, _ in stacks for f in frames), yrt.show(stacks)
        dump = yrt.run("dump", "--tid", f"{main},{second}", "--json", output=False, stats=False).expect()
        assert {t["tid"] for t in json.loads(dump.stdout)["threads"]} == {main, second}, dump.stdout
    yrt.clear(yrt.run("flame", "--tid", 2**30, "-d", 1), yrt.NO_PROCESS, "no thread")
    yrt.clear(yrt.run("flame", "--tid", "1x", "-d", 1), yrt.USAGE, "--tid takes numbers")
    yrt.clear(yrt.run("leak", "--tid", os.getpid(), "-d", 1), yrt.USAGE, "--tid does not work")


def cpu_of(tid):
    """Its CPU time in nanoseconds."""
    return int(yrt.read(f"/proc/{tid}/schedstat").split()[0])


def test_misspelled_options():
    for args, words in (
        (("flame", "--duraton", "5"), ("no option --duraton", "did you mean --duration?")),
        (("dump", "--jsn"), ("no option --jsn", "did you mean --json?")),
        (("help", "--lst"), ("no option --lst", "did you mean --list?")),
        (("flame", "--zzzzzz"), ("no option --zzzzzz", "--help")),
        (("flame", "--no"), ("no option --no", "several begin so")),
        (("flame", "-Z"), ("no option -Z",)),
        (("heap", "-p"), ("--pid takes a value, which is missing",)),
        (("flame", "--quiet=yes"), ("--quiet takes no value",)),
    ):
        yrt.clear(yrt.run(*args, output=False, stats=False), yrt.USAGE, *words)


@contextlib.contextmanager
def calls_itself(name):
    code = f"open('/proc/self/comm', 'w').write('{name}'); print('', flush=True); input()"
    with yrt.Program([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        yield program


def test_one_process():
    """Commands that look into one process take its name or a rule, as others do."""
    number = os.getpid() % 10**6
    one, several = f"one{number}", f"several{number}"
    with calls_itself(one) as target, calls_itself(several), calls_itself(several):
        for command in ("go-goroutines", "lua-heap"):
            for args in (("-p", one), ("--select", f"comm={one}"), ("-p", target.pid)):
                result = yrt.run(command, *args, output=False, stats=False)
                yrt.clear(result, yrt.UNSUPPORTED, f"pid {target.pid}")
        for args in (("-p", one), ("--select", f"comm={one}")):
            assert f"pid {target.pid}" in yrt.run("heap", *args, output=False, stats=False).expect().stdout
        for args in (("-p", several), ("--select", f"comm={several}")):
            result = yrt.clear(yrt.run("heap", *args, output=False, stats=False), yrt.USAGE, "give the pid of one")
            assert "--select comm" not in result.stderr, result.stderr
        yrt.clear(yrt.run("heap", "-p", f"nobody{number}", output=False, stats=False), yrt.NO_PROCESS)


GONE = 1 << 30  # no kernel gives such numbers


def one_is_gone(command, *pids):
    listed = ",".join(map(str, pids))
    return yrt.run(*command, "-p", listed, output="flame" in command[0], stats=False)


def test_one_is_gone():
    """Of several processes, those that are there are shown and a note names the others, which is a success."""
    seconds, program = ["-d", "200ms"], ["y", "-e", '_probe _oneshot { printf("is there"); }']
    with yrt.Fixture("deep30") as there, yrt.Program(["true"]) as zombie, tempfile.TemporaryDirectory() as folder:
        yrt.waiting(zombie.pid, 1, state="Z")
        for command in (["flame", *seconds], ["off-flame", *seconds], ["top", *seconds, "-n", 1], ["dump"],
                        ["inspect"], ["watch", *seconds, "-n", 1, "--dir", folder], program):
            result = one_is_gone(command, GONE, there.pid, zombie.pid).expect()
            for note in (f"there is no process {GONE};", f"process {zombie.pid} is a zombie:"):
                assert f"note: {note}" in result.stderr, result.stderr
            result = one_is_gone(command, GONE, zombie.pid)
            yrt.clear(result, yrt.NO_PROCESS, f"note: there is no process {GONE}\n", f"yrt: process {zombie.pid} is")
        result = yrt.run("flame", "--tid", f"{GONE},{there.pid}", *seconds).expect()
        assert f"note: there is no thread {GONE}" in result.stderr, result.stderr
        result = yrt.run("flame", "--tid", f"{GONE},{GONE - 1}")
        yrt.clear(result, yrt.NO_PROCESS, f"yrt: there is no thread {GONE - 1}")


def test_everyone_where_it_works():
    """-a is listed by the commands that take it: those of time on the CPU, report, and y."""
    languages = [f"{name}-" for name in ("lua", "python", "java", "go", "perl")]
    takes = {"c-flame", "record", "watch", "report", "y"} | {p + c for c in ("flame", "top") for p in ["", *languages]}
    for command in yrt.run("help", "--list", output=False, stats=False).expect().stdout.split():
        text = yrt.run(command, "--help", output=False, stats=False).expect().stdout
        listed = re.search(r"^  -a, --all\b", text, re.M) is not None
        assert listed == (command in takes), command
        assert listed or "-a " not in text.split("\n\n")[0], text
    yrt.clear(yrt.run("off-flame", "-a", output=False, stats=False), yrt.USAGE, "there is no option -a")


def freezer():
    """A folder of the freezer of version 1, or of the only hierarchy of version 2, and what freezes and thaws it."""
    for root, file, words in (("/sys/fs/cgroup/freezer", "freezer.state", ("FROZEN", "THAWED")),
                              ("/sys/fs/cgroup", "cgroup.freeze", ("1", "0"))):
        folder = os.path.join(root, f"yrt-frozen-{os.getpid()}")
        with contextlib.suppress(OSError):
            os.mkdir(folder)
            if os.path.exists(os.path.join(folder, file)):
                return folder, os.path.join(folder, file), words
            os.rmdir(folder)
    raise yrt.Skipped("no control group can be frozen here")


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def test_frozen_group():
    """Who is frozen does not sleep in a function of the kernel: it is said what thaws it."""
    folder, state, (freeze, thaw) = freezer()
    with yrt.Fixture("deep30") as target:
        try:
            write(os.path.join(folder, "cgroup.procs"), str(target.pid))
            write(state, freeze)
            wchan = f"/proc/{target.pid}/wchan"
            yrt.until(lambda: yrt.read(wchan) in ("__refrigerator", "do_freezer_trap"), "frozen")
            result = yrt.run("flame", "-p", target.pid, "-d", "300ms").expect()
        finally:
            write(state, thaw)
            write(os.path.join(os.path.dirname(folder), "cgroup.procs"), str(target.pid))
    yrt.until(lambda: not os.rmdir(folder), "removed")
    assert "is frozen by its control group" in result.stderr and state in result.stderr, result.stderr
    assert "refrigerator" not in result.stderr and "sleeps" not in result.stderr, result.stderr


def test_events_of_others():
    """-e of perf and async-profiler names the command that shows it."""
    for event, command in (
        ("page-faults", "yrt fault-flame"),
        ("lock", "yrt lock-flame"),
        ("context-switches", "yrt off-flame"),
        ("cycles", "no counters"),
        ("sched:sched_switch", "yrt probe -e"),
    ):
        yrt.clear(yrt.run("flame", "-p", os.getpid(), "-d", 1, "-e", event), yrt.USAGE, command)


def test_name_of_several():
    """Names of programs lead to exe=, names that processes gave themselves to comm=: what is suggested matches."""
    name = "several" + str(os.getpid() % 10**6)
    with calls_itself(name), calls_itself(name):
        result = yrt.clear(yrt.run("flame", "-p", name, "-d", 1), yrt.USAGE, f"--select comm={name}")
        found = yrt.run("flame", "--select", re.search(r"--select (\S+)", result.stderr)[1], "-d", 0.2)
        assert "no process" not in found.stderr, found.stderr


def test_terminal():
    """A binary format does not go to a terminal; a dumb one gets no escape sequences."""
    ours, theirs = pty.openpty()
    command = [yrt.YRT, "flame", "-p", str(os.getpid()), "-d", "0.2", "-o", "-", "-f"]
    try:
        refused = subprocess.run([*command, "pprof"], stdout=theirs, stderr=subprocess.PIPE, text=True)
        assert refused.returncode == yrt.USAGE and "terminal" in refused.stderr, refused
        env = {**os.environ, "TERM": "dumb"}
        subprocess.run([*command, "folded"], stdout=subprocess.DEVNULL, stderr=theirs, env=env, check=True)
        assert b"\033" not in os.read(ours, 65536)
    finally:
        os.close(ours)
        os.close(theirs)


def test_bad_pattern():
    result = yrt.run("flame", "-p", os.getpid(), "-d", 1, "-I", "(").expect(yrt.USAGE)
    assert "(" in result.stderr


@yrt.measured
def test_threads():
    """-t: a frame for each thread, by its name, at the root."""
    with yrt.Fixture("threads", 3) as fixture:
        result = yrt.sample(fixture, "-t", seconds=2, rate=999)
    for n in range(3):
        share = result.share(re.compile(rf"\bworker-{n}\b"))
        assert 0.2 < share < 0.47, f"worker-{n}: {share:.3f}\n{yrt.show(result.stacks)}"


def test_stdout():
    with yrt.Fixture("deep30") as fixture:
        fixture.release()
        result = yrt.sample_busy("flame", [fixture.pid], "-o", "-", seconds=0.5, rate=999, output=False)
    stacks = yrt.parse_folded(result.stdout)
    assert sum(n for _, n in stacks) == result.stats["samples"] > 5 and any(
        "f01" in f for f, _ in stacks
    ), result.stdout[:500]


def test_html():
    with tempfile.TemporaryDirectory() as dir, yrt.Fixture("deep30") as fixture:
        path = os.path.join(dir, "x.html")
        fixture.release()
        yrt.sample_busy("flame", [fixture.pid], "-o", path, seconds=0.5, rate=999, output=False)
        page = yrt.read(path)
    assert page.lstrip().lower().startswith("<!doctype html") and page.rstrip().endswith("</html>"), page[:200]
    assert "f17" in page and not re.search(r"""(src|href)=["']https?:""", page), "not self-contained"


@yrt.measured
def test_interrupt():
    """Ctrl-C ends sampling early and gives the whole result."""
    with yrt.Fixture("deep30") as fixture:
        at = yrt.Run("flame", "-p", fixture.pid, "-d", 600, "-F", 999).sampling()
        fixture.release()
        yrt.busy_for([fixture.pid], 0.5, 50)
        at.interrupt()
        result = at.result(timeout=300).expect()
    assert result.samples == result.stats["samples"] > 100 and result.stats["duration_s"] < 59, result.stats
    assert abs(result.samples / result.stats["expected_samples"] - 1) < 0.1, result.stats


@yrt.measured
def test_command():
    """-- cmd: sampled from its first instruction to its end; its output passes through, its end ends the sampling."""
    result = yrt.run(
        "flame", "-d", 80, "-F", 999, "--", yrt.fixture_path("deep30"), 2, env={"FIXTURE_CPU": "1"}
    ).expect()
    truth = json.loads(result.stdout.strip().splitlines()[-1])
    assert truth["event"] == "end", result.stdout
    assert abs(result.samples / 999 / truth["cpu_s"] - 1) < 0.1, f"{result.samples} samples for {truth['cpu_s']} s"
    assert result.near("f01", 0.71), yrt.show(result.stacks)


def test_command_that_fails():
    """What was gathered is given though the command ended badly."""
    result = yrt.run(
        "flame", "-d", 30, "-F", 999, "--", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exit 7"
    )
    assert result.samples > 5 and result.stats, result.stderr


def test_command_not_found():
    result = yrt.run("flame", "-d", 2, "--", "/nonexistent/program")
    assert result.code not in (yrt.OK, yrt.INTERNAL), result.code
    assert "/nonexistent/program" in result.stderr


@yrt.measured
def test_c_flame():
    result = syscalls(view="c-flame")
    assert result.share("zero") > 0.4, yrt.show(result.stacks)


@yrt.measured
def test_list_of_pids():
    with yrt.Fixture("deep30") as one, yrt.Fixture("split") as two:
        at = yrt.Run("flame", "-p", f"{one.pid},{two.pid}", "-d", 3, "-F", 999).sampling()
        one.release()
        two.release()
        result = at.result().expect()
    assert 0.2 < result.share("f01") < 0.5 and 0.3 < result.share("spin") < 0.7, yrt.show(result.stacks)


@yrt.both_tiers
def test_idle_target():
    """A target that sleeps costs nothing and gives an empty result, which is said and is no error."""
    with yrt.Fixture("deep30") as fixture:
        yrt.in_call(fixture.pid, yrt.READ)
        result = yrt.run("flame", "-p", fixture.pid, "-d", 2, "-F", 999).expect()
    assert result.samples == 0 and (not yrt.measuring() or result.stats["cpu_percent"] < 5), result.stats


def test_doctor():
    result = yrt.run("doctor", output=False, stats=False).expect()
    for word in ("BPF", "BTF"):
        assert word.lower() in result.stdout.lower(), result.stdout
    assert len(result.stdout.splitlines()) >= 4


def test_runtimes():
    result = yrt.run("runtimes", output=False, stats=False).expect()
    for folder in re.findall(r"RUNTIME\(\w+, (\w+)\)", yrt.read(os.path.join(yrt.SOURCE, "runtimes", "list.h"))):
        assert folder in result.stdout.lower(), result.stdout


def test_help():
    for args in (["--help"], ["flame", "--help"], ["lua-flame", "--help"]):
        result = yrt.run(*args, output=False, stats=False).expect()
        assert "-p" in result.stdout or "flame" in result.stdout, result.stdout


yrt.main(globals())
