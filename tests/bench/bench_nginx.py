# SPDX-License-Identifier: Apache-2.0
"""
What sampling, and the stacks of waits, take from nginx under full load: requests a second with and without, in
alternating pairs, the median of the ratios. And what yrt itself needs meanwhile.
"""

import os
import re
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import servers
import yrt

PAIRS, SECONDS = 10, 5
LIMITS = {("lua-flame", "-F", 99): 0.01, ("lua-flame", "-F", 999): 0.03, ("lua-off-flame",): 0.03}
RSS_KB, MAPS_KB, ARMED_MS = 30 * 1024, 16 * 1024, 100


def requests_per_second(nginx):
    out = subprocess.run(
        [
            "wrk",
            "-t1",
            "-c4",
            f"-d{SECONDS}",
            "-s",
            os.path.join(yrt.SOURCE, "fixtures", "nginx", "load.lua"),
            f"http://127.0.0.1:{nginx.port}/",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1))


def loaded(nginx, command):
    run = yrt.Run(*command, "-p", nginx.workers()[0], "-d", SECONDS + 30).sampling()
    speed = requests_per_second(nginx)
    run.interrupt()
    return speed, run.result().expect()


failed = False
with servers.Nginx(load=3) as nginx:
    nginx.wrk.wait()
    requests_per_second(nginx)
    for command, limit in LIMITS.items():
        losses = []
        for i in range(PAIRS):
            if i % 2:
                free = requests_per_second(nginx)
                (speed, result) = loaded(nginx, command)
            else:
                (speed, result) = loaded(nginx, command)
                free = requests_per_second(nginx)
            losses.append(1 - speed / free)
        loss, stats = statistics.median(losses), result.stats
        pairs = f"pairs from {min(losses):.2%} to {max(losses):.2%}"
        beside = " ".join(map(str, command))
        checks = {
            f"nginx slows by {loss:.2%} beside {beside} ({pairs}), limit {limit:.0%}": loss <= limit,
            f"RSS {stats['sampling_rss_kb']} kB, limit {RSS_KB}": stats["sampling_rss_kb"] <= RSS_KB,
            f"BPF maps {stats['map_kb']} kB, limit {MAPS_KB}": stats["map_kb"] <= MAPS_KB,
            f"armed after {stats['armed_ms']:.0f} ms, limit {ARMED_MS}": stats["armed_ms"] <= ARMED_MS,
            f"lost {sum(stats['lost'].values())} of {stats['samples']}": not sum(stats["lost"].values()),
        }
        for line, good in checks.items():
            failed |= not good
            print(f"{'ok  ' if good else 'over'} {line}", flush=True)
sys.exit(failed)
