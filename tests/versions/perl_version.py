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

from python_version import BUILD, HERE, WRAPPER, download, skip


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
        f.write(
            WRAPPER.format(
                root=shlex.quote(root), source=source, build=BUILD, program="/usr/bin/perl", environment="LC_ALL=C"
            )
        )
    os.chmod(path, 0o755)
    return path


# Of 5.16 to 5.20 and a C library of today: a member of crypt()'s buffer that is no more.
OLD = "s/PL_reentrant_buffer->_crypt_struct_buffer->current_saltbits = 0;/;/"
# Before 5.30 Configure takes gcc 10 and later for gcc 1, and leaves out -fno-strict-aliasing: miniperl crashes.
FLAGS = "-fwrapv -fno-strict-aliasing -freg-struct-return"
LESS = "DB_File GDBM_File NDBM_File ODBM_File IPC/SysV Unicode/Normalize Unicode/Collate"


def build(folder, unpack, options):
    """What the shell command unpack puts into folder/source, built without symbols and debug information."""
    program = os.path.join(folder, "built", "bin", "perl")
    script = f"""set -e
        mkdir -p source && {unpack} && cd source && sed -i '{OLD}' pp.c
        ./Configure -des -Doptimize=-O2 -Accflags='{FLAGS}' -Dlibs='-lm -lcrypt -ldl -lpthread -lc' -Dprefix={folder}/built -Dman1dir=none -Dman3dir=none \
            -Dnoextensions='{LESS}' {shlex.join(options)}
        make -s -j2 && make -s install.perl && strip {program}"""
    log = os.path.join(folder, "build.log")
    with open(log, "w") as f:
        assert (
            subprocess.run(["sh", "-c", script], cwd=folder, stdout=f, stderr=f).returncode == 0
        ), f"it can not be built: {log} tells why"


def of_source(name, suite, *options):
    folder = os.path.join(BUILD, "suites", f"perl-{name}")
    program = os.path.join(folder, "built", "bin", "perl")
    if not os.path.exists(program):
        download(name, suite, folder, ["perl"], "-s")
        archive, = (path for path in glob.glob(os.path.join(folder, "perl_*.orig.tar.*")) if not path.endswith(".asc"))
        build(folder, f"tar -x -f {shlex.quote(archive)} -C source --strip-components 1", options)
    return program


def of_git(name, tag, *options):
    """Of a clone of Perl's repository."""
    clone = os.environ.get("YRT_PERL_GIT")
    if not clone:
        skip(name, "YRT_PERL_GIT names no clone of Perl's repository")
    folder = os.path.join(BUILD, "suites", f"perl-{name}")
    program = os.path.join(folder, "built", "bin", "perl")
    if not os.path.exists(program):
        os.makedirs(folder, exist_ok=True)
        build(folder, f"git -C {shlex.quote(clone)} archive {tag} | tar -x -C source", options)
    return program


def main():
    name, command = sys.argv[1], sys.argv[2:]
    suite, *words = known()[name]
    of = {"source": of_source, "git": of_git}.get(suite)
    perl = of(name, *words) if of else of_suite(name, suite, *words)
    sys.exit(subprocess.run(command, env={**os.environ, "YRT_PERL": perl}).returncode)


if __name__ == "__main__":
    main()
