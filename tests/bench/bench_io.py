# SPDX-License-Identifier: Apache-2.0
"""
What io-flame costs programs that do nothing but read and write: the CPU time of dd for a fixed number of blocks, which
has the probes' in it, alone and beside yrt, in blocks in turn; the same beside strace -c, which counts the same calls.
"""

import os
import resource
import statistics
import subprocess
import sys

from pairs import Beside, yrt

BLOCKS = 3
# block size, blocks, the least that is left of the rate: a call of 0.3 us is too short to be traced for free
SIZES = ((1, 2000000, 0.2), (4096, 2000000, 0.2), (65536, 600000, 0.5), (1048576, 30000, 0.8))


def cpu(source, size, count):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["dd", f"if={source}", "of=/dev/null", f"bs={size}", f"count={count}", "status=none"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(source, size, count):
    left, alone = [], []
    for _ in range(BLOCKS):
        before = cpu(source, size, count)
        with Beside(yrt.YRT, "io-flame", "-p", os.getpid(), "-s", "-d", 60, "-f", "folded", "-o", "/dev/null"):
            beside = cpu(source, size, count)
        alone += [before, cpu(source, size, count)]
        left.append(statistics.mean(alone[-2:]) / beside)
    one = statistics.median(alone)
    traced = cpu_traced(source, size, count // 10) * 10
    print(
        f"blocks of {size} bytes, {2 * count / one:.0f} calls in a second of CPU alone: {statistics.median(left):.3f}"
        f" of that beside io-flame ({', '.join(f'{r:.3f}' for r in left)}), {one / traced:.3f} beside strace -c"
    )
    return statistics.median(left)


def cpu_traced(source, size, count):
    """Of dd and of strace, which it waits for at each call."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [
            "strace",
            "-c",
            "-o",
            "/dev/null",
            "dd",
            f"if={source}",
            "of=/dev/null",
            f"bs={size}",
            f"count={count}",
            "status=none",
        ],
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


sys.exit(any([measure("/dev/zero", size, count) < least for size, count, least in SIZES]))
