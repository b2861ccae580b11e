# SPDX-License-Identifier: Apache-2.0
"""--gil shows the threads that hold the GIL, and reports how much it left out."""

import os
import re

import yrt

PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "python", "gil.py")


def sample(mode, *flags, seconds=2):
    with yrt.Fixture(PYTHON, SCRIPT, seconds, mode, seconds=None) as f:
        return yrt.sample_whole(f, "-U", *flags, view="python-flame", rate=999)


@yrt.measured
def test_one_thread():
    """Who computes holds it all the time."""
    result, _ = sample("one", "--gil")
    left_out = result.stats["filtered_samples"]
    assert result.samples > 100 and left_out <= 20 + 0.03 * result.samples, f"{left_out} left out of {result.samples}"
    yield f"{result.samples} samples, {left_out} left out"


@yrt.measured
def test_without_the_gil():
    result, truth = sample("hash", "--gil")
    left_out = result.stats["filtered_samples"]
    whole = result.samples + left_out
    share, measured = result.share(re.compile(r"^compute \(gil\.py:")), truth["compute"] / (
        truth["compute"] + truth["hashing"]
    )
    assert whole == result.stats["samples"] and not result.stats["lost"].get("unmatched"), result.stats
    assert share > 0.95, f"{share:.4f} of those that hold the GIL compute"
    assert (
        abs(result.samples / whole - measured) < 0.05
    ), f"{result.samples} of {whole} hold the GIL, measured {measured:.4f}"
    assert f", {left_out} left out as asked" in result.stderr, result.stderr
    yield f"{result.samples} of {whole} samples hold the GIL; {measured:.4f} of the time was computing"


@yrt.measured
def test_without_python():
    """Without a Python there is no GIL, and nothing to show."""
    with yrt.Fixture("deep30", seconds=2) as f:
        result = yrt.sample(f, "--gil", seconds=1)
    assert not result.samples and result.stats["filtered_samples"] > 100, result.stats
    yield f"{result.stats['filtered_samples']} left out"


yrt.main(globals())
