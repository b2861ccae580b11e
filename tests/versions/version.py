# SPDX-License-Identifier: Apache-2.0
"""
A build of LuaJIT of versions.txt, unpacked by fixtures/suites.sh below the build directory. Not a test itself.

    version.py NAME COMMAND...    runs a test with the host of that build; ends with 77 if its suite can not be reached
"""

import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("YRT_SOURCE") or os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ["YRT_BUILD"]
SKIPPED, UNREACHABLE = 77, 3
LIBRARIES = "usr/lib/x86_64-linux-gnu"


def number(text):
    return tuple(map(int, re.match(r"(\d+)\.(\d+)", text).groups()))


class Version:
    """
    root: the folder it is unpacked to. prefix: words that run a program with that suite's own libraries, if it needs
    them.
    """

    def __init__(self, name):
        with open(os.path.join(HERE, "versions.txt")) as f:
            lines = [line.split() for line in f if line[0].isalnum()]
        known = {words[0]: words[1:] for words in lines}
        assert name in known, f"{name} is not in versions.txt: {', '.join(known)}"
        self.name = name
        self.suite, self.kind, *packages = known[name]
        self.root = os.path.join(BUILD, "suites", name)
        self.unpack(*packages)

    def unpack(self, *packages):
        done = subprocess.run(["sh", os.path.join(SOURCE, "fixtures", "suites.sh"), self.suite, self.root, *packages])
        if done.returncode == UNREACHABLE:
            print(f"skipped: {self.name}: the suite {self.suite} can not be reached (see above)", flush=True)
            sys.exit(SKIPPED)
        assert done.returncode == 0, f"suites.sh {self.suite} {self.root} {packages} ended with {done.returncode}"

    def find(self, pattern):
        found = sorted(glob.glob(os.path.join(self.root, pattern)))
        assert found, f"{self.name} has no {pattern}"
        return os.path.realpath(found[0])

    @property
    def loader(self):
        """Words that run a program with the suite's C library and all else of it."""
        return [self.find(f"{LIBRARIES}/ld-linux-x86-64.so.2"), "--library-path", os.path.join(self.root, LIBRARIES)]

    @property
    def prefix(self):
        """The loader, if the suite's libraries need a newer C library than the machine's."""
        with open(os.path.join(self.root, ".apt", "status")) as f:
            theirs = re.search(r"^Package: libc6\n(?:.+\n)*?Version: (.*)", f.read(), re.M).group(1)
        return self.loader if number(theirs) > number(os.confstr("CS_GNU_LIBC_VERSION").split()[1]) else []

    def host(self):
        """Words that run fixtures/lua/host.c with this build."""
        host = os.path.join(BUILD, "fixtures", "lua_host")
        if self.kind != "shared":
            return [*self.prefix, self.static_host()]
        return [*self.prefix, host, "-l", self.find(f"{LIBRARIES}/libluajit-5.1.so.2")]

    def static_host(self):
        path = os.path.join(self.root, "lua_host")
        flags = ["-rdynamic"] if self.kind == "exported" else []
        if self.prefix:  # its C library, that the archive was compiled for
            flags += [f"--sysroot={self.root}", "-L" + os.path.join(self.root, LIBRARIES)]
        subprocess.run(
            [
                "cc",
                "-std=gnu17",
                "-O2",
                "-s",
                *flags,
                "-DSTATIC",
                "-o",
                path,
                os.path.join(SOURCE, "fixtures", "lua", "host.c"),
                self.find(f"{LIBRARIES}/libluajit-5.1.a"),
                "-lm",
            ],
            check=True,
        )
        return path


if __name__ == "__main__":
    os.environ["YRT_LUA_VERSION"] = sys.argv[1]
    os.environ["YRT_LUA_HOST"] = " ".join(Version(sys.argv[1]).host())
    os.execv(sys.argv[2], sys.argv[2:])
