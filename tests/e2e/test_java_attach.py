# SPDX-License-Identifier: Apache-2.0
"""
JVMs as they are met: several at once, started by a script, in a container, only starting, stopped, ending meanwhile, of
another user, of a layout that does not hold, and Java that is no HotSpot. And what `yrt inspect` shows of them.
"""

import contextlib
import json
import os
import re
import shlex
import signal
import struct
import subprocess
import tempfile
import time

import java
import yrt

BUSY = "split.path_heavy"
# what is inlined may be known only approximately
APART = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,split::path_*"]


def busy(*options):
    """A JVM whose main thread computes, once it is released."""
    return java.Java("split", "plain", 60, options=[*APART, *options])


def whole(result, limit=0.01):
    assert result.incomplete() <= limit, f"{result.incomplete():.4%} cut: {result.stats['truncated']}"


def inspect(pid, *flags):
    """One process of `yrt inspect`: {section: {key: value}}, its notes."""
    result = yrt.run("inspect", "-p", pid, "--json", *flags, output=False, stats=False).expect()
    process = json.loads(result.stdout)["processes"][0]
    found = [r for r in process["runtimes"] if r["name"] == "hotspot"]
    sections = {s["name"]: {row["key"]: row for row in s["rows"]} for s in found[0]["sections"]} if found else {}
    return (
        {name: {key: row["value"] for key, row in rows.items()} for name, rows in sections.items()},
        process["notes"],
        sections,
    )


def sample(pids, *flags, view="java-flame", seconds=1.2, release=()):
    """Samples until each process has used this CPU time, however long that takes."""
    pids = pids if isinstance(pids, list) else [pids]
    at = yrt.Run(view, "-p", ",".join(map(str, pids)), "-d", 600, "-F", 999, *flags).sampling()
    ends = [yrt.cpu_seconds(pid) + seconds for pid in pids]
    for jvm in release:
        jvm.release()
    while any(yrt.cpu_seconds(pid) < end for pid, end in zip(pids, ends)):
        time.sleep(0.1)
    at.interrupt()
    return at.result().expect()


@yrt.measured
def test_several():
    """Two JVMs in one run, of different programs: each stack is of its own."""
    with busy() as first, java.Java("split", "inlined", 60) as second:
        result = sample([first.pid, second.pid], release=(first, second))
    whole(result)
    assert result.share(BUSY) > 0.2 and result.share("split.path_all") > 0.1, yrt.show(result.stacks)
    mixed = [(f, n) for f, n in result.stacks if yrt.has(f, BUSY) and yrt.has(f, "split.path_all")]
    assert not mixed, yrt.show(mixed)


@yrt.measured
def test_one_box():
    """
    An approximate frame shares a box with the same method, known for certain, below the same caller: no stack is there
    twice.
    """
    with java.Java("split", "inlined", 60) as jvm:
        jvm.release()
        yrt.busy_for([jvm.pid], 2)  # the compiler needs its share of this
        result = sample(jvm.pid)
    paths = [";".join(frames) for frames, _ in result.stacks]
    assert len(paths) > 10 and "approximate" in result.stderr, f"{len(paths)} stacks\n{result.stderr}"
    twice = [path for path in paths if paths.count(path) > 1]
    assert not twice, "\n".join(twice)


@yrt.measured
def test_ended_threads():
    """
    Threads that end after a few milliseconds, most of them before their first stack has been looked at, are called as
    Java called them.
    """
    with java.Java("workers", 60) as jvm:
        at = java.Sampling(jvm.pid, "-t", seconds=60)
        end = yrt.cpu_seconds(jvm.pid) + 1
        while yrt.cpu_seconds(jvm.pid) < end:
            time.sleep(0.1)
        jvm.release()
        jvm.answer()
        at.run.interrupt()
        stacks = at.result().stacks
    names = {frames[0].name.strip("[]").split(" ")[0] for frames, _ in stacks}
    workers = {name for name in names if name.startswith("computing")}
    wrong = {name for name in workers if not re.fullmatch(r"computing-worker-of-pool-\d+", name)}
    assert len(workers) > 10 and not wrong, f"{wrong} of {names}"


