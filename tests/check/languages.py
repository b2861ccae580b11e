# SPDX-License-Identifier: Apache-2.0
"""
A language is known in its own folder only: outside of runtimes/ no code names one. Comments may, and the texts of
commands.
"""

import os
import re
import sys

SOURCE = os.environ.get("YRT_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAMES = re.compile(r"\w*(?:python|cython|lua|hotspot|java|jvm|jdk|perl|golang|goroutine|gopclntab)\w*", re.I)
COMMENT, TEXT = r"/\*.*?\*/|//[^\n]*", r'"(?:\\.|[^"\\])*"'
# Files, and what they may name: no code that works with a language.
ALLOWED = {
    "unwind/process/other_language.c": "JavaScript",  # which no folder of runtimes/ knows
    "unwind/shared/frame.h": "RUNTIME_",  # the numbers that stand in recordings
    "frontends/cli/java_alloc.c": "",  # the only <view>-alloc of an event of its own
    "frontends/cli/cli.h": "java_alloc",
    "frontends/cli/main.c": "java_alloc",
    "frontends/format/jfr.c": "",  # a format whose types have such names
    "probes/tlab/tlab.c": "openjdk",  # the package to install
}


def code(path, text):
    other = f"{COMMENT}|{TEXT}" if path.startswith("frontends/cli/") or path.endswith("_command.c") else COMMENT
    return re.sub(other, lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)


wrong, seen = [], 0
for area in ("unwind", "probes", "frontends"):
    for at, _, names in os.walk(os.path.join(SOURCE, area)):
        for name in names:
            path = os.path.relpath(os.path.join(at, name), SOURCE)
            if not name.endswith((".c", ".h")):
                continue
            seen += 1
            with open(os.path.join(SOURCE, path)) as file:
                lines = code(path, file.read()).split("\n")
            wrong += [f"{path}:{i}: {m[0]}" for i, line in enumerate(lines, 1) for m in NAMES.finditer(line)
                      if path not in ALLOWED or ALLOWED[path] not in m[0]]
print("\n".join(wrong) or f"{seen} files name no language")
sys.exit(bool(wrong) or seen < 200)
