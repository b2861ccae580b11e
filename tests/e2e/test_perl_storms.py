# SPDX-License-Identifier: Apache-2.0
"""
Perl whose stacks change all the time: signals, contexts that move, closures and strings that come and go, exceptions,
forks, 10,000 subs.
"""

import os
import re

import yrt

PERL = os.environ.get("YRT_PERL", "/usr/bin/perl")
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "perl", "storms.pl")
# Who called whom in storms.pl; what is not named here is called from anywhere. A sub of a string may be gone before it
# is named.
CALLERS = {
    "main::round": {"main program"},
    "main::signals": {"main::round"},
    "main::closures": {"main::round"},
    "main::throws": {"main::round"},
    "main::strings": {"main::round"},
    "main::sorts": {"main::round"},
    "main::forks": {"main::round"},
    "main::work_signals": {"main::signals"},
    "main::deep": {"main::round", "main::deep"},
    "main::deepest": {"main::deep"},
    "main::closure_work": {"main::__ANON__"},
    "main::thrower": {"main::__ANON__"},
    "main::caught": {"main::throws"},
    "main::child": {"main::forks"},
    "main::string_work": {"main::__ANON__", 'eval "..."'},
    "main::compare": {"sort {...}"},
    "main::deep_compare": {"main::compare", "main::deep_compare"},
    "main::compare_work": {"main::deep_compare"},
    "main::on_alarm": {"main::__ANON__"},
    "main::on_usr": {"main::__ANON__"},
}
GONE = "[gone]"  # a closure that was freed, or of a child that ended before its names were read
PERL_FRAME = re.compile(r"^(main::\w+|main program|\[gone\]|sort \{\.\.\.\}|eval \S+|List::Util::first)( |$)")


def chain(frames):
    return [m.group(1) for m in map(PERL_FRAME.match, frames) if m]


@yrt.measured
def test_storms():
    """
    Stacks stay complete, but for those deeper than --depth, and each sub is called by the one that calls it in the
    program.
    """
    with yrt.Fixture(PERL, SCRIPT, 6, seconds=None) as f:
        result, truth = yrt.sample_whole(f, "--max-cpu", 0, "-s", view="perl-flame", rate=1999)
    cut = {reason: n for reason, n in result.stats["truncated"].items() if n and reason != "depth"}
    samples, seen, edges = result.stats["samples"], set(), 0
    assert sum(cut.values()) <= 0.001 * samples, f"{cut} of {samples}"
    for frames, n in result.stacks:
        if any(frame == f"[truncated: {reason}]" for reason in cut for frame in frames):
            continue
        found = chain(frames)
        for outer, inner in zip(found, found[1:]):
            seen.add(inner)
            edges += n
            assert inner not in CALLERS or outer in CALLERS[inner] | {
                GONE
            }, f"{n} samples: {outer} calls {inner}: {found[-8:]}"
    assert set(CALLERS) - seen <= {"main::child", "main::on_usr"}, f"never seen: {set(CALLERS) - seen}"
    yield (
        f"{samples} samples, {edges} edges, {truth['rounds']} rounds; deeper than --depth:"
        f" {result.stats['truncated'].get('depth', 0)}; {result.summary()}"
    )


yrt.main(globals())
