# SPDX-License-Identifier: Apache-2.0
"""
Several interpreters in one process: each thread's frames, by the files and lines that #line gives, against caller();
its time against its own clock.
"""

import os
import re

import yrt
from perl import PERL, need

SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "perl", "threads.pl")
FRAME = re.compile(r"^(?P<name>[\w:]+|eval \{\.\.\.\}|main program) \((?P<file>.*?):\d+\)(?::(?P<line>\d+))?$")


def frames_of(stack):
    """[(name, file, line)] of the Perl frames with a line, root first."""
    found = [m for m in map(FRAME.match, stack) if m]
    return [(m["name"], os.path.basename(m["file"]), int(m["line"] or 0)) for m in found]


def expected(chain):
    """Of what caller() says: root first, without the main program, which a thread's interpreter has not run."""
    return [
        (name.replace("(eval)", "eval {...}"), re.sub(r"\(eval \d+\)", "(eval)", os.path.basename(file)), line)
        for name, file, line in chain[-2::-1]
    ]


@yrt.measured
def test_interpreters():
    need("threads", "threads", "Time::HiRes")
    with yrt.Fixture(PERL, SCRIPT, 1, seconds=None) as f:
        result, truth = yrt.sample_whole(f, "--max-cpu", 0, "--lines", view="perl-flame", rate=999)
    assert result.incomplete() <= 0.001, f"{result.incomplete():.4%} cut: {result.stats['truncated']}"
    seen = dict.fromkeys(truth["truth"], 0)
    for stack, n in result.stacks:
        found = frames_of(stack)
        at, thread = next(
            ((i, name.removeprefix("Burn::")) for i, (name, _, _) in enumerate(found) if name.startswith("Burn::")),
            (0, None),
        )
        if not thread:
            continue
        want = expected(truth["truth"][thread])
        assert found[:at + 1] == want, f"{n} samples of {thread}:\n  found {found[:at + 1]}\n  truth {want}\n  {stack}"
        seen[thread] += n
    yield yrt.check_shares(seen, truth["cpu"], 0.02, result.lost())
    yield f"{seen}; {result.summary()}"


yrt.main(globals())
