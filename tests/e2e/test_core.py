# SPDX-License-Identifier: Apache-2.0
"""
dump --core: the same frames as `dump -p` gave of the process before it died, in every language; what a program that
crashed says itself; cores that are cut, compressed, no cores, or whose files are elsewhere.
"""

import contextlib
import glob
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile

import dumps
import go
import java
import yrt

PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")
FIXTURES = os.path.join(yrt.SOURCE, "fixtures")
PLACE = ("name", "file", "line", "kind", "module")


@contextlib.contextmanager
def core_directory():
    """A directory that programs started now leave their cores in."""
    pattern = yrt.read("/proc/sys/kernel/core_pattern").strip()
    if "/" in pattern or pattern.startswith("|"):
        raise yrt.Skipped(f"cores go elsewhere here: kernel.core_pattern is {pattern}")
    limits, before = resource.getrlimit(resource.RLIMIT_CORE), os.getcwd()
    if not limits[1]:
        raise yrt.Skipped("nobody may write cores here: their size is limited to 0 (ulimit -Hc)")
    with tempfile.TemporaryDirectory(prefix="yrt-core-") as directory:
        resource.setrlimit(resource.RLIMIT_CORE, (limits[1], limits[1]))
        os.chdir(directory)
        try:
            yield directory
        finally:
            os.chdir(before)
            resource.setrlimit(resource.RLIMIT_CORE, limits)


def core_of(directory):
    """kernel.core_pattern is a name, kernel.core_uses_pid may put the pid behind it."""
    name = yrt.read("/proc/sys/kernel/core_pattern").strip().split("%")[0]
    cores = glob.glob(os.path.join(directory, glob.escape(name) + "*"))
    assert cores, f"no core in {os.listdir(directory)}: `ulimit -c` is {resource.getrlimit(resource.RLIMIT_CORE)}"
    return cores[0]


def places(thread):
    return [tuple(f.get(key) for key in PLACE) for f in thread["frames"] if f["kind"] != "kernel"]


def still(pid):
    """Threads that did not move between two dumps: their frames in user space."""
    one, two = dumps.of(pid), dumps.of(pid)
    return {
        tid: (places(t), t["walk"])
        for tid, t in one.items()
        if tid in two and t["how"] == two[tid]["how"] == "walked" and t["switches"] == two[tid]["switches"]
    }


def same(alive, dead):
    """LuaJIT's names of local functions come from their source, which is not believed for a core."""
    return dead and alive[1] == dead[1] and len(alive[0]) == len(dead[0]) and all(
        a == d or (d[0] == "function" and d[1:] == a[1:] and d[4] == "luajit") for a, d in zip(alive[0], dead[0])
    )


def settled(pid, threads):
    """still(pid), as soon as at least this many threads do not move."""
    yrt.until(lambda: len(still(pid)) >= threads, f"{threads} threads that sleep")
    return still(pid)


def check_same(alive, told):
    dead = {t["tid"]: (places(t), t["walk"]) for t in told["threads"]}
    for tid, stack in alive.items():
        assert same(stack, dead.get(tid)), f"thread {tid}, alive:\n{stack}\nin its core:\n{dead.get(tid)}"


def compare(pid, threads, directory):
    """A live process against its core; returns what the core told."""
    alive = settled(pid, threads)
    os.kill(pid, signal.SIGABRT)
    yrt.until(lambda: not os.path.exists(f"/proc/{pid}/maps") or not yrt.read(f"/proc/{pid}/maps"), "the core")
    told = dumps.told("--core", core_of(directory))
    check_same(alive, told)
    assert told["core"]["signal"] == signal.SIGABRT and told["core"]["pid"] == pid, told["core"]
    assert not told["core"]["missing_bytes"], told["core"]
    return told


def told_of(f, threads):
    with core_directory() as directory, f() as fixture:
        told = compare(fixture.pid, threads, directory)
    frames = sum(len(t["frames"]) for t in told["threads"])
    return told, f"{frames} frames of {len(told['threads'])} threads, of {threads} at least as they were before"


