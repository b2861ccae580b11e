# SPDX-License-Identifier: Apache-2.0
"""
yrt report on programs of other authors: the planted cause is found first, and none in healthy ones. The measurements need
`sh fixtures/setup.sh apps`.
"""

import yrt
from report_apps import HEALTHY, NEAR, PROGRAMS, findings, judge, start_of


def all_of(names):
    wrong = []
    for name in names:
        why = judge(name, findings(start_of(name), name))
        wrong += [f"{name}: {why}"] if why else []
        yield f"{name}: {why or 'as it should'}"
    assert not wrong, wrong


@yrt.measured
def test_planted():
    yield from all_of(PROGRAMS)


@yrt.measured
def test_healthy():
    yield from all_of(HEALTHY)


@yrt.measured
def test_near():
    yield from all_of(f"near-{rule}" for rule in NEAR)


def test_table():
    """Each program names a line that is marked."""
    from report_apps import line_of

    for name, (_, rule, file, marker) in PROGRAMS.items():
        assert rule and (not marker or line_of(file, marker) > 0), name


yrt.main(globals())
