# SPDX-License-Identifier: Apache-2.0
"""Stacks of native programs: complete, and equal to the chain that the program promises."""

import os
import re
import shutil
import subprocess
import tempfile

import yrt

LIMIT = 0.001


def check(name, *args, chains=None, flags=("-U",), seconds=1, rate=3999, off=LIMIT):
    """Samples a fixture; every stack must follow its chain, or one of chains(start, end), but for the share `off`."""
    with yrt.Fixture(name, *args) as fixture:
        result = yrt.sample(fixture, *flags, seconds=seconds, rate=rate)
    wanted = chains or [fixture.chain]
    wrong = yrt.wrong_chains(result, *wanted)
    bad = sum(count for _, count in wrong)
    assert result.samples > 20, f"{name}: only {result.samples} samples"
    assert result.incomplete() <= LIMIT, f"{name}: {result.incomplete():.4%} cut: {result.stats['truncated']}\n" \
        + yrt.show(wrong)
    assert bad <= off * result.samples, f"{name}: {bad} of {result.samples} off the chain {wanted}\n" + yrt.show(wrong)
    return result


def deepest(result, chain):
    """The share of samples at the innermost function of a chain."""
    return result.share(chain[0])


def deep30(name, **limits):
    with yrt.Fixture("deep30") as fixture:
        chain = fixture.chain
    result = check(name, **limits)
    assert result.near(chain[0], 0.71), f"{name}: leaf {deepest(result, chain):.4f}, should be 0.71"


@yrt.measured
def test_deep30():
    deep30("deep30")


@yrt.measured
def test_deep30_O3():
    deep30("deep30_O3")


@yrt.measured
def test_deep30_static():
    deep30("deep30_static")


@yrt.measured
def test_deep30_static_pie():
    deep30("deep30_static_pie")


@yrt.measured
def test_deep30_nopie():
    deep30("deep30_nopie")


@yrt.measured
def test_deep30_cet():
    deep30("deep30_cet")


@yrt.measured
def test_deep30_nohdr():
    deep30("deep30_nohdr")


@yrt.measured
def test_deep30_debug_frame():
    deep30("deep30_debug_frame")


@yrt.measured
def test_deep30_stripped():
    """No symbols at all: each function is one frame, named by module and the start of its FDE."""
    with yrt.Fixture("deep30_stripped") as fixture:
        result = yrt.sample(fixture, "-U")
    assert result.incomplete() <= LIMIT, result.stats["truncated"]
    heaviest = max(result.stacks, key=lambda s: s[1])[0]
    own = [f for f in heaviest if "deep30_stripped" in f]
    assert len(own) >= 31 and len(set(own[-31:])) == 31, f"not 31 distinct functions of deep30_stripped: {heaviest}"
    assert result.near(own[-1], 0.71), f"{own[-1]} has {result.share(own[-1]):.4f}, should be 0.71"