def test_native():
    """Also the cycle of mutexes, and what each thread's system call was."""
    told, line = told_of(lambda: yrt.Fixture("waits", wait=False), 10)
    assert sum(t.get("waits_for", {}).get("deadlock", False) for t in told["threads"]) == 3, told["threads"]
    calls = {t["syscall"]["name"] for t in told["threads"] if "syscall" in t}
    assert calls >= {"accept", "epoll_wait", "futex"}, calls
    assert {t["state"] for t in told["threads"]} == {"killed", "in a system call", "in user code"}, told["threads"]
    yield line


def script(command, *path):
    return lambda: yrt.Fixture(command, os.path.join(FIXTURES, *path), seconds=None, wait=False)


def test_python():
    yield told_of(script(PYTHON, "python", "waits.py"), 5)[1]


def test_gcore():
    """gdb's have no segments for what is only in files, and no signal."""
    with tempfile.TemporaryDirectory() as directory, script(PYTHON, "python", "waits.py")() as f:
        alive = settled(f.pid, 5)
        core = os.path.join(directory, "core")
        command = ["gdb", "-nx", "-batch", "-p", str(f.pid), "-ex", f"generate-core-file {core}"]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        told = dumps.told("--core", core)
    check_same(alive, told)
    assert "signal" not in told["core"] and not told["core"]["missing_bytes"], told["core"]
    assert {t["state"] for t in told["threads"]} <= {"in a system call", "in user code"}, told["threads"]
    yield f"{len(alive)} threads of {len(told['threads'])} as they were"


def test_perl():
    yield told_of(script("/usr/bin/perl", "perl", "waits.pl"), 1)[1]


def test_luajit():
    yield told_of(script("/usr/bin/luajit", "lua", "waits.lua"), 1)[1]


LUA = """
local pid = io.popen("echo $PPID"):read()
local function f(n)
    if n == 0 then
        print(('{"pid": %d, "chain": []}'):format(pid))
        io.flush()
        io.read()
    end
    local r = n > 0 and f(n - 1)
    return r
end
f(5)
"""


def test_lua():
    for version in ("5.1", "5.2", "5.3", "5.4"):
        command = ("/usr/bin/lua" + version, "-e", LUA)
        told, said = told_of(lambda: yrt.Fixture(*command, seconds=None, wait=False), 1)
        names = [f["name"] for f in told["threads"][0]["frames"] if f.get("module") == "lua"]
        assert sum(n.startswith("f") for n in names) >= 5, names
        yield f"{version}: {said}"


def test_java():
    yield told_of(lambda: java.Java("waits"), 9)[1]  # others, as the compilers', wake up again and again


def parked(told):
    """Stacks of goroutines that wait without a thread."""
    return {
        t["name"]: places({"frames": told["stacks"][t["stack"]]}) for t in told["tasks"] if "syscall" not in t["state"]
    }


def test_goroutines():
    """Go's runtime handles the signal in all its threads; goroutines that wait are as they were."""
    os.environ["GOTRACEBACK"] = "crash"
    quiet = ("/bin/sh", "-c", 'exec "$0" "$@" 2>/dev/null', go.build("crowd"), "20")
    with core_directory() as directory, yrt.Fixture(*quiet, seconds=None, wait=False) as f:
        yrt.until(lambda: len(still(f.pid)) >= 3, "threads that sleep")
        alive = dumps.told("-p", f.pid, "--logical")
        noted = yrt.run("dump", "-p", f.pid, output=False, stats=False).expect().stderr
        os.kill(f.pid, signal.SIGABRT)
        yrt.until(lambda: f.process.poll() is not None, "its end")
        told = dumps.told("--core", core_of(directory), "--logical")
        silent = yrt.run("dump", "--core", core_of(directory), "--logical", output=False, stats=False).expect().stderr
    assert noted == "yrt: note: goroutines that have no thread are not shown: --logical shows them\n", noted
    assert not silent, silent
    before, after = parked(alive), parked(told)
    assert len(before) >= 3, alive
    for name, stack in before.items():
        assert stack == after.get(name), f"goroutine {name}:\n{stack}\n{after.get(name)}"
    assert any(f["name"] == "runtime.sighandler" for f in told["threads"][0]["frames"]), told["threads"][0]
    yield f"{len(before)} goroutines, {len(told['threads'])} threads"


