# SPDX-License-Identifier: Apache-2.0
"""
A build of Perl of perls.txt. Not a test itself.

    perl_version.py NAME COMMAND...       runs a test with that build in YRT_PERL; ends with 77 if it can not be had
"""

import glob
import os
import shlex
import subprocess
import sys

from python_version import BUILD, HERE, WRAPPER, download


def known():
    with open(os.path.join(HERE, "perls.txt")) as f:
        lines = [line.split() for line in f if line.strip() and not line.startswith("#")]
    return {name: words for name, *words in lines}


def of_suite(name, suite, *packages):
    """A program that runs the suite's Perl in mounts of its own."""
    root = os.path.join(BUILD, "suites", f"perl-{name}")
    download(name, suite, root, packages)
    path = os.path.join(BUILD, "suites", f"perl-{name}.sh")
    source = os.environ.get("YRT_SOURCE") or os.path.dirname(os.path.dirname(HERE))
    with open(path, "w") as f:
        f.write(WRAPPER.format(root=shlex.quote(root), source=source, build=BUILD, program="/usr/bin/perl", environment="LC_ALL=C"))
    os.chmod(path, 0o755)
    return path


def of_source(name, suite, *options):
    folder = os.path.join(BUILD, "suites", f"perl-{name}")
    program = os.path.join(folder, "built", "bin", "perl")
    if os.path.exists(program):
        return program
    download(name, suite, folder, ["perl"], "-s")
    archive, = (path for path in glob.glob(os.path.join(folder, "perl_*.orig.tar.*")) if not path.endswith(".asc"))
    script = f"""set -e
        mkdir -p source && tar -x -f {shlex.quote(archive)} -C source --strip-components 1 && cd source
        ./Configure -des -Doptimize='-O2' -Dprefix={folder}/built -Dman1dir=none -Dman3dir=none {shlex.join(options)}
        make -s -j2 && make -s install.perl"""
    log = os.path.join(folder, "build.log")
    with open(log, "w") as f:
        assert subprocess.run(["sh", "-c", script], cwd=folder, stdout=f, stderr=f).returncode == 0, f"it can not be built: {log} tells why"
    return program


def main():
    name, command = sys.argv[1], sys.argv[2:]
    suite, *words = known()[name]
    perl = of_source(name, *words) if suite == "source" else of_suite(name, suite, *words)
    sys.exit(subprocess.run(command, env={**os.environ, "YRT_PERL": perl}).returncode)


if __name__ == "__main__":
    main()
