# SPDX-License-Identifier: Apache-2.0
"""
How much slower a program becomes beside another, on a machine that is never quiet: blocks of alone, beside, beside,
alone, in which a drift of the machine cancels, and an interval for the median of the blocks; each measure is the median
of many short ones, which a neighbour of the machine disturbs one by one. Not a benchmark itself.
"""

import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import yrt

LEVEL = 0.95


class Beside:
    """A program that runs until the with statement ends."""

    def __init__(self, *command):
        self.command = [str(word) for word in command]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1.5)
        assert self.process.poll() is None, f"{self.command} ended with {self.process.returncode}"

    def __exit__(self, *_):
        yrt.stop(self.process, 2)


def typical(measure, times):
    """The median of each key of what measure() gives, of so many times."""
    found = [measure() for _ in range(times)]
    return {key: statistics.median(f[key] for f in found) for key in found[0]}


def block(measure, beside):
    """The result of a block for each key of what measure() gives: beside / alone - 1."""
    runs = [measure()]
    with beside:
        runs += [measure(), measure()]
    runs.append(measure())
    return {key: (runs[1][key] + runs[2][key]) / (runs[0][key] + runs[3][key]) - 1 for key in runs[0]}


def interval(values):
    """
    The confidence interval of the median by order statistics, whatever the distribution is: with a probability of LEVEL
    at least the true median is between. None: there are too few values for one.
    """
    ordered, n, drop, tail = sorted(values), len(values), 0, 0.0
    while drop < n // 2:
        tail += math.comb(n, drop) / 2 ** n
        if 2 * tail > 1 - LEVEL:
            break
        drop += 1
    return (ordered[drop - 1], ordered[n - drop]) if drop else None


def judge(values, limit=None):
    """(word, text): is the median below the limit, over it, or is that not settled?"""
    middle, between = statistics.median(values), interval(values)
    text = f"{middle:+.2%}" + (
        f" ({LEVEL:.0%}: {between[0]:+.2%} to {between[1]:+.2%}; {len(values)} blocks)"
        if between
        else f" of {len(values)} blocks, too few for an interval"
    )
    if limit is None:
        return "    ", text
    if not between or between[0] <= limit < between[1]:
        return "open", f"{text}, limit {limit:.0%}: not settled"
    return ("over" if between[0] > limit else "ok  "), f"{text}, limit {limit:.0%}"


def slower(command, pid, work, limits, blocks):
    """
    Prints how much more CPU time work() takes beside `yrt command` at each rate, and whether that is below the rate's
    limit (None: it has none). True: it is over one.
    """
    over, found = False, {rate: [] for rate in limits}
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "x.folded")
        for _ in range(blocks):
            for rate, values in found.items():
                beside = Beside(yrt.YRT, command, "-p", pid, "-F", rate, "-d", 0, "-q", "-o", out)
                values.append(block(work, beside)["cpu_s"])
    for rate, values in found.items():
        word, text = judge(values, limits[rate])
        over |= word == "over"
        print(f"{word} {rate} Hz: CPU time {text}", flush=True)
    return over
