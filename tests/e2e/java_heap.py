# SPDX-License-Identifier: Apache-2.0
"""What the tests of Java's heap share: tables of yrt and of jmap. Not a test itself."""

import re
import subprocess

import java

WIDE = ["-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"]
PRIMITIVES = {"F": "float", "J": "long"}


def collectors():
    """Whose heaps are read. Shenandoah begins no collection by itself: it would move objects while a test reads."""
    return ("g1", "serial", "parallel") + (("still_shenandoah",) if java.version() >= 17 else ())


def types(text):
    """{class: (count, bytes)} of the table."""
    ret = {}
    for line in text.splitlines()[1:]:
        size, _, count, name = line.split(None, 3)
        ret[name] = int(count), int(size)
    return ret


def plain(name):
    """[[Lheaped$Cell; is heaped$Cell[][], and [F is float[]."""
    found = re.fullmatch(r"(\[+)(?:L(.*);|([FJ]))", name)
    return (found[2] or PRIMITIVES[found[3]]) + "[]" * len(found[1]) if found else name


def jmap(pid, what="all"):
    """The same of jmap -histo, that of the system for any JVM; live: it makes the JVM collect first."""
    what = ":live" if what == "live" else ""  # 8 does not know -histo:all
    text = subprocess.run([java.SYSTEM + "/jmap", f"-histo{what}", str(pid)], capture_output=True, text=True,
                          check=True, timeout=300).stdout
    rows = re.findall(r"^ *\d+: +(\d+) +(\d+) +(\S+)", text, re.M)
    return {plain(name): (int(count), int(size)) for count, size, name in rows}
