# SPDX-License-Identifier: Apache-2.0
"""How Go's time is split, against what runtime/pprof saw of the same run."""

import os
import re
import subprocess

import go
import yrt

SECONDS, RATE, DEVIATIONS = 10, 499, 4
FUNCTIONS = ("main.seven", "main.two", "main.one")
SAMPLED = 100  # times a second, by runtime/pprof


def peer(profile):
    """{function: its share}, and how many samples, by what the program wrote of itself."""
    out = subprocess.run(
        [go.GO, "tool", "pprof", "-top", "-nodecount=200", "-unit=ms", profile],
        capture_output=True,
        text=True,
        check=True,
        env=go.ENV,
    ).stdout
    total = float(re.search(r"Total samples = ([\d.]+)ms", out).group(1))
    shares = {}
    for line in out.splitlines():
        found = re.match(r"\s*\S+\s+\S+\s+\S+\s+([\d.]+)m?s?\s+\S+\s+(\S+)", line)
        if found and found.group(2) in FUNCTIONS:
            shares[found.group(2)] = float(found.group(1)) / total
    return shares, total / 1000 * SAMPLED


@yrt.measured
def test_split():
    profile = os.path.join(yrt.BUILD, "fixtures", "go-split.pprof")
    with yrt.Fixture(go.build("split"), SECONDS, profile, seconds=None) as f:
        result, _ = yrt.sample_whole(f, "--max-cpu", 0, view="go-flame", rate=RATE)
    assert result.incomplete() <= 0.001, f"{result.incomplete():.4%} cut: {result.stats['truncated']}"
    yield result.summary()
    theirs, samples = peer(profile)
    for name in FUNCTIONS:
        ours = result.share(name)
        assert name in theirs, f"runtime/pprof has no {name}: {theirs}"
        spread = (ours * (1 - ours) * (1 / samples + 1 / result.samples)) ** 0.5
        line = (
            f"{name}: {ours:.4f}, runtime/pprof {theirs[name]:.4f}, difference {abs(ours - theirs[name]) / spread:.1f}"
            " deviations"
        )
        assert abs(ours - theirs[name]) <= DEVIATIONS * spread, line
        yield line


yrt.main(globals())
