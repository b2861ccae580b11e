# SPDX-License-Identifier: Apache-2.0
"""
What sampling PUC-Lua costs, all in one run: BPF time a Lua frame in units of one 16-byte read (unit.py), how much
slower the program runs at 99 Hz (pairs.py) beside ticks that walk nothing, time to the first sample, memory.
YRT_PUC_LUA: one interpreter instead of the system's.
"""

import json
import os
import shutil
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import pairs
import unit
import yrt
from bpf_cost import cost, undisturbed

SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "lua", "plain_depth.lua")
ROUNDS, DEPTHS, FRAME_LIMIT, FIRST_MS, RSS_MB = 3, (20, 120), 4, 150, 60
BLOCKS, TIMES, AMOUNT, RATE, SLOWER = 8, 12, 20, 99, 0.01
CALLS = {
    "a function that calls itself": [],
    "pcall each time": ["pcall"],
    "two functions in turn": ["pair"],
    "another function each time": ["many"],
}


def verdict(good, text):
    print(f"{'ok  ' if good else 'over'} {text}", flush=True)
    return not good


def sampled(lua, depth, words):
    """Medians: (units a sample, frames a sample), and the last statistics."""
    with yrt.Fixture(lua, SCRIPT, 600, depth, *words, seconds=None) as f:
        f.release()
        undisturbed(f.pid)
        runs = []
        for _ in range(ROUNDS):
            before = unit.measure()
            ns, frames, stats = cost("lua-flame", f.pid, 999, 2)
            runs.append((ns / statistics.mean((before, unit.measure())), frames, stats))
    return statistics.median(r[0] for r in runs), statistics.median(r[1] for r in runs), runs[-1][2]


def frames(lua):
    over = False
    for what, words in CALLS.items():
        points = [sampled(lua, depth, words) for depth in DEPTHS]
        slope = (points[1][0] - points[0][0]) / (points[1][1] - points[0][1])
        over |= verdict(
            slope <= FRAME_LIMIT,
            f"{slope:.2f} units a frame of {what}, limit {FRAME_LIMIT}; {points[0][0]:.1f} units a sample of "
            f"{points[0][1]:.1f} frames, {points[1][0]:.1f} of {points[1][1]:.1f}",
        )
    stats = points[0][2]
    over |= verdict(
        stats["first_sample_ms"] <= FIRST_MS, f"first sample after {stats['first_sample_ms']:.0f} ms, limit {FIRST_MS}"
    )
    return over | verdict(
        stats["sampling_rss_kb"] <= RSS_MB * 1024, f"{stats['sampling_rss_kb'] / 1024:.1f} MB of memory, limit {RSS_MB}"
    )


def amount(fixture):
    fixture.process.stdin.write(f"{AMOUNT}\n")
    fixture.process.stdin.flush()
    return json.loads(fixture.process.stdout.readline())


def slow_down(lua):
    over = False
    with yrt.Fixture(lua, SCRIPT, 0, 30, seconds=None) as f, tempfile.TemporaryDirectory() as directory:
        f.release()
        besides = {
            "bare ticks": (None, pairs.Beside(os.path.join(yrt.BUILD, "yrt-ticks"), RATE)),
            "yrt": (
                SLOWER,
                pairs.Beside(
                    yrt.YRT,
                    "lua-flame",
                    "-p",
                    f.pid,
                    "-F",
                    RATE,
                    "-d",
                    0,
                    "-q",
                    "-o",
                    os.path.join(directory, "x.folded"),
                ),
            ),
        }
        blocks = {name: [] for name in besides}
        for _ in range(BLOCKS):
            for name, (_, beside) in besides.items():
                blocks[name].append(pairs.block(lambda: pairs.typical(lambda: amount(f), TIMES), beside)["cpu_s"])
    for name, (limit, _) in besides.items():
        word, text = pairs.judge(blocks[name], limit)
        over |= word == "over"
        print(f"{word} {name} {RATE} Hz: CPU time {text}", flush=True)
    return over


def main():
    chosen = os.environ.get("YRT_PUC_LUA")
    over = False
    for lua in [chosen] if chosen else [shutil.which(f"lua{v}") for v in ("5.1", "5.2", "5.3", "5.4")]:
        print(lua, flush=True)
        over |= frames(lua)
        over |= slow_down(lua)
    sys.exit(over)


main()
