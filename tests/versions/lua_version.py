# SPDX-License-Identifier: Apache-2.0
"""
A build of PUC-Lua of luas.txt. Not a test itself.

    lua_version.py NAME COMMAND...       runs a test with that build in YRT_PUC_LUA; ends with 77 if it can not be had
"""

import glob
import os
import shlex
import subprocess
import sys

from python_version import BUILD, HERE, SOURCE, WRAPPER, download


def known():
    with open(os.path.join(HERE, "luas.txt")) as f:
        lines = [line.split() for line in f if line.strip() and not line.startswith("#")]
    return {name: words for name, *words in lines}


def of_suite(name, suite, package):
    """A program that runs the suite's Lua in mounts of its own."""
    root = os.path.join(BUILD, "suites", f"lua-{name}")
    download(name, suite, root, [package])
    path = os.path.join(BUILD, "suites", f"lua-{name}.sh")
    with open(path, "w") as f:
        f.write(
            WRAPPER.format(
                root=shlex.quote(root),
                source=SOURCE,
                build=BUILD,
                program=f"/usr/bin/{package}",
                environment="LC_ALL=C",
            )
        )
    os.chmod(path, 0o755)
    return path


def of_source(name, suite, package, compiler, *flags):
    """Upstream's source as Debian has it, stripped, as hosts embed it: all of Lua but its compiler in one program."""
    folder = os.path.join(BUILD, "suites", f"lua-{name}")
    program = os.path.join(folder, f"lua-{name}")
    if os.path.exists(program):
        return program
    download(name, suite, folder, [package], "-s")
    archive, = glob.glob(os.path.join(folder, f"{package}_*.orig.tar.gz"))
    exports = [] if "-Wl,--gc-sections" in flags else ["-Wl,-E"]  # that keeps what is exported
    script = f"""set -e
        mkdir -p source && tar -x -f {shlex.quote(archive)} -C source --strip-components 1 && cd source/src
        {compiler} -w -DLUA_USE_POSIX {shlex.join(flags)} -s -o {shlex.quote(program)} \\
            $(ls *.c | grep -v -e luac.c -e print.c) -lm -ldl {shlex.join(exports)}"""
    done = subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"it can not be built: {done.stderr}"
    return program


def main():
    name, command = sys.argv[1], sys.argv[2:]
    suite, *words = known()[name]
    lua = of_source(name, *words) if suite == "source" else of_suite(name, suite, *words)
    sys.exit(subprocess.run(command, env={**os.environ, "YRT_PUC_LUA": lua}).returncode)


if __name__ == "__main__":
    main()
