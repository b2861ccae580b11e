# SPDX-License-Identifier: Apache-2.0
"""More executable mappings than yrt looks up: stacks through files stay whole."""

import os
import re
from unittest import mock

import yrt

MANY = 8000


def sample(**more):
    env = {"LD_PRELOAD": yrt.fixture_path("many_mappings.so"), "MANY_MAPPINGS": str(MANY), **more}
    with mock.patch.dict(os.environ, env):
        fixture = yrt.Fixture("deep30")
    with fixture:
        pieces = len(re.findall(r" r-xp ", yrt.read(f"/proc/{fixture.pid}/maps")))
        assert pieces > MANY, pieces
        result = yrt.sample(fixture, "-U", seconds=1)
    assert result.samples and result.incomplete() == 0, result.stats
    wrong = yrt.wrong_chains(result, fixture.chain)
    assert not wrong, yrt.show(wrong)
    return result


def test_empty_pieces():
    result = sample()
    assert "pieces" not in result.stderr, result.stderr


def test_pieces_with_rows():
    """What was found of their code fits, once the rest is one."""
    result = sample(MANY_MAPPINGS_CODE="1")
    assert "pieces" not in result.stderr, result.stderr


yrt.main(globals())
