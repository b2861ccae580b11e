# SPDX-License-Identifier: Apache-2.0
"""
Names that are meant to break what prints them, and Perl that ends or becomes another program while it is looked at.
"""

import os
import re
import subprocess

import yrt

PERL = os.environ.get("YRT_PERL", "/usr/bin/perl")
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "perl", "hostile.pl")


def look(end, *flags):
    with yrt.Fixture(PERL, SCRIPT, 2, end, seconds=None) as f:
        return yrt.sample_whole(f, "--max-cpu", 0, *flags, view="perl-flame", rate=499)[0]


def check(result, most=0.001):
    assert result.incomplete() <= most, f"{result.stats['truncated']}: {result.summary()}"
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", result.text), "control characters in the output"
    inside = 0
    for frames, n in result.stacks:
        at = next((i for i, name in enumerate(frames) if name.startswith("main::work ")), None)
        if at is None:
            continue
        names = [name for name in frames[:at] if re.search(r"\(.*:\d+\)$", name) or name.startswith("main program")]
        assert (
            names[0].startswith("main program") and len(names) == 3
        ), f"a name became several frames, or none: {frames}"
        inside += n
    assert inside > 0.2 * result.samples, f"{inside} samples of main::work: {result.summary()}"
    return f"{inside} samples; {result.summary()}"


@yrt.measured
def test_exit():
    return [check(look("exit"))]


@yrt.measured
def test_exec():
    """What another program begins with may be sampled before its code is known."""
    return [check(look("exec"), 0.2)]


def test_title():
    """A title is cut to 15 bytes by the kernel: of a path the file's name is what counts."""
    program = '$0 = "/opt/of/some/program/worker.pl: child 3"; $| = 1; print "x"; 1 while times < 60'
    with subprocess.Popen([PERL, "-e", program], stdout=subprocess.PIPE) as target:
        try:
            target.stdout.read(1)
            command = [yrt.YRT, "perl-flame", "-q", "-p", str(target.pid), "-d", "0.2", "-f", "html", "-o", "-"]
            page = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        finally:
            target.kill()
    title, = re.findall('"target":"([^"]*)"', page)
    assert title == f"worker.pl (pid {target.pid})", title
    yield title


yrt.main(globals())