CRASH = """
import ctypes, faulthandler, sys
if len(sys.argv) > 1: faulthandler.enable()
def deep(n):
    if n:
        return deep(n - 1)
    ctypes.string_at(0x10)
class Worker:
    def run(self): deep(3)
Worker().run()
"""


def test_crash():
    """
    A Python that dies in C: signal, address, and the frames that its faulthandler prints when it runs a second time,
    which then raises the signal itself.
    """
    for told_by in ([], ["faulthandler"]):
        with core_directory() as directory:
            died = subprocess.run([PYTHON, "-c", CRASH, *told_by], capture_output=True, text=True)
            assert died.returncode == -signal.SIGSEGV, died
            core = core_of(directory)
            told = dumps.told("--core", core)
            text = yrt.run("dump", "--core", core, output=False, stats=False).expect().stdout
        frames = told["threads"][0]["frames"]
        seen = [
            (f["name"].split(".")[-1], f["line"])
            for f in frames
            if f["kind"] != "native" and f.get("file") == "<string>"
        ]
        assert told["core"]["signal"] == signal.SIGSEGV, told["core"]
        if told_by:
            said = [(m[2], int(m[1])) for m in re.finditer(r'File "<string>", line (\d+) in (\S+)', died.stderr)]
            assert len(said) >= 6 and seen == said == first, f"{seen}\n{said}\n{first}"
            assert told["core"]["first_signal"] == signal.SIGSEGV and told["core"]["address"] == "0x10", told["core"]
            assert "killed by SIGSEGV after SIGSEGV at address 0x10 (read) in tgkill" in text.splitlines()[3], text
        else:
            first = seen
            assert told["core"]["address"] == "0x10", told["core"]
            assert "killed by SIGSEGV at address 0x10" in text.splitlines()[3], text
    yield f"{len(said)} frames as its faulthandler has them"


def core_told(*command, **options):
    """(JSON, text) of the core of a program that dies."""
    with core_directory() as directory:
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, **options)
        core = core_of(directory)
        return dumps.told("--core", core), yrt.run("dump", "--core", core, output=False, stats=False).expect().stdout


def died(how):
    """The same of fixtures/native/dies.c."""
    return core_told(yrt.fixture_path("dies"), how)


def test_address():
    """What lies at the address that an instruction failed on, and the instruction, and what it did there."""
    for how, about, access in (
        ("null", "a null pointer, plus 8: field `sum` of `struct order`", "read"),
        ("wild", "nothing is mapped there", "read"),
        ("constant", f"it is mapped, but only r--: {yrt.fixture_path('dies')}", "write"),
    ):
        told, text = died(how)
        assert told["core"]["address_is"] == about and f"the address: {about}\n" in text, text
        assert "mov" in told["core"]["instruction"] and told["core"]["instruction"] in text, text
        assert told["core"]["access"] == access, told["core"]
        assert f"killed by SIGSEGV at address {told['core']['address']} ({access})" in text.splitlines()[3], text
        assert re.search(r"rip 0x[0-9a-f]{16}  rsp 0x[0-9a-f]{16}", text), text
    assert re.search(r"rdi 0x0{16}\n?", died("null")[1])
    told, text = died("run")
    assert told["core"]["access"] == "run" and "no code may run there" in told["core"]["address_is"], told["core"]
    assert re.match(r"jump_to \(dies\.c:\d+\) jumps to 0x\w+: no code may run there", text), text
    told, text = died("run_null")
    assert re.match(r"jump_to \(dies\.c:\d+\) jumps to a null pointer \(SIGSEGV\)", text), text
    names = [f["name"] for f in told["threads"][0]["frames"]]
    assert names[:2] == ["jump_to", "main"] and told["threads"][0]["walk"] == "root", told["threads"][0]


