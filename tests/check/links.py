# SPDX-License-Identifier: Apache-2.0
"""No circle of rooms, by what the built objects take from each other: a declaration elsewhere hides none."""

import collections
import glob
import os
import subprocess
import sys

from includes import SOURCE, above

BUILD = os.environ["YRT_BUILD"]
TARGETS = ("yrt_core", "yrt_probes", "yrt_format", "yrt_report", "yrt_ylang", "yrt")
# Files that name all members of a list.h: the only ones that may know those above them.
LISTS = {"unwind/runtime.c", "unwind/unwind.c", "probes/event.c"}
ARENA = ("unwind/native_walk.c", "arena_at")  # how unwind/target/native/ reads tables


def objects():
    """The path of each source and its object."""
    for target in TARGETS:
        base = os.path.join(BUILD, "CMakeFiles", target + ".dir")
        for found in glob.glob(os.path.join(base, "**", "*.c.o"), recursive=True):
            path = os.path.relpath(found, base)[:-2]
            if os.path.isfile(os.path.join(SOURCE, path)):  # not one of a file that is gone, nor generated
                yield path, found


def links():
    """(user, definer, name): all that an object takes from another one of yrt."""
    defined, wanted = {}, []
    paths = {found: path for path, found in objects()}
    lines = subprocess.run(["nm", "-A", *paths], capture_output=True, text=True, check=True).stdout.splitlines()
    for line in lines:
        found, kind, name = line.split(":", 1)[0], *line.split()[-2:]
        if kind == "U":
            wanted.append((paths[found], name))
        elif kind in "TDBRC":
            defined[name] = paths[found]
    return [(user, defined[name], name) for user, name in wanted if name in defined]


def circles(edges):
    """Sets of rooms that lead to each other."""
    reach = {}
    for room in edges:
        seen, todo = set(), [room]
        while todo:
            for into in edges.get(todo.pop(), ()):
                if into not in seen:
                    seen.add(into)
                    todo.append(into)
        reach[room] = seen
    return {frozenset(b for b in reach[a] if a in reach.get(b, ())) for a in reach if a in reach[a]}


def main():
    found = links()
    edges, wrong = collections.defaultdict(lambda: collections.defaultdict(list)), []
    for user, definer, name in found:
        a, b = os.path.dirname(user), os.path.dirname(definer)
        if user in LISTS:
            continue
        if (user, name) != ARENA and above(user, definer):
            wrong.append(f"{user} calls {name}() of {definer}, in a later room")
        if a != b and "unwind" not in (a, b):  # whose own files are several rooms: above()
            edges[a][b].append(f"{os.path.basename(user)} takes {name}")
    for circle in circles(edges):
        ties = [f"  {a} -> {b}: {edges[a][b][0]}" for a in sorted(circle) for b in sorted(edges[a]) if b in circle]
        wrong.append("\n".join(["a circle of rooms:", *ties]))
    print("\n".join(wrong) or f"{len(found)} links between objects make no circle of rooms")
    sys.exit(bool(wrong) or len(found) < 1000)


if __name__ == "__main__":
    main()
