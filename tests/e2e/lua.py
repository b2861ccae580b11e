# SPDX-License-Identifier: Apache-2.0
"""
What the tests of Lua share: start a script of fixtures/lua in the host, sample it, read the stacks with their flags.
Not a test itself.
"""

import collections
import json
import os
import re
import tempfile

import yrt

RATE = 1999
GUESS, APPROX, INLINED = 1, 2, 4  # as in frontends/format/html.c

Frame = collections.namedtuple("Frame", "name module file line flags kind")


def host():
    """
    Words that run fixtures/lua/host.c, with the system's LuaJIT or the one that tests/versions/version.py has chosen.
    """
    return os.environ.get("YRT_LUA_HOST", yrt.fixture_path("lua_host")).split(" ")


def path(script):
    return os.path.join(yrt.SOURCE, "fixtures", "lua", script)


def fixture(script, *args, options=(), **kw):
    return yrt.Fixture(*host(), *options, path(script), *args, seconds=None, **kw)


def parse_page(text):
    """[(frames from the root to the leaf, count)] of a flame graph page."""
    data = json.loads(re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', text, re.S).group(1))
    strings, numbers = data["strings"], data["functions"]
    functions = [Frame(strings[a], strings[b], strings[c], line, flags, data["kinds"][kind])
                 for a, b, c, line, flags, kind in zip(*[iter(numbers)] * 6)]
    stacks, at = [], []
    for fn, up, count in zip(data["fn"], data["up"], data["self"]):
        del at[len(at) - up:]
        at.append(functions[fn])
        if count:
            stacks.append((at[1:], count))
    return stacks


class Sampling:
    """yrt at work on a process from now on."""

    def __init__(self, pid, *flags, seconds, view="lua-flame", rate=RATE, prefix=()):
        self.dir = tempfile.TemporaryDirectory(prefix="yrt-pages-")
        self.page = os.path.join(self.dir.name, "out.html")
        self.run = yrt.Run(
            view,
            "-p",
            pid,
            "-d",
            seconds,
            "-F",
            rate,
            "--max-cpu",
            0,
            "--annotate",
            "-o",
            self.page,
            *flags,
            output=False,
            prefix=prefix,
        ).sampling()

    def result(self, timeout=300):
        result = self.run.result(timeout).expect()
        with self.dir:
            text = yrt.read(self.page)
        assert text, f"no page\n{result.stderr}"
        result.text, result.stacks = text, parse_page(text)
        return result


def sample(script, *args, seconds=3, rate=RATE, options=()):
    """(result, truth) of a script whose first argument is how many seconds it works."""
    with fixture(script, seconds, *args, options=options) as f:
        at = Sampling(f.pid, seconds=seconds + 30, rate=rate)
        f.release()
        truth = f.finish(seconds + 60)
        return at.result(), truth


def check_entered(stacks, script, least=0.95):
    """
    What a host calls to run scripts (lua_resume, which does little itself) has a script's function right inside nearly
    always, whatever share of the time scripts take beside the network on this machine.
    """
    entries = collections.Counter()
    for frames, n in stacks:
        at = next((i for i, f in enumerate(frames) if script.search(f)), 0)
        if at:
            entries[frames[at - 1]] += n
    scripts = sum(entries.values())
    assert scripts > 30, f"{scripts} samples in scripts\n{yrt.show(stacks)}"
    entry, directly = entries.most_common(1)[0]
    inside = yrt.count(stacks, entry)
    assert (
        directly > least * inside and directly > 0.95 * scripts
    ), f"of {inside} samples inside of {entry} {directly} are in scripts, of {scripts} at all: {entries}"
    return f"{directly} of {inside} samples inside of {entry} are in scripts"


def show(stacks, n=5):
    heavy = sorted(stacks, key=lambda s: -s[1])[:n]
    return "\n".join(
        f"  {count:6d}  " + ";".join(f"{'~' if f.flags & APPROX else ''}{f.name}:{f.line}" for f in frames)[-900:]
        for frames, count in heavy
    )


def check_complete(result, samples, limit=0.001):
    assert result.samples >= samples, f"only {result.samples} samples\n{result.stderr}"
    rootless = [(f, n) for f, n in result.stacks if f[0].name != "_start"]
    most = max(limit, 2 / result.samples)  # of few samples, as on a busy machine, two may be cut
    assert result.incomplete() <= most, f"{result.incomplete():.4%} cut: {result.stats['truncated']}\n{show(rootless)}"
    return result.summary()
