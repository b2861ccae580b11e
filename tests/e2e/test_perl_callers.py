# SPDX-License-Identifier: Apache-2.0
"""Each stack of fixtures/perl/callers.pl, names and lines, is one that its own caller() gave."""

import os
import re
import tempfile

import perl
import yrt

SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "perl", "callers.pl")
SUB = re.compile(r"(?P<name>[\w:]+) \((?:[^()]*\.p[lm]|\(eval\)):\d+\)(?: \[(?P<why>\w+)\])?(?::(?P<line>\d+))?")
BLOCK = re.compile(
    r'(?P<name>eval \{\.\.\.\}|eval "\.\.\."|require(?: [^ :]+)?|(?:[\w:]+::)?BEGIN|sort \{\.\.\.\}|main program|\[gone\])(?:'
    r' \(.*:\d+\))?(?::(?P<line>\d+))?'
)
ONCE = ('eval "..."', "require", "BEGIN", "main::uses")
SECONDS = 6


def chain(frames):
    """
    ((name, line), ...) of the Perl frames, root first, as caller() has them: a sort block is none, but its line is that
    of what sorts.
    """
    found = []
    for match in filter(None, (SUB.fullmatch(f) or BLOCK.fullmatch(f) for f in frames)):
        name, line = match["name"], int(match["line"] or 0)
        if name == "sort {...}":
            found[-1] = (found[-1][0], line)
        elif match.groupdict().get("why") != "xs":
            found.append((plain(name), line))
    return tuple(found)


def said(stack):
    return tuple((plain(name), line) for name, line in zip(stack[-2::-2], map(int, stack[::-2])))


def plain(name):
    """The package of a BEGIN block, and the file that is required, may be gone before they are read."""
    return "BEGIN" if name.endswith("::BEGIN") else "require" if name.startswith("require ") else name


def agree(stack, known):
    """
    Unknown (0) is the line of code of a string, a file or a BEGIN block, which is gone before it is read, and of a sub
    that the signal found before its first statement.
    """
    inside = False
    for i, ((name, line), (real, truth)) in enumerate(zip(stack, known)):
        inside = inside or name == 'eval "..."' or i == len(stack) - 2
        if name != real or (line != truth and (line or not (inside or name in ("require", "BEGIN")))):
            return False
    return True


def lacks_a_line(stack, nearest):
    """Nothing is false: a line is not known, as in a sub that a string made."""
    return nearest and all(line in (0, truth) for (_, line), (_, truth) in zip(stack, nearest))


def runs_once(stack):
    """In code of a string, a file or BEGIN: it may be gone, and its memory another statement's, before yrt reads it."""
    return any(name in ONCE for name, _ in stack)


def differences(seen, known):
    """Of the stacks that caller() did not give: each with the nearest one of the same names, if there is one."""
    by_names = {}
    for stack in known:
        by_names.setdefault(tuple(name for name, _ in stack), []).append(stack)
    for stack, n in seen.items():
        same = by_names.get(tuple(name for name, _ in stack), [])
        if not any(agree(stack, k) for k in same):
            yield n, stack, min(same, key=lambda k: sum(a != b for a, b in zip(k, stack)), default=None)


def compare(*options):
    perl.need("Time::HiRes", "Time::HiRes")
    with yrt.Fixture(perl.PERL, *options, SCRIPT, SECONDS, seconds=None) as f:
        at = yrt.Run(
            "probe", "-e", "libc:getppid", "-p", f.pid, "-d", 120, "--max-cpu", 0, "--lines", "--no-inline"
        ).sampling()
        f.release()
        truth = f.finish(120)
        result = at.result(150).expect()
    known, seen = {said(s) for s in truth["stacks"]}, {}
    for frames, n in result.stacks:
        found = chain(frames)
        assert found and found[-1][0] == "main::tick", f"{n} times: {frames}"
        seen[found[:-1]] = seen.get(found[:-1], 0) + n
    wrong = list(differences(seen, known))
    unknown = sum(n for n, s, nearest in wrong if lacks_a_line(s, nearest))
    differ, freed = (
        sum(n for n, s, nearest in wrong if runs_once(s) == once and not lacks_a_line(s, nearest))
        for once in (False, True)
    )
    assert sum(seen.values()) >= truth["moments"] / 2 > 100, f"{sum(seen.values())} of {truth['moments']} moments"
    counts = f"{differ} differ, {freed} in code that runs once, {unknown} without a line"
    examples = f"{counts}:\n" + "\n".join(map(str, wrong[:5]))
    assert differ <= 0.002 * sum(seen.values()) and freed <= 0.02 * sum(seen.values()), examples
    assert unknown <= 0.01 * sum(seen.values()), examples
    assert not result.incomplete(), result.summary()
    yield f"{sum(seen.values())} moments, {counts}, {len(seen)} stacks of {len(known)}; {result.summary()}"


@yrt.measured
def test_callers():
    """Of statements that were optimised away too: blocks of one statement, conditions of elsif."""
    yield from compare()


@yrt.measured
def test_another_loop():
    """A module's own loop in the place of Perl's, whose bounds yrt finds by the file's unwind tables."""
    with tempfile.TemporaryDirectory(prefix="yrt-cover-") as directory:
        module = f"Devel::Cover=-silent,1,-replace_ops,0,-db,{directory}"
        perl.need("Devel::Cover", module)
        yield from compare("-M" + module)


@yrt.measured
def test_replaced_functions():
    """A module's own functions in the place of those of statements: put there after some code was compiled."""
    with tempfile.TemporaryDirectory(prefix="yrt-cover-") as directory:
        module = f"Devel::Cover=-silent,1,-db,{directory}"
        perl.need("Devel::Cover", module)
        yield from compare("-M" + module)


yrt.main(globals())
