# SPDX-License-Identifier: Apache-2.0
"""
A build of Python of pythons.txt. Not a test itself.

    python_version.py NAME COMMAND...       runs a test with that build in YRT_PYTHON; ends with 77 if it can not be had
"""

import glob
import os
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("YRT_SOURCE") or os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ["YRT_BUILD"]
SKIPPED, UNREACHABLE = 77, 3

# In mounts of its own the suite's folder has what a program needs: the tests' files at their places, and the kernel's.
WRAPPER = """#!/bin/sh
export PYTHON_ROOT={root}
exec unshare --mount --propagation private sh -c '
for directory in /proc /dev /tmp {source} {build}; do
	mkdir -p "$PYTHON_ROOT$directory" && mount --rbind "$directory" "$PYTHON_ROOT$directory" || exit 126
done
exec chroot "$PYTHON_ROOT" /usr/bin/{program} "$@"' sh "$@"
"""


def skip(name, reason):
    print(f"skipped: {name}: {reason}", flush=True)
    sys.exit(SKIPPED)


def of_suite(name, version, suite, packages):
    root = os.path.join(BUILD, "suites", f"python-{name}")
    done = subprocess.run(["sh", os.path.join(SOURCE, "fixtures", "suites.sh"), suite, root, *packages], stderr=subprocess.PIPE, text=True)
    if done.returncode == UNREACHABLE:
        skip(name, f"the suite {suite} can not be reached: {done.stderr.strip()}")
    if done.returncode and "Unable to locate package" in done.stderr:
        skip(name, f"the suite {suite} has no {' '.join(packages)}")
    assert done.returncode == 0, f"suites.sh {suite} {root} {packages} ended with {done.returncode}: {done.stderr}"
    path = os.path.join(BUILD, "suites", f"{name}.sh")
    with open(path, "w") as f:
        f.write(WRAPPER.format(root=shlex.quote(root), source=SOURCE, build=BUILD, program=f"python{version}"))
    os.chmod(path, 0o755)
    return path


def of_pyenv(name, version):
    found = subprocess.run(["sh", "-c", "pyenv root"], capture_output=True, text=True)
    if found.returncode:
        skip(name, "there is no pyenv")
    pythons = glob.glob(os.path.join(found.stdout.strip(), "versions", f"{version}.*", "bin", f"python{version}"))
    if not pythons:
        skip(name, f"pyenv has no {version}")
    return max(pythons, key=lambda path: int(path.split("/")[-3].split(".")[2]))


def find(name):
    with open(os.path.join(HERE, "pythons.txt")) as f:
        known = {words[0]: words[1:] for words in (line.split() for line in f if line[0].isalnum())}
    assert name in known, f"{name} is not in pythons.txt: {', '.join(known)}"
    version, source, *packages = known[name]
    return of_pyenv(name, version) if source == "pyenv" else of_suite(name, version, source, packages)


if __name__ == "__main__":
    os.environ["YRT_PYTHON"] = find(sys.argv[1])
    said = subprocess.run([os.environ["YRT_PYTHON"], "-VV"], capture_output=True, text=True)
    print(f"{sys.argv[1]}: {said.stdout.strip() or said.stderr.strip()}", flush=True)
    assert said.returncode == 0, f"{os.environ['YRT_PYTHON']} does not run"
    os.execv(sys.argv[2], sys.argv[2:])