@yrt.measured
def test_late_stub():
    """Code that the JVM makes for calls from C, after yrt has looked at its stubs: the caller is soon no guess."""
    if java.version() != 17:
        return
    module = ["--add-modules", "jdk.incubator.foreign"]
    native = "--enable-native-access=ALL-UNNAMED"
    with tempfile.TemporaryDirectory(prefix="yrt-java-") as dir:
        source = os.path.join(yrt.SOURCE, "fixtures", "java", "jdk17", "late_upcall.java")
        subprocess.run(["javac", "-nowarn", *module, "-d", dir, source], check=True, capture_output=True)
        before, os.environ["YRT_JAVA_CLASSES"] = os.environ.get("YRT_JAVA_CLASSES", ""), dir
        try:
            with java.Java("late_upcall", 60, options=[*module, native]) as jvm:
                at = java.Sampling(jvm.pid, seconds=60)
                time.sleep(3)  # for that long yrt looks again by itself, until its checks are conclusive
                end = yrt.cpu_seconds(jvm.pid) + 1
                jvm.release()
                while yrt.cpu_seconds(jvm.pid) < end:
                    time.sleep(0.1)
                at.run.interrupt()
                result = at.result()
        finally:
            os.environ["YRT_JAVA_CLASSES"] = before
    called = [(f, n) for f, n in result.stacks if any(frame.name == "late_upcall.compare" for frame in f)]
    guessed = sum(n for f, n in called if any(frame.flags & java.GUESS for frame in f))
    total = sum(n for _, n in called)
    assert total > 300 and guessed < 0.15 * total, f"{guessed} of {total} are guesses"
    yield f"{guessed} of {total} samples are guesses"


HANDLE = re.compile(r"java\.lang\.invoke\.(LambdaForm\$|\w+\$Holder|MethodHandle\.(linkTo|invokeBasic))")


@yrt.measured
def test_thread_start():
    """
    In Java's own view stacks begin where the JVM's threads begin their work, whatever libc calls what leads there; not
    if frames are cut off.
    """
    with busy() as jvm:
        java_view, all_view = sample(jvm.pid, release=[jvm]), sample(jvm.pid, view="flame", seconds=1)
    first = {frames[0] for frames, _ in java_view.stacks}
    native = re.compile(r"clone3?|start_thread|.*libc\.so|ThreadJavaMain|JavaMain|thread_native_entry")
    assert "split.main" in first and not any(native.match(name) for name in first), first
    assert all_view.share("JavaMain") > 0.5 and all_view.share("split.main") > 0.5, yrt.show(all_view.stacks)


@yrt.measured
def test_handles():
    """
    What the JVM makes of a method handle is not in Java's own view, nor in its stack traces; in that of all it is.
    """
    with java.Java(
        "frames", 0, options=["-XX:CompileCommand=quiet", "-Dframes.only=handle,handle_bound"], timeout=300
    ) as jvm:
        java_view, all_view = sample(jvm.pid), sample(jvm.pid, view="flame")
    for kind in ("frames.kind_handle", "frames.kind_handle_bound"):
        assert java_view.share(kind) > 0.1, yrt.show(java_view.stacks)
    assert not java_view.share(HANDLE), yrt.show(java_view.stacks)
    assert all_view.share(HANDLE) > 0.1, yrt.show(all_view.stacks)


@yrt.measured
def test_script():
    """The JVM is a child of a script that yrt starts: it is seen as soon as its libraries' tables are there."""
    with tempfile.TemporaryDirectory(prefix="yrt-java-") as dir:
        script = os.path.join(dir, "run.sh")
        with open(script, "w") as f:
            words = shlex.join([*java.words(), *APART, "-cp", java.class_path(), "split", "plain", "3"])
            f.write(f"#!/bin/sh\necho | {words} > /dev/null\ntrue\n")
        os.chmod(script, 0o755)
        result = yrt.run("java-flame", "-s", "-F", 999, "--", script, timeout=300).expect()
    assert result.share(BUSY) > 0.3, yrt.show(result.stacks)
    # Its first moments are over before yrt has looked: they are counted, and said to be unknown.
    cut = {why: n for why, n in result.stats["truncated"].items() if why not in ("no_process", "no_region")}
    assert sum(cut.values()) <= 0.02 * result.samples and "left out" not in result.stderr, f"{cut}\n{result.stderr}"


