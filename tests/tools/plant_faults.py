#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Does the gate see a fault? Plants each one of tests/planted_faults.toml in turn, builds, and runs the tests that must
fail then; without any fault they must pass. In a clean clone of its own, which it leaves as it was:

	tests/tools/plant_faults.py [NAME]...
"""

import os
import pathlib
import signal
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"


def build(targets, **variables):
    command = ["ninja", "-C", BUILD, *targets]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables})
    assert done.returncode == 0, done.stdout[-3000:]


def passes(tests):
    """None: no test has such a name."""
    command = ["ctest", "--test-dir", BUILD, "-R", f"^({tests})", "-LE", "measured", "--no-tests=error"]
    done = subprocess.run(command, capture_output=True, text=True)
    return None if "No tests were found" in done.stdout + done.stderr else done.returncode == 0


def plant(fault):
    """How it ended: "seen" if the tests fail with the fault and only with it."""
    path = ROOT / fault["file"]
    text = path.read_text()
    if text.count(fault["from"]) != 1:
        return f"{fault['file']} has no place for it, or several"
    build(fault["targets"])
    before = passes(fault["tests"])
    if not before:
        return "no such tests" if before is None else "red without it"
    try:
        path.write_text(text.replace(fault["from"], fault["to"]))
        # a compiler that is killed, or goes on, as the file is restored must leave nothing in ccache for the fault
        build(fault["targets"], CCACHE_DISABLE="1")
        return "NOT SEEN" if passes(fault["tests"]) else "seen"
    finally:
        path.write_text(text)


def main():
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # plant() restores its file
    faults = tomllib.loads((ROOT / "tests/planted_faults.toml").read_text())
    ends = {name: plant(faults[name]) for name in sys.argv[1:] or faults}
    for name, end in ends.items():
        print(f"{name:24} {end}")
    return any(end != "seen" for end in ends.values())


sys.exit(main())
