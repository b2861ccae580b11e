# SPDX-License-Identifier: Apache-2.0
"""
What watching functions and requests costs the target: its rate with yrt at work and without, in turns, as a ratio. A
function of Python that is called 1,000 times a second of its CPU time, another that is called all the time, and
requests of nginx; beside that, what sys.setprofile() takes that looks for the one function, and bpftrace where Python
has USDT probes.

    bench_functions.py [ROUNDS]
"""

import os
import re
import signal
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import servers
import yrt

SECONDS = 2
CALLS = 1000  # a second of the program's CPU time, which has what is done to it in it
LOOP = f"""
import json, os, sys, time
seen = 0
def work(n):
    return sum(range(n))
def paced(n):
    return n
def hook(frame, event, argument):
    global seen
    if event == "call" and frame.f_code is paced.__code__:
        seen += 1
print(json.dumps({{"pid": os.getpid()}}), flush=True)
for line in sys.stdin:
    seconds, profiled = line.split()
    sys.setprofile(hook if profiled == "profiled" else None)
    begin = time.process_time()
    end, n, calls, now = begin + float(seconds), 0, 0, begin
    while now < end:
        work(2000)
        n += 1
        now = time.process_time()
        if (now - begin) * {CALLS} > calls:
            paced(n)
            calls += 1
    sys.setprofile(None)
    print(json.dumps({{"n": n, "calls": calls, "seen": seen}}), flush=True)
"""
PROGRAM = "usdt:%s:python:function__entry /str(arg1) == \"paced\"/ { @n = count(); }"


def python_rate(program, how="plain"):
    program.stdin.write(f"{SECONDS} {how}\n")
    program.stdin.flush()
    return int(re.search(r"\d+", program.stdout.readline())[0]) / SECONDS


def wrk_rate(nginx):
    out, _ = servers.start_wrk("", nginx.port, SECONDS, 8, "/json").communicate()
    return float(re.search(r"Requests/sec:\s*([\d.]+)", out)[1])


def pairs(what, rounds, without, beside):
    """Pairs of a rate without and one beside it, in turns. beside() returns a rate and what is said of it."""
    found = []
    for _ in range(rounds):
        alone = without()
        rate, said = beside()
        found.append((rate / alone, alone, rate))
    middle = statistics.median(f[0] for f in found)
    print(f"{what}: {middle:.3f} of its rate ({min(f[0] for f in found):.3f} to {max(f[0] for f in found):.3f}); "
          f"{found[-1][1]:.0f} a second without, {found[-1][2]:.0f} with{said}", flush=True)


def ratio(what, rounds, rate, *args):
    """The same of yrt."""
    def beside():
        run = yrt.Run(*args, "-d", 60).sampling()
        with_yrt = rate()
        run.interrupt()
        return with_yrt, ": " + run.result().expect().stderr.strip().splitlines()[-1]
    pairs(what, rounds, rate, beside)


def has_usdt(program):
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=False).stdout
    return "function__entry" in notes


def bpftrace(program, rate):
    """With bpftrace at the same function. Where it counts none it could not attach, and the rate says nothing."""
    command = ["bpftrace", "-p", str(program.pid), "-e", PROGRAM % os.readlink(f"/proc/{program.pid}/exe")]
    peer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    peer.stdout.readline()  # "Attaching"
    found = rate()
    peer.send_signal(signal.SIGINT)
    return found, ": it counted " + " ".join(peer.communicate()[0].split())


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    python = os.environ.get("YRT_PYTHON", "/usr/bin/python3")
    command = [python, "-c", LOOP]
    with yrt.Program(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        pid = re.search(r"\d+", program.stdout.readline())[0]

        def rate():
            return python_rate(program)

        for command, function in (("probe", "paced"), ("latency", "paced"), ("probe", "work")):
            ratio(f"{command} -e python:__main__.{function}", rounds, rate,
                  command, "-e", f"python:__main__.{function}", "-p", pid)
        pairs("sys.setprofile()", rounds, rate, lambda: (python_rate(program, "profiled"), ""))
        if has_usdt(python):
            pairs("bpftrace, USDT", rounds, rate, lambda: bpftrace(program, rate))
        else:
            print(f"bpftrace, USDT: {python} has no such probes")
    with servers.Nginx(load=0, template="requests.conf.in") as nginx:
        ratio("requests of nginx", rounds, lambda: wrk_rate(nginx), "requests", "-p", nginx.master.pid)


main()
