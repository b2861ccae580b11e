# SPDX-License-Identifier: Apache-2.0
"""
fixtures/lua/oracle.lua, whose functions know their legal callers: of frames that are not marked approximate none is
wrong in 100,000 samples, and the stacks are whole. The error rate of those that are marked is reported.
"""

import collections

import lua
import yrt

SECONDS, RATE, ENOUGH = 8, 19997, 100000


def node(frame):
    """What the truth calls this frame; None if it is none of Lua's, or the VM's own work."""
    if frame.file.endswith("oracle_graph"):
        return str(frame.line)
    if frame.module != "luajit":
        return None
    if frame.file.endswith("oracle.lua"):
        return "main" if frame.name.startswith("main chunk") else None
    return None if frame.name.startswith("(") else frame.name


def is_call(calls, caller, callee):
    """The main chunk calls builtins besides."""
    return (caller, callee) in calls or ("*", callee) in calls or caller == "main" and not callee.isdigit()


def check(result, truth):
    calls = {tuple(pair) for pair in truth["calls"]}
    right = wrong = gone = 0
    bad, seen, impossible = [], set(), collections.Counter()
    for frames, count in result.stacks:
        nodes = [(n, f.flags & lua.APPROX) for f in frames if (n := node(f))]
        closing = any(f.name == "lua_close" for f in frames)  # the last finalizers, below nothing
        if not nodes or closing or frames[0].name.startswith("[truncated"):
            continue
        if any(name == "[gone]" for name, _ in nodes):
            gone += count
            continue
        if nodes[0][0] != "main":
            impossible["nothing", nodes[0][0]] += count
            bad.append((frames, count))
        for (caller, approx), (callee, marked) in zip(nodes, nodes[1:]):
            ok = is_call(calls, caller, callee)
            seen.add((caller, callee))
            if approx or marked:
                right, wrong = right + ok * count, wrong + (not ok) * count
            elif not ok:
                impossible[caller, callee] += count
                bad.append((frames, count))
    n = sum(impossible.values())
    assert not n, f"{n} calls can not be and are not marked approximate: {impossible.most_common(10)}\n" \
        + lua.show(bad, 3)
    assert gone <= 0.001 * result.samples, f"{gone} samples have functions that could not be named any more"
    yield (
        f"{gone} samples not named any more; approximate: {right} calls right, {wrong} wrong"
        f" ({wrong / max(1, right + wrong):.4%})"
    )
    known = sum(pair in seen for pair in calls) / len(calls)
    assert known > 0.5, f"only {known:.3f} of the {len(calls)} calls were ever seen"
    yield f"{known:.3f} of the {len(calls)} kinds of calls were seen"


def oracle(mode):
    samples = []
    while sum(r.samples for r in samples) < ENOUGH and len(samples) < 12:
        result, truth = lua.sample("oracle.lua", mode, seconds=SECONDS, rate=RATE)
        yield lua.check_complete(result, 1000)
        yield from check(result, truth)
        samples.append(result)
    assert sum(r.samples for r in samples) >= ENOUGH, f"only {sum(r.samples for r in samples)} samples"


@yrt.measured
def test_jit():
    yield from oracle("jit")


@yrt.measured
def test_interpreter():
    yield from oracle("off")


@yrt.measured
def test_flush():
    yield from oracle("flush")


yrt.main(globals())
