# SPDX-License-Identifier: Apache-2.0
"""
A JDK of jdks.txt, unpacked by fixtures/suites.sh below the build directory. Not a test itself.

    jdk.py NAME MODES COMMAND...    runs a test with that JDK in those modes of tests/e2e/java.py (joined by commas; -
                                    for none); ends with 77 if its suite can not be reached, or the JDK has none of
                                    these modes
"""

import glob
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("YRT_SOURCE") or os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ["YRT_BUILD"]
SKIPPED, UNREACHABLE = 77, 3
WITHOUT_SYMBOLS = 8  # its libjvm is stripped: java-alloc needs the debug file
WITH_COMPILER = 21  # from then on there are fixtures that only its own javac can compile


class Jdk:
    """prefix: words that run a program of the JDK's suite. version: the major one."""

    def __init__(self, name):
        with open(os.path.join(HERE, "jdks.txt")) as f:
            known = {words[0]: words[1:] for line in f if line[0].isalnum() and (words := line.split())}
        assert name in known, f"{name} is not in jdks.txt: {', '.join(known)}"
        suite, version, self.extent = known[name]
        self.version = int(version)
        self.root = os.path.join(BUILD, "suites", f"java-{suite}")
        self.prefix = ["sh", os.path.join(HERE, "jdk.sh"), self.root, os.path.join(BUILD, "fixtures")]
        self.unpack(name, suite)
        self.home = f"/usr/lib/jvm/java-{version}-openjdk-amd64" + ("/jre" if self.version == 8 else "")

    def unpack(self, name, suite):
        packages = [f"openjdk-{self.version}-{'jdk' if self.version >= WITH_COMPILER else 'jre'}-headless"]
        if self.version == WITHOUT_SYMBOLS:
            packages.append(f"openjdk-{self.version}-dbg")
        done = subprocess.run(["sh", os.path.join(SOURCE, "fixtures", "suites.sh"), suite, self.root, *packages])
        if done.returncode == UNREACHABLE:
            print(f"skipped: {name}: the suite {suite} can not be reached (see above)", flush=True)
            sys.exit(SKIPPED)
        assert done.returncode == 0, f"suites.sh {suite} {self.root} {packages} ended with {done.returncode}"

    def run(self, program, *args):
        return subprocess.run([*self.prefix, f"{self.home}/bin/{program}", *args], capture_output=True, text=True)

    def compile(self):
        """
        Fixtures that need at least so new a JDK: [class] of those with kinds of frames; sets where they are in the
        environment.
        """
        classes = os.path.join(BUILD, "fixtures", f"java-{self.version}")
        sources = [s for s in glob.glob(os.path.join(SOURCE, "fixtures", "java", "jdk*", "*.java"))
                   if WITH_COMPILER <= int(os.path.basename(os.path.dirname(s))[3:]) <= self.version]
        if self.version < WITH_COMPILER or not sources:
            return []
        os.makedirs(classes, exist_ok=True)
        for source in sources:
            shutil.copy(source, classes)
        copies = [os.path.join(classes, os.path.basename(s)) for s in sources]
        done = self.run("javac", "-g", "-cp", os.path.join(BUILD, "fixtures", "java"), "-d", classes, *copies)
        assert done.returncode == 0, done.stderr
        os.environ["YRT_JAVA_CLASSES"] = classes
        return [name for s in sources if (name := os.path.basename(s).removesuffix(".java")).startswith("frames_")]

    def has(self, mode):
        options = java.MODES[mode]
        done = self.run("java", *options, "-version")
        if done.returncode or re.search("ignoring option|large page", done.stderr + done.stdout, re.I):
            print(f"skipped: JDK {self.version} has no mode {mode} ({' '.join(options)})", flush=True)
            return False
        return True


def main():
    jdk = Jdk(sys.argv[1])
    extra = jdk.compile()
    os.environ["YRT_JAVA"] = " ".join([*jdk.prefix, f"{jdk.home}/bin/java"])
    if sys.argv[2] != "-":
        modes = [mode for mode in sys.argv[2].split(",") if jdk.has(mode)]
        if not modes:
            sys.exit(SKIPPED)
        os.environ["YRT_JAVA_MODES"] = " ".join(modes)
    if extra:
        os.environ["YRT_JAVA_EXTRA"] = " ".join(extra)
        os.environ["YRT_JAVA_OPTIONS"] = (
            "-Djdk.virtualThreadScheduler.parallelism=24 --enable-native-access=ALL-UNNAMED"
        )
    os.execv(sys.argv[3], sys.argv[3:])


if __name__ == "__main__":
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
    import java  # noqa: E402
    main()
