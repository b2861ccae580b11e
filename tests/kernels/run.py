# SPDX-License-Identifier: Apache-2.0
"""
Does yrt load and sample on other kernels? Boots the kernels of Debian's suites in qemu and prints a table.

YRT=build/release/yrt YRT_BUILD=build/release python3 tests/kernels/run.py [--accel tcg|kvm] [--keep DIR] [--cases
deep30,... | --ticks] [--cpus N] [suite ...]

By hand: it takes some ten minutes for each kernel in software emulation. It needs qemu-system-x86, busybox-static,
luajit, Debian's python3, a JDK's jlink, apt and dpkg-deb, and the fixtures of YRT_BUILD. The packages (those of
linux-image-cloud-amd64) come from the mirrors of this machine's own apt sources; nothing is installed. A suite may be
named as suite=package to take another kernel of it, and name=file boots the kernel of any other distribution: its
package or the image itself.

A machine of two CPUs (--cpus) boots with yrt, its libraries and some fixtures, all in an initramfs, and writes what yrt
said to its serial console; that text is judged here: yrt must load, lose nothing (but samples whose clock tick did not come: an
emulated machine is too slow for it), and give whole and true stacks. All is done again with YRT_NO_LOOP, as on a kernel
without bpf_loop. --ticks measures the clock instead: how often its program runs for each sample of one busy thread, on a
machine of --cpus CPUs, after ten seconds, when CPUs without targets no longer tick. A kernel older than MINIMUM must be
refused by doctor and by flame, with the exit code for that and a word about the version. DIR keeps console and kernels.
"""

import argparse
import glob
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import verifier  # noqa: E402
from yrt import BUILD, LOST, OK, PERMISSION, SOURCE, UNSUPPORTED, YRT  # noqa: E402
from yrt import fixture_path, parse_folded, read, show, wrong_chains  # noqa: E402

MINIMUM = (5, 15)
WITH_LOOP = (5, 17)  # before, the verifier looks at each round of a walk
SUITES = ["bullseye", "bookworm", "bookworm-backports", "trixie", "sid"]
META = "linux-image-cloud-amd64"
KERNEL_PARTS = re.compile(r"Depends: (linux-(?:image|binary)-\d\S*)")
BOOT_SECONDS = 1800

# name: what is started in the background (it prints a line when it works), yrt's command line, the chains (innermost
# first) that all stacks must follow, a pattern that some stack must match, the least share of whole stacks. Processes
# that yrt starts itself run for a while before an emulated yrt has read their libraries.
DEEP30 = [f"f{i:02d}" for i in range(1, 31)] + ["main"]
JAVA = "java/bin/java -XX:+UseSerialGC -Xmx128m -XX:-Inline -cp java"
FIXTURES = ("deep30", "threads", "syscalls", "forks", "waits", "files", "faults", "alloc_sites")
CASES = {
    "deep30": ("./deep30 900", "flame -U -F 49 -d 6", [DEEP30], "f03;f02;f01(;burn)?$", 0.999),
    "threads": ("./threads 900 4", "flame -U -F 49 -d 6", [["work", "worker"]], "worker;work(;burn)?$", 0.999),
    "kernel": ("./syscalls 900", "flame -F 49 -d 6", None, "entry_SYSCALL_64.*;do_syscall_64;", 0.999),
    "lua": ("luajit split.lua 900", "lua-flame -F 49 -d 6", None, r"heavy \(split.lua:\d+\);inner.*;spin", 0.999),
    "python": (
        "echo 1 | python3 recursion.py 900 20",
        "python-flame -F 49 -d 6",
        None,
        r"main \(recursion.py:\d+\);(recurse \(recursion.py:\d+\);){20}until \(recursion.py:\d+\);work ",
        0.99,
    ),
    "java": (
        f"{JAVA} rate 10 <>/tmp/never",
        "java-flame -F 49 -d 6",
        None,
        r"(rate\.below(_\[.\])*;){5}.*rate\.work",
        0.99,
    ),
    "java-alloc": (
        f"{JAVA} alloc_split 900",
        "java-alloc -d 10",
        None,
        r"alloc_split\.main(_\[.\])*;.*alloc_split\.seventy.*;byte\[\]",
        0.99,
    ),
    "alloc": (
        "./alloc_sites 900 0 q 1 <>/tmp/never",
        "alloc --max-cpu 0 -d 5",
        None,
        "main;work;one_round;use;site_7;malloc$",
        0.99,
    ),
    "leak": (
        "./alloc_sites 900 0 lq 1 <>/tmp/never",
        "leak --max-cpu 0 -d 10",
        None,
        "main;.*;leak_some;malloc;",
        0.99,
    ),
    "growth": (
        "./alloc_sites 900 0 q 1 <>/tmp/never",
        "leak --growth -d 5",
        None,
        r"main;work;one_round;use;.*;\[touched: heap\]",
        0.99,
    ),
    "python-alloc": (
        "python3 -u -c 'print(1)\nwhile True: [bytes(700) for _ in range(200)]'",
        "python-alloc -d 5",
        None,
        r"<module> \(<string>:1\)(;.*listcomp.*)?;bytes",
        0.99,
    ),
    "off": ("./waits 900 <>/tmp/never", "off-flame -d 5", None, r"first;second;third;wait_sleep;.*sleep", 0.98),
    "wall": ("./waits 900 <>/tmp/never", "wall-flame -F 49 -d 5", None, "first;second;third;wait_epoll;", 0.98),
    "probe": ("./syscalls 900", "probe -e libc:getppid -d 3", None, "main;ask;getppid$", 0.999),
    "latency": ("./syscalls 900", "latency -e libc:getppid --over 1us -d 3", None, r"main:\d+;ask:\d+;getppid$", 0.999),
    "io": (None, "io-flame -- ./files 60 2000 /tmp", None, r"main;.*pwrite;\[write\]$", 0.99),
    "fault": (None, "fault-flame -- ./faults 60", None, r"main;touch_shared;", 0.99),
    "forks": (
        None,
        "flame -s -F 49 -d 60 -- ./forks 15",
        None,
        "main;start_child;start_child;child_main;child_mid",
        0.5,
    ),
}

INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /bin
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin HOME=/tmp YRT_DEBUG=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t bpf bpf /sys/fs/bpf
ifconfig lo up
mkfifo /tmp/never
cd /fixtures
put() { echo; echo "@@ $1"; cat "$2" 2>/dev/null; echo; echo "@@ end"; rm -f "$2"; }
uname -r >/tmp/out; put release /tmp/out
yrt doctor >/tmp/out 2>&1; echo $? >/tmp/code; put doctor.code /tmp/code; put doctor.out /tmp/out
yrt-verifier >/tmp/out 2>/tmp/code; put verifier.out /tmp/out; put verifier.err /tmp/code
"""

ONE = """
%(env)s yrt %(flags)s -o /tmp/folded.folded --stats /tmp/stats %(rest)s >/tmp/out 2>&1 </dev/null; echo $? >/tmp/code
for part in code folded.folded stats out; do put %(name)s.${part%%%%.*} /tmp/$part; done
"""


# Commands without a profile: what is run, on which target, and what it must print.
TEXTS = {
    "dump": ("./waits 900", "dump -p $pid", [rf"wait_{name}\b(.*\n)+?.*\bfirst\b"
                                             for name in ("pipe", "sleep", "epoll", "accept", "cond", "mutex")]),
    "callee": (
        "python3 -u -c 'print(1)\ndef work(n): return sum(range(n))\nwhile True: work(20000)'",
        "latency -e python:__main__.work --over 1us -d 5 -p $pid -o /dev/null -f folded",
        [r"__main__\.work\(n = 20000\)", r"\[running\] .*< work \(<string>:2\)", r" 100\.00 % complete"],
    ),
    "y": (
        "./syscalls 900",
        "y -p $pid -d 5 -e '_agg calls; _probe ask { calls <<< 1; } _probe _end { _print(calls); }'",
        [r"^ *[1-9]\d+ +[1-9]\d+ +1 +1 +1$"],
    ),
    "y-calls": (
        "python3 -u -c 'print(1)\ndef work(n, s): return sum(range(n))\nwhile True: work(20000, \"caf\\xe9\")'",
        "y -p $pid -d 5 -e '_map long n[_ustack]; _map long a[_str, long]; long back; "
        "_probe python:__main__.work { n[_ustack]++; a[$s, $n]++; } "
        "_probe python:__main__.work:return { back++; } _probe _end { _print(n); _print(back > 9); _print(a); }'",
        [r"work \(<string>:2\)\n +<module> \(<string>:1\)\n(.*\n)+1\n", r"caf\u00e9, 20000 +[1-9]"],
    ),
    "y-machine": (
        "./syscalls 900",
        "y -a -d 5 -e '_map long n[int, _stack]; _probe syscall:getppid { n[_pid, _stack]++; } "
        "_probe _end { _print(n); }'",
        [r"\bgetppid\n +ask\n +main\n"],
    ),
}
TEXT = """
rm -f /tmp/first; %(start)s <>/tmp/never >/tmp/first 2>&1 & pid=$!; %(wait)s; sleep 3
yrt %(flags)s >/tmp/out 2>&1; echo $? >/tmp/code; put %(name)s.code /tmp/code; put %(name)s.out /tmp/out
kill $pid
"""
TICKS = """
echo 1 >/proc/sys/kernel/bpf_stats_enabled
rm -f /tmp/first; taskset 1 ./deep30 900 >/tmp/first 2>&1 & pid=$!; %(wait)s
runs() { cat /proc/$yrt/fdinfo/* 2>/dev/null |
	awk '/^prog_type:/ { t = $2 } /^prog_id:/ { id = $2 } /^run_cnt:/ && t == 7 { n[id] = $2 }
	     END { for (id in n) all += n[id]; print all + 0 }'; }
at() { echo $(runs) $(cut -d" " -f1 /proc/uptime); }
for rate in 99 999; do
	rm -f /tmp/stats
	yrt flame -F $rate -d 60 -p $pid -o /tmp/folded.folded --stats /tmp/stats >/tmp/out 2>&1 </dev/null & yrt=$!
	i=0; until [ "$(runs)" -gt 0 ] || [ $i -ge 900 ]; do usleep 100000; i=$((i + 1)); done
	{ sleep 10; at; sleep 10; at; } >/tmp/code
	wait $yrt
	put $rate.looks /tmp/code; put $rate.stats /tmp/stats; put $rate.out /tmp/out
done
poweroff -f
"""
MOST_TICKS = 1.3  # for a sample
FIRST_LINE = "i=0; until [ -s /tmp/first ] || [ $i -ge 120 ]; do sleep 1; i=$((i + 1)); done"


def command(*words, **kw):
    done = subprocess.run(words, capture_output=True, text=True, **kw)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr[-2000:]}"
    return done.stdout


def mirror(suite):
    """Where this machine gets such packages from, by its own apt sources."""
    label = "Debian-Security" if suite.endswith("-security") else "Debian"
    for line in command("apt-get", "indextargets", "--format", "$(LABEL)|$(SITE)", "Created-By: Packages").splitlines():
        if line.split("|")[0] == label:
            return line.split("|")[1]
    raise AssertionError(f"no mirror of {label} among this machine's apt sources")


class Apt:
    """An apt of its own: it knows one suite, and of no installed package."""

    def __init__(self, at, suite):
        self.at = at
        for sub in ("lists/partial", "cache/archives/partial", "deb", "root"):
            os.makedirs(os.path.join(at, sub), exist_ok=True)
        # check-valid-until: the Release file of a mirror that stands still is older than it says to be good for
        source = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg check-valid-until=no]"
        self.write("sources.list", f"{source} {mirror(suite)} {suite} main\n")
        self.write("status", "")
        self.write("apt.conf", f'Dir::State "{at}";\nDir::State::status "{at}/status";\nDir::Cache "{at}/cache";\n'
                   f'Dir::Etc::sourcelist "{at}/sources.list";\nDir::Etc::sourceparts "/dev/null";\n'
                   'Acquire::Languages "none";\nAcquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";\n'
                   'APT::Sandbox::User "root";\nAPT::Architecture "amd64";\n')
        self.run("apt-get", "update")

    def write(self, name, text):
        with open(os.path.join(self.at, name), "w") as f:
            f.write(text)

    def run(self, *words):
        env = {**os.environ, "APT_CONFIG": os.path.join(self.at, "apt.conf"), "LC_ALL": "C"}
        return command(*words, env=env, cwd=os.path.join(self.at, "deb"))

    def kernel(self, package):
        """The path of the kernel that a package, or one that it depends on, holds."""
        wanted, seen = [package], set()
        while wanted:
            name = wanted.pop()
            seen.add(name)
            wanted += set(KERNEL_PARTS.findall(self.run("apt-cache", "depends", "--important", name))) - seen
        self.run("apt-get", "download", *sorted(seen))
        return unpacked(glob.glob(os.path.join(self.at, "deb", "*.deb")), os.path.join(self.at, "root"))


def unpacked(packages, root):
    """The path of the kernel that one of these packages holds."""
    for package in packages:
        command("dpkg-deb", "-x", package, root)
    for at, _, names in os.walk(root):
        for name in names:
            if name.startswith("vmlinuz"):
                return os.path.join(at, name)
    raise AssertionError(f"no kernel in {' '.join(sorted(packages))}")


def find_kernel(suite, package, at):
    if not os.path.isfile(package):
        return Apt(at, suite).kernel(package or META)
    return unpacked([package], os.path.join(at, "root")) if package.endswith(".deb") else package


def libraries(binary):
    """The shared libraries of a program and its loader."""
    done = subprocess.run(["ldd", binary], capture_output=True, text=True)
    return set(re.findall(r"(/\S+) \(0x", done.stdout)) if done.returncode == 0 else set()


def ticks_script():
    return INIT.split("uname", 1)[0] + "uname -r >/tmp/out; put release /tmp/out\n" + TICKS % {"wait": FIRST_LINE}


def script(cases):
    lines = [INIT]
    for again in ("", "noloop."):
        for name in cases:
            start, flags, *_ = CASES[name]
            flags, _, rest = flags.partition(" -- ")
            if start:
                lines.append(f"rm -f /tmp/first; {start} >/tmp/first 2>&1 & pid=$!; {FIRST_LINE}; sleep 3\n")
            lines.append(ONE % {"name": again + name, "env": "YRT_NO_LOOP=1" if again else "",
                                "flags": flags, "rest": f"-- {rest}" if rest else "-p $pid"})
            if start:
                # it should live; its last words
                lines.append("kill $pid || head -c 4000 /tmp/first; wait $pid 2>/dev/null; echo $pid ended with $?\n")
    for name, (start, flags, _) in TEXTS.items():
        lines.append(TEXT % {"name": name, "start": start, "wait": FIRST_LINE, "flags": flags})
    return "".join([*lines, "poweroff -f\n"])


def python_modules():
    """The files that Python needs for fixtures/python/recursion.py."""
    loaded = (
        "import json, os, sys, threading, time, encodings.utf_8; print(*[getattr(m, '__file__', '') for m in"
        " sys.modules.values()], os.__file__)"
    )
    return [name for name in command("/usr/bin/python3", "-S", "-c", loaded).split() if name.startswith("/")]


def java_runtime(at):
    """A JVM of few modules, and classes, as {path in the machine: path here}."""
    image, classes = os.path.join(at, "java"), fixture_path("java")
    if not os.path.exists(image):
        command("jlink", "--add-modules", "java.base,java.management", "--output", image)
    found = {
        f"/fixtures/java/{name}": os.path.join(classes, name) for name in os.listdir(classes) if name.endswith(".class")
    }
    for folder, _, names in os.walk(image):
        found |= {
            f"/fixtures/java/{os.path.relpath(os.path.join(folder, n), image)}": os.path.join(folder, n) for n in names
        }
    return {target: source for target, source in found.items() if "/legal/" not in target}


def initramfs(at, init):
    """Everything that runs in the machine, as one archive."""
    root = os.path.join(at, "initramfs")
    programs = {"/bin/yrt": YRT, "/bin/yrt-verifier": os.path.join(BUILD, "yrt-verifier"),
                "/bin/busybox": shutil.which("busybox"), "/bin/luajit": shutil.which("luajit"),
                "/usr/bin/python3": os.path.realpath("/usr/bin/python3")}
    programs |= {f"/fixtures/{name}": fixture_path(name) for name in FIXTURES}
    programs |= {module: module for module in python_modules()} | java_runtime(at)
    scripts = {"/fixtures/split.lua": ("lua", "split.lua"), "/fixtures/recursion.py": ("python", "recursion.py")}
    files = {target: os.path.join(SOURCE, "fixtures", *path) for target, path in scripts.items()} | programs
    for target, source in programs.items():
        assert source, f"{os.path.basename(target)} is not installed"
        files |= {library: library for library in libraries(source)}
    for target, source in files.items():
        os.makedirs(os.path.dirname(root + target), exist_ok=True)
        shutil.copy(source, root + target)
    with open(os.path.join(root, "init"), "w") as f:
        f.write(init)
    os.chmod(os.path.join(root, "init"), 0o755)
    names = "\n".join(os.path.relpath(os.path.join(d, n), root) for d, ds, ns in os.walk(root) for n in ds + ns)
    archive = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], input=names.encode(), cwd=root, check=True,
                             capture_output=True).stdout
    path = os.path.join(at, "initramfs.gz")
    with gzip.open(path, "wb", 1) as f:
        f.write(archive)
    return path


def emulated(kernel):
    """
    The CPU. QEMU 7.2's cmpxchg16b can leave a pointer in the flags, which 6.12 dies of in kmalloc(). Kernels from 7.0
    on, though, need the instruction to give BPF memory while they switch tasks (kmalloc_nolock()).
    """
    version = re.search(r"(\d+)\.\d+\.\d", kernel)
    return "max" if version and int(version[1]) >= 7 else "max,-cx16"


def boot(kernel, archive, args, log):
    """Runs the machine until it powers off. {name: text} of what it put out."""
    words = [
        "qemu-system-x86_64",
        "-accel",
        args.accel,
        "-cpu",
        emulated(kernel) if args.accel == "tcg" else "host",
        "-smp",
        str(args.cpus),
        "-m",
        "1536",
        "-nographic",
        "-no-reboot",
        "-nodefaults",
        "-serial",
        "stdio",
        "-kernel",
        kernel,
        "-initrd",
        archive,
        "-append",
        "console=ttyS0 panic=-1 quiet mitigations=off nokaslr no_timer_check",
    ]  # the host may be busy
    with open(log, "wb") as f:
        try:
            subprocess.run(words, stdin=subprocess.DEVNULL, stdout=f, stderr=subprocess.STDOUT, timeout=BOOT_SECONDS)
        except subprocess.TimeoutExpired:
            print(f"the machine did not power off in {BOOT_SECONDS} s: {log}")
    text = read(log).replace("\r", "")
    return {name: body.strip("\n") for name, body in re.findall(r"^@@ (\S+)\n(.*?)^@@ end$", text, re.M | re.S)}


class Ran:
    """What one case gave, as wrong_chains() and show() want it."""

    def __init__(self, said, name):
        self.code, self.words = int(said[f"{name}.code"]), said[f"{name}.out"]
        self.stacks = parse_folded(said[f"{name}.folded"])
        self.stats = json.loads(said[f"{name}.stats"] or "{}")


def judge(said, name):
    """One line of the table, and what is wrong."""
    _, _, chains, pattern, whole = CASES[name.split(".")[-1]]
    ran = Ran(said, name)
    if ran.code not in (OK, LOST) or not ran.stats.get("samples"):
        return "no samples", [f"{name}: exit code {ran.code}\n{ran.words[-1500:]}"]
    wrong, samples, complete = [], ran.stats["samples"], ran.stats["complete"]
    if complete < whole * samples:
        wrong.append(f"{name}: not whole: {ran.stats['truncated']}\n{show(ran.stacks)}")
    lost = {cause: n for cause, n in ran.stats["lost"].items() if cause != "clock"}
    if sum(lost.values()) > (1 - whole) * samples:
        wrong.append(f"{name}: lost: {lost}")
    if not any(re.search(pattern, ";".join(frames)) for frames, _ in ran.stacks):
        wrong.append(f"{name}: no stack matches {pattern}\n{show(ran.stacks)}")
    strange = wrong_chains(ran, *chains) if chains else []
    if sum(n for _, n in strange) > (1 - whole) * samples:
        wrong.append(f"{name}: strange stacks\n{show(strange)}")
    return f"{samples} samples, {100 * complete / samples:.2f} % complete", wrong


def wrong_texts(said):
    """dump: each thread that sleeps must be there with its stack, read where it sleeps. y: what it counts."""
    for name, (_, _, patterns) in TEXTS.items():
        code, out = said[f"{name}.code"], said[f"{name}.out"]
        missing = [pattern for pattern in patterns if not re.search(pattern, out, re.M)]
        if code != str(OK) or missing:
            yield f"{name}: exit code {code}, without {missing}\n{out[-3000:]}"


def over_budgets(suite, release, said):
    """Prints what the verifier looked at in the largest program that takes stacks. Which are over their budget."""
    walking = verifier.walking(verifier.counted(said["verifier.out"]))
    if not walking or said["verifier.err"]:
        return [f"yrt-verifier:\n{said['verifier.err']}"]
    largest = max(walking.values(), key=lambda of: of["all"])
    print(f"{suite:20} {release:32} {'verifier':16} {largest}", flush=True)
    if tuple(map(int, release.split(".")[:2])) < WITH_LOOP:
        return [f"{name}: {of}" for name, of in walking.items() if of["all"] > verifier.PROGRAM]
    return [f"{name}: {of}" for name, of in walking.items() if verifier.over_budget(of)]


def refused(said, cases):
    """A kernel that is too old must be refused in words, not crash or be half right."""
    wrong = []
    if int(said["doctor.code"]) != PERMISSION:
        wrong.append(f"doctor ended with {said['doctor.code']}\n{said['doctor.out'][-1500:]}")
    for name in cases:
        ran = Ran(said, name)
        if ran.code != UNSUPPORTED or "{}.{}".format(*MINIMUM) not in ran.words:
            wrong.append(f"{name}: exit code {ran.code}\n{ran.words[-1500:]}")
    return wrong


def ticks_flat(suite, release, cpus, said, rate):
    """Prints a line of the table of --ticks. True: a sample takes few ticks."""
    stats = json.loads(said.get(f"{rate}.stats") or "{}")
    assert stats.get("samples"), f"{rate} Hz: no samples\n{said.get(f'{rate}.out')}"
    begin, start, end, stop = map(float, said[f"{rate}.looks"].split())
    assert end > begin, f"{rate} Hz: yrt had ended at the second look"
    samples = stats["samples"] / stats["duration_s"]
    each = (end - begin) / (stop - start) / samples
    print(f"{suite:20} {release:32} {cpus} CPUs, {rate} Hz: {each:.2f} ticks a sample, {samples:.0f} samples a second",
          flush=True)
    return each <= MOST_TICKS


def check(suite, args, at, archive):
    """Boots the kernel of a suite and prints its lines of the table. True: all as it should be."""
    suite, _, package = suite.partition("=")
    os.makedirs(os.path.join(at, suite), exist_ok=True)
    kernel = find_kernel(suite, package, os.path.join(at, suite))
    said = boot(kernel, archive, args, os.path.join(at, suite, "console.log"))
    assert "release" in said, f"the kernel did not come up: {read(os.path.join(at, suite, 'console.log'))[-1500:]}"
    release = said["release"].strip()
    if args.ticks:
        return all([ticks_flat(suite, release, args.cpus, said, rate) for rate in (99, 999)])
    if tuple(map(int, release.split(".")[:2])) < MINIMUM:
        wrong = refused(said, args.cases)
        print(f"{suite:20} {release:32} refused: {'no' if wrong else 'yes'}", flush=True)
    else:
        wrong = [] if int(said["doctor.code"]) == OK else [f"doctor:\n{said['doctor.out'][-3000:]}"]
        wrong += over_budgets(suite, release, said)
        wrong += wrong_texts(said)
        for name in [again + name for again in ("", "noloop.") for name in args.cases]:
            line, more = judge(said, name)
            wrong += more
            print(f"{suite:20} {release:32} {name:16} {line}", flush=True)
    for text in wrong:
        print(f"  WRONG {text}", flush=True)
    return not wrong


def main():
    parser = argparse.ArgumentParser(description="yrt on the kernels of Debian's suites")
    parser.add_argument("--accel", default="tcg", choices=("tcg", "kvm"))
    parser.add_argument("--keep", help="a directory for kernels and consoles; else a temporary one")
    parser.add_argument("--cases", default=list(CASES), type=lambda text: text.split(","))
    parser.add_argument("--cpus", type=int, default=2, help="of the machine")
    parser.add_argument("--ticks", action="store_true", help="count ticks of the clock for a sample, and nothing else")
    parser.add_argument("suites", nargs="*", default=SUITES)
    args = parser.parse_args()
    if unknown := set(args.cases) - set(CASES):
        parser.error(f"no case {', '.join(sorted(unknown))}: there are {', '.join(CASES)}")
    at = os.path.abspath(args.keep) if args.keep else tempfile.mkdtemp(prefix="yrt-kernels-")
    failed = []
    try:
        archive = initramfs(at, ticks_script() if args.ticks else script(args.cases))
        for suite in args.suites:
            try:
                if not check(suite, args, at, archive):
                    failed.append(suite)
            except Exception:
                failed.append(suite)
                traceback.print_exc()
    finally:
        if not args.keep:
            shutil.rmtree(at, ignore_errors=True)
    print(f"failed: {', '.join(failed)}" if failed else "all as it should be")
    sys.exit(bool(failed))


main()
