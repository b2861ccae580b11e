# SPDX-License-Identifier: Apache-2.0
"""
What wall-flame and lock-flame cost a JVM whose threads wait tens of thousands of times a second, beside async-profiler's
events of these names at their defaults, in turns: how much more time a round takes, by the clock and by the CPU time of
the process. Without async-profiler (async_profiler.py) yrt is measured alone, and the comparison is skipped.

	bench_java_wait.py [PAIRS]	YRT_BLOCKS: how many
"""

import os
import subprocess
import sys
import time

from pairs import Beside, block, judge, typical, yrt  # which makes what follows known
import async_profiler
import java

BLOCKS, WINDOWS, WINDOW_S = int(os.environ.get("YRT_BLOCKS", "8")), 5, 0.2
SHARE = 1 / 3  # of its cost
KINDS = ("wall", "lock")


class Agent:
    """async-profiler with one event, from outside."""

    def __init__(self, jar, pid, event):
        self.jar, self.pid, self.event = jar, pid, event

    def command(self, *words):
        subprocess.run([*java.words(), "-jar", self.jar, "profiler", *words, str(self.pid)], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        self.command("start", "-e", self.event)

    def __exit__(self, *_):
        self.command("stop", "-o", "collapsed", "-f", "/dev/null")


def round_ns(jvm):
    """What a round takes now."""
    def window():
        before = jvm.ask()
        time.sleep(WINDOW_S)
        after = jvm.ask()
        rounds = max(1, after["rounds"] - before["rounds"])
        return {"of the clock": (after["ns"] - before["ns"]) / rounds,
                "of its CPU time": (after["cpu_ns"] - before["cpu_ns"]) / rounds}
    return typical(window, WINDOWS)


def main():
    jar, failed = async_profiler.jar(), False
    with java.Java("contended", *sys.argv[1:], timeout=900) as jvm:
        tools = {f"yrt {kind}-flame": Beside(yrt.YRT, f"{kind}-flame", "-p", jvm.pid, "-d", 0, "-q", "-f", "folded",
                                             "-o", "/dev/null") for kind in KINDS}
        if jar:
            tools.update({f"async-profiler {kind}": Agent(jar, jvm.pid, kind) for kind in KINDS})
        found = {name: [] for name in tools}
        for _ in range(BLOCKS):
            for name, tool in tools.items():
                found[name].append(block(lambda: round_ns(jvm), tool))
        alone = round_ns(jvm)
    print(f"{1e9 / alone['of the clock']:.0f} rounds a second alone")
    for key in alone:
        for name, blocks in found.items():
            print(f"     a round takes {judge([b[key] for b in blocks])[1]} {key} beside {name}", flush=True)
        for kind in KINDS if jar else ():
            pairs = zip(found[f"yrt {kind}-flame"], found[f"async-profiler {kind}"])
            word, text = judge([ours[key] - theirs[key] * SHARE for ours, theirs in pairs], 0)
            failed |= word == "over"
            print(f"{word} {kind}: yrt's cost less a third of async-profiler's: {text} {key}")
    if not jar:
        print("skip the comparison: there is no async-profiler")
    return failed


if __name__ == "__main__":
    sys.exit(main())
