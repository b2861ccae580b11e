#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a profile of a running process against its code: see README.md."""

import argparse
import os
import re
import subprocess
import sys
import tempfile

import peers
import pprof
import shares
import views
from edges import GOOD, OPEN, Checker
from machine import Process


def default_yrt():
    """That of the environment, of this tree's build, or of the system."""
    built = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "release", "yrt")
    return os.environ.get("YRT") or (os.path.realpath(built) if os.path.exists(built) else "yrt")


def sample(args, out, seconds=None):
    """Runs yrt on the process; what it said on stderr."""
    command = [
        args.yrt,
        "flame",
        "-p",
        str(args.pid),
        "-d",
        str(seconds or args.seconds),
        "-F",
        str(args.rate),
        "--max-cpu",
        "0",
        "--lines",
        "--addresses",
        "--no-inline",
        "--annotate",
        "-q",
        "-f",
        "pprof",
        "-o",
        out,
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=args.seconds + 120)
    if run.returncode not in (0, 6):
        sys.exit(f"oracle: {' '.join(command)} ended with {run.returncode}: {run.stderr}")
    return run.stderr


def show_stack(stack):
    return ";".join(f.name for f in stack.frames)[-400:]


def report(findings, most=12):
    """Lines for people."""
    languages = sorted({language for language, _ in findings.samples})
    yield (
        f"{findings.stacks} samples, {findings.truncated} of them truncated; {findings.checked()} edges,"
        f" {len(findings.seen)} distinct"
    )
    for language in languages:
        counts = {
            verdict: findings.samples[language, verdict]
            for verdict in (*GOOD, *OPEN, "fault")
            if findings.samples[language, verdict]
        }
        yield f"  {language:8s} " + ", ".join(f"{verdict} {count}" for verdict, count in counts.items())
    for (language, why), count in findings.faults.most_common(most):
        yield f"FAULT {language}: {count} samples: {why}"
        yield f"      {show_stack(findings.examples[language, why])}"
    if len(findings.faults) > most:
        yield f"      and {len(findings.faults) - most} more kinds of faults"


def compare_shares(args, path):
    """Samples with yrt and with perf in the same seconds. Lines for people, and whether something is wrong."""
    plain = shares.Plain(args.pid, args.seconds, args.rate)
    watch = shares.Watch(args.pid)
    said = sample(args, path)
    watch.end()
    process, profile = Process(args.pid), pprof.read(path)
    number, wrong = shares.differences(shares.flat(profile, process), plain.flat(process))
    nthreads, threads = shares.thread_differences(profile, watch, args.rate)
    lost = re.search(r"(\d+) lost", said)
    lines = [
        f"  shares   {number} functions compared, {len(wrong)} differ; {nthreads} threads, {len(threads)} differ;"
        f" {lost[1] if lost else 0} samples said to be lost"
    ]
    return lines + [f"FAULT shares: {what}" for what in (*wrong, *threads)], bool(wrong or threads)


def compare_peer(args, path):
    """
    Samples with yrt and with a profiler of the process's language in the same seconds. Lines for people, and whether
    something is wrong.
    """
    def profile():
        sample(args, path)
        return pprof.read(path)
    _, lines, wrong = peers.compare_with_peer(args.pid, Process(args.pid).maps, args.seconds, profile)
    return lines, wrong


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pid", type=int)
    parser.add_argument(
        "--profile", help="pprof's format, of this process, by any profiler (default: yrt samples it now)"
    )
    parser.add_argument("--yrt", default=default_yrt())
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rate", type=int, default=499)
    parser.add_argument(
        "--shares", action="store_true", help="compare flat shares with perf's, threads with the scheduler's CPU time"
    )
    parser.add_argument(
        "--peer",
        action="store_true",
        help="compare functions of Python with py-spy's, of Java with async-profiler's (AP_LOADER: its jar)",
    )
    parser.add_argument(
        "--views", action="store_true", help="check what yrt shows, too: a view of Java, marks in folded stacks"
    )
    parser.add_argument("--all", action="store_true", help="show every kind of fault")
    return parser.parse_args()


def main():
    args = arguments()
    process = Process(args.pid)
    with tempfile.TemporaryDirectory(prefix="oracle-") as directory:
        path, lines, wrong = args.profile, [], False
        if not path:
            path = os.path.join(directory, "profile.pb.gz")
            if args.shares:
                lines, wrong = compare_shares(args, path)
            elif args.peer:
                lines, wrong = compare_peer(args, path)
            else:
                sys.stderr.write(sample(args, path))
            process = Process(args.pid)
        if args.views:
            more, bad = views.check(args.yrt, args.pid, args.seconds, args.rate)
            lines, wrong = lines + more, wrong or bad
        findings = Checker(process).run(pprof.read(path))
    for line in [*report(findings, 1000 if args.all else 12), *lines]:
        print(line)
    sys.exit(1 if findings.faults or wrong else 0)


if __name__ == "__main__":
    main()
