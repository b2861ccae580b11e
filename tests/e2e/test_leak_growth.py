# SPDX-License-Identifier: Apache-2.0
"""
leak --growth: what was mapped and touched in a run and is still there, to the byte and by the function that did it,
with ranges that are cut, replaced, moved and given back.
"""

import json
import os
import sys
import tempfile

import yrt

sys.path.append(os.path.join(yrt.SOURCE, "tests", "tools"))
import oracles  # noqa: E402


def grown(*args, rounds=10, to_its_end=False, **options):
    """(result, what the program says it has left); to_its_end: yrt ends with the program."""
    with yrt.Fixture("grows", rounds) as fixture:
        at = yrt.Run("leak", "--growth", "-p", fixture.pid, "-d", 600, "--max-cpu", 0, *args, **options).sampling()
        fixture.release()
        truth = json.loads(fixture.process.stdout.readline())
        if to_its_end:
            fixture.process.stdin.close()
        else:
            at.interrupt()
        return at.result().expect(), truth


def by_function(result, names, word):
    """{function: bytes} of the innermost of the fixture's own functions, of stacks that end in such a reason."""
    sums = dict.fromkeys(names, 0)
    for frames, n in result.stacks:
        own = [name for name in frames if name in sums]
        if own and any(name.startswith(f"[{word}: ") for name in frames):
            sums[own[-1]] += n
    return sums


def test_mapped():
    """Bytes that are mapped and still there."""
    result, truth = grown("--mapped")
    assert by_function(result, truth["mapped"], "mapped") == truth["mapped"], yrt.show(result.stacks)
    stats = result.stats["growth"]
    assert stats["still_mapped_bytes"] >= sum(truth["mapped"].values()) and not stats["unmapped_unseen_bytes"], stats
    yield f"{stats['still_mapped_bytes']} of {stats['mapped_bytes']} bytes"


def test_touched():
    """Pages that were touched first in the run and are still in memory, of old mappings, too."""
    result, truth = grown()
    assert by_function(result, truth["touched"], "touched") == truth["touched"], yrt.show(result.stacks)
    kinds = {name: {frame for frames, _ in result.stacks if name in frames for frame in frames if ": " in frame}
             for name in ("grow_heap", "touch_late")}
    assert "[touched: heap]" in kinds["grow_heap"] and "[touched: anonymous memory]" in kinds["touch_late"], kinds


def test_ended():
    """What a program had when it ended, one that was there before and one that yrt starts."""
    result, truth = grown(to_its_end=True)
    assert by_function(result, truth["touched"], "touched") == truth["touched"], yrt.show(result.stacks)
    result, truth = grown("--mapped", to_its_end=True)
    assert by_function(result, truth["mapped"], "mapped") == truth["mapped"], yrt.show(result.stacks)
    result = yrt.run("leak", "--growth", "--max-cpu", 0, "--", yrt.fixture_path("grows"), 1, 100).expect()
    truth, stats = json.loads(result.stdout.splitlines()[-1]), result.stats["growth"]
    before = 100 * 16 * 4096  # what it maps before its work begins
    for name, due in (("still_mapped_bytes", before + sum(truth["mapped"].values())),
                      ("touched_bytes", sum(truth["touched"].values()))):
        assert due <= stats[name] < due + (4 << 20), (name, stats, truth)  # and what the loader leaves
    assert stats["at_their_end"] and ", as it was when the program ended" in result.stderr, result.stderr


def test_words():
    """The curve, both lists, and the last line."""
    result, _ = grown(rounds=100)
    for part in ("yrt: resident ", "yrt: touched, and still in memory:", "yrt: mapped, and still mapped:",
                 "[mapped: anonymous memory] < mmap < map_kept < main", " touched and still in memory of "):
        assert part in result.stderr, result.stderr


def test_both_units():
    """A page, and a recording that has both numbers."""
    with tempfile.TemporaryDirectory() as directory:
        pages = [os.path.join(directory, name) for name in ("x.yrt", "x.html", "x.pb.gz")]
        result, truth = grown("-o", pages[0], output=False)
        for path in pages[1:]:
            yrt.run("render", pages[0], "-o", path, output=False, stats=False).expect()
        assert "touch_late" in open(pages[1], encoding="utf-8").read()
        mapped = oracles.pprof_top(pages[2], "mapped_space")
        mapped = sum(flat for flat, _ in mapped.values())
        assert sum(truth["mapped"].values()) <= mapped == result.stats["growth"]["still_mapped_bytes"]


def test_usage():
    """Options that mean nothing together are refused."""
    for args in (("--mapped",), ("--growth", "--blocks"), ("--growth", "--interval", 100)):
        result = yrt.run("leak", "-p", 1, *args)
        assert result.code == 2, (args, result.code, result.stderr)


yrt.main(globals())
