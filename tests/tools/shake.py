#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Does a test of the gate ever fail by chance? Runs them over and over in random order, and gives each of the tests that
run at once so much of a CPU in each second, all at its begin: it then stands still for the rest, as on a machine that
others use. Prints each failure, whose output is kept, and at the end how often each test passed. Needs root.

	tests/tools/shake.py [--cpu 0.5] [--jobs 4] [--passes 20] [--until 13:30] [--tree build/release] [-L e2e] [-R REGEX]
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
LIMIT_S = 1200


def listed(tree, label, regex):
    """[(name, command, {variable: value})] of ctest's tests of the gate."""
    told = subprocess.run(["ctest", "--test-dir", tree, "-L", f"^{label}$", "-R", regex, "--show-only=json-v1"],
                          capture_output=True, check=True)
    for test in json.loads(told.stdout)["tests"]:
        properties = {p["name"]: p["value"] for p in test["properties"]}
        yield test["name"], test["command"], dict(v.split("=", 1) for v in properties.get("ENVIRONMENT", ()))


class Slow:
    """A control group whose processes stand still once they have used their part of a second."""

    def __init__(self, cpu):
        v1 = "/sys/fs/cgroup/cpu"
        self.dir = tempfile.mkdtemp(prefix="yrt-shake-", dir=v1 if os.path.isdir(v1) else "/sys/fs/cgroup")
        if self.dir.startswith(v1):
            self.write("cpu.cfs_period_us", 1000000)
            self.write("cpu.cfs_quota_us", int(cpu * 1000000))
        else:
            self.write("cpu.max", f"{int(cpu * 1000000)} 1000000")

    def write(self, name, value):
        with open(os.path.join(self.dir, name), "w") as f:
            f.write(str(value))

    def enter(self):
        self.write("cgroup.procs", os.getpid())

    def remove(self):
        for _ in range(100):  # what a test left behind
            with contextlib.suppress(OSError):
                return os.rmdir(self.dir)
            time.sleep(0.1)
        print(f"{self.dir} is in use still", flush=True)


class Shaker:
    def __init__(self, args):
        self.args, self.counts, self.lock = args, {}, threading.Lock()
        self.groups = [Slow(args.cpu) for _ in range(args.jobs if args.cpu else 0)]
        self.logs = tempfile.mkdtemp(prefix="yrt-shake-")
        os.chmod(self.logs, 0o755)
        self.yrt = shutil.copy(os.path.join(args.tree, "yrt"), self.logs)  # the tree may be built anew meanwhile

    def run(self, name, command, environment):
        if self.args.until and time.strftime("%H:%M") >= self.args.until:
            return
        with self.lock:
            group = self.groups.pop() if self.groups else None
        begin = time.monotonic()
        log = os.path.join(self.logs, f"{name}.{time.time_ns()}")
        with open(log, "w") as out:
            try:
                code = subprocess.run(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=self.args.tree,
                                      env={**os.environ, **environment, "YRT": self.yrt}, timeout=LIMIT_S,
                                      preexec_fn=group and group.enter).returncode
            except subprocess.TimeoutExpired:
                code = "timeout"
        with self.lock:
            if group:
                self.groups.append(group)
            passed = self.counts.setdefault(name, [0, 0, 0.0])
            passed[code not in (0, SKIPPED)] += 1
            passed[2] = max(passed[2], time.monotonic() - begin)
        if code in (0, SKIPPED):
            os.unlink(log)
        else:
            print(f"{time.strftime('%H:%M:%S')} FAILED {name}: {code}: {log}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cpu", type=float, default=0.5, help="of a CPU for each test; 0: as much as it gets")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--until", help="HH:MM, after which none begins")
    parser.add_argument("--tree", default=ROOT / "build/release")
    parser.add_argument("-L", default="e2e", dest="label")
    parser.add_argument("-R", default=".", dest="regex")
    args = parser.parse_args()
    tests = list(listed(args.tree, args.label, args.regex))
    shaker = Shaker(args)
    signal.signal(signal.SIGTERM, lambda *_: setattr(args, "until", "00:00"))  # ends with the tests that run
    try:
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for i in range(args.passes):
                random.shuffle(tests)
                list(pool.map(lambda test: shaker.run(*test), tests))
                if args.until and time.strftime("%H:%M") >= args.until:
                    break
                print(f"{time.strftime('%H:%M:%S')} pass {i + 1}", flush=True)
    finally:
        for name, (passed, failed, longest) in sorted(shaker.counts.items()):
            print(f"{name:40} passed {passed:3}, failed {failed:3}, longest {longest:6.1f} s", flush=True)
        for group in shaker.groups:
            group.remove()
    return any(failed for _, failed, _ in shaker.counts.values())


if __name__ == "__main__":
    raise SystemExit(main())