def test_refused():
    """What the processor refused for another reason than an address that is not mapped, and signals that were sent."""
    far = "0x4141414141414141: no memory can be there (it is not canonical)"
    for how, says, instruction in (
        ("divide", "divided by zero (SIGFPE)", "idiv esi"),
        ("divide_least", "divided the least number of its type by -1 (SIGFPE)", "idiv qword ptr [rsi]"),
        ("divide_bytes", "divided by zero (SIGFPE)", "div sil"),
        ("divide_numbers", "divided a floating-point number by zero (SIGFPE)", "divsd xmm0, xmm1"),
        ("aligned", "it is not aligned, and this instruction demands it (SIGSEGV)", "movaps xmmword ptr [rdi], xmm0"),
        ("overwritten", f"sum_of (dies.c:21) reads {far.replace('4141:', '4149:')} (SIGSEGV)",
         "mov rax, qword ptr [rdi + 8]"),
        ("called", f"jumps to {far} (SIGSEGV)", "call qword ptr [rdi]"),
        ("returned", f"jumps to {far} (SIGSEGV)", "ret"),
        ("trap", "ended the program by a trap (ud2), as of __builtin_trap() or where no way should lead (SIGILL)",
         "ud2"),
        ("breakpoint", "ran into a breakpoint (SIGTRAP)", "int3"),
        ("privileged", "ran an instruction that only the kernel may run (SIGSEGV)", "hlt"),
        ("raise", "sent the program a signal that ends it, by kill() or raise() (SIGSEGV)", None),
    ):
        told, text = died(how)
        assert text.splitlines()[0].endswith(says), text
        assert told["core"].get("instruction") == instruction, told["core"]
        assert ("sent_by" in told["core"]) == (how == "raise"), told["core"]
    with core_directory() as directory:
        slept = subprocess.Popen([yrt.fixture_path("dies"), "sleep"])
        yrt.until(lambda: "pause" in yrt.read(f"/proc/{slept.pid}/wchan") or
                  yrt.read(f"/proc/{slept.pid}/syscall").startswith("34 "), "pause()")
        slept.send_signal(signal.SIGABRT)
        slept.wait()
        told = dumps.told("--core", core_of(directory))
        said = yrt.run("report", "--core", core_of(directory), output=False, stats=False).stdout
    sent = f"was running when process {os.getpid()} sent a signal that ends the program (SIGABRT)"
    assert told["core"]["verdict"].endswith(sent) and told["core"]["sent_by"] == os.getpid(), told["core"]
    assert "rule: `core-signal`" in said and "ended itself" not in said, said


def test_handled():
    """A fault whose handler calls abort(): the fault is told, with the registers of its moment."""
    told, text = died("handled")
    core = told["core"]
    assert (core["signal"], core["first_signal"]) == (signal.SIGABRT, signal.SIGSEGV), core
    assert core["address"] == "0x7654321008" and core["access"] == "read", core
    assert "killed by SIGABRT after SIGSEGV at address 0x7654321008 (read)" in text.splitlines()[3], text
    assert re.match(r"sum_of \(dies\.c:21\) reads 0x7654321008", text), text  # not the handler
    assert "__restore_rt" in {f["name"] for f in told["threads"][0]["frames"]}, text
    assert "before the signal was handled" in text and "rdi 0x0000007654321000" in text, text
    symbols = subprocess.run(["nm", yrt.fixture_path("dies")], capture_output=True, text=True, check=True).stdout
    start = int(re.search(r"(\w+) T sum_of", symbols)[1], 16)
    assert int(re.search(r"rip 0x(\w+)", text)[1], 16) % 4096 == start % 4096, text
    assert "first_signal" not in died("assert")[0]["core"]


def test_assertion():
    """The text of assert(), which glibc keeps."""
    told, text = died("assert")
    assert "main: Assertion `argc == 7' failed." in told["core"]["message"], told["core"]
    assert "SIGABRT (dies: " in text.splitlines()[3] and "at the instruction" not in text, text


