# SPDX-License-Identifier: Apache-2.0
"""
A library in assembly, and a program that calls it.
"""

import os
import subprocess
import tempfile

import yrt


def sample(library, program, *args):
    """The samples of a program that calls a library, of half a second of its CPU time or so long as the arguments say,
    and their stacks as texts."""
    with tempfile.TemporaryDirectory() as directory:
        paths = {name: os.path.join(directory, name) for name in ("library.s", "library.so", "program.c", "program")}
        for name, text in (("library.s", library), ("program.c", program)):
            with open(paths[name], "w") as out:
                out.write(text)
        subprocess.run(["gcc", "-shared", "-o", paths["library.so"], paths["library.s"]], check=True)
        subprocess.run(["gcc", "-O2", "-o", paths["program"], paths["program.c"], paths["library.so"]], check=True)
        with subprocess.Popen([paths["program"]]) as process:
            try:
                if args:
                    result = yrt.run("c-flame", "-p", process.pid, "-F", 1999, "--annotate", *args).expect()
                else:
                    result = yrt.sample_busy("c-flame", [process.pid], "-U", "--annotate", seconds=0.5)
            finally:
                yrt.stop(process)
    return result, [(";".join((*frames, "")), n) for frames, n in result.stacks]
