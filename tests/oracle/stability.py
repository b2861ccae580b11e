# SPDX-License-Identifier: Apache-2.0
"""
Two runs of one program have to give the same names: a name that depends on what was seen first is in one of them only.
"""

import collections
import re

# samples that the other run should have of a name, at least, before it is missed: by chance none are seen in one of 5e8
# such cases
SURE = 20


def names(profile):
    """
    Without numbers that differ, and without the folders of files: a profile has as many as it needs to tell its files
    apart. ({name of a function of a language or of a file with symbols: samples}, samples)
    """
    found = collections.Counter()
    for stack in profile.stacks:
        for name in {
            f.plain for f in stack.frames if (f.script or f.mapping.startswith("/")) and "guess" not in f.marks
        }:
            found[re.sub(r"(0x[0-9a-f]{6,}|\$\d+|/\d+|(?<=\()[^()]*/)", "", name)] += stack.count
    return found, sum(s.count for s in profile.stacks)


def differences(first, second):
    (a, na), (b, nb) = names(first), names(second)
    found = []
    for name in a.keys() | b.keys():
        for x, nx, y, ny in ((a[name], na, b[name], nb), (b[name], nb, a[name], na)):
            if not y and nx and x * ny / nx >= SURE:
                found.append(f"{name}: in {x} of {nx} samples of one run, in none of {ny} of the other")
    return sorted(found)