def test_exception():
    """A C++ exception that nobody catches: its type, and its text if the class keeps one."""
    for program in ("throws", "throws_static"):
        for what, said in (
            ("range", "std::out_of_range: line 4"),
            ("second", "Refused: the second base"),
            ("plain", "Plain"),
            ("chars", "char const*: a literal"),
            ("string", "std::string: longer than what fits into the object"),
            ("int", "int: -42"),
            ("again", "std::logic_error: thrown again"),
            ("nothing", "std::terminate() without an exception"),
            ("noexcept", "std::invalid_argument: no items, thrown through a noexcept function"),
        ):
            told, text = core_told(yrt.fixture_path(program), what)
            assert told["core"].get("message") == said, (program, what, told["core"])
            assert f"killed by SIGABRT ({said})" in text.splitlines()[3], text
            place = "refuse" if what == "noexcept" else "main"
            assert re.match(rf"{re.escape(said)}: ended in {place}[ (.]", text), text
    told, text = core_told(yrt.fixture_path("throws"), "virtual")
    assert told["core"].get("message") == "a pure virtual function was called", told["core"]
    assert "message" not in core_told(yrt.fixture_path("throws"), "handled")[0]["core"]


def test_panic():
    """What Go's runtime said when it ended the program, as it wrote it."""
    env = {**os.environ, "GOTRACEBACK": "crash"}
    for program in (go.build("dies"), go.build("dies", "-ldflags", "-s -w", name="dies_stripped")):
        for how, said in (
            ("map", "panic: assignment to entry in nil map"),
            ("nil", "panic: runtime error: invalid memory address or nil pointer dereference"),
            ("error", "panic: bad 7"),
            ("index", "panic: runtime error: index out of range [5] with length 2"),
            ("number", "panic: -42"),
            ("float", "panic: 2.5"),
            ("goroutine", "panic: in a goroutine"),
            ("recovered", "fatal error: sync: unlock of unlocked mutex"),
            ("deadlock", "fatal error: all goroutines are asleep - deadlock!"),
        ):
            told, text = core_told(program, how, env=env)
            assert told["core"].get("message") == said, (program, how, told["core"])
            assert said in text.splitlines()[3] and "message_of" not in told["core"], text
            assert how != "deadlock" or text.startswith(f"{said} (SIGABRT)\n"), text  # no thread's fault


JAVA_CRASH = """
class Dies {
    static void touch(sun.misc.Unsafe u, long at, boolean write) {
        if (write) u.putInt(at, 1); else u.getInt(at);
    }
    public static void main(String[] args) throws Exception {
        var f = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        f.setAccessible(true);
        touch((sun.misc.Unsafe) f.get(null), 0x7654321000L, args.length > 0);
    }
}
"""


def test_jvm():
    """A JVM reports its SIGSEGV and calls abort()."""
    with tempfile.TemporaryDirectory() as directory:
        source = os.path.join(directory, "Dies.java")
        with open(source, "w") as out:
            out.write(JAVA_CRASH)
        subprocess.run([java.words()[0] + "c", "-nowarn", "-d", directory, source], check=True, capture_output=True)
        for arguments, access in (([], "read"), (["write"], "write")):
            options = ["-Xmx64m", "-XX:+UseSerialGC", "-XX:ErrorFile=/dev/null", "-cp", directory]
            told, text = core_told(*java.words(), *options, "Dies", *arguments)
            core = told["core"]
            assert (core["signal"], core["first_signal"]) == (signal.SIGABRT, signal.SIGSEGV), core
            assert (core["address"], core["access"]) == ("0x7654321000", access), core
            assert "Dies.touch" in {f["name"].split("(")[0] for f in told["threads"][0]["frames"]}, text


FATAL = """
import ctypes, sys
def says():
    ctypes.pythonapi.Py_FatalError(b"the cache is inconsistent")
def loses_gil():
    ctypes.CDLL(None).PyThreadState_Get()
{"says": says, "loses_gil": loses_gil}[sys.argv[1]]()
"""


