# SPDX-License-Identifier: Apache-2.0
"""
What the tests of Java share: start a program of fixtures/java in a JVM, sample it, read the stacks with their flags.
Not a test itself.
"""

import json
import os
import re
import subprocess
import tempfile

import lua
import yrt

RATE = 999
CLASSES = yrt.fixture_path("java")
SYSTEM = "/usr/lib/jvm/java-17-openjdk-amd64/bin"
GUESS, APPROX, INLINED = lua.GUESS, lua.APPROX, lua.INLINED
SECTIONS = (".note.gnu.build-id", ".gnu_debuglink", ".gnu_debugdata")  # what leads to symbols of a file
# What the JVM appends to names of hidden classes: a number, an address.
HIDDEN = re.compile(r"(\$\d+)?/(0x)?[0-9a-f]+(\+0x[0-9a-f]+)?(?=\.)")

# Of the JVM. Some versions have not all of them.
MODES = {
    "tiered": [],
    "interpreter": ["-Xint"],
    "c1": ["-XX:TieredStopAtLevel=1"],
    "c2": ["-XX:-TieredCompilation"],
    "xcomp": ["-Xcomp"],
    "serial": ["-XX:+UseSerialGC"],
    "parallel": ["-XX:+UseParallelGC"],
    "g1": ["-XX:+UseG1GC"],
    "z": ["-XX:+UnlockExperimentalVMOptions", "-XX:+UseZGC", "-Dframes.collect=300"],
    "shenandoah": ["-XX:+UnlockExperimentalVMOptions", "-XX:+UseShenandoahGC"],
    "still_shenandoah": ["-XX:+UnlockExperimentalVMOptions", "-XX:+UseShenandoahGC", "-XX:+UnlockDiagnosticVMOptions",
                         "-XX:ShenandoahGCMode=passive"],
    "uncompressed": ["-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"],
    "noshare": ["-Xshare:off"],
    "compact": ["-XX:+UnlockExperimentalVMOptions", "-XX:+UseCompactObjectHeaders"],
    "wide": ["-XX:-UseCompactObjectHeaders"],
    "huge": ["-XX:+UseTransparentHugePages"],
    "large": ["-XX:+UseLargePages"],
    "one_heap": ["-XX:-SegmentedCodeCache", "-XX:ReservedCodeCacheSize=64m"],
    "debug_info": ["-XX:+DebugNonSafepoints"],
    "frame_pointer": ["-XX:+PreserveFramePointer"],
    "no_inline": ["-XX:-Inline"],
    "stripped": [],
}


def words():
    """Words that run a JVM: that of the system, or the one that tests/versions/jdk.py has chosen."""
    return os.environ.get("YRT_JAVA", SYSTEM + "/java").split(" ")


def version():
    """Its major version."""
    text = subprocess.run([*words(), "-version"], capture_output=True, text=True, check=True).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    assert found, text
    return int(found[1])


def mode_options(mode):
    """21 and 22 have two kinds of ZGC, later ones the second."""
    return MODES[mode] + (["-XX:+ZGenerational"] if mode == "z" and version() in (21, 22) else [])


def class_path():
    return ":".join([CLASSES, *filter(None, os.environ.get("YRT_JAVA_CLASSES", "").split(":"))])


class Java:
    """A JVM that runs a class of fixtures/java; start is the first line of its output, as JSON if it is that."""

    def __init__(self, name, *args, options=(), timeout=1000):
        command = [
            "timeout",
            "--foreground",
            str(timeout),
            *words(),
            *options,
            "-cp",
            class_path(),
            name,
            *map(str, args),
        ]
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True
        )
        self.start = self.answer()
        self.pid = self.start["pid"]

    def answer(self):
        """The next line that is JSON: JVMs print warnings on stdout too."""
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise AssertionError(f"{self.process.args} ended without a word: {self.said()}")

    def ask(self):
        """Lets it go on; returns what it says next."""
        self.release()
        return self.answer()

    def said(self):
        self.errors.seek(0)
        return self.errors.read()[-2000:]

    def release(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        yrt.stop(self.process)
        self.errors.close()


def library_of(pid):
    """(path, inode) of a JVM's; of one in a chroot as seen from outside."""
    with open(f"/proc/{pid}/maps") as f:
        words = next(line.split() for line in f if line.rstrip().endswith("/libjvm.so"))
    return words[5], int(words[4])


class Stripped:
    """words() run a JVM that finds such a library in the place of its own, which nobody else sees there."""

    def __init__(self, without=SECTIONS):
        self.without = without

    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="yrt-stripped-")
        self.path = os.path.join(self.dir.name, "libjvm.so")
        with Java("alloc_split", 30) as jvm:
            self.library = library_of(jvm.pid)[0]
        subprocess.run(
            [
                "objcopy",
                "--strip-all",
                *[word for name in self.without for word in ("-R", name)],
                self.library,
                self.path,
            ],
            check=True,
        )
        self.inode = os.stat(self.path).st_ino
        self.before, command = os.environ.get("YRT_JAVA"), words()
        os.environ["YRT_JAVA"] = " ".join(["unshare", "--mount", "--propagation", "private", "sh", os.path.join(
            yrt.SOURCE, "tests", "e2e", "in_place_of.sh"), self.path, self.library, *command])
        return self

    def __exit__(self, *_):
        os.environ.pop("YRT_JAVA")
        if self.before is not None:
            os.environ["YRT_JAVA"] = self.before
        self.dir.cleanup()


class Sampling(lua.Sampling):
    """yrt at work on a JVM from now on; its stacks are tuples of lua.Frame, root first."""

    def __init__(self, pid, *flags, seconds, view="flame", rate=RATE, prefix=()):
        super().__init__(pid, *flags, seconds=seconds, view=view, rate=rate, prefix=prefix)


def is_method(frame):
    """A frame of Java, not a stub of the JVM's, not the JVM's own code."""
    return frame.module == "hotspot" and "." in frame.name and " " not in frame.name.split("(")[0]


def methods(frames):
    """The methods of a stack, as the JVM would list them but root first, without what hidden classes are numbered."""
    return [plain(f.name) for f in frames if is_method(f)]


def plain(name):
    return HIDDEN.sub("", name)


def check_complete(result, samples, limit=0.001):
    assert result.samples >= samples, f"only {result.samples} samples\n{result.stderr}"
    cut = [(f, n) for f, n in result.stacks if f and f[0].name.startswith("[truncated")]
    assert result.incomplete() <= limit, f"{result.incomplete():.4%} cut: {result.stats['truncated']}\n{lua.show(cut)}"
    return result.summary()
