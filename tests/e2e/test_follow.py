# SPDX-License-Identifier: Apache-2.0
"""
Processes that change under sampling: dlopen, exec, fork, files that are deleted or replaced, threads that come and go.
"""

import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

import yrt


# Until the maps of a new program or library are read its samples are walked later; one that has ended by then is cut.
LATE_LIBRARY, LATE_PROGRAM, LATE_PROGRAMS = 0.002, 0.003, 0.02


def whole(result, limit=0.001):
    assert result.incomplete() <= limit, f"{result.incomplete():.4%} cut: {result.stats['truncated']}"


@yrt.measured
def test_dlopen():
    with yrt.Fixture("dlopen_late", seconds=5, cpu=True) as fixture:
        result, _ = yrt.sample_whole(fixture, "-U")
    wrong = yrt.wrong_chains(result, fixture.chain, ["early", "main"])
    whole(result, LATE_LIBRARY)
    wrong = [(frames, n) for frames, n in wrong if "load" not in frames]  # the dynamic linker's time
    assert sum(n for _, n in wrong) <= LATE_LIBRARY * result.samples, yrt.show(wrong)
    assert 0.7 < result.share("late_leaf") < 0.85, yrt.show(result.stacks)


@yrt.measured
def test_exec():
    """One process, three programs (the last is deep30): all are named."""
    with yrt.Fixture("execs", seconds=2, cpu=True) as fixture:
        result, _ = yrt.sample_whole(fixture, "-U")
    # What runs between exec and main is ld.so.
    whole(result, LATE_PROGRAM)
    for function in ("stage_one", "stage_two", "f01"):
        assert (
            0.2 < result.share(function) < 0.42
        ), f"{function}: {result.share(function):.4f}\n{yrt.show(result.stacks)}"


EXECS = 'if [ "$1" -gt 0 ]; then exec /bin/sh -c "$0" "$0" $(($1 - 1)); fi'
NEW_PROGRAM = {
    "elf_load",
    "elf_map",
    "setup_arg_pages",
    "create_elf_tables",
    "randomize_page",
    "__traceiter_sched_process_exec",
}


@yrt.both_tiers
def test_in_exec():
    """From the loss of the old program's memory to the new one's first instruction there is no user stack to lose."""
    command = ("/bin/sh", "-c", EXECS, EXECS, 400)
    seen = rounds = 0
    while seen < 50 and rounds < 10:  # a round has 100 where exec() is slow, 10 where it is fast
        result = yrt.run("flame", "-F", 1999, "--max-cpu", 0, "--", *command).expect()
        new = [(frames, n) for frames, n in result.stacks if NEW_PROGRAM & set(frames)]
        cut = [(frames, n) for frames, n in new if any("truncated" in f for f in frames)]
        assert not cut, yrt.show(cut)
        seen, rounds = seen + sum(n for _, n in new), rounds + 1
    assert seen >= (20 if yrt.measuring() else 1), yrt.show(result.stacks)
    yield f"{seen} samples in execve()"


AGAIN = """
/* COUNT PROGRAM ...: runs itself COUNT times (a digit), then the program */
__attribute__((used)) static void run(long *stack)
{
	char **argv = (char **)stack + 1, **envp = argv + stack[0] + 1;
	long ret;

	if (argv[1][0]-- == '0')
		argv += 2;
	__asm__ volatile("syscall" : "=a"(ret) : "a"(59), "D"(*argv), "S"(argv), "d"(envp) : "rcx", "r11", "memory");
	__asm__ volatile("syscall" : "=a"(ret) : "a"(60), "D"(1) : "rcx", "r11", "memory");
}
__asm__(".globl _start\\n_start: mov %rsp, %rdi\\nand $-16, %rsp\\ncall run\\n");
"""
PARTS = 1100


def slow_to_load(directory):
    """A program with many segments: execve() takes milliseconds to map them."""
    source, path = os.path.join(directory, "again.c"), os.path.join(directory, "again")
    with open(source, "w") as out:
        out.write(AGAIN)
    flags = ("-O2", "-static", "-nostdlib", "-fno-stack-protector", "-fno-asynchronous-unwind-tables")
    subprocess.run(["gcc", *flags, "-o", path, source], check=True)
    with open(path, "rb") as read:
        elf = bytearray(read.read())
    headers, count = struct.unpack_from("<Q", elf, 32)[0], struct.unpack_from("<H", elf, 56)[0]
    table = elf[headers:headers + 56 * count]
    for at in range(0x10000000, 0x10000000 + PARTS * 0x2000, 0x2000):
        table += struct.pack("<IIQQQQQQ", 1, 4, 0, at, at, 0x1000, 0x1000, 0x1000)  # PT_LOAD, read-only
    elf += bytes(-len(elf) % 8)
    struct.pack_into("<Q", elf, 32, len(elf))
    struct.pack_into("<H", elf, 56, count + PARTS)
    with open(path, "wb") as out:
        out.write(elf + table)
    return path


