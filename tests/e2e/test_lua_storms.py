# SPDX-License-Identifier: Apache-2.0
"""
Lua programs that change under the eyes of yrt: traces, coroutines, VMs and stacks that come and go; and names that are
hostile.
"""

import collections
import os
import re
import signal
import subprocess
import tempfile
import time

import lua
import yrt


def named(result, name, file=""):
    """The share of samples with a function of this name."""
    found = sum(count for frames, count in result.stacks
                if any(f.name.split(" ")[0] == name and f.file.endswith(file) for f in frames))
    return found / max(1, result.samples)


def check_shares(result, **least):
    for name, share in least.items():
        assert named(result, name) >= share, f"only {named(result, name):.4f} in {name}\n{lua.show(result.stacks)}"


def check_order(result, *chain):
    """Wherever the last of the chain stands, the others stand above it in this order, and nothing of Lua in between."""
    wrong = []
    for frames, count in result.stacks:
        names = [f.name.split(" ")[0] for f in frames if f.module == "luajit"]
        if chain[-1] in names and not frames[0].name.startswith("[truncated"):
            at = names.index(chain[-1])
            if tuple(names[max(0, at - len(chain) + 1):at + 1]) != chain:
                wrong.append((frames, count))
    assert (
        sum(n for _, n in wrong) == 0
    ), f"{sum(n for _, n in wrong)} samples are not in the order {chain}\n{lua.show(wrong)}"


@yrt.measured
def test_flush_loop():
    result, truth = lua.sample("storm.lua", "loop", seconds=3)
    yield f"{truth['flushes']} flushes, {truth['traces']} traces"
    assert truth["flushes"] > 100, truth
    yield lua.check_complete(result, 300)
    check_shares(result, apply=0.05, round=0.7)  # the rest is the kernel's part of jit.flush(), as fast as it is


@yrt.measured
def test_many_traces():
    result, truth = lua.sample("storm.lua", "many", seconds=4)
    yield f"{truth['flushes']} flushes, {truth['traces']} traces"
    assert truth["traces"] > 500, truth
    yield lua.check_complete(result, 300)
    check_shares(result, round=0.9)


@yrt.measured
def test_attach_with_many_traces():
    """Attached when there are thousands of traces already."""
    with lua.fixture("storm.lua", 12, "many", wait=False) as f:
        while yrt.cpu_seconds(f.pid) < 1:
            time.sleep(0.05)
        result = lua.Sampling(f.pid, seconds=3).result()
    yield lua.check_complete(result, 300)
    check_shares(result, round=0.9)


@yrt.measured
def test_coroutines_jit():
    result, truth = lua.sample("many_coroutines.lua", "jit", seconds=3)
    yield lua.check_complete(result, 300)
    check_shares(result, turn=0.5, work=0.2)


@yrt.measured
def test_coroutines_interpreter():
    result, truth = lua.sample("many_coroutines.lua", "off", seconds=3)
    yield lua.check_complete(result, 300)
    check_shares(result, turn=0.9, step=0.5, work=0.5)
    check_order(result, "turn", "coroutine.resume")
    check_order(result, "helper", "coroutine.wrap_aux")


@yrt.measured
def test_closing():
    """VMs of some milliseconds. Their functions are gone before they can be named; the stacks are whole."""
    result, truth = lua.sample("closing.lua", 1, seconds=3)
    yield f"{truth['vms']} VMs"
    assert truth["vms"] > 50, truth
    yield lua.check_complete(result, 300)
    check_shares(result, once=0.9)


@yrt.measured
def test_several_vms():
    """Three VMs by turns in one process, each with another inside that lives for half a second or so."""
    result, truth = lua.sample("closing.lua", 300, seconds=2, options=("-n", "3"))
    yield lua.check_complete(result, 300)
    yield f"{truth['vms']} VMs"
    check_shares(result, once=0.9, down=0.3, spin=0.3)
    check_order(result, "once", "vm")


@yrt.measured
def test_stacks():
    """
    Stacks that grow all the time. While LuaJIT moves one (resizestack), nothing says where its top is: those Lua frames
    are lost, and reported as lost.
    """
    result, truth = lua.sample("stacks.lua", seconds=3)
    yield lua.check_complete(result, 300, limit=0.1)
    check_shares(result, round=0.9, grow=0.5)


