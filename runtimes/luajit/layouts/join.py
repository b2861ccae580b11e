#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""join.py BUILDS OUT NAME..: one file for all builds with the same layout, called after the first of them.

BUILDS/NAME is what make.sh made of a build: comments, keys, then the layout."""
import pathlib
import sys

KEYS = ("#", "build-id ", "version ", "runtime ")


def main():
    builds, out, names = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    families = {}
    for name in names:
        lines = (builds / name).read_text().splitlines()
        body = tuple(line for line in lines if not line.startswith(KEYS))
        families.setdefault(body, []).append((name, [line for line in lines if line.startswith(KEYS)]))
    for old in out.glob("*.layout"):
        old.unlink()
    for body, members in families.items():
        head = [
            "# SPDX-License-Identifier: Apache-2.0",
            "# made by make.sh; the layout of each of these builds",
            "runtime luajit",
        ]
        seen = set()
        for _, keys in members:
            for line in keys:
                if line in seen or line.startswith("runtime "):
                    continue
                seen.add(line)
                head.append(line)
        (out / f"{members[0][0]}.layout").write_text("\n".join(head + list(body)) + "\n")
    print(f"{len(names)} builds, {len(families)} layouts")


main()
