# SPDX-License-Identifier: Apache-2.0
"""
What `yrt flame -a` costs beside some 200 processes, most of them idle (tests/e2e/crowd.py), and beside 2,000 that
sleep: CPU time, memory, what was lost or cut. Both are in a pid namespace of their own: what else runs on the machine
is not sampled. Most of it is paid once, when yrt starts and first sees a program; what each further second costs is the
difference of two runs.

First beside the OpenTelemetry eBPF profiler, in turns, where it can be had (otel.py), with another 200 processes. It
sees the first pid namespace only, so both sample all of the machine, and both are measured from outside.

	YRT=build/release/yrt YRT_BUILD=build/release YRT_SOURCE=. python3 tests/bench/bench_whole.py [SECONDS]
"""

import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import crowd
import otel
import yrt
from bpf_cost import bpf_statistics, programs

RATE = 19
SECONDS = 60
TURNS = 3
SHORT = 15  # a run that has little but what is paid once
LIMITS = {"cpu_percent": 1, "max_rss_kb": 80 << 10}
SLEEPERS = """
import os, time
for i in range(2000):
    if os.fork() == 0:
        time.sleep(i / 2000)
        while True: time.sleep(1)
print(flush=True)
time.sleep(1000)
"""


def measure(what, seconds, cache):
    result = yrt.run(
        "flame", "-a", "-d", seconds, "-F", RATE, env={"YRT_CACHE_DIR": cache}, timeout=seconds + 60
    ).expect()
    st, over = result.stats, False
    for key, limit in LIMITS.items():
        over |= st[key] > limit
        print(f"{'over' if st[key] > limit else 'ok  '} {what}: {key} {st[key]:.2f}, limit {limit}")
    print(
        f"     {st['samples']} samples, {st['processes']} processes, {st['map_kb']} kB of maps, armed after"
        f" {st['armed_ms']:.0f} ms; lost {st['lost']}; cut {st['truncated']}",
        flush=True,
    )
    return over, st["cpu_percent"] / 100 * seconds


def spent(pid):
    """Seconds of CPU time: its own, and of its BPF programs, which run in others."""
    fields = yrt.read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    own = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    return own + sum(ns for ns, _ in programs(pid, None).values()) / 1e9


def watched(process, seconds):
    """
    From the moment when it samples: (CPU seconds until then; CPU in percent; the same after SHORT seconds; most memory
    in MB)
    """
    start = spent(process.pid)
    time.sleep(SHORT)
    once = spent(process.pid)
    time.sleep(seconds - SHORT)
    total, most = spent(process.pid), re.search(r"VmHWM:\s+(\d+)", yrt.read(f"/proc/{process.pid}/status"))[1]
    return start, 100 * (total - start) / seconds, 100 * (total - once) / (seconds - SHORT), int(most) / 1024


def ours(seconds, cache):
    run = yrt.Run("flame", "-a", "-d", seconds + 5, "-F", RATE, env={"YRT_CACHE_DIR": cache}).sampling()
    found = watched(run.process, seconds)
    run.result(seconds + 60).expect()
    return found


def theirs(seconds, at, store):
    store.requests.clear()
    with otel.profiler(at, RATE) as process:
        found = watched(process, seconds)
    assert store.requests, "the peer has sent nothing"
    return found


def beside_peer(seconds):
    if otel.missing():
        print(f"     {otel.missing()}: not compared", flush=True)
        return
    figures = {"yrt": [], "OpenTelemetry": []}
    with bpf_statistics(), tempfile.TemporaryDirectory() as cache, otel.collector() as (at, store), crowd.Crowd():
        ours(SHORT + 1, cache)  # fills the cache; the peer keeps none
        for _ in range(TURNS):
            figures["yrt"].append(ours(seconds, cache))
            figures["OpenTelemetry"].append(theirs(seconds, at, store))
    print(f"     200 processes, both, {TURNS} turns of {seconds} s, load {os.getloadavg()[1]:.0f}, medians:")
    for name, turns in figures.items():
        start, percent, later, most = (statistics.median(turn[i] for turn in turns) for i in range(4))
        print(
            f"     {name}: {start:.2f} s of CPU time to start, then {percent:.2f} % of a CPU"
            f" ({', '.join(f'{turn[1]:.2f}' for turn in turns)}), {later:.2f} % after {SHORT} s; {most:.0f} MB",
            flush=True,
        )


def main(seconds):
    over = False
    with tempfile.TemporaryDirectory() as cache:
        with crowd.Crowd():
            for turn in "empty", "filled":
                failed, used = measure(f"200 processes, {turn} cache", seconds, cache)
                over |= failed
            _, once = measure(f"the same for {SHORT} s", SHORT, cache)
            print(
                f"     {once:.2f} s of CPU time in {SHORT} s; each second after that"
                f" {(used - once) / (seconds - SHORT):.2%}"
            )
        group = subprocess.Popen([sys.executable, "-c", SLEEPERS], stdout=subprocess.PIPE, start_new_session=True)
        try:
            group.stdout.readline()
            over |= measure("2,000 that sleep", seconds, cache)[0]
        finally:
            os.killpg(group.pid, signal.SIGKILL)
            group.wait()
    return over


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    if os.getpid() != 1:
        beside_peer(wanted)
        os.execvp("unshare", ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv])
    sys.exit(main(wanted))
