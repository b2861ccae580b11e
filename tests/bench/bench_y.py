# SPDX-License-Identifier: Apache-2.0
"""
yrt y beside bpftrace and gdb, in turns, medians of ratios in one run.

	YRT=build/release/yrt YRT_BUILD=build/release YRT_SOURCE=. python3 tests/bench/bench_y.py [RUNS [BENCH…]]

start	from the command to the first hit that is printed, of a function that is called all the time, by both; memory
hit	CPU time of the target for each call of a function, beyond that without a probe: counted, summed, in a
	histogram, each by an argument, by stack (beside `yrt probe` instead), timed by func-latency (two hits a call)
list	a list of 1,000,000 nodes by _oneshot, in order and shuffled, and by gdb's Python over the same process: its value
	objects, and reads of pages that it keeps
core	the same list in a core of 1 GiB: seconds and memory

BENCH: one or more of these words, all of them if there is none.

bpftrace is the one on PATH, or that of YRT_BPFTRACE; the fixtures are asked and called of fixtures/native.
"""

import os
import resource
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
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


HITS, HIT_THREADS = 50000, 4
# Without these yrt probe takes some of the hits alone, at such a rate, and ends too early.
EACH = ["--max-cpu", "0", "-d", "600", "-o", "/dev/null", "--format", "folded"]
HIT_Y = {
    "count": "_map long n[long]; _probe crowd { n[_arg(0) & 7]++; }",
    "sum": "_agg n[long]; _probe crowd { n[_arg(0) & 7] <<< _arg(0); }",
    "histogram": "_agg n[long]; _probe crowd { n[_arg(0) & 7] <<< _arg(0); } _probe _end { _hist(n); }",
    "stack": "_map long n[_stack]; _probe crowd { n[_stack]++; }",
    "func-latency": None,
}
HIT_BPFTRACE = {"count": "@[arg0 & 7] = count();", "sum": "@[arg0 & 7] = sum(arg0);",
                "histogram": "@[arg0 & 7] = hist(arg0);"}


def ticks(pid):
    return sum(int(t) for t in yrt.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[11:13])


def hit_cost(fixture, command):
    """CPU ticks of the target for HITS calls by each of the threads, while command probes them; None: nothing does."""
    p = command and subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def serve(many):
        fixture.process.stdin.write(f"{many} {HIT_THREADS}\n")
        fixture.process.stdin.flush()
        fixture.process.stdout.readline()

    if p:
        end = time.monotonic() + LIMIT_S
        while not placed(fixture.pid) and time.monotonic() < end:
            serve(1)
            time.sleep(0.05)
        time.sleep(1)  # stacks: until the run takes them
    serve(1000)
    before = ticks(fixture.pid)
    serve(HITS)
    took = ticks(fixture.pid) - before
    if p:
        p.send_signal(signal.SIGINT)
        p.wait(LIMIT_S)
    return took


def placed(pid):
    """Has the target hit a uprobe? The kernel maps a page of its own into it then."""
    return "[uprobes]" in yrt.read(f"/proc/{pid}/maps")


def hit(runs):
    program = os.path.realpath(yrt.fixture_path("called"))
    clock = os.sysconf("SC_CLK_TCK")
    for what, source in HIT_Y.items():
        rows = []
        for _ in range(runs):
            with yrt.Fixture("called", seconds=None, wait=False) as f:
                pid = str(f.pid)
                ours = [yrt.YRT, "y", "-q", *(["-e", source] if source else ["func-latency", "-D", "FUNC=crowd"]),
                        "-p", pid]
                theirs = [yrt.YRT, "probe", "-q", "-e", "crowd", "-p", pid, *EACH]
                if what == "func-latency":
                    theirs = [yrt.YRT, "latency", "-q", "-e", "crowd", "-p", pid, *EACH]
                if what in HIT_BPFTRACE:
                    theirs = [BPFTRACE, "-p", pid, "-e", f"uprobe:{program}:crowd {{ {HIT_BPFTRACE[what]} }}"]
                none = hit_cost(f, None)
                with_ours = hit_cost(f, ours)
            with yrt.Fixture("called", seconds=None, wait=False) as f:
                theirs[theirs.index(pid)] = str(f.pid)
                with_theirs = hit_cost(f, theirs) if theirs[0] else float("nan")
            rows.append(((with_ours - none), (with_theirs - none)))
        us = [statistics.median(row[i] for row in rows) / clock / HITS / HIT_THREADS * 1e6 for i in (0, 1)]
        ratio = statistics.median(row[0] / row[1] if row[1] > 0 else float("nan") for row in rows)
        beside = "bpftrace" if what in HIT_BPFTRACE else f"yrt {theirs[1]}"
        print(f"hit, {what}: yrt y {us[0]:.2f} us of the target's CPU, {beside} {us[1]:.2f} us, ratio {ratio:.2f}")


def cpu(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=300)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


