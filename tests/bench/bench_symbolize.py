# SPDX-License-Identifier: Apache-2.0
"""
10,000 distinct addresses of a large library by its debug information: yrt symbolize beside llvm-symbolizer, in the same
run, by wall time and peak memory, and how many answers are the same.

bench_symbolize.py [FILE]: a program with debug information, or a debug file as packaged. Without it: that of libjvm, if
openjdk-17-dbg is installed in the version of openjdk-17-jre-headless; else libc's.
"""

import glob
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
YRT = os.environ.get("YRT") or os.path.join(SOURCE, "build", "release", "yrt")
LLVM = shutil.which("llvm-symbolizer") or shutil.which("llvm-symbolizer-14")
ADDRESSES, ROUNDS = 10000, 3
SPEED_LIMIT, MEMORY_LIMIT_MB = 5, 250


def debug_file(library):
    notes = subprocess.run(["readelf", "-n", library], capture_output=True, text=True).stdout
    found = re.search("Build ID: ([0-9a-f]+)", notes)
    path = found and f"/usr/lib/debug/.build-id/{found[1][:2]}/{found[1][2:]}.debug"
    return path if path and os.path.exists(path) else None


def choose_file():
    if len(sys.argv) > 1:
        return sys.argv[1]
    for library in [
        *glob.glob("/usr/lib/jvm/*/lib/server/libjvm.so"),
        os.path.realpath("/lib/x86_64-linux-gnu/libc.so.6"),
    ]:
        if debug_file(library):
            return debug_file(library)
    sys.exit("no debug file here: name a program, or install openjdk-17-dbg and openjdk-17-jre-headless, or libc6-dbg")


def choose_addresses(path):
    functions = []
    for line in subprocess.run(
        ["nm", "-S", "--defined-only", path], capture_output=True, text=True
    ).stdout.splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tTwW" and int(words[1], 16):
            functions.append((int(words[0], 16), int(words[1], 16)))
    assert sum(size for _, size in functions) > 2 * ADDRESSES, f"{path} has too little code with symbols"
    rng, chosen = random.Random(1), {}
    while len(chosen) < ADDRESSES:
        start, size = rng.choice(functions)
        chosen[start + rng.randrange(size)] = True
    chosen = list(chosen)
    rng.shuffle(chosen)
    return chosen


def run(command, questions):
    """Its answers, seconds of wall and of CPU time, and peak memory in MB."""
    with open(questions) as stdin, tempfile.TemporaryFile("w+") as out:
        start = os.times().elapsed
        child = subprocess.Popen(command, stdin=stdin, stdout=out)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = os.times().elapsed - start
        assert child.returncode == 0, f"{command[0]} ended with {child.returncode}"
        out.seek(0)
        return out.read().split("\n\n"), (seconds, usage.ru_utime + usage.ru_stime), usage.ru_maxrss / 1024


def compare(mine, theirs):
    assert len(mine) == len(theirs) == ADDRESSES + 1
    same = sum(a == b for a, b in zip(mine[:-1], theirs[:-1]))
    places = sum(a.split("\n")[1::2] == b.split("\n")[1::2] for a, b in zip(mine[:-1], theirs[:-1]))
    frames = sum(len(a.split("\n")) // 2 for a in mine[:-1])
    print(f"{frames} frames; files and lines equal for {places} of {ADDRESSES} addresses, all of the answer for {same}")


def main():
    assert LLVM, "llvm-symbolizer is not here; its package is llvm"
    path = choose_file()
    with tempfile.NamedTemporaryFile("w") as questions:
        questions.writelines(f"0x{a:x}\n" for a in choose_addresses(path))
        questions.flush()
        times, peaks = {"yrt": [], "llvm": []}, {"yrt": 0, "llvm": 0}
        for _ in range(ROUNDS):
            answers = {}
            for who, command in (("yrt", [YRT, "symbolize", "--no-demangle", "-e", path]),
                                 ("llvm", [LLVM, "--no-demangle", f"--obj={path}"])):
                answers[who], seconds, peak = run(command, questions.name)
                times[who].append(seconds)
                peaks[who] = max(peaks[who], peak)
    (mine, my_cpu), (theirs, their_cpu) = ([statistics.median(t) for t in zip(*times[who])] for who in ("yrt", "llvm"))
    print(f"{path}: {os.path.getsize(path) / 1e6:.0f} MB, {ADDRESSES} distinct addresses, median of {ROUNDS}")
    compare(answers["yrt"], answers["llvm"])
    print(f"yrt {mine:.2f} s ({my_cpu:.2f} s of CPU), {peaks['yrt']:.0f} MB; "
          f"llvm-symbolizer {theirs:.2f} s ({their_cpu:.2f} s), {peaks['llvm']:.0f} MB")
    print(f"{theirs / mine:.1f} times as fast (limit {SPEED_LIMIT}), by CPU time {their_cpu / my_cpu:.1f}; "
          f"{peaks['yrt']:.0f} MB (limit {MEMORY_LIMIT_MB})")


main()