def test_python_fatal():
    """What Py_FatalError() wrote: a text that only a register has, and a constant of CPython's own code."""
    for how in ("says", "loses_gil"):
        with core_directory() as directory:
            command = ["/usr/bin/python3", "-c", FATAL, how]
            ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, text=True)
            message = dumps.told("--core", core_of(directory))["core"]["message"]
        wrote = ended.stderr.splitlines()[0].replace("PyThreadState_Get: ", "")
        assert message == wrote and message.startswith("Fatal Python error: the "), (message, ended.stderr)


def test_java_memory():
    """What a JVM's report says of the OutOfMemoryError that ended it."""
    source = "class Fills { public static void main(String[] a) { long[] all = new long[1 << 30]; } }"
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "Fills.java"), "w") as out:
            out.write(source)
        subprocess.run([java.words()[0] + "c", "-d", directory, out.name], check=True, capture_output=True)
        options = ["-Xmx64m", "-XX:+UseSerialGC", "-XX:ErrorFile=/dev/null", "-XX:+CrashOnOutOfMemoryError"]
        told, text = core_told(*java.words(), *options, "-cp", directory, "Fills")
    said = "fatal error: OutOfMemory encountered: Java heap space"
    assert told["core"].get("message") == said and "message_of" not in told["core"], told["core"]
    assert text.startswith(f"{said}: ended in Fills.main (Fills.java:1) (SIGABRT)"), text


def test_recursion():
    """A stack that overflows: said so, folded, and its outer end is there."""
    told, text = died("deep")
    assert told["core"]["address_is"].startswith("stack overflow"), told["core"]
    stack = [f["name"] for f in told["threads"][0]["frames"]]
    assert told["threads"][0]["walk"] == "root" and told["threads"][0]["frames_left_out"] > 1000, told["threads"]
    assert "begin_walk" in stack and "main" in stack and len(stack) < 1200, len(stack)
    assert all(a != b for a, b in zip(stack, stack[1:])), "a turn was cut in its middle"
    lines = text.splitlines()
    assert len(lines) < 40 and "these 2 frames" in text and "left out" in text, text
    assert [line.split()[0] for line in lines[-5:-2]] == ["begin_walk", "main", "__libc_start_call_main"], text


RECURSION = """
import sys
sys.setrecursionlimit(10**7)
class Node:
    def __repr__(self):
        return repr(self)
repr(Node())
"""


def test_python_recursion():
    """The function of the language is named, not those of the interpreter between its calls."""
    text = core_told("/usr/bin/python3", "-c", RECURSION)[1]
    verdict = (r"the stack of thread \d+ is full: Node\.__repr__ \(<string>:6\)"
               r" calls itself(, \d+ frames deep)? \(SIGSEGV\)\n")
    assert re.match(verdict, text), text


RUST = """
#[inline(never)]
fn pay(n: usize) -> usize { let all = vec![1, 2, 3]; all[n] }
fn main() { println!("{}", pay(std::env::args().count() + 6)); }
"""


ABORTS = """
local ffi = require "ffi"
ffi.cdef "void abort(void);"
function checkout()
	local done = ffi.C.abort()
	return done
end
checkout()
"""


