# SPDX-License-Identifier: Apache-2.0
"""
What sampling at 99 Hz takes from Envoy: CPU time of a request with its Lua filters, on one connection, beside yrt and without.
Blocks of short rounds, as pairs.py has them.

	bench_envoy.py [BLOCKS]
"""

import os
import re
import subprocess
import sys

import pairs
import yrt

BLOCKS, ROUNDS, SECONDS, LIMIT = 20, 3, 1, 0.01


def cpu_of_requests(envoy):
    """Seconds of Envoy's CPU time that a request needs, in one round."""
    before = yrt.cpu_seconds(envoy.pid)
    out = subprocess.run(["wrk", "-t1", "-c1", f"-d{SECONDS}", "-s", os.path.join(yrt.SOURCE, "fixtures", "envoy", "load.lua"),
                          f"http://127.0.0.1:{envoy.port}/"], capture_output=True, text=True, check=True).stdout
    return {"cpu": (yrt.cpu_seconds(envoy.pid) - before) / int(re.search(r"(\d+) requests in", out)[1])}


def main():
    found = []
    with yrt.Envoy(yrt.envoy_program(), load=0) as envoy:
        beside = pairs.Beside(yrt.YRT, "flame", "-p", envoy.pid, "-d", 600, "-q", "-f", "folded", "-o", "/dev/null")
        pairs.typical(lambda: cpu_of_requests(envoy), 2 * ROUNDS)  # Envoy's traces are compiled
        for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS):
            found.append(pairs.block(lambda: pairs.typical(lambda: cpu_of_requests(envoy), ROUNDS), beside)["cpu"])
            print(f"     {found[-1]:+.2%}", flush=True)
    word, text = pairs.judge(found, LIMIT)
    print(f"{word} CPU time of a request of Envoy at 99 Hz: {text}")
    sys.exit(word == "over")


main()
