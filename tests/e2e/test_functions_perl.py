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


def test_perl_routes():
    """Requests by what hashes behind an argument have: PSGI's environment, and hashes in one another."""
    with Program(perl.PERL, f"{yrt.SOURCE}/fixtures/perl/routed.pl") as program:
        program.do("once")
        due = {}
        for name, key in (("Shop::serve", "1[REQUEST_METHOD],1[PATH_INFO]"),
                          ("Shop::handle", "1[req][method],1[req][url][path][path]")):
            run = yrt.Run("requests", "--begin", f"perl:{name}", "--key", key, "-p", program.pid, "-d", 600,
                          "--max-cpu", 0).sampling()
            all_due = program.do("again")
            run.interrupt()
            stats = run.result().expect().stats["requests"]
            due = {route: n for route, n in all_due.items() if route.startswith("PUT") == (name == "Shop::handle")}
            assert {r["route"]: r["requests"] for r in stats["routes"]} == due, (due, stats["routes"])
        for wrong in ("1[REQUEST_METHOD", "9[x]", "1[]", "1[longer than the thirty-two letters of a key]", "name"):
            run = yrt.run("requests", "--begin", "perl:Shop::serve", "--key", wrong, "-p", program.pid, "-d", 1,
                          output=False, stats=False)
            assert run.code == yrt.USAGE, (wrong, run.code, run.stderr)
    yield f"{due}"


yrt.main(globals())
