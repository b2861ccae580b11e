# SPDX-License-Identifier: Apache-2.0
"""
What watching functions and requests costs the target: its rate with yrt at work and without, in turns, as a ratio.

    bench_functions.py [ROUNDS]
"""

import os
import re
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import servers
import yrt

SECONDS = 2
LOOP = """
import json, os, sys, time
def work(n):
    return sum(range(n))
def paced(n):
    return n
print(json.dumps({"pid": os.getpid()}), flush=True)
for line in sys.stdin:
    end, n = time.perf_counter() + float(line), 0
    while time.perf_counter() < end:
        work(2000)
        n += 1
        if n % 50 == 0:
            paced(n)
    print(json.dumps({"n": n}), flush=True)
"""


def python_rate(program):
    program.stdin.write(f"{SECONDS}\n")
    program.stdin.flush()
    return int(re.search(r"\d+", program.stdout.readline())[0]) / SECONDS


def wrk_rate(nginx):
    out, _ = servers.start_wrk("", nginx.port, SECONDS, 8, "/json").communicate()
    return float(re.search(r"Requests/sec:\s*([\d.]+)", out)[1])


def ratio(what, rounds, rate, *args):
    """Pairs of a rate without and one with yrt, each pair in a run of its own."""
    found = []
    for _ in range(rounds):
        without = rate()
        run = yrt.Run(*args, "-d", 60).sampling()
        with_yrt = rate()
        run.interrupt()
        result = run.result().expect()
        found.append((with_yrt / without, without, with_yrt))
    middle = statistics.median(f[0] for f in found)
    print(f"{what}: {middle:.3f} of its rate ({min(f[0] for f in found):.3f} to {max(f[0] for f in found):.3f}); "
          f"{found[-1][1]:.0f} a second without, {found[-1][2]:.0f} with: {result.stderr.strip().splitlines()[-1]}")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    command = [os.environ.get("YRT_PYTHON", "/usr/bin/python3"), "-c", LOOP]
    with yrt.Program(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        pid = re.search(r"\d+", program.stdout.readline())[0]
        for what in ("paced", "work"):
            ratio(f"probe -e python:__main__.{what}", rounds, lambda: python_rate(program),
                  "probe", "-e", f"python:__main__.{what}", "-p", pid)
        ratio("latency -e python:__main__.paced", rounds, lambda: python_rate(program),
              "latency", "-e", "python:__main__.paced", "-p", pid)
    with servers.Nginx(load=0, template="requests.conf.in") as nginx:
        ratio("requests of nginx", rounds, lambda: wrk_rate(nginx), "requests", "-p", nginx.master.pid)


main()
