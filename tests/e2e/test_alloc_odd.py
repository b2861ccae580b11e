# SPDX-License-Identifier: Apache-2.0
"""alloc and leak on programs that allocate as nobody should, and yrt that is killed meanwhile."""

import json
import signal

import yrt


def run(command, *args):
    """(result, stacks of a function), of a run that is still there at its end."""
    with yrt.Fixture("alloc_odd", "stay") as fixture:
        at = yrt.Run(command, "-p", fixture.pid, "-d", 600, "--max-cpu", 0, *args).sampling()
        fixture.release()
        truth = json.loads(fixture.process.stdout.readline())
        at.interrupt()
        return at.result().expect(), truth


def test_alloc():
    """Calls that can give nothing are counted as such; those of a child are not the parent's."""
    result, truth = run("alloc")
    calls, size = truth["made"]
    assert yrt.count(result.stacks, "make") == size, yrt.show(result.stacks)
    assert not yrt.count(result.stacks, "child"), yrt.show(result.stacks)
    assert result.stats["alloc"]["impossible_calls"] >= 50, result.stats  # malloc(), and each of the chain
    assert yrt.count(result.stacks, "refused") == 1 << 46, yrt.show(result.stacks)
    assert yrt.count(run("alloc", "--calls")[0].stacks, "make") == calls


def test_leak():
    """Of a chain of realloc() its last block is left; blocks of a thread that has ended are freed by another one."""
    result, truth = run("leak", "--blocks")
    assert yrt.count(result.stacks, "chain") == truth["left"], yrt.show(result.stacks)
    assert not yrt.count(result.stacks, "make") and not yrt.count(result.stacks, "child"), yrt.show(result.stacks)
    assert not yrt.count(result.stacks, "main") - truth["left"] - yrt.count(result.stacks, "allocate_stack"), yrt.show(
        result.stacks
    )
    assert result.stats["leak"]["failed"] >= 1, result.stats


def test_killed():
    """After kill -9 nothing of yrt is left in the target: it goes on, and can be looked at again."""
    for command in ("alloc", "leak"):
        with yrt.Fixture("alloc_odd") as fixture:
            at = yrt.Run(command, "-p", fixture.pid, "-d", 600).sampling()
            at.process.kill()
            assert at.process.wait(30) == -signal.SIGKILL
            again = yrt.Run("alloc", "-p", fixture.pid, "-d", 600, "--max-cpu", 0).sampling()
            fixture.release()
            truth = fixture.finish()
            assert yrt.count(again.result().expect().stacks, "make") == truth["made"][1]


def test_short():
    """Processes that end before or while they are looked at: no call counts twice, and none is seen elsewhere."""
    number, rounds = 40, 8
    program = yrt.fixture_path("alloc_sites")
    loop = f"for i in $(seq {number}); do {program} 1 {rounds} '' 1 < /dev/null; done"
    result = yrt.run("alloc", "-s", "--max-cpu", 0, "--calls", "--", "sh", "-c", loop + " >&2").expect()
    counted = [json.loads(line)["sites"] for line in result.stderr.splitlines() if '"event":"end"' in line]
    assert len(counted) == number, result.stderr
    for name, (calls, _) in counted[0].items():
        assert yrt.count(result.stacks, name) <= number * calls, yrt.show(result.stacks)
    assert result.stats["alloc"]["missed_processes"] <= number + 2, result.stats  # $(), seq


yrt.main(globals())
