# SPDX-License-Identifier: Apache-2.0
"""
A JVM with virtual threads, for the tests that need one: YRT_JAVA, if it is 21 or later, with YRT_JAVA_CLASSES. Else the
newest JDK of the machine. Not a test itself.
"""

import contextlib
import glob
import os
import subprocess
import tempfile

import java
import yrt

SINCE = 21


@contextlib.contextmanager
def jdk():
    """Sets up a JVM of 21 or later and its class; yields False if the machine has no such JVM."""
    if java.version() >= SINCE:
        yield "YRT_JAVA_CLASSES" in os.environ
        return
    homes = [os.path.dirname(os.path.dirname(p)) for p in glob.glob("/usr/lib/jvm/*/bin/javac")]
    with tempfile.TemporaryDirectory(prefix="yrt-virtual-") as classes:
        for home in sorted(homes, reverse=True):
            sources = [
                os.path.join(yrt.SOURCE, "fixtures", "java", "jdk21", f"{name}.java")
                for name in ("virtual_waits", "pinned_lock", "preempted")
            ]
            done = subprocess.run(
                [f"{home}/bin/javac", "-g", "--release", str(SINCE), "-d", classes, *sources],
                capture_output=True,
                text=True,
            )
            if done.returncode:
                continue
            os.environ.update(YRT_JAVA=f"{home}/bin/java", YRT_JAVA_CLASSES=classes)
            try:
                yield True
            finally:
                del os.environ["YRT_JAVA"], os.environ["YRT_JAVA_CLASSES"]
            return
        yield False


@contextlib.contextmanager
def needed():
    """A JVM with virtual threads; YRT_JAVA names the one to test, which may have none."""
    if "YRT_JAVA" in os.environ and java.version() < SINCE:
        raise yrt.Skipped(f"{java.version()} has no virtual threads")
    with jdk() as there:
        if not there:
            raise yrt.Skipped(f"no JDK {SINCE} or later")
        yield