@yrt.measured
def test_many_execs():
    """A program that already gives way to the next one when yrt looks at it: that is not the end."""
    with tempfile.TemporaryDirectory() as directory:
        again = slow_to_load(directory)
        for _ in range(3):
            result = yrt.run("flame", "-U", "-F", 999, "--", again, "9", yrt.fixture_path("deep30"), 1).expect()
            assert result.share("f01") > 0.5, f"{result.samples}\n{yrt.show(result.stacks)}"


@yrt.measured
def test_fork():
    """Children and grandchildren of a target, with -s; each second child is a grandchild."""
    with yrt.Fixture("forks", seconds=5) as fixture:
        result, truth = yrt.sample_whole(fixture, "-s", "-U")
    whole(result)
    wrong = yrt.wrong_chains(
        result, ["child_leaf", "child_mid", "child_main", "start_child"], ["parent_work", "main"], ["main"]
    )
    assert sum(n for _, n in wrong) <= 0.002 * result.samples, yrt.show(wrong)
    seen = result.samples / 1999
    assert abs(seen / truth["cpu_s"] - 1) < 0.05, f"{seen:.3f} s seen, {truth['cpu_s']:.3f} s used"


FORKS = """
import os, select, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print(flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    if not os.fork():
        time.sleep(0.05)
        os._exit(0)
"""


