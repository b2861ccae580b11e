# SPDX-License-Identifier: Apache-2.0
"""Who may include whom, as the design says: one direction, no loops back."""

import os
import re
import sys

SOURCE = os.environ.get("YRT_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Directories that quoted and angled includes are looked up in, after the including file's own.
PATHS = ["", "unwind", "unwind/target/native", "unwind/target/bpf", "unwind/arch/x86_64", "probes"]
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
LIST = "runtimes/list.h"  # the one line elsewhere: no code, only names


def sources(*areas):
    for area in areas:
        for at, _, names in os.walk(os.path.join(SOURCE, area)):
            for name in names:
                if name.endswith((".c", ".h", ".cc")):
                    yield os.path.relpath(os.path.join(at, name), SOURCE)


def includes(path):
    """The files of the repository that a file includes (all meanings of a name that depends on the include path)."""
    with open(os.path.join(SOURCE, path), errors="replace") as f:
        names = INCLUDE.findall(f.read())
    for name in names:
        for base in [os.path.dirname(path), *PATHS]:
            found = os.path.normpath(os.path.join(base, name))
            if os.path.isfile(os.path.join(SOURCE, found)):
                yield found
                if base != "unwind/target/native":
                    break


def allowed(path, target):
    area, into = path.split("/")[0], target.split("/")[0]
    own = os.path.dirname(path)
    if path.startswith("unwind/shared/"):
        return target.startswith(("unwind/shared/", "unwind/arch/")) or os.path.basename(target) == "types.h"
    if path.endswith("_walk.c"):
        header = re.sub(r"_walk\.c$", ".h", path)
        parts = os.path.dirname(target) == own and target.endswith("_walk.h")  # of the same walk, in files of their own
        return parts or target in ("unwind/walk.h", header, re.sub(r"_walk\.c$", "_frames.h", path))
    if area == "unwind":
        return into == "unwind" or target == LIST
    if area == "runtimes":
        return into == "unwind" and not target.endswith("_internal.h") or os.path.dirname(target) == own
    if area == "probes":
        return into in ("unwind", "probes") or target == LIST
    if area == "frontends":
        return into in ("frontends", "unwind", "probes") and not target.endswith(("_internal.h", ".c")) or target == LIST
    raise AssertionError(f"{path}: not an area of the house")


# unwind/native_walk.c is the step of ordinary code: its tables are its own header.
NATIVE_WALK = {"unwind/walk.h", "unwind/find_region.h", "unwind/cfi/cfi.h", "unwind/shared/cfi.h", "unwind/shared/region.h"}

wrong, seen = [], 0
for path in sources("unwind", "runtimes", "probes", "frontends"):
    for target in includes(path):
        seen += 1
        if path == "unwind/native_walk.c" and (target in NATIVE_WALK or target.startswith("unwind/arch/")):
            continue
        if not allowed(path, target):
            wrong.append(f"{path} includes {target}")
print("\n".join(wrong) or f"{seen} includes keep to the rules")
sys.exit(bool(wrong) or seen < 50)
