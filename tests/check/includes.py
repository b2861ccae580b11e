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
    ("walking", ["arch", "shared", "walk.h", "find_region.h", "find_rule.h", "native_guess.h", "native_walk.c",
                 "driver.h"]),
    ("tools", ["arena", "clean_text", "cleanup", "edit_distance", "ends_with", "error", "frame_code", "grow",
               "hash_text", "hex_text", "known", "now", "open_files", "read_text", "report", "search", "sort_keys",
               "table", "thread_start"]),
    ("binary", ["binary", "target"]),
    ("code", ["code"]),
    ("runtimes' contract", ["argument_text", "runtime", "runtime.h", "runtime_alloc.h", "runtime_allocator.h",
                             "runtime_calls.h", "runtime_check", "runtime_heap.h", "runtime_rules.h",
                             "runtime_snapshot.h", "runtime_tasks.h", "runtime_types.h"]),
    ("dwarf", ["dwarf"]),
    ("cfi", ["cfi"]),
    ("symbols", ["symbols"]),
    ("layout", ["layout"]),
    ("process", ["process", "unwind"]),
    ("allocators", ["allocators"]),
    ("profile", ["profile"]),
    ("heap", ["heap"]),
]

# The same for a runtime that has rooms; "*" is what lies in its folder itself.
ROOMS = {
    "hotspot": [
        ("walk", ["walk"]),
        ("layout", ["layout"]),
        ("memory", ["memory"]),
        ("code", ["code"]),
        ("heap", ["heap"]),
        ("names", ["names"]),
        ("waits", ["waits"]),
        ("instance", ["hotspot_instance.h"]),
        ("alloc", ["alloc"]),
        ("refs", ["refs"]),
        ("operations", ["*"]),
    ]
}

SHARED = {"lua": "lua_common", "luajit": "lua_common"}  # what two runtimes of one language have in common


def layer(layers, below):
    """The number of a file's room; below: its path in the folder that the layers divide."""
    first = below.split("/")[0]
    for i, (_, parts) in enumerate(layers):
        if first in parts or os.path.splitext(first)[0] in parts or "*" in parts and "/" not in below:
            return i
    raise AssertionError(f"{below}: in no room: see LAYERS and ROOMS")


def above(path, target):
    """Does the target's room come later than that of path, which lies in the same divided folder?"""
    parts, others = path.split("/"), target.split("/")
    if parts[0] == others[0] == "unwind":
        layers, depth = LAYERS, 1
    elif parts[0] == others[0] == "runtimes" and parts[1] == others[1] and parts[1] in ROOMS:
        layers, depth = ROOMS[parts[1]], 2
    else:
        return False
    return layer(layers, "/".join(others[depth:])) > layer(layers, "/".join(parts[depth:]))


def allowed(path, target):
    if above(path, target):
        # of the side that a walker is compiled for
        return os.path.basename(target) in ("types.h", "target.h", "walk_target.h")
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
        runtime, other = path.split("/")[1], target.split("/")[1]
        own = into == "runtimes" and other in (runtime, SHARED.get(runtime))
        return own or into == "unwind" and not target.endswith("_internal.h")
    if area == "probes":
        return into in ("unwind", "probes") or target == LIST
    if area == "frontends":
        return (
            into in ("frontends", "unwind", "probes") and not target.endswith(("_internal.h", ".c")) or target == LIST
        )
    raise AssertionError(f"{path}: not an area of the house")


# unwind/native_walk.c is the step of ordinary code: its tables are its own header.
NATIVE_WALK = {
    "unwind/walk.h",
    "unwind/find_region.h",
    "unwind/find_rule.h",
    "unwind/native_guess.h",
    "unwind/cfi/cfi.h",
    "unwind/shared/cfi.h",
    "unwind/shared/region.h",
}


def main():
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


if __name__ == "__main__":
    main()
