# SPDX-License-Identifier: Apache-2.0
"""off-flame: what a thread waits for where its system call is a rare one."""

import sys

import yrt

EXACT = 0.02

CALLS = """
import ctypes, os
empty, other = os.pipe(), os.pipe()
ctypes.CDLL(None).tee(empty[0], other[1], 1, 0)
"""


def test_other_call():
    """A system call that no word is for has its name."""
    with yrt.Program([sys.executable, "-c", CALLS]) as program:
        yrt.until(lambda: yrt.read(f"/proc/{program.pid}/syscall").startswith("276 "), "tee()", 20)
        result = yrt.run("off-flame", "-U", "-p", program.pid, "-d", 1).expect()
        program.kill()
    due, ns = result.stats["duration_s"], sum(n for frames, n in result.stacks if frames[-1] == "[tee]")
    assert abs(ns * 1e-9 - due) <= EXACT * due + 0.05, yrt.show(result.stacks)


yrt.main(globals())
