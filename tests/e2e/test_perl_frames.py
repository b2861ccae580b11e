# SPDX-License-Identifier: Apache-2.0
"""
Each kind of Perl frame against what caller() says, names and lines; time split against the program's own clock; order
with native frames.
"""

import os
import re
import subprocess
import tempfile

import linked
import yrt
from perl import PERL, expected, perl_frames

EMBED = os.path.join(yrt.BUILD, "fixtures", "perl_embed")
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "perl", "kinds.pl")
# What caller() does not report.
SILENT = ("sort {...}", "(?{...})")
LEVELS = 200
FOLDS = """$| = 1; print qq({"pid": $$, "chain": []}\\n); <STDIN> if $ENV{FIXTURE_WAIT}; 
sub fold { eval 'length(sprintf "%200000d", 1)' } fold() while (times)[0] < 1; print "{}\\n";"""
# Before 5.18 a block in a pattern was no sub of its own: caller() gives its line, yrt the sub around it.
PATTERNS = float(subprocess.run([PERL, "-e", "print $]"], text=True, capture_output=True, check=True).stdout) >= 5.018


def same(found, truth):
    """
    The same names, and the same lines where they are known. Only what a string or a file says of itself may be gone by
    the time it is read.
    """
    if [name for name, _ in found] != [name for name, _ in truth]:
        return False
    return all(
        a == b or (not a and name.startswith(("eval", "require", "main::BEGIN")))
        for (name, a), (_, b) in zip(found, truth)
    )


def libperl():
    """The library that goes with PERL; None: it has none."""
    config = subprocess.run(
        [PERL, "-MConfig", "-e", 'print "$Config{privlibexp}\n$Config{version}\n$Config{archlibexp}"'],
        text=True,
        capture_output=True,
        check=True,
    ).stdout.split("\n")
    short = ".".join(config[1].split(".")[:2])
    paths = [f"/usr/lib/x86_64-linux-gnu/libperl.so.{short}", f"{config[2]}/CORE/libperl.so"]
    return next((p for p in paths if os.path.exists(p)), None)


def sample(*flags, seconds=0.1, view="perl-flame", rate=999, program=(PERL,)):
    """yrt is preferred: a file's name goes with its code (runtimes/perl/README.md, limits), after 0.1 s of CPU time."""
    with yrt.Fixture(*program, SCRIPT, seconds, LEVELS, seconds=None) as f:
        return yrt.sample_whole(f, "--max-cpu", 0, *flags, view=view, rate=rate, prefix=("chrt", "-f", "5"))


def shares(result, truth):
    """The share of each kind is its share of the CPU time."""
    burns = {
        kind: sum(n for frames, n in result.stacks if any(f.startswith(f"Burn::{kind} (") for f in frames))
        for kind in truth["cpu"]
    }
    return yrt.check_shares(burns, truth["cpu"], 0.01, result.lost())


@yrt.measured
def test_kinds():
    """
    Names and executing lines of all frames of all kinds, in their order, are those of caller(); and the time of each is
    right.
    """
    yield from check_kinds((PERL,))


@yrt.measured
def test_embedded():
    """The same of a program that embeds libperl.so, as nginx, Apache and PostgreSQL do."""
    if "YRT_PERL" in os.environ:
        return  # a build of another place: its library is not its program's
    assert libperl(), "no libperl.so of this perl"
    yield from check_kinds((EMBED, libperl()))


@yrt.measured
def test_linked():
    """The same of a program that is linked with libperl.so and has its own copy of the key of threads."""
    if "YRT_PERL" in os.environ:
        return
    source = os.path.join(yrt.SOURCE, "fixtures", "perl", "embed.c")
    with tempfile.TemporaryDirectory() as directory:
        yield from check_kinds((linked.link(directory, source, libperl(), "PL_thr_key"), libperl()))


