# SPDX-License-Identifier: Apache-2.0
"""
The collector of cycles is shown as "(gc)", inside of what allocated and outside of its own functions, in stripped
interpreters too.
"""

import os
import re

import yrt

PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "python", "collecting.py")
GC, TOLERANCE, ENOUGH = "(gc)", 0.04, 1500
# only the collector calls these, by symbols or by the slots of types
INSIDE = re.compile(
    r"(^|\.)tp_traverse$|^visit_(decref|reachable)$|^(subtract_refs|move_unreachable|deduce_unreachable)$|__del__"
    r" \(collecting"
)


@yrt.measured
def test_share_and_order():
    samples, seen, used, spent = 0, 0, 0.0, 0.0
    for _ in range(5):
        with yrt.Fixture(PYTHON, SCRIPT, 4, seconds=None) as f:
            result, truth = yrt.sample_whole(f, view="python-flame")
        samples += result.samples
        used += truth["cpu_s"]
        spent += truth["gc_cpu_s"]
        for frames, n in result.stacks:
            assert frames.count(GC) <= 1, f"{frames}"
            if GC in frames:
                seen += n
                outside = frames[:frames.index(GC)]
                assert any(
                    re.match(
                        r"(build|count|main|Node\.__init__|__init__|<listcomp>|build\..*|<module>) \(collecting", x
                    )
                    for x in outside
                ), f"{frames}"
                assert not any(INSIDE.search(x) for x in outside), f"{frames}"
            else:
                assert not any(INSIDE.search(x) for x in frames), f"{frames}"
        if samples >= ENOUGH:
            break
    assert samples >= ENOUGH, samples
    ours, theirs = seen / samples, spent / used
    assert (
        theirs > 0.1 and abs(ours - theirs) < TOLERANCE
    ), f"(gc) in {ours:.3f} of {samples} samples, {theirs:.3f} of the CPU time"
    yield f"(gc) in {ours:.3f} of {samples} samples, {theirs:.3f} of the CPU time"


yrt.main(globals())
