# SPDX-License-Identifier: Apache-2.0
"""
What hides inside modules: tests that could not run, and those that failed or passed only at a later attempt
(yrt.passes), some because the host disturbed the earlier ones. All are reported, each with what its last failure said;
more than MOST fail the run, or more than MOST_DISTURBED. MOST is 1 % of the tests, not 0: most of them measure programs
on a machine that others use, too, and what is broken fails at each attempt.
"""

import contextlib
import os
import sys

LIST = os.path.join(os.environ["YRT_BUILD"], "attempts.txt")  # tests/run.sh shows it
MOST, MOST_DISTURBED = 6, 12


def note(word, test):
    """word: "failed", "flaky", "disturbed" or "skipped"."""
    with open(LIST, "a") as file:
        file.write(f"{word}: {test}\n")


def begin():
    with contextlib.suppress(FileNotFoundError):
        os.remove(LIST)


def end():
    tests = []
    with contextlib.suppress(FileNotFoundError), open(LIST) as file:
        tests = file.read().split("\n")[:-1]
    flaky, disturbed = (sum(test.startswith(word) for test in tests) for word in ("flaky: ", "disturbed: "))
    print("".join(f"{test}\n" for test in tests) + f"{flaky} tests passed only at a later attempt, {MOST} may, "
          f"{disturbed} because the host disturbed the earlier ones, {MOST_DISTURBED} may")
    sys.exit(flaky > MOST or disturbed > MOST_DISTURBED)


if __name__ == "__main__":
    {"begin": begin, "end": end}[sys.argv[1]]()
