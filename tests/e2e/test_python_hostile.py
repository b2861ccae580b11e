# SPDX-License-Identifier: Apache-2.0
"""Names of functions, files and threads that would break what shows them, in each format."""

import functools
import json
import os
import re
import subprocess
import tempfile
import xml.etree.ElementTree

import yrt

PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "python", "hostile.py")
FRESH = os.path.join(yrt.SOURCE, "fixtures", "python", "fresh.py")
MADE = re.compile(r"(?P<name>.+) \(fresh_(?P<round>\d+):(?P<first>\d+)\)(?::(?P<line>\d+))?")
CONTROL = re.compile("[\0-\x09\x0b-\x1f\x7f]")


@functools.cache
def recorded():
    """One run of the fixture, which each format is made of. The directory goes with this module."""
    directory = tempfile.TemporaryDirectory(prefix="yrt-hostile-")
    with yrt.Fixture(PYTHON, SCRIPT, 2, seconds=None) as f:
        yrt.sample_whole(
            f, "-t", "-U", "-o", os.path.join(directory.name, "x.yrt"), view="python-flame", rate=499, output=False)
    return directory


def written(name, mode="r"):
    """The recording in a format."""
    directory = recorded().name
    path = os.path.join(directory, f"x.{name}")
    yrt.run("render", os.path.join(directory, "x.yrt"), "-o", path, output=False, stats=False).expect()
    with open(path, mode, **({} if "b" in mode else {"errors": "strict"})) as file:
        return file.read()


def test_folded():
    """Each stack is one line, of as many frames as were called."""
    stacks = yrt.parse_folded(written("folded"))
    busy = [(frames, n) for frames, n in stacks if any(f.startswith("burn (hostile.py:") for f in frames)]
    assert sum(n for _, n in busy) > 300, yrt.show(stacks)
    for frames, _ in busy:
        at = next(i for i, f in enumerate(frames) if f.startswith("burn (hostile.py:"))
        assert not any(CONTROL.search(f) for f in frames), frames
        chain = frames[at - 10:at]
        assert (
            chain[0].startswith("semi")
            and chain[3].startswith("</script>")
            and "xxxx" in chain[7]
            and chain[9].startswith("(a.py:1)")
        ), chain
    yield f"{sum(n for _, n in busy)} samples in ten functions"


def impossible(frame):
    """Is a frame of fixtures/python/fresh.py made of what is left of several code objects?"""
    made = MADE.fullmatch(frame)
    if not made:
        return "outer_" in frame or "inner_" in frame
    outer = int(made["round"]) % 97 + 1
    first = {f"outer_{made['round']}": outer, f"inner_{made['round']}": outer + 2}.get(made["name"])
    if first is None:
        return made["name"] != "<module>"
    return int(made["first"]) != first or int(made["line"] or first) not in (first, first + 1)


def test_freed():
    """Functions that are gone before yrt reads what they were, because it has to run on their CPU, have no name."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    try:
        with yrt.Fixture(PYTHON, FRESH, 2, seconds=None) as f:
            result, _ = yrt.sample_whole(f, "--lines")
    finally:
        os.sched_setaffinity(0, cpus)
    frames = [frame for stack, _ in result.stacks for frame in stack]
    made = sum(bool(MADE.fullmatch(frame)) for frame in frames)
    wrong = [frame for frame in frames if impossible(frame)]
    assert made > 200 and not wrong, f"{len(wrong)} of {made}: {wrong[:10]}"
    yield f"{made} frames of functions that live for a millisecond, {frames.count('[gone]')} without a name"


def test_svg():
    root = xml.etree.ElementTree.fromstring(written("svg"))
    assert "burn (hostile.py:" in "".join(root.itertext())
    assert not [e for e in root.iter() if e.tag.endswith("}b")]


def test_speedscope():
    profile = json.loads(written("json"))
    names = [f["name"] for f in profile["shared"]["frames"]]
    assert any("</script><b>" in name for name in names), names


def test_html():
    """What closes a script in a name does not close the page's."""
    page = written("html")
    assert "</script><b>" not in page and page.rstrip().endswith("</html>")


def test_txt():
    text = written("txt")
    assert "burn (hostile.py:" in text and not CONTROL.search(text), text


def test_pprof():
    written("pb.gz", "rb")
    path = os.path.join(recorded().name, "x.pb.gz")
    raw = subprocess.run(["go", "tool", "pprof", "-raw", path], capture_output=True, check=True).stdout
    assert b"burn (hostile.py:" in raw


yrt.main(globals())