NODES = 1000000
LIST_Y = "_probe _oneshot { long s = 0; for (struct node *n = many; n; n = n->next) s += n->value; _print(s); }"
LIST_GDB = {"value objects": """python
n, s = gdb.parse_and_eval("many"), 0
while int(n):
    s, n = s + int(n["value"]), n["next"]
print(s)
""", "pages": """python
import struct
pages, target, node, s = {}, gdb.selected_inferior(), int(gdb.parse_and_eval("many")), 0
def word(at):
    page = pages.get(at >> 12)
    if page is None:
        page = pages[at >> 12] = bytes(target.read_memory(at & ~4095, 4096))
    return struct.unpack_from("<Q", page, at & 4095)[0]
while node:
    s, node = s + (word(node + 8) & 0xffffffff), word(node)
print(s)
"""}
LIST_C = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; int value; const char *name; } *many;
char *ballast;
int main(int argc, char **argv)
{
	long n = atol(argv[1]), bytes = atol(argv[3]) << 20;
	struct node *all = calloc(n, sizeof(*all));
	long *order = calloc(n, sizeof(*order));
	for (long i = 0; i < n; i++)
		order[i] = i;
	for (long i = n - 1; i > 0 && *argv[2] == 's'; i--) {
		long k = random() % (i + 1), was = order[i];
		order[i] = order[k];
		order[k] = was;
	}
	for (long i = 0; i < n; i++)
		all[order[i]] = (struct node){i + 1 < n ? &all[order[i + 1]] : NULL, (int)i};
	many = &all[order[0]];
	free(order);
	ballast = malloc(bytes + 1);
	for (long i = 0; i < bytes; i += 8)
		memcpy(ballast + i, &i, 8);
	puts("{\\"pid\\": 0, \\"chain\\": []}");
	fflush(stdout);
	return getchar() + argc;
}
"""


class Listed:
    """A process with such a list, and with megabytes besides."""

    def __init__(self, order, megabytes=0):
        self.directory = tempfile.TemporaryDirectory(prefix="yrt-bench-y-")
        self.program = os.path.join(self.directory.name, "list")
        subprocess.run(["gcc", "-g", "-O1", "-o", self.program, "-xc", "-"], input=LIST_C, text=True, check=True)
        self.process = subprocess.Popen([self.program, str(NODES), order, str(megabytes)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.directory.cleanup()


def walk(runs):
    if not shutil.which("gdb"):
        return
    for order in ("in order", "shuffled"):
        for what, text in LIST_GDB.items():
            ratios, ours, theirs = [], [], []
            with Listed(order) as listed:
                pid, script = str(listed.process.pid), os.path.join(listed.directory.name, "script")
                with open(script, "w", encoding="utf-8") as f:
                    f.write(text)
                for _ in range(1 if what == "value objects" else runs):
                    a, told = cpu([yrt.YRT, "y", "-q", "-e", LIST_Y, "-p", pid])
                    b, said = cpu(["gdb", "-nx", "-batch", "-p", pid, "-x", script])
                    empty, _ = cpu(["gdb", "-nx", "-batch", "-p", pid])
                    assert told.strip() == str(NODES * (NODES - 1) // 2) and told.strip() in said, (told, said)
                    ours.append(a)
                    theirs.append(b - empty)
                    ratios.append(a / (b - empty))
            print(f"list of {NODES} nodes {order}, CPU: yrt {statistics.median(ours):.3f} s with its start, gdb's "
                  f"{what} {statistics.median(theirs):.3f} s without, ratio {statistics.median(ratios):.3f}")


def anonymous(pid):
    """The most memory so far but for pages of files, KiB; 0: the process is gone."""
    try:
        fields = dict(line.split(":") for line in yrt.read(f"/proc/{pid}/status").splitlines())
        return int(fields["RssAnon"].split()[0])
    except (OSError, KeyError, ValueError):
        return 0


def core(runs):
    with Listed("shuffled", 1024) as listed:
        path = os.path.join(listed.directory.name, "core")
        subprocess.run(["gdb", "-nx", "-batch", "-p", str(listed.process.pid), "-ex", f"generate-core-file {path}"],
                       check=True, capture_output=True)
        seconds, memory = [], []
        for _ in range(runs):
            begin, most = time.monotonic(), 0
            p = subprocess.Popen([yrt.YRT, "y", "-q", "-e", LIST_Y, "--core", path], stdout=subprocess.PIPE, text=True)
            while p.poll() is None:
                most = max(most, anonymous(p.pid))
                time.sleep(0.005)
            assert p.stdout.read().strip() == str(NODES * (NODES - 1) // 2)
            seconds.append(time.monotonic() - begin)
            memory.append(most)
        print(f"the list in a core of {os.path.getsize(path) >> 20} MiB: {statistics.median(seconds):.3f} s, "
              f"{statistics.median(memory) >> 10} MiB but for pages of files")


if __name__ == "__main__":
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    print(f"load {os.getloadavg()[0]:.1f}")
    for name, bench in (("start", start), ("hit", hit), ("list", walk), ("core", core)):
        if not sys.argv[2:] or name in sys.argv[2:]:
            bench(runs if name == "start" else min(runs, 3))
