# SPDX-License-Identifier: Apache-2.0
"""
BPF time of a sample beside that of the OpenTelemetry eBPF profiler (otel.py), in turns, for a program on one CPU that
runs before all others: by the kernel's own statistics of BPF programs. yrt pays for the ticks of all CPUs, its peer for
those of this one.

	YRT_OTEL=... YRT_OTELCOL=... python3 tests/bench/bench_peer.py [c | python | java]...
"""

import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import java
import otel
import yrt
from bpf_cost import bpf_statistics, undisturbed, watch

RATES, TURNS, SETTLED, LOOK, PEER_READY_S, LIMIT = (99, 999), 3, 3, 2, 10, 0.33


@contextlib.contextmanager
def released(*words, **options):
    with yrt.Fixture(*words, **options) as fixture:
        fixture.release()
        yield fixture


ROWS = {
    "c": ("C, 30 deep", "flame", lambda: released("deep30", seconds=600)),
    "python": ("Python, 30 deep", "python-flame", lambda: released(
        os.environ.get("YRT_PYTHON", "/usr/bin/python3"),
        os.path.join(yrt.SOURCE, "fixtures", "python", "recursion.py"), 600, 30, 0, seconds=None)),
    "java": ("Java, 40 deep", "java-flame", lambda: java.Java("frames", 60, options=[
        "-Dframes.only=recursion", "-Dframes.depth=40", "-XX:-Inline"])),
}


def ours(view, pid, rate):
    run = yrt.Run(view, "-p", pid, "-d", SETTLED + LOOK + 1, "-F", rate).sampling()
    time.sleep(SETTLED)
    ns, _ = watch(run, LOOK)
    stats = run.result().expect().stats
    return ns / 1000 / (stats["samples"] * LOOK / stats["duration_s"]), stats["frames"] / stats["samples"]


def compare(row, at):
    name, view, start = ROWS[row]
    cpu = max(os.sched_getaffinity(0))
    with start() as target:
        subprocess.run(["taskset", "-a", "-c", "-p", str(cpu), str(target.pid)], stdout=subprocess.DEVNULL, check=True)
        undisturbed(target.pid)
        for rate in RATES:
            turns = [(*ours(view, target.pid, rate), otel.us_a_run(at, rate, cpu, PEER_READY_S, LOOK))
                     for _ in range(TURNS)]
            share = statistics.median(us / peer for us, _, peer in turns)
            print(f"{'ok  ' if share <= LIMIT else 'over'} {name}, {rate} Hz: {share:.2f} of the peer's time a sample, "
                  f"limit {LIMIT}; {', '.join(f'{us:.2f} of {peer:.2f} us' for us, _, peer in turns)}; "
                  f"{turns[0][1]:.0f} frames, load {os.getloadavg()[0]:.0f}", flush=True)


if __name__ == "__main__":
    if otel.missing():
        sys.exit(otel.missing())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # no target stays behind that runs before all others
    with bpf_statistics(), otel.collector() as (address, _):
        for wanted in sys.argv[1:] or ROWS:
            compare(wanted, address)