@yrt.measured
def test_collector():
    """The collector's work is shown as such, below the function that allocates or as a finalizer."""
    result, truth = lua.sample("garbage.lua", "garbage", seconds=2)
    yield lua.check_complete(result, 300)
    assert truth["finalized"] > 0, truth
    shown = sum(n for frames, n in result.stacks if any(f.name == "(gc)" for f in frames)) / result.samples
    yield f"(gc) in {shown:.3f}"
    assert shown > 0.05, lua.show(result.stacks)


@yrt.measured
def test_collector_order():
    """
    The collector's frame is inside of the native functions that led to it, and only its own functions are inside of it.
    """
    program = subprocess.Popen([*lua.host(), lua.path("collecting.lua")])
    try:
        result = lua.Sampling(program.pid, seconds=3).result()
    finally:
        yrt.stop(program, signal.SIGKILL)
    lua.check_complete(result, 300)
    callers, first = collections.Counter(), collections.Counter()
    for frames, count in result.stacks:
        names = [f.name for f in frames]
        if "(gc)" in names and names[-1] != "(gc)":
            at = names.index("(gc)")
            callers[names[at - 1]] += count
            first[names[at + 1]] += count
    assert sum(first.values()) > 0.1 * result.samples, lua.show(result.stacks)
    assert len(first) <= 2, f"inside of (gc): {first.most_common(9)}\n{lua.show(result.stacks)}"
    # tostring is the VM's own assembly, which calls the collector itself (fff_gcstep of vm_x64.dasc)
    builtins = {name: n for name, n in callers.items() if name in ("os.date", "traceback", "debug.traceback")}
    assert not builtins, f"(gc) right inside of {builtins}\n{lua.show(result.stacks)}"
    yield (
        f"(gc) in {sum(first.values())} of {result.samples} samples, inside of {callers.most_common(4)}:"
        f" {first.most_common(4)}"
    )


@yrt.measured
def test_templates():
    """Functions that live for a millisecond are named nevertheless."""
    program = subprocess.Popen([*lua.host(), lua.path("templates.lua")])
    try:
        result = lua.Sampling(program.pid, seconds=3).result()
    finally:
        yrt.stop(program, signal.SIGKILL)
    yield lua.check_complete(result, 300)
    gone = sum(n for frames, n in result.stacks if any(f.name == "[gone]" for f in frames)) / result.samples
    yield f"[gone] in {gone:.4f} of the samples"
    assert gone < 0.01, lua.show(result.stacks)


@yrt.measured
def test_compiler():
    """So is the work of the compiler."""
    result, truth = lua.sample("garbage.lua", "compile", seconds=2)
    yield lua.check_complete(result, 300)
    shown = sum(n for frames, n in result.stacks if any(f.name == "(trace compile)" for f in frames)) / result.samples
    yield f"(trace compile) in {shown:.3f}"
    assert shown > 0.05, lua.show(result.stacks)


@yrt.measured
def test_hostile_names():
    """In both formats at once."""
    with tempfile.TemporaryDirectory() as directory, lua.fixture("hostile.lua", 3) as f:
        page, folded = os.path.join(directory, "out.html"), os.path.join(directory, "out.folded")
        other = yrt.Run("lua-flame", "-p", f.pid, "-d", 600, "-F", 999, "-o", page, output=False).sampling()
        result, truth = yrt.sample_whole(f, "-o", folded, view="lua-flame", rate=999, output=False)
        other.result().expect()
        with open(folded, "rb") as file:
            check_folded(result, truth, file.read())
        with open(page, "rb") as file:
            check_page(file.read().decode("utf-8"))


def check_folded(result, truth, data):
    stacks = yrt.parse_folded(data.decode("utf-8"))  # strict: no broken bytes
    assert result.incomplete() <= 0.001, result.stats["truncated"]
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", data), "control characters"
    below = {
        frames[at + 1] for frames, _ in stacks for at, f in enumerate(frames[:-1]) if f.startswith("call (hostile.lua")
    }
    assert (
        len(below) >= truth["names"] - 2
    ), f"{len(below)} of {truth['names']} functions: {sorted(b[:80] for b in below)}"
    assert all(len(b) < 5000 for b in below), "a name of 64 KB is shown whole"


def check_page(text):
    assert text.count("</script") == text.count("<script"), "a name ended a script"
    assert "<script>alert" not in text
    assert len(lua.parse_page(text)) > 10


yrt.main(globals())
