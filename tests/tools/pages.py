# SPDX-License-Identifier: Apache-2.0
"""Profiles for tests of the page. Not a test itself."""

import os
import random

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("YRT_BUILD") or os.path.join(SOURCE, "build", "release")
MKPROFILE = os.path.join(BUILD, "yrt-mkprofile")


def big_profile(nodes, seed=7):
    """Stacks, as yrt-mkprofile takes them, whose tree has about so many nodes."""
    rng, lines, made, path = random.Random(seed), [], 0, []
    kinds = ("native", "kernel", "script", "jit", "vm", "c++")
    while made < nodes:
        trunk = "main;loop;" + "".join("phase_%d_%d;" % (made * 8 // nodes, i) for i in range(6))
        path = path[:rng.randrange(len(path) + 1)]
        while len(path) < 60 and rng.random() < 0.92:
            f = rng.randrange(20000)
            path.append("function_%d|%s|module_%d" % (f, kinds[f % 6], f % 30))
            made += 1
        lines.append("%s%s %d\n" % (trunk, ";".join(path) or "idle", rng.randrange(1, 50)))
    return "".join(lines)
