# SPDX-License-Identifier: Apache-2.0
"""
What off-flame (with --wakers, too) and wall-flame cost a program that does nothing but switch, and one that computes so
much in between that it switches some 400,000 times a second: its switches in a second of its CPU time, which has the
probes' in it, beside yrt and alone, in blocks in turn. The same beside offcputime, if there is one (Debian's
libbpf-tools).
"""

import json
import shutil
import statistics
import sys
import time

from pairs import Beside, yrt

LEAST = 0.8
BLOCKS, SPAN_S = 4, 1.5
CYCLES = 5500  # that each thread computes: 400,000 switches a second
PEER = shutil.which("offcputime")


def ask(fixture):
    fixture.process.stdin.write("\n")
    fixture.process.stdin.flush()
    told = json.loads(fixture.process.stdout.readline())
    return told["rounds"], told["cpu_s"]


def rate(fixture):
    rounds, cpu = ask(fixture)
    time.sleep(SPAN_S)
    then = ask(fixture)
    return (then[0] - rounds) / (then[1] - cpu)


def measure(fixture, *command):
    words = (yrt.YRT, *command, "-p", fixture.pid, "-d", 60, "-f", "folded", "-o", "/dev/null")
    if command[0].startswith("/"):
        words = command
    ratios, alone = [], []
    for _ in range(BLOCKS):
        before = rate(fixture)
        with Beside(*words):
            beside = rate(fixture)
        alone += [before, rate(fixture)]
        ratios.append(beside / statistics.mean(alone[-2:]))
    ratio = statistics.median(ratios)
    print(
        f"{statistics.median(alone):.0f} switches a CPU second alone, {ratio:.3f} of that beside {' '.join(map(str, command))}"
        f" ({', '.join(f'{r:.3f}' for r in ratios)})"
    )
    return ratio


def measure_all(cycles):
    with yrt.Fixture("switches", cycles, seconds=600) as fixture:
        fixture.release()
        time.sleep(0.5)
        if PEER:
            measure(fixture, PEER, "-p", fixture.pid, 60)
        return min(
            measure(fixture, *command) for command in (("off-flame",), ("off-flame", "--wakers"), ("wall-flame",))
        )


def main():
    return min(measure_all(0), measure_all(CYCLES)) < LEAST


if __name__ == "__main__":
    sys.exit(main())
