# SPDX-License-Identifier: Apache-2.0
"""
The overhead of sampling Envoy at 99 Hz: CPU time of 100 sequential requests on one connection, with yrt's events
alternately enabled and disabled. The benchmark toggles them on copies of yrt's descriptors. The two halves of a pair
are 0.1 s apart, so other load on the machine hits both.

	bench_envoy.py [PAIRS]
"""

import ctypes
import fcntl
import http.client
import os
import re
import statistics
import sys

import pairs
import servers
import yrt

PAIRS, REQUESTS, RATE, LIMIT = 1000, 100, 99, 0.01  # 5 minutes on a quiet machine, 20 on a busy one
PATHS = "/", "/call", "/inline", "/"  # of fixtures/envoy/load.lua
PIDFD_GETFD = 438  # of x86-64
ENABLE, DISABLE = 0x2400, 0x2401  # PERF_EVENT_IOC_ of linux/perf_event.h


def events_of(pid):
    """Copies of a process's descriptors of perf events."""
    libc, pidfd = ctypes.CDLL(None), os.pidfd_open(pid)
    found = [int(fd) for fd in os.listdir(f"/proc/{pid}/fd") if "perf_event" in os.readlink(f"/proc/{pid}/fd/{fd}")]
    return [libc.syscall(PIDFD_GETFD, pidfd, fd, 0) for fd in found]


def turn(events, how):
    for event in events:
        fcntl.ioctl(event, how, 0)


def ask(connection, headers):
    for i in range(REQUESTS):
        connection.request("GET", PATHS[i % len(PATHS)], headers=headers)
        connection.getresponse().read()


def cpu_of_requests(envoy, connection, headers):
    before = yrt.cpu_seconds(envoy.pid)
    ask(connection, headers)
    return yrt.cpu_seconds(envoy.pid) - before


def measure(envoy, events, npairs):
    """(with / without - 1 of each pair, seconds of CPU time with it). Which half comes first alternates."""
    token = re.search(r'token = "(.*)"', yrt.read(os.path.join(yrt.SOURCE, "fixtures", "envoy", "load.lua")))[1]
    connection, headers, found, used = (
        http.client.HTTPConnection("127.0.0.1", envoy.port),
        {"Authorization": f"Bearer {token}"},
        [],
        0,
    )
    for i in range(npairs):
        cpu = {}
        for how in (ENABLE, DISABLE) if i % 2 else (DISABLE, ENABLE):
            turn(events, how)
            cpu[how] = cpu_of_requests(envoy, connection, headers)
        found.append(cpu[ENABLE] / cpu[DISABLE] - 1)
        used += cpu[ENABLE]
    return found, used


def main():
    try:
        program = servers.envoy_program()
    except yrt.Skipped as why:
        print(f"skip: {why}")
        sys.exit(yrt.SKIPPED)
    with servers.Envoy(program, load=2, connections=1) as envoy:
        envoy.wrk.wait()  # its traces are compiled
        at = yrt.Run("flame", "-p", envoy.pid, "-d", 3600, "-F", RATE).sampling()
        events = events_of(at.process.pid)
        assert events, "yrt has no perf events"
        turn(events, DISABLE)
        taken, used = measure(envoy, events, int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS)
        at.interrupt()
        result = at.result().expect()
    rate = result.stats["samples"] / used
    word, text = pairs.judge(taken, LIMIT)
    print(
        f"     {rate:.1f} samples a second of CPU time, {statistics.median(taken) * RATE / rate:+.2%} at {RATE}; BPF"
        f" {result.stats['bpf_ns_per_sample']:.0f} ns a sample"
    )
    print(f"{word} CPU time of a request of Envoy with {RATE} Hz: {text}")
    sys.exit(word == "over")


main()
