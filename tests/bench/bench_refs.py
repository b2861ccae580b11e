# SPDX-License-Identifier: Apache-2.0
"""
Seconds of CPU per million objects of python-heap and python-refs, and their memory, beside a walk with the gc module in
the process, which stops the program meanwhile. Also how many objects are torn while the program replaces them at full
speed.

usage: bench_refs.py [MILLIONS]    (1)
"""

import json
import os
import re
import resource
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
YRT = os.environ.get("YRT") or os.path.join(SOURCE, "build", "release", "yrt")
PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")
TARGET = """
import gc, json, sys, time
class Record:
    def __init__(self, number):
        self.number, self.name, self.points = number, "n%d" % number, [(number, number + .5), {"k": number}]
n = int(sys.argv[1])
cache = {i: Record(i) for i in range(n)}
begin = time.process_time()
seen, wave = set(), [m for m in sys.modules.values()]
count = size = 0
while wave:
    following = []
    for o in wave:
        if id(o) not in seen and o is not seen and o is not wave and o is not following:
            seen.add(id(o))
            count += 1
            size += sys.getsizeof(o)
            following += gc.get_referents(o)
    wave = following
print(json.dumps([count, time.process_time() - begin]), flush=True)
del seen, wave, following
sys.stdin.readline()
while True:
    for i in range(n):
        cache[i] = Record(i)
"""
RECORD_OBJECTS = 7


def measure(*args):
    """Objects, torn ones, seconds of CPU, MiB at most"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen([YRT, *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as p:
        text = p.stderr.read()
        _, _, used = os.wait4(p.pid, 0)
        p.returncode = 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = re.search(r"yrt: (\d+) objects, .* (\d+) torn", text)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return int(found[1]), int(found[2]), seconds, used.ru_maxrss / 1024


def main():
    n = int(float(sys.argv[1] if len(sys.argv) > 1 else 1) * 1e6 / RECORD_OBJECTS)
    command = [PYTHON, "-c", TARGET, str(n)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as target:
        count, seconds = json.loads(target.stdout.readline())
        print(f"gc in the process, stopped: {seconds / count * 1e6:5.2f} s of CPU per million objects ({count})")
        for state in ("still", "at full speed"):
            for command in ("python-heap", "python-refs"):
                objects, torn, seconds, mib = measure(command, "-p", str(target.pid), "--memory", "4096")
                print(f"{command}, {state}: {seconds / objects * 1e6:5.2f} s of CPU per million objects ({objects}), "
                      f"{torn} torn, {mib:.0f} MiB")
            target.stdin.write("\n")
            target.stdin.flush()
        target.kill()


main()
