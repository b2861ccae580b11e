# SPDX-License-Identifier: Apache-2.0
"""Perl frames of yrt's output beside what fixtures/perl report of themselves. Not a test itself."""

import os
import re
import subprocess

import yrt

PERL = os.environ.get("YRT_PERL", "/usr/bin/perl")
PLACE = re.compile(r" \((kinds\.pl|coro\.pl|Coro\.pm|\(eval\)|yrt-perl-[\w.-]+):\d+\)(?::(\d+))?$")
# its place is not given, or not behind its name
BLOCK = re.compile(r'^(eval \{\.\.\.\}|eval "\.\.\."|require \S+?)(?::(\d+))?$')


def need(what, *modules):
    """Skips the test if this perl cannot load the modules."""
    if subprocess.run([PERL, *(f"-M{m}" for m in modules), "-e1"], capture_output=True).returncode:
        raise yrt.Skipped(f"this perl has no {what}")


def perl_frames(frames):
    """[(name, line)] of the Perl frames, root first. Line 0: unknown."""
    found = []
    for f in frames:
        m = PLACE.search(f)
        block = BLOCK.search(f)
        if m:
            found.append((f[:m.start()], int(m.group(2) or 0)))
        elif block:
            found.append((block.group(1), int(block.group(2) or 0)))
    return found


def expected(chain):
    """What yrt says of [[name, line]], innermost first: root first."""
    return [(name, line) for name, line in chain[::-1]]
