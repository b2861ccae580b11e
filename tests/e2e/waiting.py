# SPDX-License-Identifier: Apache-2.0
"""What tests of time off the CPU share. Not a test itself."""

EXACT = 0.02


def of(result, function):
    return [(frames, ns * 1e-9) for frames, ns in result.stacks if function in frames]


def check_balance(result):
    off = result.stats["off"]
    assert abs(off["wall_s"] - off["on_s"] - off["off_s"]) <= EXACT * off["wall_s"] + 0.05 + result.slack(
        off["wall_s"]
    ), off
    return f"{off['wall_s']:.3f} s = {off['on_s']:.3f} s on + {off['off_s']:.3f} s off"
