# SPDX-License-Identifier: Apache-2.0
"""Text that a program has moved to anonymous memory at the same addresses: the file's, as long as it is the same."""

import os
import re
from unittest import mock

import yrt

CHAIN = re.compile(r"f\d\d")


def sample(how, name="deep30", **kw):
    """(a fixture whose text was moved, the result)"""
    env = {"LD_PRELOAD": yrt.fixture_path("move_text.so"), "MOVE_TEXT": how}
    with mock.patch.dict(os.environ, env), yrt.Fixture(name) as fixture:
        maps = yrt.read(f"/proc/{fixture.pid}/maps")
        assert not re.search(rf" r-xp .*/{name}$", maps, re.M), maps
        with mock.patch.dict(os.environ, {"LD_PRELOAD": ""}):
            return fixture, yrt.sample(fixture, "-U", seconds=1, **kw)


def test_same_bytes():
    for name in ("deep30", "deep30_nopie", "deep30_stripped"):
        fixture, result = sample("", name)
        assert result.samples and result.incomplete() == 0, result.stats
        if name != "deep30_stripped":
            wrong = yrt.wrong_chains(result, fixture.chain)
            assert not wrong, yrt.show(wrong)


def test_changed_bytes():
    """They are somebody else's code, whose names nobody knows."""
    _, result = sample("changed")
    assert result.samples and not yrt.count(result.stacks, CHAIN), yrt.show(result.stacks)


yrt.main(globals())