def child_of(pid, program, timeout=300):
    """The process below pid whose program is called so."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
        for child in children:
            found = child if yrt.read(f"/proc/{child}/comm").strip() == program else child_of(int(child), program, 0.1)
            if found:
                return int(found)
        time.sleep(0.05)
    return None


@yrt.measured
def test_container():
    """
    Own mount and pid namespaces: the JVM's numbers of itself and of its threads are not ours; names are found all the
    same.
    """
    command = [
        "unshare",
        "-m",
        "-p",
        "-f",
        "--mount-proc",
        *java.words(),
        *APART,
        "-cp",
        java.class_path(),
        "split",
        "plain",
        "60",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            inner = json.loads(process.stdout.readline())["pid"]
            pid = child_of(process.pid, "java")
            assert pid and pid != inner, f"{pid} {inner}"
            process.stdin.write("\n")
            process.stdin.flush()
            result = sample(pid, "-t")
        finally:
            with contextlib.suppress(TypeError, ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            yrt.stop(process)
    whole(result)
    assert result.share(BUSY) > 0.5, yrt.show(result.stacks)
    assert result.share(re.compile(r"^\[?main")) > 0.5, "the thread is not named as Java does\n" + yrt.show(
        result.stacks
    )


@yrt.measured
def test_starting():
    """
    Attached while the JVM is only starting, at many moments: nothing is refused, and its code is seen once it is there.
    """
    for delay in (0, 0.02, 0.05, 0.1):
        command = [*java.words(), *APART, "-cp", java.class_path(), "split", "plain", "60"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
            try:
                process.stdin.write(b"\n")
                process.stdin.flush()
                time.sleep(delay)
                result = sample(process.pid, seconds=1.5, view="flame")
            finally:
                yrt.stop(process, signal.SIGKILL)
        assert "left out" not in result.stderr, f"after {delay} s: {result.stderr}"
        assert result.share("split.main") > 0.2, f"after {delay} s:\n{yrt.show(result.stacks)}"


@yrt.measured
def test_stopped():
    """
    kill -STOP: it can be looked into, sampling ends in time without samples, and after kill -CONT it goes on as before.
    """
    with busy() as jvm:
        jvm.release()
        time.sleep(0.5)
        os.kill(jvm.pid, signal.SIGSTOP)
        try:
            values, notes, _ = inspect(jvm.pid)
            assert not notes and values["threads"]["Java threads"] > 3, notes
            result = yrt.run("java-flame", "-p", jvm.pid, "-d", 1, timeout=300).expect()
            assert result.samples <= 1, yrt.show(result.stacks)
        finally:
            os.kill(jvm.pid, signal.SIGCONT)
        result = sample(jvm.pid, seconds=1)
    whole(result)
    assert result.share(BUSY) > 0.5, yrt.show(result.stacks)


@yrt.measured
def test_killed():
    """It ends at once, half-way: what was seen is kept; methods that could not be named by then are said to be gone."""
    with busy() as jvm:
        at = yrt.Run("java-flame", "-p", jvm.pid, "-d", 30, "-F", 999).sampling()
        end = yrt.cpu_seconds(jvm.pid) + 1
        jvm.release()
        while yrt.cpu_seconds(jvm.pid) < end:
            time.sleep(0.05)
        os.kill(jvm.pid, signal.SIGKILL)
        result = at.result(60).expect()
    assert result.samples > 100, f"{result.samples} samples\n{result.stderr}"
    whole(result)
    assert result.share(BUSY) > 0.3, yrt.show(result.stacks)


@yrt.measured
def test_killed_while_attaching():
    """At many moments of yrt's beginning: an orderly end, and nothing is said to be wrong with the JVM."""
    for delay in (0, 0.02, 0.06, 0.1):
        with busy() as jvm:
            at = yrt.Run("java-flame", "-p", jvm.pid, "-d", 30)
            time.sleep(delay)
            os.kill(jvm.pid, signal.SIGKILL)
            result = at.result(30)
        assert result.code in (yrt.OK, yrt.NO_PROCESS), f"after {delay} s: {result.code}: {result.stderr}"
        assert "structures" not in result.stderr, f"after {delay} s: {result.stderr}"


