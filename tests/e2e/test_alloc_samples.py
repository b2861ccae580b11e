# SPDX-License-Identifier: Apache-2.0
"""alloc and leak take the samples that a program tells of itself by USDT probes, with their weights."""

import json

import yrt


def run(command, *args):
    """(result, truth), of a run that is still there at its end."""
    with yrt.Fixture("alloc_samples", "stay") as fixture:
        at = yrt.Run(command, "-p", fixture.pid, "-d", 600, *args).sampling()
        fixture.release()
        truth = json.loads(fixture.process.stdout.readline())
        at.interrupt()
        return at.result().expect(), truth


def test_alloc():
    """What each sample stands for counts, by bytes and by calls; malloc() itself is not probed."""
    for which, args in enumerate((("--calls",), ())):
        result, truth = run("alloc", *args)
        for name in ("take", "keep"):
            assert yrt.count(result.stacks, name) == truth[name][which], (truth, yrt.show(result.stacks))
        stats = result.stats["alloc"]
        assert stats["own_samples"] == 800 and not stats["from"], stats
        assert stats["calls"] == truth["take"][0] + truth["keep"][0], stats
        assert "800 samples of alloc_samples (otel_memory)" in result.stderr, result.stderr
    low, high = stats["bytes_interval"]
    assert low < stats["bytes"] < high, stats


def test_leak():
    """Which blocks are left, by the program's word that it frees the others."""
    for which, args in enumerate((("--blocks",), ())):
        result, truth = run("leak", *args)
        assert yrt.count(result.stacks, "keep") == truth["left"][which], (truth, yrt.show(result.stacks))
        assert not yrt.count(result.stacks, "take"), yrt.show(result.stacks)
        assert result.stats["leak"]["watched"] == 800 and result.stats["leak"]["freed"] == 700, result.stats


yrt.main(globals())
