# SPDX-License-Identifier: Apache-2.0
"""Targets chosen by what they are: program, cgroup, pod, container; one by its name; the whole machine."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pods
import servers
import yrt

RATE = 999
BUSY_FOR = """
import json, os, sys, time
def busy_for():
    while time.process_time() < 2.5:
        sum(range(1000))
print(json.dumps({"pid": os.getpid(), "chain": ["busy_for"]}), flush=True)
sys.stdin.readline()
start = time.process_time()
busy_for()
print(json.dumps({"cpu_s": time.process_time() - start}))
"""


@contextlib.contextmanager
def renamed(name, *fixtures):
    """Copies of fixtures below a folder, named name-FIXTURE."""
    dir = tempfile.mkdtemp(prefix="yrt-e2e-")
    try:
        for fixture in fixtures:
            shutil.copy(yrt.fixture_path(fixture), os.path.join(dir, f"{name}-{fixture}"))
        yield dir
    finally:
        shutil.rmtree(dir)


def near_expected(result, tolerance=0.1):
    """What the scheduler counted of the targets, while they were such, is what was sampled."""
    expected = result.stats["expected_samples"]
    assert abs(result.stats["samples"] / expected - 1) < tolerance, f"{result.stats['samples']} samples of {expected}"


@yrt.measured
def test_program_and_those_that_start_later():
    """Two processes of the chosen program, one from before and one from after the start; another one is left alone."""
    with renamed("chosen", "deep30") as dir:
        path = os.path.join(dir, "chosen-deep30")
        with yrt.Fixture(path, seconds=3) as first, yrt.Fixture("recursion", seconds=3) as other:
            at = yrt.Run("flame", "--select", "exe=chosen-*", "-d", 600, "-F", RATE, "-U").sampling()
            first.release()
            other.release()
            time.sleep(1)
            with yrt.Fixture(path, seconds=2, wait=False) as second:
                truth = [second.finish(), first.finish(), other.finish()]
        at.interrupt()
        result = at.result().expect()
    assert result.stats["processes"] == 2, result.stats
    seen, used = result.samples / RATE, truth[0]["cpu_s"] + truth[1]["cpu_s"]
    assert abs(seen / used - 1) < 0.1, f"{seen:.2f} s seen, {used:.2f} s used"
    near_expected(result)
    wrong = yrt.wrong_chains(result, first.chain)
    assert sum(n for _, n in wrong) <= 0.02 * result.samples, yrt.show(wrong)  # ld.so of the second


def test_many_that_sleep():
    """Why the picture is empty is said of a few of them."""
    with contextlib.ExitStack() as stack, renamed("sleeps", "deep30") as dir:
        for _ in range(12):
            yrt.in_call(stack.enter_context(yrt.Fixture(os.path.join(dir, "sleeps-deep30"))).pid, yrt.READ)
        result = yrt.run("flame", "--select", "exe=sleeps-*", "-d", 0.5, "-F", RATE).expect()
        assert (
            result.stderr.count("used no CPU in") == 3 and "9 more processes used no CPU" in result.stderr
        ), result.stderr


@yrt.measured
def test_becomes_another_program():
    """What a chosen shell executes is not chosen; with -s it is."""
    with renamed("chosen", "deep30") as dir:
        shutil.copy("/bin/sh", os.path.join(dir, "chosen-sh"))
        script = f'read x; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exec {dir}/chosen-deep30 1'
        shares = []
        for flags in [], ["-s"]:
            shell = subprocess.Popen(
                [os.path.join(dir, "chosen-sh"), "-c", script], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                env={**os.environ, "FIXTURE_CPU": "1"}
            )
            at = yrt.Run("flame", "--select", "exe=chosen-sh", *flags, "-d", 90, "-F", RATE, "-U").sampling()
            shell.communicate(b"\n", timeout=300)
            at.interrupt()
            result = at.result().expect()
            assert result.samples > 20, result.stderr
            shares.append(result.share("f01"))
    assert shares[0] == 0 and shares[1] > 0.1, shares


@yrt.measured
def test_pod_and_container():
    """By cgroup; a process that joins the container later is found."""
    with pods.Pod() as pod, yrt.Fixture("deep30", seconds=4) as first, yrt.Fixture("recursion", seconds=4) as second:
        pod.add(first.pid)
        inspected = yrt.run("inspect", "--select", f"pod={pod.uid}", "--json", output=False, stats=False).expect()
        assert f'"pid": {first.pid}' in inspected.stdout, inspected.stdout
        runs = [
            yrt.Run("flame", "--select", rule, "-d", 5, "-F", 499, "-U")
            for rule in (
                f"pod={pod.uid}",
                f"container=containerd://{pod.container}",
                f"cgroup={pod.folders[0].removeprefix(pods.root())}",
            )
        ]
        for at in runs:
            at.sampling()
        first.release()
        second.release()
        time.sleep(0.5)
        pod.add(second.pid)
        for at in runs:
            result = at.result().expect()
            assert result.share("f01") > 0.3 and result.share(second.chain[0]) > 0.1, (at.args, yrt.show(result.stacks))


@yrt.measured
def test_unit():
    """A service of systemd, by its cgroup: nginx, its master and workers; another name lists what comes close."""
    name = f"yrt-test-{os.getpid()}"
    slice = os.path.join(pods.root(), f"{name}.slice")
    service = os.path.join(slice, f"{name}.service")
    os.makedirs(service)
    try:
        with servers.Nginx(load=30) as nginx:
            for pid in nginx.master.pid, *nginx.workers():
                pods.join(service, pid)
            result = yrt.run("lua-flame", "--select", f"unit={name}", "-d", 3, "-F", 199).expect()
            assert (
                result.share("ngx_http_lua_run_thread") > 0.2 and result.share("ngx_master_process_cycle") > 0.95
            ), yrt.show(result.stacks)
            result = yrt.run("flame", "--select", f"unit={name}x").expect(yrt.NO_PROCESS)
            assert f"{name}.service (pid " in result.stderr, result.stderr
    finally:
        os.rmdir(service)
        os.rmdir(slice)


@yrt.measured
def test_wait():
    """A program that does not run yet is an error, or waited for."""
    with renamed("awaited", "deep30") as dir:
        path = os.path.join(dir, "awaited-deep30")
        rule = f"exe={path}"
        result = yrt.run("flame", "--select", rule).expect(yrt.NO_PROCESS)
        assert rule in result.stderr, result.stderr
        at = yrt.Run("flame", "--select", rule, "--wait", "-d", 1, "-F", RATE).sampling()
        time.sleep(1.5)  # the duration begins with the process
        with yrt.Fixture(path, seconds=2, wait=False) as late:
            late.finish()
        result = at.result().expect()
        assert result.share("f30") > 0.8, yrt.show(result.stacks)
        at = yrt.Run("record", "--select", rule, "--wait", output=False, cwd=dir).sampling()
        said = at.process.stderr.readline()
        assert f"no process matches {rule} yet: waiting. " in said, said
        at.process.send_signal(signal.SIGINT)
        result = at.result().expect(yrt.NO_PROCESS)
        assert f"no process has matched {rule}" in result.stderr and os.listdir(dir) == [os.path.basename(path)]
        assert len(result.stderr.splitlines()) == 2, result.stderr  # and what to do


@yrt.measured
def test_name():
    """-p takes the name of one process; of several it lists them; of none what comes close."""
    with renamed("unique", "deep30") as dir:
        path = os.path.join(dir, "unique-deep30")
        with yrt.Fixture(path, seconds=2) as one:
            at = yrt.Run("flame", "-p", "unique-deep30", "-d", 4, "-U").sampling()
            one.release()
            one.finish()
            result = at.result().expect()
            assert result.share("f30") > 0.8, yrt.show(result.stacks)
        with yrt.Fixture(path) as one, yrt.Fixture(path) as two:
            result = yrt.run("flame", "-p", "unique-deep30").expect(yrt.USAGE)
            assert f"{one.pid} (" in result.stderr and f"{two.pid} (" in result.stderr, result.stderr
            result = yrt.run("flame", "-p", "unique-deep31").expect(yrt.NO_PROCESS)
            assert "unique-deep30 (pid " in result.stderr, result.stderr


def test_usage():
    for args in (
        ["--select", "envoy"],
        ["--select", "name=x"],
        ["--select", "exe="],
        ["-a", "-p", "1"],
        ["--wait", "-p", "1"],
        ["-a", "--", "true"],
        ["--select", "container=12"],
        ["--select", "pod=POD-UID,exe=envoy", "--wait"],
    ):
        result = yrt.run("flame", *args)
        assert result.code == yrt.USAGE and result.stderr, (args, result.code, result.stderr)


def sleepers(n):
    """One process and n children that sleep, all in one group; each wakes once a second."""
    script = (f"import os, time\nfor i in range({n}):\n  if os.fork() == 0:\n    time.sleep(i / {n})\n"
              "    while True: time.sleep(1)\nprint('ready', flush=True)\ntime.sleep(300)")
    group = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert group.stdout.readline() == "ready\n"
    return group


def seen_as_used(result, frame, pid, cpu_s, rate):
    """
    On a machine that others use too: the CPU time that a process used was seen, but for what is reported: its stacks
    that are cut (it, or its files, were not known yet: where many large programs start at once, that takes a while),
    and what was lost.
    """
    own = [(frames, n) for frames, n in result.stacks if any(f.endswith(f"(pid {pid})") for f in frames[:3])]
    cut = sum(n for frames, n in own if any("[truncated" in f for f in frames)) / rate
    seen = sum(n for frames, n in own if yrt.has(frames, frame)) / rate
    print(f"{frame}: {seen:.2f} s seen of {cpu_s:.2f} s, {cut:.2f} s cut, {result.lost() / rate:.2f} s lost")
    assert (
        seen > 0 and seen > 0.7 * cpu_s - cut - result.lost() / rate
    ), f"{frame}: {seen:.2f} s seen, {cut:.2f} s cut, {cpu_s:.2f} s used\n{yrt.show(own)}"


@yrt.measured
def test_whole_machine():
    """
    Every process, also among 300 others: -a is experimental (docs/limits.md), so that much may be lost, but not
    silently.
    """
    crowd = sleepers(300)
    try:
        with yrt.Fixture("deep30", seconds=2, cpu=True) as native:  # by CPU time, which may take 20 s
            python = yrt.Fixture(sys.executable, "-c", BUSY_FOR, seconds=0)
            at = yrt.Run("flame", "-a", "-d", 120, "-F", 199, "--processes", "each").sampling()
            native.release()
            python.release()
            truth = native.finish(110), python.finish(110)
            at.interrupt()
            result = at.result().expect()
    finally:
        os.killpg(crowd.pid, signal.SIGKILL)
        crowd.wait()
        crowd.stdout.close()
    print(result.summary(), result.stats["max_rss_kb"], "kB", result.stats["processes"], "processes")
    seen_as_used(result, "f30", native.pid, truth[0]["cpu_s"], 199)
    seen_as_used(result, re.compile(r"busy_for \("), python.pid, truth[1]["cpu_s"], 199)
    lost = {cause: n for cause, n in result.stats["lost"].items() if cause != "clock"}
    assert sum(lost.values()) <= 0.5 * result.stats["samples"], result.stats
    assert result.stats["unread_processes"] == 0, result.stderr


yrt.main(globals())