def check_kinds(program):
    result, truth = sample("--lines", rate=1999, program=program)
    assert result.incomplete() <= 0.001, f"{result.incomplete():.4%} cut: {result.stats['truncated']}"
    wrong, right = [], 0
    for kind, chain in truth["truth"].items():
        leaf = f"Burn::{kind}"
        mine = [
            (perl_frames(frames), n) for frames, n in result.stacks if any(f.startswith(leaf + " (") for f in frames)
        ]
        samples = sum(n for _, n in mine)
        assert samples > 10, f"{kind}: {samples} samples"
        for found, n in mine:
            at = next(i for i, (name, _) in enumerate(found) if name == leaf)
            outer = [(name, line) for name, line in found[:at] if name not in SILENT]
            if kind == "format_line":
                outer, chain = [name for name, _ in outer], [
                    ["main::STDERR_LINE", 0],
                    ["main::write_format", 0],
                    ["main::all_kinds", 0],
                    ["main program", 0],
                ]
                want = [name for name, _ in expected(chain)]
            else:
                want = expected(chain)
            if kind == "pattern" and not PATTERNS:
                outer, want = [(name, 0) for name, _ in outer], [(name, 0) for name, _ in want]
            if not same(outer, want) if kind != "format_line" else outer != want:
                wrong.append(f"{n} samples of {kind}:\n  found {outer[-6:]}\n  truth {want[-6:]}")
            else:
                right += n
    assert not wrong, "\n".join(wrong)
    yield shares(result, truth)
    yield f"{right} samples of {len(truth['truth'])} kinds; {result.summary()}"
    seen = {name for frames, _ in result.stacks for name, _ in perl_frames(frames)}
    silent = set(SILENT) if PATTERNS else {"sort {...}"}
    assert silent <= seen, f"no {silent - seen} in {sorted(seen)}"


# C code between two Perl frames, by a function that must stand there: kind, the frame outside it, the frame inside.
BETWEEN = [
    ("sort_sub", "main::all_kinds", re.compile("sort"), "main::by_sub"),
    ("fetch", "main::all_kinds", re.compile("Perl_mg_get|magic"), "Tied::FETCH"),
    ("destroy", "main::all_kinds", re.compile("Perl_sv_clear|curse|Perl_leave_scope|Perl_sv_free2"), "Guard::DESTROY"),
    ("stringify", "main::all_kinds", re.compile("Perl_sv_2pv|Perl_amagic_call"), "Counter::text"),
    ("pattern", "main::all_kinds", re.compile("Perl_pp_match"), "(?{...})"),
    ("first_block", "main::all_kinds", re.compile("List::Util::first"), "main::__ANON__"),
    ("signal", "main::all_kinds", re.compile("Perl_despatch_signals|Perl_csighandler|sighandler"), "main::__ANON__"),
]


@yrt.measured
def test_true_order():
    """What calls Perl from C stands between the Perl frames; only Perl's own view hides the loop."""
    result, _ = sample(view="flame", rate=499)
    for kind, outer, native, inner in BETWEEN:
        if kind == "pattern" and not PATTERNS:
            continue
        seen = 0
        for frames, n in result.stacks:
            names = [f.split(" (")[0].split(" [")[0] for f in frames]
            if f"Burn::{kind}" not in names:
                continue
            below = names[:names.index(f"Burn::{kind}")]
            a, b = len(below) - 1 - below[::-1].index(outer), len(below) - 1 - below[::-1].index(inner)
            between = below[a + 1:b]
            assert any(native.search(f) for f in between), f"{kind}: between {outer} and {inner} is {between}"
            loops = [f for f in between if "Perl_runops" in f]
            assert len(loops) >= 1, f"{kind}: no loop in {between}"
            seen += n
        assert seen, f"no samples of {kind}"
    yield f"{len(BETWEEN)} ways from C into Perl"


@yrt.measured
def test_folded():
    """Constants that the parser folds: it runs ops in a loop of its own, inside of the string that is compiled."""
    with yrt.Fixture(PERL, "-e", FOLDS, seconds=None) as f:
        result, _ = yrt.sample_whole(f, "--max-cpu", 0, view="flame", rate=999)
    seen = [
        ([f.split(" (")[0] for f in frames], n) for frames, n in result.stacks if any("pp_sprintf" in f for f in frames)
    ]
    assert sum(n for _, n in seen) > 50, f"{result.summary()}; {result.stacks[:3]}"
    for names, n in seen:
        loop = len(names) - 1 - names[::-1].index("Perl_runops_standard")
        order = [
            names.index("main program"),
            names.index("main::fold"),
            names.index('eval "..."'),
            loop,
            names.index("Perl_pp_sprintf"),
        ]
        assert order == sorted(order), f"{n} samples: {names}"
    assert result.incomplete() <= 0.001, result.stats["truncated"]
    yield f"{sum(n for _, n in seen)} samples; {result.summary()}"


yrt.main(globals())
