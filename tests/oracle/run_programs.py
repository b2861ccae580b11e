#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Runs programs of the catalogue and the oracle on each: run_programs.py [--seconds N] [--rate HZ] [NAME or LANGUAGE]...
"""

import argparse
import collections
import contextlib
import datetime
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import oracle
import pprof
import stability
import views
from edges import GOOD, Checker, Findings
from machine import Process
from programs import HERE, PROGRAMS, PYPI

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("YRT_BUILD") or os.path.join(SOURCE, "build", "release")
PLACE = os.path.join(BUILD, "oracle")


def java_home():
    return os.environ.get("JAVA_HOME") or os.path.dirname(
        os.path.dirname(os.path.realpath(shutil.which("javac") or "/usr/bin/javac"))
    )


def prepare(packages):
    """
    Packages of PyPI in an environment of their own if they are wanted, programs/*.java compiled, texts to work on. Done
    once.
    """
    done = os.path.join(PLACE, "ready" if packages else "ready-small")
    sources = [os.path.join(HERE, n) for n in os.listdir(HERE)] + [os.path.join(os.path.dirname(HERE), "programs.py")]
    if os.path.exists(done) and os.path.getmtime(done) > max(map(os.path.getmtime, sources)):
        return
    os.makedirs(os.path.join(PLACE, "classes"), exist_ok=True)
    if packages:
        python = os.path.join(PLACE, "venv", "bin", "python")
        if not os.path.exists(python):
            subprocess.run([sys.executable, "-m", "venv", os.path.join(PLACE, "venv")], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PYPI], check=True)
    subprocess.run([os.path.join(java_home(), "bin", "javac"), "-nowarn", "-g", "-d", os.path.join(PLACE, "classes"),
                    *(s for s in sources if s.endswith(".java"))], check=True)
    include = os.path.join(java_home(), "include")
    subprocess.run(
        [
            "gcc",
            "-O2",
            "-shared",
            "-fPIC",
            "-I",
            include,
            "-I",
            os.path.join(include, "linux"),
            "-o",
            os.path.join(PLACE, "libnatives.so"),
            os.path.join(HERE, "natives.c"),
        ],
        check=True,
    )
    with open(os.path.join(PLACE, "input"), "w") as out:
        out.writelines(f"{i * i} some text {i * 7919 % 1000003} and {i:x}\n" for i in range(400000))
    with open(os.path.join(PLACE, "source.c"), "w") as out:
        out.writelines(
            f"int f{i}(int *a, int n) {{ int s = {i}; for (int i = 0; i < n; i++) {{ if (a[i] % {i + 2}) s += a[i] *"
            f" {i}; else s ^= a[n - i - 1]; switch (s & 7) {{ case 1: s++; case 2: s *= 3; break; case 5: return s;"
            " default: s -= i; } } return s; }\n"
            for i in range(3000)
        )
    with open(done, "w"):
        pass


@contextlib.contextmanager
def running(program):
    """The pid of the program at work."""
    with tempfile.TemporaryDirectory(prefix="oracle-") as directory:
        places = {
            "here": HERE,
            "fixtures": os.path.join(SOURCE, "fixtures"),
            "dir": directory,
            "python": os.path.join(PLACE, "venv", "bin", "python"),
            "java": os.path.join(java_home(), "bin", "java"),
            "classes": os.path.join(PLACE, "classes"),
            "natives": os.path.join(PLACE, "libnatives.so"),
            "input": os.path.join(PLACE, "input"),
            "source": os.path.join(PLACE, "source.c"),
        }
        words, variables = list(program.words), dict(program.env)
        for name, place in places.items():
            words = [w.replace("{" + name + "}", place) for w in words]
            variables = {key: value.replace("{" + name + "}", place) for key, value in variables.items()}
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=directory,
            env={**os.environ, **variables},
            start_new_session=True,
        )
        try:
            if program.stdin:
                process.stdin.write(program.stdin.encode())
                process.stdin.flush()
            time.sleep(program.warm)
            if process.poll() is not None:
                raise RuntimeError(
                    f"it ended with {process.returncode}: {process.stderr.read().decode(errors='replace')[-600:]}"
                )
            yield process.pid
        finally:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def look_at(program, args):
    """(findings of one program, its profile, what its shares say)"""
    with running(program) as pid, tempfile.TemporaryDirectory(prefix="oracle-") as directory:
        args.pid, path, lines = pid, os.path.join(directory, "x.pb.gz"), []
        if args.shares:
            lines, _ = oracle.compare_shares(args, path)
        else:
            oracle.sample(args, path)
        if args.views:
            lines += views.check(args.yrt, pid, args.seconds, args.rate)[0]
        profile = pprof.read(path)
        return Checker(Process(pid)).run(profile), profile, lines


def check(program, args):
    """(findings, lines about shares and stability)"""
    findings, profile, lines = look_at(program, args)
    if args.twice:
        again, second, _ = look_at(program, args)
        lines += [f"FAULT names: {what}" for what in stability.differences(profile, second)]
        findings = total([findings, again])
    return findings, lines


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--yrt", default=oracle.default_yrt())
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rate", type=int, default=999)
    parser.add_argument("--shares", action="store_true", help="as of the oracle")
    parser.add_argument("--views", action="store_true", help="as of the oracle")
    parser.add_argument(
        "--small", action="store_true", help="only programs that need nothing but what the tests install"
    )
    parser.add_argument("--pick", type=int, metavar="N", help="of each language N programs by chance")
    parser.add_argument(
        "--seed",
        default=os.environ.get("YRT_SEED") or str(datetime.date.today()),
        help="of that chance (default: YRT_SEED, or the day)",
    )
    parser.add_argument(
        "--attempts", type=int, default=1, help="look again at a program that has a fault: is it there each time?"
    )
    parser.add_argument("--twice", action="store_true", help="run each twice, and compare the names")
    return parser.parse_args()


def total(all_findings):
    together = Findings()
    for findings in all_findings:
        together.samples.update(findings.samples)
        together.distinct.update(findings.distinct)
        together.stacks += findings.stacks
        together.truncated += findings.truncated
        together.faults.update(findings.faults)
        together.examples.update(findings.examples)
        together.seen |= findings.seen
    return together


def table(found):
    """Lines that say for each language, and of all, what was checked."""
    by_language = collections.defaultdict(list)
    for program, findings in found:
        by_language[program.language].append(findings)
    by_language["all"] = [findings for _, findings in found]
    for language, each in by_language.items():
        sum_ = total(each)
        yield (
            f"{language}: {len(each)} programs, {sum_.stacks} samples, {sum_.truncated} truncated, {sum_.checked()}"
            f" edges: {sum_.checked(GOOD)} proven, {sum_.checked(('fault',))} wrong, the rest open;"
            f" {sum(sum_.distinct.values())} distinct"
        )


def look(program, args, found):
    """Is it without fault?"""
    try:
        findings, lines = check(program, args)
    except (RuntimeError, OSError, SystemExit, subprocess.SubprocessError) as error:
        print(
            f"--- {program.name}: could not be looked at: {error} (package: {program.package or 'of PyPI'})", flush=True
        )
        return False
    found.append((program, findings))
    print(f"--- {program.name}: " + "\n".join([*oracle.report(findings, 6), *lines]), flush=True)
    return not findings.faults and not any(line.startswith("FAULT") for line in lines) and findings.stacks >= 20


def picked(programs, number, seed):
    """So many of each language; each has its turn, whatever the catalogue gains."""
    chance, by_language = random.Random(seed), collections.defaultdict(list)
    for program in programs:
        by_language[program.language].append(program)
    return [p for each in by_language.values() for p in chance.sample(each, min(number, len(each)))]


def main():
    args = arguments()
    wanted = [
        p
        for p in PROGRAMS
        if (not args.names or p.name in args.names or p.language in args.names) and (p.small or not args.small)
    ]
    if not wanted:
        sys.exit("run_programs: no program of these names")
    if args.pick:
        wanted = picked(wanted, args.pick, args.seed)
        print(f"seed {args.seed}: " + " ".join(p.name for p in wanted), flush=True)
    prepare(any("{python}" in p.words for p in wanted))
    found = []
    failed = [p.name for p in wanted if not any(look(p, args, found) for _ in range(args.attempts))]
    print("\n".join(table(found)))
    print(
        f"{len(wanted) - len(failed)} of {len(wanted)} programs without fault"
        + (f"; not: {', '.join(failed)}" if failed else "")
    )
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
