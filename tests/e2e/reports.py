# SPDX-License-Identifier: Apache-2.0
"""What the tests of yrt report share. Not a test itself."""

import os
import subprocess

import yrt

FIXTURES = os.path.join(yrt.SOURCE, "fixtures", "report")
PROBLEMS = 10
# What the machine was busy with when it was recorded is true as well.
CIRCUMSTANCES = {"machine-busy", "no-symbols"}


def report(*arguments, codes=(0, PROBLEMS)):
    result = subprocess.run([yrt.YRT, "report", *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert result.returncode in codes, f"report {arguments} ended with {result.returncode}\n{result.stderr}"
    return result


def rules():
    return [line.split()[0] for line in report("--list").stdout.splitlines()]
