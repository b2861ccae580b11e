# SPDX-License-Identifier: Apache-2.0
"""
Samples / rate against the CPU time that the programs counted of themselves: within 2 %.

Samples are drawn at random, so n of them are uncertain by 1 / sqrt(n): each test goes on until there are enough
(40,000) for 2 % to be four times that. A round is long enough for that on two CPUs: 11 s of CPU time at 3,999 Hz. Where
the low rate is the point, one round is enough, and the limit is four times its uncertainty.

The host of a virtual machine takes CPUs away, often for less than a period. The kernel leaves that out of a thread's
time (CONFIG_PARAVIRT_TIME_ACCOUNTING), a timer cannot: so there may be as many samples more as that time is long.
"""

import contextlib
import json
import math
import os
import time

import yrt

# A thread is charged from when it is woken, some microseconds before it runs: more on a slow host.
TOLERANCE, OF_BEGINNINGS, ENOUGH, ROUNDS, LOST_MAX = 0.02, 0.035, 40000, 8, 0.05


PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")
FRESH = os.path.join(yrt.SOURCE, "fixtures", "python", "fresh.py")


def one_round(name, args, copies, seconds, rate, flags):
    """(samples, CPU seconds by the programs, what yrt says was lost, of that not to the host, seconds the host took)"""
    with contextlib.ExitStack() as stack:
        fixtures = [stack.enter_context(yrt.Fixture(name, *args, seconds=seconds)) for _ in range(copies)]
        pids = ",".join(str(f.pid) for f in fixtures)
        at = yrt.Run("flame", "-p", pids, "-d", seconds + 30, "-F", rate, *flags).sampling()
        for fixture in fixtures:
            fixture.release()
        cpu = sum(fixture.finish()["cpu_s"] for fixture in fixtures)
        result = at.result().expect()
    return result.samples, cpu, result.lost(), result.lost_beside(rate), result.stolen_s


def measure(name, *args, copies=1, seconds, rate, flags=(), within=TOLERANCE):
    few = rate < 1000
    samples = cpu = lost = own = stolen = rounds = 0
    while rounds < (1 if few else ROUNDS) and samples < ENOUGH:
        more = one_round(name, args, copies, seconds, rate, flags)
        samples, cpu, lost, own, stolen = (a + b for a, b in zip((samples, cpu, lost, own, stolen), more))
        rounds += 1
    tolerance = 4 / math.sqrt(cpu * rate) if few else within
    line = f"{samples} samples are {samples / rate:.3f} s; the programs counted {cpu:.3f} s; " \
           f"ratio {samples / rate / cpu:.4f}, limit {tolerance:.4f} off 1; {lost} said to be lost; the host took {stolen:.2f} s"
    # a busy host takes ticks away from a virtual machine: what yrt says was lost so is no error
    assert own <= LOST_MAX * samples, line
    counted = (samples + (0 if few else lost)) / rate
    assert (1 - tolerance) * cpu <= counted <= (1 + tolerance) * (cpu + stolen), line
    assert few or samples >= ENOUGH, f"not enough samples in {rounds} rounds: {line}"
    yield line


@yrt.measured
def test_busy():
    yield from measure("deep30", copies=2, seconds=5.5, rate=3999)


@yrt.measured
def test_threads():
    yield from measure("threads", 4, seconds=5.5, rate=3999)


@yrt.measured
def test_periodic():
    yield from measure("periodic", copies=8, seconds=7, rate=3999, within=OF_BEGINNINGS)


@yrt.measured
def test_periodic_at_99():
    yield from measure("periodic", copies=8, seconds=11, rate=99)


@yrt.measured
def test_bursty():
    yield from measure("bursty", copies=3, seconds=8, rate=3999)


@yrt.measured
def test_short_lived_threads():
    yield from measure("shortlived", "thread", 1100, copies=2, seconds=60, rate=3999, within=OF_BEGINNINGS)


@yrt.measured
def test_short_lived_processes():
    yield from measure("shortlived", "fork", 1100, copies=2, seconds=60, rate=3999, flags=("-s",), within=OF_BEGINNINGS)


@yrt.measured
def test_300_children_at_99():
    """Each lives for half a period: a sampler that starts a whole period in each sees nothing."""
    yield from measure("shortlived", "thread", 300, copies=2, seconds=60, rate=99)


@yrt.measured
def test_new_stacks_on_its_own_cpu():
    """
    Each stack is new, so many ticks wake yrt, and it has to run on the target's CPU: what it takes lies between two
    ticks.
    """
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    try:
        with yrt.Fixture(PYTHON, FRESH, 5, seconds=None) as fixture:
            result, truth = yrt.sample_whole(fixture, rate=1999)
    finally:
        os.sched_setaffinity(0, cpus)
    expected = truth["cpu_s"] * 1999
    line = f"{result.samples} samples of {expected:.0f}, {result.lost()} said to be lost, the host took" \
           f" {result.stolen_s:.2f} s"
    counted = result.samples + result.lost()
    assert 0.95 * expected <= counted <= 1.05 * (expected + 1999 * result.stolen_s), line
    yield line


def cost_of_rounds(fixture, seconds):
    """CPU time of a round of fixtures/native/switches.c while it takes so many CPU seconds."""
    def ask():
        fixture.release()
        return json.loads(fixture.process.stdout.readline())
    begin = now = ask()
    while now["cpu_s"] < begin["cpu_s"] + seconds:
        time.sleep(0.05)
        now = ask()
    return (now["cpu_s"] - begin["cpu_s"]) / (now["rounds"] - begin["rounds"])


@yrt.measured
def test_switches():
    """
    A program that switches all the time goes on as before, where a clock for each thread would take most of its time.
    """
    with yrt.Fixture("switches") as fixture:
        fixture.release()
        before = cost_of_rounds(fixture, 0.5)
        at = yrt.Run("flame", "-p", fixture.pid, "-d", 600, "-F", 999, "--max-cpu", 0).sampling()
        cost_of_rounds(fixture, 0.7)
        during = cost_of_rounds(fixture, 0.7)
        at.interrupt()
        result = at.result().expect()
    line = f"{before * 1e6:.2f} us a round before, {during * 1e6:.2f} while it is sampled, {result.samples} samples"
    assert during < before * 1.6 and result.samples > 300 and result.incomplete() < 0.01, line
    yield line


@yrt.measured
def test_expected_samples():
    """The statistics' own expectation agrees with the program's clock."""
    with yrt.Fixture("deep30", seconds=5) as fixture:
        result, truth = yrt.sample_whole(fixture, rate=999)
    stats, cpu = result.stats, truth["cpu_s"]
    # perf counts the time of interrupts too, the program's clock does not
    assert abs(stats["expected_samples"] / (cpu * 999) - 1) < 0.06, f"{stats['expected_samples']} for {cpu} s at 999 Hz"


# What a browser's processes use in a second or two; they end all at once.
PAGE = "data:text/html,<script>for(let t=performance.now();performance.now()<t+700;)document.title+=1</script>"
BROWSER = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", PAGE)


@yrt.measured
def test_processes_that_end_last():
    """The time of a process of many threads is known only when the kernel has got rid of all of them."""
    for _ in range(3):
        result = yrt.run("flame", "-s", "-U", "-F", 997, "--", *BROWSER).expect()
        line = f"{result.samples} samples of {result.stats['expected_samples']:.0f} expected"
        assert result.samples > 500, line
        assert abs(result.stats["expected_samples"] / result.samples - 1) < 0.12, line
        yield line


yrt.main(globals())
