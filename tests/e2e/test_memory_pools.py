# SPDX-License-Identifier: Apache-2.0
"""
pools: what stays in pools is what the program itself counts, to the byte, by the function that took it and by who made
the pool; what went with its pool, or with its reset, is not there.
"""

import json

import yrt

OWN = "alloc=own_get(flags,pool,size) alloc=own_get_zeroed(flags,pool,size) create=own_new(&pool) " \
      "destroy=own_free(pool) reset=own_clear(pool)"


def run(*args, requests=1000, threads=1):
    with yrt.Fixture("pools_own", requests, threads) as fixture:
        options = ("-d", 600, "--max-cpu", 0, "--older", 0, "--pool", OWN)
        at = yrt.Run("pools", "-p", fixture.pid, *options, *args).sampling()
        fixture.release()
        truth = json.loads(fixture.process.stdout.readline())
        at.interrupt()
        return at.result().expect(), truth


def check(result, truth):
    for name in ("keep_header", "keep_cookie"):
        seen = yrt.count(result.stacks, name)
        assert seen == truth[name], f"{name}: {seen} of {truth[name]}\n{yrt.show(result.stacks)}"
    assert {frames[-1] for frames, _ in result.stacks} == {"[in pools of make_session]"}, yrt.show(result.stacks)
    stats = result.stats["pools"]
    assert stats["made"] == truth["requests"] + truth["sessions"], stats
    assert stats["destroyed"] == truth["requests"] and stats["alive"] == truth["sessions"], stats
    assert stats["reset"] == truth["sessions"] // 5 and not stats["no_room"] and not stats["in_windows"], stats
    return f"{result.samples} bytes in {stats['alive']} pools, {stats['made']} were made"


def test_bytes():
    """One thread, and four: each with requests that end and sessions that stay."""
    for threads in (1, 4):
        yield check(*run(requests=500, threads=threads))


def test_words():
    """Above the last line: who made pools, how many are alive, what those that are gone had."""
    result, truth = run("--blocks")
    assert result.samples == 1000 * 4 // 5 + 1000 // 2 * 4 // 5, yrt.show(result.stacks)
    for part in ("made by make_session: 5 alive", "made by make_request: 0 alive; 1000 made, 1000 gone", "400 B",
                 "own_get_zeroed < keep_header < "):
        assert part in result.stderr, result.stderr


def test_older():
    """Pools that are younger than asked for are counted, but not shown."""
    result, _ = run("--older", 3600)
    assert not result.stacks and result.stats["pools"]["alive"] == 5, result.stderr
    assert not result.stats["pools"]["older"], result.stats


def test_refused():
    """A description that does not fit is refused with what is wrong; so is a program without pools."""
    for text, word in (("alloc=f(size)", "no argument is called pool"), ("create=f", "there is no alloc="),
                       ("take=f(pool,size)", "begins with none of"),
                       ("alloc=f(pool,pool,size)", "first six arguments")):
        refused = yrt.run("pools", "-p", 1, "--pool", text)
        assert refused.code == yrt.USAGE and word in refused.stderr, refused.stderr
    with yrt.Fixture("alloc_odd") as fixture:
        refused = yrt.run("pools", "-p", fixture.pid, "-d", 1)
        assert refused.code == yrt.UNSUPPORTED and "no memory pools that are known" in refused.stderr, refused.stderr


yrt.main(globals())
