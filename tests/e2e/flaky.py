# SPDX-License-Identifier: Apache-2.0
"""Counts the tests of a run that passed only at their second attempt (yrt.main): they are reported, and more than MOST fail the run."""

import contextlib
import os
import sys

LIST = os.path.join(os.environ["YRT_BUILD"], "flaky.txt")
MOST = 2


def note(test):
    with open(LIST, "a") as file:
        file.write(test + "\n")


def begin():
    with contextlib.suppress(FileNotFoundError):
        os.remove(LIST)


def end():
    tests = []
    with contextlib.suppress(FileNotFoundError), open(LIST) as file:
        tests = file.read().split("\n")[:-1]
    print("".join(f"flaky: {test}\n" for test in tests) + f"{len(tests)} tests passed only at their second attempt, {MOST} may")
    sys.exit(len(tests) > MOST)


if __name__ == "__main__":
    {"begin": begin, "end": end}[sys.argv[1]]()
