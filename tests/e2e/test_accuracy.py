# SPDX-License-Identifier: Apache-2.0
"""
Samples / rate against the CPU time that the programs counted of themselves: within 2 %.

Samples are drawn at random, so n of them are uncertain by 1 / sqrt(n): each test takes enough (40,000) for 2 % to be four times that, except
where the low rate is the point; the limit is four times the uncertainty then.
"""

import contextlib
import math

import yrt

TOLERANCE = 0.02


def compare(result, cpu, rate, tolerance=TOLERANCE):
    seen = (result.samples + result.lost()) / rate
    ratio = seen / cpu
    line = f"{result.samples} samples, {result.lost()} lost: {seen:.3f} s; the programs counted {cpu:.3f} s; " \
           f"ratio {ratio:.4f}"
    assert abs(ratio - 1) <= tolerance, f"{line}, tolerance {tolerance:.4f}; {result.stats}"
    if tolerance == TOLERANCE:
        assert result.samples > 35000, f"too few samples for 2 %: {result.samples}"
    return line


def measure(name, *args, copies=1, seconds, rate, flags=(), tolerance=TOLERANCE):
    with contextlib.ExitStack() as stack:
        fixtures = [stack.enter_context(yrt.Fixture(name, *args, seconds=seconds)) for _ in range(copies)]
        pids = ",".join(str(f.pid) for f in fixtures)
        at = yrt.Run("flame", "-p", pids, "-d", seconds + 30, "-F", rate, *flags).sampling()
        for fixture in fixtures:
            fixture.release()
        cpu = sum(fixture.finish()["cpu_s"] for fixture in fixtures)
        result = at.result().expect()
    yield compare(result, cpu, rate, tolerance)


def test_busy():
    yield from measure("deep30", copies=2, seconds=10, rate=1999)


def test_threads():
    yield from measure("threads", 4, seconds=10, rate=1999)


def test_periodic():
    yield from measure("periodic", copies=8, seconds=12, rate=1999)


def test_periodic_at_99():
    seconds, copies, rate = 15, 8, 99
    expected = 0.2 * seconds * copies * rate
    yield from measure("periodic", copies=copies, seconds=seconds, rate=rate, tolerance=4 / math.sqrt(expected))


def test_bursty():
    yield from measure("bursty", copies=3, seconds=12, rate=2499)


def test_short_lived_threads():
    yield from measure("shortlived", "thread", 1000, copies=2, seconds=60, rate=3999)


def test_short_lived_processes():
    yield from measure("shortlived", "fork", 1000, copies=2, seconds=60, rate=3999, flags=("-s",))


def test_300_children_at_99():
    """Each lives for half a period: a sampler that starts a whole period in each sees nothing."""
    rate, expected = 99, 300 * 0.005 * 99 * 2
    yield from measure("shortlived", "thread", 300, copies=2, seconds=60, rate=rate, tolerance=4 / math.sqrt(expected))


def test_expected_samples():
    """The statistics' own expectation agrees with the program's clock."""
    with yrt.Fixture("deep30", seconds=5) as fixture:
        at = yrt.Run("flame", "-p", fixture.pid, "-d", 30, "-F", 999).sampling()
        fixture.release()
        cpu = fixture.finish()["cpu_s"]
        stats = at.result().expect().stats
    assert abs(stats["expected_samples"] / (cpu * 999) - 1) < 0.03, f"{stats['expected_samples']} for {cpu} s at 999 Hz"


yrt.main(globals())
