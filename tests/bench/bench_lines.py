# SPDX-License-Identifier: Apache-2.0
"""
The lines of the cache (64 bytes) that the walk of a stack touches: bench_lines.py [RECORDING...]. The walks of
tests/replay are walked again by the same walkers in user space, and valgrind's lackey says each address. So the code
and its stack are the compiler's, not BPF's; the tables, the state of a walk, the frames and what is copied of the target
are the same. Medians of the walks of a recording.

tables: regions, rows, rules, what is known of a VM; state: struct walk and the cache across walks, without what is
copied; copied: the windows over the target's memory; frames: those that are sent.
"""

import bisect
import collections
import itertools
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading

BUILD = os.environ.get("YRT_BUILD", "build/release")
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECORDINGS = ("native-deep30", "python-3.11-mixed", "java-17-tiered", "luajit-deep", "go-1.26-chains")
KINDS = "tables", "state", "copied", "frames", "stack", "code"
LINE = 6  # bits
REPLAY = ("replay_read", "walks_again", "walks_same", "unwind_stack", "main")  # they are not the walk


class Places:
    """Which piece of memory has an address."""

    def __init__(self, lines):
        self.all = sorted((int(at, 16), int(size), what) for what, at, size in map(str.split, lines))
        self.starts = [p[0] for p in self.all]
        self.mark = next(at for at, _, what in self.all if what == "mark")

    def find(self, addr):
        """(kind, its line), counted from the begin of its piece: BPF's slabs begin with a page."""
        i = bisect.bisect_right(self.starts, addr) - 1
        if i >= 0 and addr < self.all[i][0] + self.all[i][1]:
            return self.all[i][2], (i, (addr - self.all[i][0]) >> LINE)
        return ("stack" if addr >= 0x1F_0000_0000 else "state"), addr >> LINE


class Code:
    """Which instructions are of the walk: [start, end) of the program, without the functions that replay."""

    def __init__(self, program, mark):
        symbols = [line.split() for line in subprocess.run(["nm", "-S", program], capture_output=True, text=True,
                                                           check=True).stdout.splitlines()]
        of = {s[3]: (int(s[0], 16), int(s[1], 16)) for s in symbols if len(s) == 4}
        base = mark - of["mark"][0]
        sections = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True, check=True).stdout
        text = re.search(r" \.text +PROGBITS +(\w+) \w+ (\w+) ", sections)
        self.start = base + int(text[1], 16)
        self.end = self.start + int(text[2], 16)
        self.replay = [range(base + of[n][0], base + sum(of[n])) for n in REPLAY if n in of]
        self.read = range(base + of["replay_read"][0], base + sum(of["replay_read"]))

    def is_walk(self, pc):
        return self.start <= pc < self.end and not any(pc in r for r in self.replay)


def count(trace, places, code):
    """[Counter of lines by kind], one for each walk."""
    walks, lines, walk, copies = [], None, False, False
    mark = f" S {places.mark:08x},"
    for text in trace:
        if text.startswith(mark):
            if lines is not None:
                walks.append(collections.Counter(kind for kind, _ in lines))
            lines = set() if lines is None else None
        elif lines is None or len(text) < 4 or text[2] not in " SLM" or text[0] not in "I ":
            continue
        elif text[0] == "I":
            pc = int(text[3:].partition(",")[0], 16)
            walk = code.is_walk(pc)
            copies = not walk and (copies or pc in code.read) and not code.start <= pc < code.end or pc in code.read
            if walk:
                lines.add(("code", pc >> LINE))
        elif walk:
            kind, line = places.find(int(text[3:].partition(",")[0], 16))
            if kind != "harness":
                lines.add((kind, line))
        elif copies and text[1] in "SM":
            kind, line = places.find(int(text[3:].partition(",")[0], 16))
            if kind in ("state", "stack"):
                lines.discard(("state", line))
                lines.add(("copied", line))
    return walks


def measure(path):
    """The trace is read all the time, or valgrind would wait; it says nothing of walks before the program may go on."""
    program, places = os.path.join(BUILD, "yrt-walk-lines"), []
    read, write = os.pipe()
    lackey = ["valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-fd={write}", program, path]
    with subprocess.Popen(lackey, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=[write]) as run:
        os.close(write)

        def listen():
            said = []
            for line in run.stdout:
                said.append(line)
                if line.startswith("mark"):
                    break
            places.append(Places(said))
            run.stdin.write("\n")
            run.stdin.flush()

        listener = threading.Thread(target=listen)
        listener.start()
        with open(read, encoding="ascii", errors="replace") as trace:
            begun = (line for line in trace if places)
            first = next(begun, "")
            listener.join()
            return count(itertools.chain([first], begun), places[0], Code(program, places[0].mark))


def main(paths):
    if not shutil.which("valgrind"):
        sys.exit("valgrind is not installed")
    print(f"{'lines of the cache, medians':32}" + "".join(f"{k:>8}" for k in KINDS) + f"{'data':>8}")
    for path in paths:
        walks = measure(path)
        assert walks, f"{path}: no walk was seen"
        medians = [statistics.median(w[k] for w in walks) for k in KINDS]
        name = re.sub(r"\.walks$", "", os.path.basename(path))
        print(f"{name:32}" + "".join(f"{m:8.0f}" for m in (*medians, sum(medians[:4]))), flush=True)


main(sys.argv[1:] or [os.path.join(SOURCE, "tests", "replay", f"{n}.walks") for n in RECORDINGS])