@yrt.measured
def test_not_permitted():
    """root's JVM, looked at by nobody."""
    with yrt.nobody() as how, busy() as jvm:
        for command in ("java-flame", "java-alloc"):
            result = yrt.run(command, "-p", jvm.pid, "-d", 1, **how)
            yrt.clear(result, yrt.PERMISSION, "permi|root|CAP_|privileg")
        result = yrt.run("inspect", "-p", jvm.pid, output=False, stats=False, **how)
        yrt.clear(result, yrt.PERMISSION, "permi|root|CAP_|privileg")


class Memory:
    """A JVM's memory, to spoil what it says of itself."""

    def __init__(self, pid):
        self.file = open(f"/proc/{pid}/mem", "r+b", buffering=0)
        lines = [line.split() for line in yrt.read(f"/proc/{pid}/maps").splitlines() if line.endswith("libjvm.so")]
        self.base = int(lines[0][0].split("-")[0], 16)
        names = subprocess.run(["nm", "-D", lines[0][-1]], capture_output=True, text=True, check=True).stdout
        self.symbols = {f[2].split("@")[0]: int(f[0], 16) for f in map(str.split, names.splitlines()) if len(f) == 3}

    def read(self, at, size):
        self.file.seek(at)
        return self.file.read(size)

    def word(self, at):
        return struct.unpack("<Q", self.read(at, 8))[0]

    def variable(self, name):
        return self.word(self.base + self.symbols[name])

    def text(self, at):
        return self.read(at, 128).split(b"\0")[0].decode() if at else ""

    def entry(self, type_name, field, what="Offset"):
        """Where the offset of a field is recorded (what "Address": the address of a static one)."""
        column = {c: self.variable(f"gHotSpotVMStructEntry{c}Offset") for c in ("TypeName", "FieldName", what)}
        at, stride = self.variable("gHotSpotVMStructs"), self.variable("gHotSpotVMStructEntryArrayStride")
        while self.word(at + column["TypeName"]):
            if (
                self.text(self.word(at + column["TypeName"])) == type_name
                and self.text(self.word(at + column["FieldName"])) == field
            ):
                return at + column[what]
            at += stride
        raise AssertionError(f"no {type_name}.{field}")

    def put(self, at, value):
        self.file.seek(at)
        self.file.write(struct.pack("<Q", value))


@yrt.measured
def test_layout_does_not_hold():
    """A JVM that gives wrong offsets: the check that fails is named, and native frames are left."""
    for type_name, field, wrong, check in (
        ("Method", "_constMethod", 24, "methods"),
        ("CodeHeap", "_segmap", 0, "segment map"),
        ("StubQueue", "_stub_buffer", 0, "interpreter|blobs"),
    ):
        with busy() as jvm:
            memory = Memory(jvm.pid)
            memory.put(memory.entry(type_name, field), wrong)
            _, notes, _ = inspect(jvm.pid)
            result = sample(jvm.pid, seconds=1, release=[jvm])
        assert re.search(f'"({check})" fails', str(notes)), notes
        assert re.search(f'"({check})" fails', result.stderr), result.stderr
        assert result.samples > 100 and result.share(re.compile(r"^split[.$]")) == 0, yrt.show(result.stacks)


@yrt.measured
def test_zero():
    """A JVM that says it is HotSpot's Zero VM is refused by that name, and native frames are left."""
    with busy() as jvm:
        memory = Memory(jvm.pid)
        text = memory.word(memory.word(memory.entry("Abstract_VM_Version", "_s_internal_vm_info_string", "Address")))
        said = memory.read(text, 128)
        memory.file.seek(text)
        memory.file.write(said.replace(b" Server VM ", b" Zero VM   ", 1))
        _, notes, _ = inspect(jvm.pid)
        result = sample(jvm.pid, seconds=1, release=[jvm])
    assert "Zero VM" in str(notes) and "Zero VM" in result.stderr, f"{said} {notes} {result.stderr}"
    assert result.samples > 100 and result.share(re.compile(r"^split[.$]")) == 0, yrt.show(result.stacks)


