# SPDX-License-Identifier: Apache-2.0
"""The split of time between call paths, against what the program measured of itself by its thread's CPU clock."""

import math

import yrt

TOLERANCE = 0.02


def against(result, truth, pattern):
    whole = sum(result.share(pattern(path)) for path in truth)
    for path, share in truth.items():
        seen = result.share(pattern(path)) / whole
        within = max(TOLERANCE, 4 * math.sqrt(share * (1 - share) / max(1, result.samples)))
        assert abs(seen - share) < within, f"{path}: seen {seen:.4f}, truth {share:.4f}\n{yrt.show(result.stacks)}"
        yield f"{path}: seen {seen:.4f}, truth {share:.4f}"
    assert whole > 0.97, f"only {whole:.4f} of the samples below {', '.join(truth)}\n{yrt.show(result.stacks)}"
    assert result.samples >= 1000, f"only {result.samples} samples"


def native(name):
    with yrt.Fixture(name, seconds=4, cpu=True) as fixture:
        result, truth = yrt.sample_whole(fixture)
    return against(result, truth["split"], lambda path: path)


@yrt.measured
def test_native():
    yield from native("split")


@yrt.measured
def test_native_O3():
    yield from native("split_O3")


yrt.main(globals())