def test_attach_to_forks():
    """
    Children that are born while yrt attaches are found by looking and by fork's record: each ends once, and with the
    last one yrt does.
    """
    for _ in range(4):
        with yrt.Program([sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            program.stdout.readline()
            at = yrt.Run("flame", "-s", "-p", program.pid, "-d", 600).sampling()
            program.stdin.close()
            result = at.result().expect()
        assert re.search(r"exited after \d+\.\d s", result.stderr), result.stderr


PERL_CHILDREN = """
sub child_work { my $x = 0; while ((times)[0] < 0.1) { $x++ for 1 .. 1000 } }
$| = 1; print "\\n"; <STDIN>;
for (1 .. 3) { my $pid = fork; if (!$pid) { child_work(); exec "/bin/true" } waitpid $pid, 0 }
print "\\n"; <STDIN>;
"""
PYTHON_CHILDREN = """
import os, sys, time
def child_work():
    while time.process_time() < 0.1: pass
print(flush=True); sys.stdin.readline()
for _ in range(3):
    pid = os.fork()
    if not pid: child_work(); os.execv("/bin/true", ["true"])
    os.waitpid(pid, 0)
print(flush=True); sys.stdin.readline()
"""


def test_forked_and_gone():
    """Children that are gone before yrt looks at them are named by their parent, which has the same objects."""
    for *command, code in ("perl", "-e", PERL_CHILDREN), (sys.executable, "-c", PYTHON_CHILDREN):
        with yrt.Program([*command, code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            program.stdout.readline()
            run = yrt.Run("flame", "-s", "-F", 499, "-p", program.pid).sampling()
            run.process.send_signal(signal.SIGSTOP)
            print(file=program.stdin, flush=True)
            program.stdout.readline()
            run.process.send_signal(signal.SIGCONT)
            run.interrupt()
            result = run.result().expect()
            program.stdin.close()
        assert yrt.count(result.stacks, "[gone]") == 0, yrt.show(result.stacks)
        work = sum(n for frames, n in result.stacks if any("child_work" in f for f in frames))
        assert work > result.samples / 2 > 10, f"{work} of {result.samples}\n{yrt.show(result.stacks)}"


OVER = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; echo; exec sleep 10"
SHELLS = 'echo; read x; sh -c "$0" & sh -c "$0" & read x'


@yrt.measured
def test_over_before_it_was_read():
    """
    A program that executes the next one before yrt has read its mappings: the files are those that it had, not those of
    the next one, which has its pid.
    """
    command = ["sh", "-c", SHELLS, OVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        program.stdout.readline()
        run = yrt.Run("flame", "-s", "-F", 99, "-p", program.pid).sampling()
        run.process.send_signal(signal.SIGSTOP)
        print(file=program.stdin, flush=True)
        for _ in range(2):
            program.stdout.readline()
        run.process.send_signal(signal.SIGCONT)
        run.interrupt()
        result = run.result().expect()
        program.stdin.close()
    loops = [(frames, n) for frames, n in result.stacks if frames[0].startswith("sh ")]
    assert sum(n for _, n in loops) > 20, yrt.show(result.stacks)
    whole(result)


def test_following_is_no_sampling():
    """Following processes takes more than --max-cpu allows: no reason to take fewer samples."""
    result = yrt.run(
        "flame", "-s", "-F", 99, "--max-cpu", 4, "--", "/bin/sh", "-c",
        "i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i+1)); done"
    ).expect()
    assert result.stats["processes"] > 300, result.stats
    assert not result.stats["rate_halved"], result.stats
    yield f"{result.stats['processes']} processes, {result.stats['cpu_percent']:.1f} % of a CPU"


@yrt.measured
def test_fork_without_s():
    """Without -s the children are not sampled."""
    with yrt.Fixture("forks", seconds=3) as fixture:
        result, _ = yrt.sample_whole(fixture, "-U")
    assert result.share("parent_work") > 0.5 and result.share("child_leaf") == 0, yrt.show(result.stacks)


def changed_on_disk(change):
    dir = tempfile.mkdtemp(prefix="yrt-e2e-")
    path = os.path.join(dir, "deep30")
    try:
        shutil.copy(yrt.fixture_path("deep30"), path)
        with yrt.Fixture(path) as fixture:
            change(path)
            result = yrt.sample(fixture, "-U")
    finally:
        shutil.rmtree(dir)
    whole(result)
    wrong = yrt.wrong_chains(result, fixture.chain)
    assert sum(n for _, n in wrong) <= 0.001 * result.samples, yrt.show(wrong)


@yrt.measured
def test_deleted_file():
    changed_on_disk(os.unlink)


@yrt.measured
def test_replaced_file():
    def replace(path):
        shutil.copy(yrt.fixture_path("split"), path + ".new")
        os.rename(path + ".new", path)

    changed_on_disk(replace)


@yrt.measured
def test_deep_process_tree():
    """A shell script whose work is done by short commands: followed by fork and exec with -s."""
    script = "i=0; while [ $i -lt 20 ]; do \"$1\" 0.1 >/dev/null; i=$((i+1)); done"
    result = yrt.run("flame", "-s", "-d", 30, "-F", 1999, "-U", "--", "sh", "-c", script, "sh",
                     yrt.fixture_path("deep30")).expect()
    # Each program begins in ld.so before anybody could know its maps.
    whole(result, LATE_PROGRAMS)
    assert result.near("f01", 0.71, within=0.08), f"f01 {result.share('f01'):.4f}\n{yrt.show(result.stacks)}"
    # by what the scheduler counted: a busy machine leaves them less than 20 times 0.1 s
    expected = result.stats["expected_samples"]
    assert abs(result.samples / expected - 1) < 0.15, f"{result.samples} samples of {expected:.0f}"


FROM_A_THREAD = """
import subprocess, sys, threading, time
def start():
    subprocess.Popen([sys.executable, "-c", "def child():\\n while True: sum(range(100))\\nprint(flush=True)\\nchild()"])
    time.sleep(100)
threading.Thread(target=start).start()
"""


@yrt.measured
def test_child_of_a_thread():
    """-s finds children whichever thread made them: those of Go's programs are any thread's."""
    command = [sys.executable, "-c", FROM_A_THREAD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as parent:
        try:
            parent.stdout.readline()
            result = yrt.run("python-flame", "-s", "-p", parent.pid, "-d", 1, "-F", 499).expect()
            assert result.share("child (<string>:1)") > 0.9, yrt.show(result.stacks)
        finally:
            os.killpg(parent.pid, signal.SIGKILL)


@yrt.measured
def test_pid_namespace():
    """In a pid namespace of its own yrt knows other pids than the kernel's events report."""
    script = '"$1" 5 >/dev/null & sleep 0.3; exec "$2" flame -p $! -d 2 -F 999 -U -o -'
    for levels in (1, 2):
        command = ["unshare", "--pid", "--fork", "--mount-proc"] * levels
        done = subprocess.run([*command, "sh", "-c", script, "sh", yrt.fixture_path("deep30"), yrt.YRT],
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        stacks = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
        total = sum(int(n) for _, n in stacks)
        leaf = sum(int(n) for path, n in stacks if path.removesuffix(";burn").endswith(";f02;f01"))
        near = abs(leaf / total - 0.71) < 0.1 + 2 / total**0.5
        assert total > 50 and near, f"{levels} levels: {leaf} of {total}\n{done.stderr}"


yrt.main(globals())