def test_called_below():
    """Names that have the place of their definition; abort() by a library that the program called."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "aborts.lua")
        with open(path, "w", encoding="ascii") as f:
            f.write(ABORTS)
        said = core_told("luajit", "-joff", path)[0]["core"]["verdict"]
        assert said == "checkout (aborts.lua:5) ended the program by abort() (SIGABRT)", said
        path = os.path.join(directory, "aborts.py")
        with open(path, "w", encoding="ascii") as f:
            f.write("import ctypes\ndef checkout():\n    ctypes.CDLL(None).abort()\ncheckout()\n")
        said = core_told(PYTHON, path)[0]["core"]["verdict"]
    below = r"\S+, called below checkout \(aborts\.py:3\), ended the program by abort\(\) \(SIGABRT\)"
    assert re.fullmatch(below, said), said


def test_deep_go():
    """The depth of a stack of which only the ends are kept: each frame of deep() is one of its calls."""
    told, text = core_told(go.build("dies"), "deep", env={**os.environ, "GOTRACEBACK": "crash"})
    thread = told["threads"][0]
    depth = len(thread["frames"]) + thread["frames_left_out"]
    assert text.splitlines()[0].endswith(f"main.deep (main.go:29), {depth} frames deep (SIGABRT)"), text


def test_rust():
    """A panic ends in the program's function, not in the standard library."""
    if not shutil.which("rustc"):
        raise yrt.Skipped("no rustc")
    with tempfile.TemporaryDirectory() as directory:
        source, program = os.path.join(directory, "pays.rs"), os.path.join(directory, "pays")
        with open(source, "w") as out:
            out.write(RUST)
        command = ["rustc", "-g", "-O", "-C", "panic=abort", "-o", program, source]
        subprocess.run(command, check=True, capture_output=True)
        text = core_told(program)[1]
    assert text.startswith("pays::pay (pays.rs:3) ended the program by abort() (SIGABRT)\n"), text


def test_missing():
    """Where the program is not here any more, its frame has the offset in the file."""
    with core_directory() as directory:
        program = os.path.join(directory, "my.program")
        shutil.copy(yrt.fixture_path("dies"), program)
        subprocess.run([program, "null"], capture_output=True)
        core = core_of(directory)
        whole = dumps.told("--core", core)["threads"][0]["frames"][0]
        os.unlink(program)
        frame = dumps.told("--core", core)["threads"][0]["frames"][0]
        symbols = subprocess.run(["nm", yrt.fixture_path("dies")], capture_output=True, text=True, check=True).stdout
        start = int(re.search(r"(\w+) T sum_of", symbols)[1], 16)
    assert whole["name"] == "sum_of" and frame["name"] == f"my.program+0x{start:x}", (whole, frame)


def piped(file):
    """Stacks of a core that is yrt's stdin."""
    command = [yrt.YRT, "dump", "--core", "-", "--json"]
    return json.loads(subprocess.run(command, stdin=file, capture_output=True, check=True).stdout)["stacks"]


def test_packed():
    """Packed cores and stdin; one that is cut says so, also by its exit code where the stack ends early."""
    with core_directory() as directory:
        subprocess.run([yrt.fixture_path("dies"), "null"], capture_output=True)
        core = core_of(directory)
        plain = dumps.told("--core", core)["stacks"]
        for tool in ("gzip", "xz", "zstd"):
            packed = os.path.join(directory, "packed")
            with open(packed, "wb") as out:
                subprocess.run([tool, "-c", core], check=True, stdout=out)
            assert dumps.told("--core", packed)["stacks"] == plain, tool
            with open(packed, "rb") as file:
                assert piped(file) == plain, tool
            os.truncate(packed, os.path.getsize(packed) // 2)
            result = yrt.run("dump", "--core", packed, output=False, stats=False)
            assert result.code in (yrt.LOST, yrt.INPUT) and "cut" in result.stderr, (tool, result.code, result.stderr)
        with open(core, "rb") as file:
            assert piped(file) == plain
        with open(core, "rb") as file, subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE) as cat:
            assert [[f["name"] for f in s if f.get("module") == "dies"] for s in piped(cat.stdout)]


