# SPDX-License-Identifier: Apache-2.0
"""
Many threads or processes that each work a little: as many samples as their CPU time demands, in total, for each
function and for each worker.

What is counted lies inside the functions that serve requests, whose CPU time the fixtures measure with the scheduler's
clock. Samples are drawn at random, so n of them are uncertain by sqrt(n): limits are four times that. A timer per
thread loses nearly everything here: a worker's CPU time between two requests, and mostly in the whole run, is shorter
than a period.
"""

import math
import os
import re

import yrt

PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")
PYTHON_POOL = os.path.join(yrt.SOURCE, "fixtures", "python", "pool.py")
EXACT, SIGMAS, CHI_SIGMAS, LOST_MAX = 0.02, 4, 6, 0.05  # the tail of chi-squared is long


class PythonPool(yrt.Fixture):
    """fixtures/python/pool.py: it takes its seconds behind its own name."""

    def __init__(self, *args, seconds):
        super().__init__(PYTHON, PYTHON_POOL, seconds, *args, seconds=None)


def count_by(result, of):
    """Samples by of(frames), where that is not None."""
    counts = {}
    for frames, n in result.stacks:
        key = of(frames)
        if key is not None:
            counts[key] = counts.get(key, 0) + n
    return counts


def function_of(frames):
    return next((m[1] for m in map(re.compile(r"(serve_[abc])\b").match, frames) if m), None)


def worker_of(frames):
    m = next(filter(None, (re.match(r"worker-(\d+) ", f) for f in frames[:2])), None)  # a process may be above it
    return int(m[1]) if m and function_of(frames) else None


def check_total(counts, cpu, rate):
    n, expected = sum(counts.values()), sum(cpu.values()) * rate
    line = f"{n} samples of {expected:.0f}"
    assert abs(n - expected) <= EXACT * expected + SIGMAS * math.sqrt(expected), line
    return line


def check_shares(what, counts, cpu):
    """
    Chi-squared: does each get the samples that its CPU time demands? Also where that is less than one sample: a term of
    a Poisson distribution with mean m has mean 1 and variance 2 + 1 / m.
    """
    share = sum(counts.values()) / sum(cpu.values())
    due = {key: share * used for key, used in cpu.items() if used > 0}
    chi = sum((counts.get(key, 0) - m) ** 2 / m for key, m in due.items())
    limit = len(due) + CHI_SIGMAS * math.sqrt(sum(2 + 1 / m for m in due.values()))
    line = f"chi-squared of {len(due)} {what} {chi:.1f}, limit {limit:.1f}"
    assert chi <= limit, f"{line}: {sorted((counts.get(key, 0), round(m, 1), key) for key, m in due.items())[-10:]}"
    return line


def check(fixture, rate, *flags, view="flame"):
    result, truth = yrt.sample_whole(fixture, "-t", "--max-cpu", 0, *flags, view=view, rate=rate)
    counts = count_by(result, function_of)
    line = (
        f"at {rate} Hz {check_total(counts, truth['functions'], rate)},"
        f" {check_shares('functions', counts, truth['functions'])}"
    )
    if "workers" in truth:
        cpu = dict(enumerate(truth["workers"]))
        line += ", " + check_shares("workers", count_by(result, worker_of), cpu)
    assert result.lost_beside(rate) <= LOST_MAX * result.samples, result.stats
    return line


@yrt.measured
def test_64_threads():
    """Each serves requests of 1 ms."""
    for rate, seconds in ((19, 8), (99, 4), (999, 3)):
        with yrt.Fixture("pool", "thread", 64, 1000, 60, seconds=seconds) as fixture:
            yield check(fixture, rate)


@yrt.measured
def test_2000_threads_at_1_percent():
    """Each serves one request of 0.2 ms in the whole run."""
    with yrt.Fixture("pool", "thread", 2000, 200, 1, seconds=14) as fixture:
        yield check(fixture, 3999)


@yrt.measured
def test_2000_threads():
    for rate, seconds in ((99, 4), (999, 3)):
        with yrt.Fixture("pool", "thread", 2000, 200, 40, seconds=seconds) as fixture:
            yield check(fixture, rate)


@yrt.measured
def test_500_processes():
    with yrt.Fixture("pool", "fork", 500, 1000, 50, seconds=8) as fixture:
        yield check(fixture, 99, "-s")


@yrt.measured
def test_200_threads_of_python():
    for rate in (99, 999):
        with PythonPool("threads", 200, seconds=5) as fixture:
            yield check(fixture, rate, view="python-flame")


@yrt.measured
def test_python_processes_of_one_task():
    """multiprocessing.Pool(maxtasksperchild=1): none is counted twice."""
    with PythonPool("processes", 2, seconds=8) as fixture:
        yield check(fixture, 99, "-s", view="python-flame")


yrt.main(globals())
