# SPDX-License-Identifier: Apache-2.0
"""
probe and latency of subs of Perl: as many hits as the program counts calls itself.
"""

import perl
import yrt
from counted import ROUNDS, Program, ends_of, kinds_of, probed, within_own_clock

PERL = ["main::recursive", "main::raises", "main::loops", "main::tail", "main::redefined", "main::assigned",
        "Shop::Order::new", "Shop::Order::place", "Shop::Order::DESTROY", "main::by_number"]


def test_perl_kinds():
    """Subs, methods, destructors, tail calls by goto, those that sort() and eval call."""
    with Program(perl.PERL, f"{yrt.SOURCE}/fixtures/perl/counted_calls.pl", ROUNDS) as program:
        program.do("go")
        kinds = [(name, name.removeprefix("main::"), name.rpartition("::")[2].lower()) for name in PERL]
        kinds = [(name, "__ANON__" if shown == "assigned" else shown, word) for name, shown, word in kinds]
        yield from kinds_of(program, "perl:", kinds, lambda frame, shown: shown in frame, innermost=3)
        result = yrt.run("probe", "-e", "perl:main::recursiv", "-p", program.pid, "-d", 1)
        yrt.clear(result, yrt.USAGE, "no function", "near: main::recursive")
        result, _ = probed(program, "perl:main::recursive", flags=["--arguments"])
        assert "arguments of main::recursive cannot be read" in result.stderr, result.stderr


def test_perl_latency():
    """Each way out of a sub ends its call: return, die, goto, the end of sort()'s block."""
    with Program(perl.PERL, f"{yrt.SOURCE}/fixtures/perl/counted_calls.pl", ROUNDS) as program:
        yield from ends_of(program, "perl:", [(name, {}) for name in [*PERL, "main::several"]])
        yield within_own_clock(program, "perl:main::timed")


yrt.main(globals())
