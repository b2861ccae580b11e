# SPDX-License-Identifier: Apache-2.0
"""
Samples of virtual threads that compete for monitors, and what one that is pinned waits for, in JVMs as java_virtual.py
finds them.
"""

import re

import java
import yrt
from java_virtual import needed

RATE = 4999  # what may be wrong is so in 0.1 % of the samples
CUT = "[truncated: vm_frozen]"  # the caller of the outermost frame is overwritten while the VM copies that frame
MOST_CUT = 0.001


def preempted(*options):
    """
    Stacks do not have the frames of a thread twice, nor lack its outermost ones unless they say so, while it is
    unmounted at a monitor or in Object.wait().
    """
    with needed(), java.Java("preempted", options=("-Djdk.virtualThreadScheduler.parallelism=2", *options)) as jvm:
        result = yrt.run("java-flame", "-p", jvm.pid, "-F", RATE, "-d", 5, "--max-cpu", 0).expect()
    own, cut, wrong = 0, 0, []
    for frames, n in result.stacks:
        names = [re.split("[ (]", f.removeprefix("~ ").removeprefix("? "))[0] for f in frames]
        if "preempted.work" not in names:
            continue
        own += n
        if names.count("preempted.work") > 1 or "jdk.internal.vm.Continuation.enter" not in names:
            if frames[0] == CUT and names.count("preempted.work") == 1:
                cut += n
            else:
                wrong.append((frames, n))
    assert own > 30 and not wrong, f"{sum(n for _, n in wrong)} of {own}\n{yrt.show(wrong)}"
    assert cut <= max(4, MOST_CUT * own), f"{cut} of {own} are cut"
    yield f"{own} stacks, {cut} of them cut and marked"


@yrt.measured
def test_preempted():
    yield from preempted()


@yrt.measured
def test_preempted_interpreter():
    yield from preempted("-Xint")


@yrt.measured
def test_preempted_z():
    yield from preempted("-XX:+UseZGC")


@yrt.measured
def test_pinned_lock():
    """One that parks on its carrier waits for what it has noted itself, not its carrier: lock-flame and dump."""
    with needed(), java.Java("pinned_lock") as jvm:
        at = yrt.Run("java-lock-flame", "-p", jvm.pid, "-d", 600, "--max-cpu", 0).sampling()
        jvm.release()
        jvm.answer()
        dumped = yrt.run("dump", "-p", jvm.pid, output=False, stats=False).expect().stdout
        jvm.release()
        own = jvm.answer()["waited"]
        result = at.result().expect()
    waits = {
        frames[-1]: ns * 1e-9
        for frames, ns in result.stacks
        if any(f.split("(")[0] == "pinned_lock.take" for f in frames)
    }
    shown = waits.get("[lock java.util.concurrent.locks.ReentrantLock$NonfairSync]", 0)
    assert abs(shown - own) < 0.02 * own + result.slack(own), f"{own}\n{yrt.show(result.stacks)}"
    assert "java.util.concurrent.locks.ReentrantLock$NonfairSync" in dumped, dumped
    yield f"{shown:.3f} of {own:.3f} s"


yrt.main(globals())
