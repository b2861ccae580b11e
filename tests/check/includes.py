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


# The rooms of unwind/, each above those before it. A room is a folder, or files of unwind/ itself.
LAYERS = [
    ("walking", ["arch", "shared", "walk.h", "find_region.h", "native_walk.c", "driver.h"]),
    ("tools", ["arena", "cleanup", "error", "grow", "now", "report", "table"]),
    ("binary", ["binary", "target"]),
    ("runtimes' contract", ["runtime.h", "runtime_alloc.h", "runtime_snapshot.h"]),
    ("dwarf", ["dwarf"]),
    ("cfi", ["cfi"]),
    ("symbols", ["symbols"]),
    ("layout", ["layout"]),
    ("process", ["process", "unwind"]),
    ("profile", ["profile"]),
]


def layer(path):
    """The number of a file's room in LAYERS."""
    first = path.split("/")[1]
    for i, (_, parts) in enumerate(LAYERS):
        if first in parts or os.path.splitext(first)[0] in parts:
            return i
    raise AssertionError(f"{path}: in no room of unwind/: see LAYERS")


def allowed(path, target):
    if path.startswith("unwind/") and target.startswith("unwind/") and layer(target) > layer(path):
        return os.path.basename(target) in ("types.h", "target.h", "walk_target.h")  # of the side that a walker is compiled for
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
