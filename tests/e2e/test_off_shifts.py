# SPDX-License-Identifier: Apache-2.0
"""off-flame of threads that wait so often that some waits stand for all, and switches are watched in shifts."""

import os
import tempfile

import yrt
from waiting import EXACT, check_balance, of


@yrt.measured
def test_fast():
    """
    Where threads switch too often for a stack each, a part stands for all, and the sum is right within what chance
    allows. Where others use the CPU a few waits of some 200,000 are a thousand times as long as most, and those that
    have a stack stand for 160 each: then it takes several runs.
    """
    shown = due = runs = 0
    with yrt.Fixture("switches", seconds=120, wait=True) as fixture:
        fixture.release()
        while runs < 6 and (not runs or abs(shown - due) > 0.1 * due):
            result = yrt.run("off-flame", "-p", fixture.pid, "-d", 3).expect()
            off = result.stats["off"]
            shown += sum(ns for _, ns in result.stacks) * 1e-9 + result.missing(off["off_s"] * 1e9) * 1e-9
            due, runs = due + off["off_s"], runs + 1
            yield f"{off['waits']} waits, {off['waits_without_stack']} without a stack; {check_balance(result)}"
    assert abs(shown - due) <= 0.1 * due, f"{shown} of {due} in {runs} runs"
    yield f"{shown:.3f} of {due:.3f} s in {runs} runs"


@yrt.measured
def test_many():
    """
    Where skipping waits costs more than the budget, stacks are as few as a picture needs. The program has the CPU for
    itself as far as that can be, or it switches seldom; where it does not get it, it takes several runs.
    """
    share = runs = 0
    with yrt.Fixture("switches", 0, seconds=120, wait=True) as fixture:
        os.setpriority(os.PRIO_PROCESS, fixture.pid, -15)
        fixture.release()
        while runs < 6 and (not runs or share > 1 / 100):
            result = yrt.run("off-flame", "-p", fixture.pid, "-d", 2).expect()
            off, runs = result.stats["off"], runs + 1
            share = 1 - off["waits_without_stack"] / off["waits"]
            yield f"{share:.2%} of {off['waits']} waits have a stack; {check_balance(result)}"
    assert 0 < share <= 1 / 100, f"{share:.2%} of the waits have a stack"


BURSTS = """
import os, threading, time
asked, answered = os.pipe(), os.pipe()
def answer():
    while os.read(asked[0], 1):
        os.write(answered[1], b"x")
threading.Thread(target=answer, daemon=True).start()
slept = 0
for _ in range(25):
    for _ in range(400):
        os.write(asked[1], b"x")
        os.read(answered[0], 1)
    began = time.monotonic()
    time.sleep(0.1)
    slept += time.monotonic() - began
print(slept)
"""


@yrt.measured
def test_bursts():
    """A long wait that ends a burst of short ones, so that it was to be skipped, counts for itself from its begin."""
    shown = due = skipped = 0
    for _ in range(2):
        result = yrt.run("off-flame", "-U", "--", "/usr/bin/python3", "-c", BURSTS).expect()
        shown += sum(ns for frames, ns in result.stacks if frames[-1] == "[sleep]") * 1e-9
        due += float(result.stdout.splitlines()[0])
        skipped += result.stats["off"]["waits_without_stack"]
        lost = result.stats["lost"].get("unmatched", 0)
        assert lost < 0.01 * result.stats["samples"], result.stats
    assert skipped, "each wait has a stack: nothing was tried"
    assert abs(shown - due) <= EXACT * due, f"{shown} of {due}"
    yield f"{shown:.3f} of {due:.3f} s asleep, {skipped} waits without a stack"


@yrt.measured
def test_run_queue():
    """What the last line says of the run queue is what the stacks say of it, also where few waits have one."""
    with yrt.Fixture("switches", seconds=30, wait=True) as fixture:
        fixture.release()
        result = yrt.run("off-flame", "-p", fixture.pid, "-d", 2).expect()
    off = result.stats["off"]
    shown = sum(ns for frames, ns in result.stacks if frames[-1] == "[run queue]") * 1e-9
    lost = result.missing(off["off_s"] * 1e9) * 1e-9
    assert off["waits_without_stack"] > 0.9 * off["waits"] and shown > 0.01, f"{off}\n{yrt.show(result.stacks)}"
    assert abs(off["run_queue_s"] - shown) <= EXACT * shown + lost, f"{shown}, {lost} lost: {off}"
    yield f"{off['run_queue_s']:.3f} s by the last line, {shown:.3f} s by the stacks"