def build(dir, name, *flags):
    source = os.path.join(dir, "other.c")
    with open(source, "w") as f:
        f.write("#ifdef HEAP\n__attribute__((section(\".svm_heap\"))) int svm_heap[64] = {1};\n#endif\n"
                "void other_work(void) { for (volatile unsigned i = 0;; i++) ; }\n"
                "#ifdef PROGRAM\nvoid other_work(void);\nint main(void) { other_work(); }\n#endif\n")
    path = os.path.join(dir, name)
    subprocess.run(["cc", "-O1", "-g", *flags, "-o", path, source], check=True)
    return path


def refused(command, env, words):
    with subprocess.Popen(command, env={**os.environ, **env}) as process:
        try:
            time.sleep(0.3)
            result = yrt.run("flame", "-p", process.pid, "-d", 1, "-F", 499).expect()
            values, notes, _ = inspect(process.pid)
        finally:
            yrt.stop(process, signal.SIGKILL)
    assert not values and re.search(words, str(notes)), notes
    assert re.search(words, result.stderr), result.stderr
    assert result.share("other_work") > 0.9, yrt.show(result.stacks)


@yrt.measured
def test_openj9():
    """By the name of its library: no build of it is to be had here."""
    with tempfile.TemporaryDirectory(prefix="yrt-java-") as dir:
        build(dir, "libj9vm29.so", "-shared", "-fPIC")
        program = os.path.join(dir, "java")
        with open(os.path.join(dir, "main.c"), "w") as f:
            f.write("void other_work(void); int main(void) { other_work(); }\n")
        subprocess.run(["cc", "-o", program, f.name, "-L", dir, "-l:libj9vm29.so"], check=True)
        refused([program], {"LD_LIBRARY_PATH": dir}, "libj9vm29.so is a JVM of Eclipse OpenJ9")


@yrt.measured
def test_native_image():
    """By the section that native-image makes."""
    with tempfile.TemporaryDirectory(prefix="yrt-java-") as dir:
        refused([build(dir, "native", "-DHEAP", "-DPROGRAM")], {}, "native is a native image of GraalVM")


@yrt.measured
def test_inspect():
    """Version, flags, code, threads, checks: as the JVM was started."""
    said = subprocess.run([*java.words(), "-version"], capture_output=True, text=True, check=True).stderr
    for option, collector in (
        ("-XX:+UseSerialGC", "Serial"),
        ("-XX:+UseParallelGC", "Parallel"),
        ("-XX:+UseG1GC", "G1"),
    ):
        with busy(option, "-XX:-UseCompressedOops", "-XX:ReservedCodeCacheSize=64m") as jvm:
            values, notes, sections = inspect(jvm.pid)
        assert not notes, notes
        assert (
            values["module"]["version"] in said or java.version() == 8
        ), f"{values['module']['version']} is not in {said}"
        flags = values["flags"]
        assert flags["garbage collector"] == collector and flags["UseCompressedOops"] == "false", flags
        assert flags["ReservedCodeCacheSize"] == 64 << 20 and flags["TieredCompilation"] == "true", flags
        code = values["code"]
        assert code["nmethods"] > 20 and code["by C1, profiled (level 3)"] > 5, code
        assert sum(key.startswith("Code") for key in code) >= 1 and "interpreter" in code, code
        assert 3 < values["threads"]["Java threads"] < 100, values["threads"]
        wrong = {k: v for k, v in values["checks"].items() if not v.startswith("ok")}
        assert not wrong and len(values["checks"]) >= 8, wrong
        origins = {row.get("remark", "") for row in sections["layout"].values()}
        assert all("process vmStructs" in o or "unknown" in o for o in origins), origins
        yield f"{collector}: {values['module']['version']}, {code['nmethods']} nmethods"


@yrt.measured
def test_inspect_interpreted():
    """-Xint: there is nothing to try the layout of compiled code on, and that is said."""
    with busy("-Xint") as jvm:
        values, notes, _ = inspect(jvm.pid)
    assert not notes and values["flags"]["UseInterpreter"] == "true", notes
    assert values["checks"]["PcDescs"].startswith("nothing"), values["checks"]


yrt.main(globals())
