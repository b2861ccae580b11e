# SPDX-License-Identifier: Apache-2.0
"""
dump of 10,000 sleeping threads: CPU time and wall clock, against a dump of a few threads and against reading the same
from /proc.
"""

import glob
import os
import resource
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import yrt  # noqa: E402

THREADS = 10000
ROUNDS = 5


def cost(work):
    """The least (CPU seconds of this process and its children, wall seconds) of some rounds."""
    best = (1e9, 1e9)
    for _ in range(ROUNDS):
        def used():
            return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        cpu, wall = used(), time.monotonic()
        work()
        best = min(best[0], used() - cpu), min(best[1], time.monotonic() - wall)
    return best


def dump(pid):
    result = yrt.run("dump", "-p", pid, output=False, stats=False).expect()
    assert (
        f"{THREADS + 1} threads, 2 different stacks" in result.stdout or "12 threads" in result.stdout
    ), result.stdout[:200]


def read_proc(pid):
    for task in glob.glob(f"/proc/{pid}/task/*"):
        for name in ("stat", "syscall", "stack"):
            yrt.read(f"{task}/{name}")


with yrt.Fixture("waits", THREADS, seconds=300, wait=False) as many, yrt.Fixture(
    "waits", seconds=300, wait=False
) as few:
    os.kill(few.pid, 19)  # SIGSTOP: nothing is to be sampled
    time.sleep(2)
    crowd, small, proc = cost(lambda: dump(many.pid)), cost(lambda: dump(few.pid)), cost(lambda: read_proc(many.pid))
    print(
        f"{THREADS} threads: {crowd[0]:.3f} s CPU, {crowd[1]:.3f} s wall; 12 threads: {small[0]:.3f} s,"
        f" {small[1]:.3f} s"
    )
    print(f"a thread: {(crowd[0] - small[0]) / THREADS * 1e6:.1f} us CPU")
    print(
        f"stat, syscall and stack of the same threads by /proc: {proc[0]:.3f} s CPU, {proc[0] / crowd[0]:.2f} times the"
        " dump's"
    )