@yrt.measured
def test_shifts():
    """
    Where switches are watched in shifts, threads' time adds up all the same; long waits are exact, also one that is
    followed by short ones, and short ones have their share. What chance and a few waits of threads that live for 5 ms
    may be off by goes down with the number of runs.
    """
    shown, due, runs, far = {}, {}, 0, ["none yet"]
    while runs < 6 and far:
        with yrt.Fixture("shifts", seconds=4) as fixture:
            at = yrt.Run("off-flame", "-p", fixture.pid, "-d", 600).sampling()
            fixture.release()
            truth = fixture.finish()
            result = at.result().expect()
        off, runs = result.stats["off"], runs + 1
        assert off["watched"] < 0.9, f"no pauses: {off}"
        for function, seconds in truth["off"].items():
            due[function] = due.get(function, 0) + seconds
            shown[function] = shown.get(function, 0) + sum(s for _, s in of(result, function))
        for function in ("wait_200ms", "wait_60ms"):
            assert abs(shown[function] - due[function]) <= EXACT * due[function] + 0.05, f"{shown} of {due}"
        shared = [f for f in due if f not in ("wait_200ms", "wait_60ms", "wait_briefly")]
        far = [f for f in shared if abs(shown[f] - due[f]) > 0.2 * due[f]]
        yield f"watched for {off['watched']:.0%} of the time; {check_balance(result)}"
    assert not far, f"{far}: {shown} of {due} in {runs} runs"
    yield ", ".join(f"{f}: {shown[f]:.2f} of {due[f]:.2f} s" for f in due)


FIRST = """
i=0
while [ $i -lt 400 ]; do
    (j=0; while [ $j -lt 2000 ]; do j=$((j + 1)); done) &
    i=$((i + 1))
    [ $((i % 4)) = 0 ] && wait
done
"""


@yrt.measured
def test_first_run():
    """
    What processes wait for a CPU before they first run has no stack, and those that end at once leave nobody to make up
    for it: it is the run queue, right below the process.
    """
    first = shown = due = runs = 0
    with tempfile.TemporaryDirectory() as directory:
        script = os.path.join(directory, "many")
        with open(script, "w") as file:
            file.write(FIRST)
        while runs < 5 and (not runs or abs(shown - due) > 0.1 * due):
            result = yrt.run("off-flame", "-s", "--", "taskset", "-c", "0", "sh", script).expect()
            off, runs = result.stats["off"], runs + 1
            due += off["off_s"]
            shown += sum(ns for _, ns in result.stacks) * 1e-9 + result.missing(off["off_s"] * 1e9) * 1e-9
            first += sum(ns for frames, ns in result.stacks if frames[1:] == ["[run queue]"]) * 1e-9
    assert abs(shown - due) <= 0.1 * due, f"{shown} of {due} in {runs} runs"
    assert first > 0.01 * due, f"{first} of {due}\n{yrt.show(result.stacks)}"
    yield f"{first:.3f} of {due:.3f} s before processes first ran; {shown:.3f} s shown, in {runs} runs"


@yrt.measured
def test_locks():
    """
    lock-flame in shifts scales what it sees: a mutex that is held for 40 of 45 ms is waited for as long as without the
    pauses, and so are the semaphores of the pair, with all waits (--max-cpu 0) and without.
    """
    seen = {}
    with yrt.Fixture("shifts", seconds=60) as fixture:
        fixture.release()
        for name, seconds, options in (("shifts", 16, ()), ("all", 6, ("--max-cpu", 0))):
            result = yrt.run("lock-flame", "-p", fixture.pid, "-d", seconds, "--all-waits", *options).expect()
            lock = result.stats["lock"]
            assert (lock["watched"] < 0.9) == (name == "shifts"), lock
            seen[name] = [sum(s for _, s in of(result, f)) / seconds for f in ("wait_lock", "wait_turn")]
            yield (
                f"{name}, watched for {lock['watched']:.0%}: lock {seen[name][0]:.3f} s a second,"
                f" pair {seen[name][1]:.3f} s"
            )
    for shifts, all_of_them in zip(seen["shifts"], seen["all"]):
        assert abs(shifts - all_of_them) <= 0.3 * all_of_them, seen


yrt.main(globals())
