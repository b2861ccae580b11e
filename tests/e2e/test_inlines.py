# SPDX-License-Identifier: Apache-2.0
"""Inlined functions and lines of native code in profiles."""

import os
import re
import subprocess
import sys

import yrt

CHAIN = ["main", "work", "twice", "thrice", "burn"]
SOURCE = os.path.join(yrt.SOURCE, "fixtures", "native", "inlines.c")


def sample(name, *flags):
    with yrt.Fixture(name) as fixture:
        return yrt.sample(fixture, "-U", *flags, seconds=2, rate=999)


def below(frames):
    return yrt.below_main(frames) or []


def share(result, chain):
    return sum(n for frames, n in result.stacks if below(frames) == chain) / max(result.samples, 1)


@yrt.measured
def test_inlined_functions():
    for name in ("inlines", "inlines_nested_O3"):
        result = sample(name)
        assert share(result, CHAIN) > 0.95, yrt.show(result.stacks)


@yrt.measured
def test_without_them():
    result = sample("inlines", "--no-inline")
    assert share(result, CHAIN[:2]) > 0.95, yrt.show(result.stacks)


def line_of(text):
    with open(SOURCE) as f:
        return next(i for i, line in enumerate(f, 1) if text in line)


@yrt.both_tiers
def test_lines():
    result = sample("inlines", "--lines")
    wanted = [f"main:{line_of('sink += work')}", f"work:{line_of('sum += twice')}", f"twice:{line_of('return thrice')}",
              f"thrice:{line_of('burn((unsigned')}"]
    burnt = [(frames, n) for frames, n in result.stacks if frames[-1].startswith("burn:")]
    wrong = [(frames, n) for frames, n in burnt if [f for f in frames if f in wanted] != wanted]
    assert burnt and not wrong, f"{wanted}\n" + yrt.show(wrong or result.stacks)
    assert not yrt.measuring() or sum(n for _, n in burnt) > 0.95 * result.samples, yrt.show(result.stacks)


@yrt.measured
def test_names_as_in_the_file():
    assert sample("inlines_cc").share("fixture::work(long)") > 0.9
    plain = sample("inlines_cc", "--no-demangle")
    assert plain.share("_ZN7fixture4workEl") > 0.9, yrt.show(plain.stacks)
    assert plain.share(re.compile("^(fixture|std)::")) == 0, yrt.show(plain.stacks)


@yrt.measured
def test_templates_of_the_library():
    result = sample("inlines_cc")
    depth = max(len(below(frames)) for frames, _ in result.stacks)
    assert depth >= 8, f"only {depth} below main\n" + yrt.show(result.stacks)
    assert result.share(re.compile("std::")) > 0.5, yrt.show(result.stacks)


@yrt.both_tiers
def test_patterns_match_inlined_functions():
    only, without = sample("inlines", "-I", "^thrice$"), sample("inlines", "-X", "^thrice$")
    assert only.samples > 20 and all("thrice" in frames for frames, _ in only.stacks), yrt.show(only.stacks)
    assert not any("thrice" in frames for frames, _ in without.stacks), yrt.show(without.stacks)
    assert not yrt.measuring() or without.samples < 0.1 * only.samples, (without.samples, only.samples)


@yrt.measured
def test_without_debug_information():
    stripped, plain = sample("inlines_cc_stripped"), sample("inlines_cc_stripped", "--no-inline")
    for result in (stripped, plain):
        assert result.share(re.compile("inlines_cc_stripped")) > 0.9, yrt.show(result.stacks)
        assert result.share("fixture::work(long)") == 0


@yrt.both_tiers
def test_loop_of_a_vm():
    """
    What is inlined in a VM's loop is called by the frames that it runs: the wait for the lock lies above them, not
    below. It is waits that are looked at: there is always one, whatever the other threads of the machine do.
    """
    python = os.path.realpath(sys.executable)
    if ".debug_info" not in subprocess.run(["readelf", "-SW", python], capture_output=True, text=True).stdout:
        raise yrt.Skipped(f"{python} has no debug information")
    script = (
        "import threading\ndef spin():\n n = 0\n while n < 9000000: n += 1\nfor i in range(3):"
        " threading.Thread(target=spin).start()"
    )
    result = yrt.run("off-flame", "--", sys.executable, "-c", script, timeout=300).expect()
    waits = [(frames, n) for frames, n in result.stacks if "take_gil" in frames]
    assert waits, yrt.show(result.stacks)
    for frames, n in waits:
        inside = frames[frames.index("take_gil"):]
        assert not [f for f in inside if f.startswith("spin (")], yrt.show([(frames, n)])
        if "eval_frame_handle_pending" in frames:
            at = frames.index("eval_frame_handle_pending")
            function = re.fullmatch(r".+ \(.+:\d+\)", frames[at - 1])  # spin, mostly; or threading's own at its ends
            assert function and frames[at + 1] in ("take_gil", "drop_gil"), yrt.show([(frames, n)])
    spinning = sum(n for frames, n in waits if any(f.startswith("spin (") for f in frames))
    assert spinning > (0.8 * sum(n for _, n in waits) if yrt.measuring() else 0), yrt.show(waits)
    yield (
        f"{sum(n for frames, n in waits if 'eval_frame_handle_pending' in frames) / 1e9:.3f} s of"
        f" {sum(n for _, n in waits) / 1e9:.3f} s where it is inlined"
    )


yrt.main(globals())