def test_link():
    """What is run by a link has its name, as Debian's redis-server, a link to redis-check-rdb; a shorter one not."""
    for link, shown in (("deep_link", "deep_link"), ("deep", "deep_file")):
        with tempfile.TemporaryDirectory() as directory:
            shutil.copy(yrt.fixture_path("deep30_stripped"), os.path.join(directory, "deep_file"))
            path = os.path.join(directory, link)
            os.symlink("deep_file", path)
            with yrt.Program([path, "1000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
                program.stdin.write(b"\n")
                program.stdin.flush()
                result = yrt.sample_busy("flame", [program.pid], "-U", seconds=0.3, rate=499)
        files = {f.split("+0x")[0] for frames, _ in result.stacks for f in frames if f.startswith("deep")}
        assert files == {shown}, files


@yrt.measured
def test_deep30_frame_pointers():
    """No unwind information: frame pointers, which cannot be right within the prologue's two instructions."""
    deep30("deep30_fp", off=5 * LIMIT)


@yrt.measured
def test_noframe():
    result = check("noframe", chains=[["back_leaf", "back", "bare_call", "main"], ["bare_loop", "main"]])
    assert result.share("bare_loop") > 0.15, yrt.show(result.stacks)


@yrt.measured
def test_stale_words():
    """Below code that nothing describes: whoever called it, and not what an earlier call has left on the stack."""
    with yrt.Fixture("stale") as fixture:
        result = yrt.sample(fixture, "-U", seconds=3)
    inside = [(frames, n) for frames, n in result.stacks if frames[-1] == "[anonymous]"]
    wrong = [
        (frames, n)
        for frames, n in inside
        if [yrt.plain(f) for f in frames[-4:-1]] not in (["main", "work", "enter"], ["main", "work", "enter_framed"])
    ]
    assert sum(n for _, n in inside) > 200, yrt.show(result.stacks)
    assert 0.4 < sum(n for frames, n in inside if "enter_framed" in frames) / sum(n for _, n in inside) < 0.6
    assert sum(n for _, n in wrong) <= LIMIT * result.samples, yrt.show(wrong)
    assert result.incomplete() <= LIMIT, result.stats["truncated"]


@yrt.measured
def test_realign():
    result = check("realign")
    assert result.share("aligned_leaf") > 0.5


@yrt.measured
def test_cold():
    check("cold", chains=[["rare_leaf", "parted.cold", "outer", "main"], ["parted", "outer", "main"],
                          ["rare_leaf", "parted", "outer", "main"]])


@yrt.measured
def test_signals():
    with yrt.Fixture("signals") as fixture:
        result = yrt.sample(fixture, "-U")
    base, above = ["main", "base_mid", "base_leaf"], ["handler", "signal_mid", "signal_leaf"]
    wrong, inside = [], 0
    for frames, count in result.stacks:
        below = yrt.below_main(frames) or ["?"]
        if "handler" in below:
            at = below.index("handler")
            inside += count
            # One frame of libc between; the interrupted code may be main itself, or clock_gettime called by it.
            right = yrt.follows(below[at:], above) and yrt.follows(below[:min(at - 1, 3)], base)
        else:
            right = yrt.follows(below, base) or below[0] == "main"
        if not right:
            wrong.append((frames, count))
    assert result.incomplete() <= LIMIT, f"{result.stats['truncated']}\n{yrt.show(wrong)}"
    assert sum(n for _, n in wrong) <= LIMIT * result.samples, yrt.show(wrong)
    assert 0.2 < inside / result.samples < 0.95, f"{inside} of {result.samples} in the handler"


@yrt.measured
def test_vdso():
    result = check("vdso")
    assert result.share("ask") > 0.95, yrt.show(result.stacks)
    deeper = sum(n for frames, n in result.stacks if frames[-1] not in ("ask", "main")) / result.samples
    assert deeper > 0.3, f"only {deeper:.3f} below ask: where is the vDSO?\n" + yrt.show(result.stacks)


@yrt.measured
def test_vdso_static():
    check("vdso_static")


@yrt.measured
def test_plt():
    assert check("plt").share("hot") > 0.95


@yrt.measured
def test_plt_cet():
    assert check("plt_cet").share("hot") > 0.95


@yrt.measured
def test_syscalls():
    """Samples in the kernel have a whole user stack under them."""
    result = check("syscalls", chains=[["zero", "main"], ["ask", "main"]], flags=())
    in_kernel = sum(n for frames, n in result.stacks if re.search("zero|clear|iter|copy|rep_", frames[-1]))
    assert result.share("zero") > 0.5 and result.share("ask") > 0.005, yrt.show(result.stacks)
    assert in_kernel > 0.3 * result.samples, "kernel frames?\n" + yrt.show(result.stacks)


@yrt.measured
def test_crypto():
    result = check("crypto", chains=[[f, "round_trip", "main"] for f in ("digest", "seal", "sign")])
    for function in ("digest", "seal", "sign"):
        assert result.share(function) > 0.02, f"{function}: {result.share(function):.4f}"


@yrt.measured
def test_callbacks():
    """compare, called by qsort of libc, has sort and main under it."""
    result = check("callbacks")
    under = sum(n for f, n in result.stacks if "compare" in f and f.index("sort") < f.index("compare"))
    assert under > 0.5 * result.samples, yrt.show(result.stacks)


@yrt.measured
def test_exceptions():
    result = check("exceptions", chains=[["fixture::Machine<int>::spin", "fixture::drive", "main"],
                                         ["fixture::catching", "fixture::drive", "main"],
                                         ["fixture::sorting", "fixture::drive", "main"]])
    for function in ("fixture::catching", "fixture::sorting"):
        share = sum(n for f, n in result.stacks if function in map(yrt.plain, f)) / result.samples
        assert share > 0.02, f"{function}: {share:.4f}"


@yrt.measured
def test_exceptions_static():
    """While libgcc's unwinder overwrites its own frame by that of the function that catches, this is there once."""
    result = check("exceptions_static", 1000, chains=[[f, "fixture::drive", "main"] for f in (
        "fixture::Machine<int>::spin", "fixture::catching", "fixture::sorting")])
    catching = [(f, n) for f, n in result.stacks if "fixture::catching" in map(yrt.plain, f)]
    assert sum(n for _, n in catching) > 0.8 * result.samples, yrt.show(result.stacks)
    twice = [(f, n) for f, n in catching if list(map(yrt.plain, f)).count("fixture::catching") > 1]
    assert not twice, f"{sum(n for _, n in twice)} of {result.samples} samples:\n" + yrt.show(twice)


@yrt.measured
def test_ucontext():
    """A stack made by makecontext ends at libc's start of a context, and that is complete."""
    with yrt.Fixture("ucontext") as fixture:
        result = yrt.sample(fixture, "-U")
    wrong = yrt.wrong_chains(result, ["plain", "main"], ["co_leaf", "co_mid", "co_main"])
    # There is an instruction of swapcontext that has the registers of both; how much of the time it is depends on its
    # system call.
    assert result.incomplete() <= 5 * LIMIT, f"{result.stats['truncated']}\n{yrt.show(wrong)}"
    # Between the two stacks, inside swapcontext, neither plain nor co_mid need be there.
    wrong = [(frames, n) for frames, n in wrong if frames[-1] != "swapcontext"]
    assert sum(n for _, n in wrong) <= 0.002 * result.samples, yrt.show(wrong)
    assert 0.6 < result.share("co_main") < 0.9, yrt.show(result.stacks)


@yrt.measured
def test_threads():
    with yrt.Fixture("threads", 4) as fixture:
        result = yrt.sample(fixture, "-U")
    wrong = yrt.wrong_chains(result, ["work", "worker"], ["main"])
    assert result.incomplete() <= LIMIT, f"{result.stats['truncated']}\n{yrt.show(wrong)}"
    assert sum(n for _, n in wrong) <= 2 * LIMIT * result.samples, yrt.show(wrong)


def recursion(depth, *flags, fixture_name="recursion"):
    with yrt.Fixture(fixture_name, depth) as fixture:
        return yrt.sample(fixture, "-U", *flags)


@yrt.measured
def test_recursion_1000():
    result = recursion(1000)
    depths = [f.count("recurse") for f, _ in result.stacks if yrt.leaf(f) == "bottom"]
    assert result.incomplete() <= LIMIT, result.stats["truncated"]
    assert set(depths) == {1000}, f"depths {sorted(set(depths))}"


@yrt.measured
def test_recursion_O0():
    result = recursion(900, fixture_name="recursion_O0")
    assert result.incomplete() <= LIMIT, result.stats["truncated"]


@yrt.measured
def test_recursion_5000_is_cut_and_said():
    result = recursion(5000)
    assert result.stats["truncated"].get("depth", 0) > 0.99 * result.samples, result.stats["truncated"]
    assert "depth" in yrt.alone(result.stderr)[-1] or "cut" in yrt.alone(result.stderr)[-1], result.stderr


@yrt.measured
def test_recursion_5000_with_depth():
    result = recursion(5000, "--depth", 8192)
    depths = [f.count("recurse") for f, _ in result.stacks if yrt.leaf(f) == "bottom"]
    assert result.incomplete() <= LIMIT, result.stats["truncated"]
    assert set(depths) == {5000}, f"depths {sorted(set(depths))}"


yrt.main(globals())
