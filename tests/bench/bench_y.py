# SPDX-License-Identifier: Apache-2.0
"""
yrt y beside bpftrace and gdb, in turns, medians of ratios in one run.

	YRT=build/release/yrt YRT_BUILD=build/release YRT_SOURCE=. python3 tests/bench/bench_y.py [RUNS]

start	from the command to the first hit that is printed, of a function that is called all the time, by both; memory
list	a list of 100,000 nodes by _oneshot, and by gdb's Python over the same process (its value objects)

bpftrace is the one on PATH, or that of YRT_BPFTRACE; the fixtures are asked and called of fixtures/native.
"""

import os
import resource
import select
import shutil
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import yrt

RUNS = 7
LIMIT_S = 30
BPFTRACE = os.environ.get("YRT_BPFTRACE") or shutil.which("bpftrace")
Y_COUNT = '_map long n[long]; _probe serve { n[(long)_arg(1)]++; printf("hit\\n"); }'


class Served:
    """The fixture with a thread that keeps it busy."""

    def __init__(self, many):
        self.fixture = yrt.Fixture("called", seconds=None, wait=False)
        self.pid, self.many, self.end = self.fixture.pid, many, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.end:
            self.once(self.many)

    def once(self, many):
        self.fixture.process.stdin.write(f"{many}\n")
        self.fixture.process.stdin.flush()
        return self.fixture.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end = True
        self.thread.join()
        self.fixture.process.kill()
        self.fixture.process.wait()


def first_hit(command):
    """Seconds until the first line, and the most memory (KiB); NaN: there is none."""
    begin = time.monotonic()
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    seen, ready = b"", True
    while b"hit" not in seen and ready:
        ready = select.select([p.stdout], [], [], LIMIT_S)[0]
        seen += os.read(p.stdout.fileno(), 4096) if ready else b""
        ready = ready and seen
    took = time.monotonic() - begin if b"hit" in seen else float("nan")
    memory = 0
    try:
        with open(f"/proc/{p.pid}/status", encoding="utf-8") as f:
            memory = next((int(line.split()[1]) for line in f if line.startswith("VmHWM")), 0)
    except OSError:
        pass
    p.kill()
    p.wait()
    return took, memory


def start(runs):
    program = os.path.realpath(yrt.fixture_path("called"))
    rows = []
    with Served(100) as s:
        theirs = [BPFTRACE, "-p", str(s.pid), "-e",
                  f'uprobe:{program}:serve {{ @[arg1] = count(); printf("hit\\n"); }}']
        ours = [yrt.YRT, "y", "-q", "-e", Y_COUNT, "-p", str(s.pid)]
        for _ in range(runs):
            rows.append((first_hit(ours), first_hit(theirs) if BPFTRACE else (float("nan"), 0)))
    for what, k, unit in (("time", 0, "s"), ("memory", 1, "KiB")):
        a, b = (statistics.median(row[i][k] for row in rows) for i in (0, 1))
        ratio = statistics.median(row[0][k] / row[1][k] if row[1][k] else float("nan") for row in rows)
        print(f"start, {what}: yrt {a:.3f} {unit}, bpftrace {b:.3f} {unit}, ratio {ratio:.3f}")


def cpu(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=300)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


LIST_Y = "_probe _oneshot { long s = 0; for (struct node *n = many; n; n = n->next) s += n->value; _print(s); }"
LIST_GDB = """python
n, s = gdb.parse_and_eval("many"), 0
while int(n):
    s, n = s + int(n["value"]), n["next"]
print(s)
"""


def walk(runs):
    if not shutil.which("gdb"):
        return
    ratios, ours, theirs = [], [], []
    script = "/tmp/yrt-bench-y.gdb"
    with open(script, "w", encoding="utf-8") as f:
        f.write(LIST_GDB)
    with yrt.Fixture("asked", seconds=None, wait=False) as f:
        for _ in range(runs):
            a, told = cpu([yrt.YRT, "y", "-q", "-e", LIST_Y, "-p", str(f.pid)])
            b, said = cpu(["gdb", "-nx", "-batch", "-p", str(f.pid), "-x", script])
            empty, _ = cpu(["gdb", "-nx", "-batch", "-p", str(f.pid)])
            assert told.strip() == "4999950000" and told.strip() in said, (told, said)
            ours.append(a)
            theirs.append(b - empty)
            ratios.append(a / (b - empty))
    os.unlink(script)
    print(f"list of 100,000 nodes, CPU: yrt {statistics.median(ours):.3f} s with its start, gdb's value objects "
          f"{statistics.median(theirs):.3f} s without, ratio {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    start(runs)
    walk(min(runs, 3))
