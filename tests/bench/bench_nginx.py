# SPDX-License-Identifier: Apache-2.0
"""
What sampling, and the stacks of waits, take from nginx under full load: requests a second, and requests in a second of
the worker's CPU time, in blocks of alone, beside, beside, alone. And what yrt itself needs meanwhile. All of it runs
at a high priority, so that neighbours of the machine take less of it.

	bench_nginx.py [COMMAND...]	YRT_BLOCKS: how many
"""

import contextlib
import os
import re
import subprocess
import sys

from pairs import block, judge, yrt  # which makes servers known
import servers

BLOCKS, SECONDS = int(os.environ.get("YRT_BLOCKS", "8")), 2
LIMITS = {
    ("lua-flame", "-F", 99): 0.01,
    ("lua-flame", "-F", 999): 0.03,
    ("lua-off-flame",): 0.03,
    ("off-flame",): 0.03,
}
RSS_KB, MAPS_KB, ARMED_MS = 30 * 1024, 16 * 1024, 100
PRIORITY = -15


def cpu_ns(pid):
    """CPU time of its only thread."""
    return int(yrt.read(f"/proc/{pid}/schedstat").split()[0])


def rates(nginx):
    """The time that one request takes, in seconds of the clock and of the worker's CPU time."""
    pid = nginx.workers()[0]
    load = os.path.join(yrt.SOURCE, "fixtures", "nginx", "load.lua")
    words = ["wrk", "-t1", "-c4", f"-d{SECONDS}", "-s", load, f"http://127.0.0.1:{nginx.port}/"]
    before = cpu_ns(pid)
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    n = int(re.search(r"(\d+) requests in", out).group(1))
    return {
        "of the clock": 1 / float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1)),
        "of its CPU time": (cpu_ns(pid) - before) * 1e-9 / n,
    }


@contextlib.contextmanager
def watched(nginx, command, results):
    run = yrt.Run(*command, "-p", nginx.workers()[0], "-d", 60).sampling()
    yield
    run.interrupt()
    results.append(run.result().expect())


def measure(nginx, command, limit):
    """Prints it. True: something is over its limit."""
    results, name = [], " ".join(map(str, command))
    blocks = [block(lambda: rates(nginx), watched(nginx, command, results)) for _ in range(BLOCKS)]
    words = []
    for key in blocks[0]:
        word, text = judge([b[key] for b in blocks], limit)
        words.append(word)
        print(f"{word} beside {name} a request takes {text} {key}", flush=True)
    stats = results[-1].stats
    checks = {
        f"RSS {stats['sampling_rss_kb']} kB, limit {RSS_KB}": stats["sampling_rss_kb"] <= RSS_KB,
        f"BPF maps {stats['map_kb']} kB, limit {MAPS_KB}": stats["map_kb"] <= MAPS_KB,
        f"armed after {stats['armed_ms']:.0f} ms, limit {ARMED_MS}": stats["armed_ms"] <= ARMED_MS,
        f"lost {sum(stats['lost'].values())} of {stats['samples']}": not sum(stats["lost"].values()),
    }
    for line, good in checks.items():
        print(f"{'ok  ' if good else 'over'} {line}", flush=True)
    if "off" in stats:
        off = stats["off"]
        print(f"     {off['waits']} waits in {stats['duration_s']:.1f} s, {off['waits_without_stack']} without a stack")
    return "over" in words or not all(checks.values())


def go_first():
    """As far as that is allowed. Where sessions have groups of their own (autogroup), priorities count among groups."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
    with contextlib.suppress(OSError):
        os.setsid()
    with contextlib.suppress(OSError):
        with open("/proc/self/autogroup", "w") as group:
            group.write(str(PRIORITY))


def main():
    go_first()
    with servers.Nginx(load=2) as nginx:
        nginx.wrk.wait()
        rates(nginx)
        chosen = {c: limit for c, limit in LIMITS.items() if not sys.argv[1:] or c[0] in sys.argv[1:]}
        return any([measure(nginx, command, limit) for command, limit in chosen.items()])


if __name__ == "__main__":
    sys.exit(main())
