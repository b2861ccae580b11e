# SPDX-License-Identifier: Apache-2.0
"""
What `latency` costs a program that calls a function some 100,000 times a second: its calls in a second of its CPU time,
which has the probes' in it, beside yrt, which probes in shifts then, and alone, in blocks in turn. The same beside
funclatency, if there is one (Debian's libbpf-tools).
"""

import os
import shutil
import sys
import time

from bench_off import measure
from pairs import yrt

LEAST = 0.9
CYCLES = 20000  # of a call
PEER = shutil.which("funclatency")


def main():
    with yrt.Fixture("switches", CYCLES, seconds=600) as fixture:
        fixture.release()
        time.sleep(0.5)
        program = os.readlink(f"/proc/{fixture.pid}/exe")
        if PEER:
            measure(fixture, PEER, "-p", fixture.pid, ":work")
        return min(
            measure(fixture, "latency", "-e", f"{program}:work"),
            measure(fixture, "latency", "-e", f"{program}:work", "--over", "100ms"),
        ) < LEAST


sys.exit(main())
