# SPDX-License-Identifier: Apache-2.0
"""C sources are as clang-format 14 (Debian 12's) lays them out by .clang-format: 120 columns, tabs."""

import os
import re
import shutil
import subprocess
import sys

SOURCE = os.environ.get("YRT_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VERSION = 14  # others break lines elsewhere
AT_ONCE = 100


def program():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        said = subprocess.run([path, "--version"], text=True, capture_output=True, check=True).stdout if path else ""
        if re.search(rf"version {VERSION}\.", said):
            return path
    sys.exit(f"no clang-format {VERSION} here: fixtures/setup.sh test installs it")


def sources():
    for at, dirs, names in os.walk(SOURCE):
        dirs[:] = [d for d in dirs if d not in ("build", ".git")]
        for name in names:
            if name.endswith((".c", ".h")):
                yield os.path.relpath(os.path.join(at, name), SOURCE)


found, path = sorted(sources()), program()
assert len(found) > 300, f"{len(found)} sources in {SOURCE}"
wrong = []
for i in range(0, len(found), AT_ONCE):
    said = subprocess.run(
        [path, "--dry-run", *found[i : i + AT_ONCE]], cwd=SOURCE, text=True, capture_output=True, check=True
    ).stderr
    wrong += re.findall(r"^[^\s:]+:\d+", said, re.M)
print(
    "\n".join(f"{place}: clang-format -i lays it out in another way" for place in wrong)
    or f"{len(found)} files are laid out by .clang-format"
)
sys.exit(bool(wrong))
