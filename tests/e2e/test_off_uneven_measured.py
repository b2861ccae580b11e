# SPDX-License-Identifier: Apache-2.0
"""
off-flame where waits of two lengths follow each other in each thread, so often that a part of them is chosen: each has
the time that the program says, but for what the last line allows.
"""

import yrt


@yrt.measured
def test_uneven():
    with yrt.Fixture("uneven", seconds=6) as fixture:
        at = yrt.Run("off-flame", "-p", fixture.pid, "-d", 600).sampling()
        fixture.release()
        truth = fixture.finish()["off"]
        result = at.result().expect()
    off = result.stats["off"]
    assert off["waits_without_stack"] > off["waits"] / 4, f"it is not too much: {off}"
    for function, due in truth.items():
        shown = sum(ns for frames, ns in result.stacks if function in frames) * 1e-9
        yield f"{function}: {shown:.2f} of {due:.2f} s"
        # off_by is of a share, two deviations: of a sum there are more
        allowed = 0.03 * due + 3 * off["off_by"] * off["off_s"]
        assert abs(shown - due) < allowed, f"{function}: {shown} of {due}: {off}"


yrt.main(globals())