def test_cut_stack():
    """Without its stack, nobody in a core called abort(): not the function of libc that it ended in."""
    with core_directory() as directory:
        subprocess.run([yrt.fixture_path("dies"), "assert"], capture_output=True)
        core = core_of(directory)
        os.truncate(core, os.path.getsize(core) // 4)
        result = yrt.run("dump", "--core", core, output=False, stats=False).expect(yrt.LOST)
    assert "is cut" in result.stderr, result.stderr
    assert result.stdout.startswith("abort() was called; the stack does not say by whom (SIGABRT)\n"), result.stdout


@yrt.measured
def test_elsewhere():
    """A core from another machine or a container: without the program, with another of that name, with --root."""
    with core_directory() as directory, tempfile.TemporaryDirectory() as root:
        program = os.path.join(directory, "my.program")
        shutil.copy(yrt.fixture_path("waits"), program)
        with yrt.Fixture(program, wait=False) as f:
            told = compare(f.pid, 10, directory)
        core = core_of(directory)
        whole = [places(t) for t in told["threads"]]
        moved = root + program
        notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
        build_id = re.search(r"Build ID: (\w+)", notes)[1]
        os.makedirs(os.path.dirname(moved))
        os.rename(program, moved)
        for missing in (True, False):
            if not missing:
                shutil.copy("/bin/true", program)
            result = yrt.run("dump", "--core", core, "--json", output=False, stats=False).expect()
            assert "not here" in result.stderr and program in result.stderr, result.stderr
            assert f"{program} of build-id {build_id}" in result.stderr, result.stderr
            found = json.loads(result.stdout)
            for stack in found["stacks"]:
                own = [i for i, f in enumerate(stack) if f.get("module") == program]
                assert own and not any("line" in stack[i] for i in own), stack
                assert all(f.get("guess") for f in stack[own[0] + 1:-1] if f["kind"] != "other"), stack
        for path in {f.get("module") for t in told["threads"] for f in t["frames"]}:
            assert "/" not in path, path
        for line in subprocess.run(["ldd", moved], capture_output=True, text=True, check=True).stdout.splitlines():
            for path in re.findall(r"/\S+", line):
                os.makedirs(root + os.path.dirname(path), exist_ok=True)
                real = os.path.realpath(path)
                os.makedirs(root + os.path.dirname(real), exist_ok=True)
                shutil.copy(path, root + real)
        again = dumps.told("--core", core, "--root", root)
        names = [[f["name"] for f in t["frames"] if "waits.c" in f.get("file", "")] for t in again["threads"]]
        assert names == [[p[0] for p in stack if "waits.c" in (p[1] or "")] for stack in whole], names
        assert all(t["walk"] == "root" for t in again["threads"]), again["threads"]


def test_bad_input():
    with core_directory() as directory:
        with yrt.Fixture("waits", wait=False) as f:
            compare(f.pid, 10, directory)
        core = core_of(directory)
        size, path = os.path.getsize(core), os.path.join(directory, "x.core")

        def refused(code, *words, args=("--core", path)):
            yrt.clear(yrt.run("dump", *args, output=False, stats=False), code, *words)

        for kept, words in ((0, "empty"), (30, "cut in its header"), (200, "cut before"), (4000, "no threads|is cut")):
            shutil.copy(core, path)
            os.truncate(path, kept)
            if kept < 4000:
                refused(yrt.INPUT, words)
            else:
                yrt.run("dump", "--core", path, output=False, stats=False)
        shutil.copy(core, path)
        os.truncate(path, size - 150000)
        result = yrt.run("dump", "--core", path, "--json", output=False, stats=False).expect(yrt.LOST)
        assert "is cut" in result.stderr and json.loads(result.stdout)["core"]["missing_bytes"] == 150000, result.stderr
        with open(path, "wb") as file:
            file.write(b"\x04\x22\x4d\x18" + bytes(100))
        refused(yrt.INPUT, "compressed", "lz4 -d")
        refused(yrt.INPUT, "no core file", args=("--core", yrt.YRT))
        refused(yrt.INPUT, "not ELF", args=("--core", "/etc/passwd"))
        refused(yrt.INPUT, "No such file", args=("--core", "/nowhere/core"))
        refused(yrt.USAGE, "excludes", args=("--core", core, "-p", "1"))
        refused(yrt.USAGE, "--root takes --core", args=("--root", "/"))
        with yrt.nobody() as how:
            os.chmod(directory, 0o755)
            os.chmod(core, 0o644)
            told = dumps.told("--core", core, **how)
            assert all(t["walk"] == "root" for t in told["threads"]), told["threads"]
        os.chmod(core, 0o600)
        with yrt.nobody() as how:
            yrt.run("dump", "--core", core, output=False, stats=False, **how).expect(yrt.PERMISSION)


yrt.main(globals())
