# SPDX-License-Identifier: Apache-2.0
"""
A real Envoy with Lua filters (fixtures/envoy), under load: whole stacks of its workers, the truth that scripts report
of themselves.
"""

import contextlib
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import lua
import servers
import yrt

RATE = 1999
EARLIER = "1.36.2", "1.38.3"  # fetched while other tests run
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "envoy", "filter.lua")
LUA = re.compile(r'^(.*) \((?:\[.* ".*"\]|.*):\d+\)$')


def functions(frames):
    """The names of a stack's functions in Lua, outermost first."""
    return [m[1].rpartition(".")[2] for f in frames if (m := LUA.match(f))]


def check_whole(result, limit=0.001, processes=1):
    """How many are cut varies by chance: a stack of Lua that is being moved at that moment."""
    assert result.samples > 20, f"only {result.samples} samples\n{result.stderr}"
    most = max(2, limit * result.samples + 2 * math.sqrt(limit * result.samples))
    assert (
        result.incomplete() * result.samples <= most
    ), f"{result.incomplete():.4%} cut: {result.stats['truncated']}\n{yrt.show(result.stacks)}"
    root = min(1, processes - 1)  # below the process, if there are several
    rootless = [(f, n) for f, n in result.stacks if not re.match(r"(_start|clone3?)\b", f[root])]
    assert sum(n for _, n in rootless) <= most, f"begin elsewhere:\n{yrt.show(rootless)}"
    return (
        f"{result.samples} samples, {result.incomplete():.4%} cut, lost {result.lost()}, BPF"
        f" {result.stats['bpf_ns_per_sample']:.0f} ns a sample, RSS {result.stats['max_rss_kb']} kB, maps"
        f" {result.stats['map_kb']} kB, armed after {result.stats['armed_ms']:.0f} ms"
    )


def check_scripts(stacks):
    """Every script is entered in the same way, most of them from methods of the Lua filter's classes."""
    scripts = [(frames, n) for frames, n in stacks if yrt.has(frames, LUA)]
    handled = yrt.count(scripts, re.compile("^Envoy::Extensions::HttpFilters::Lua::"))
    total = sum(n for _, n in scripts)
    assert handled > 0.5 * total, f"{handled} of {total} inside of Envoy's Lua filter\n{yrt.show(stacks)}"
    return lua.check_entered(stacks, LUA)


CALLS = {
    "envoy_on_request": None,
    "envoy_on_response": None,
    "check_token": "envoy_on_request",
    "decode_text": "check_token",
    "parse_claims": "check_token",
    "count_headers": "envoy_on_request",
    "stamp_headers": "envoy_on_request",
    "escape_user": "envoy_on_request",
    "ask_upstream": "envoy_on_request",
    "digest_answer": "ask_upstream",
    "sum_bytes": "digest_answer",
    "count_words": "envoy_on_response",
}


def check_calls(stacks, least):
    """
    Who calls whom in the scripts; envoy_on_request and _response have no caller in Lua. Of a stack that is cut the
    outermost function may be missing, which it says; check_whole() limits how many there are.
    """
    wrong, seen = [], set()
    for frames, n in stacks:
        names = [] if any("[truncated" in f for f in frames) else functions(frames)
        for above, name in zip([None, *names], names):
            seen.add(name)
            if name not in CALLS or CALLS[name] != above:
                wrong.append((frames, n))
    assert sum(n for _, n in wrong) <= 0.001 * sum(n for _, n in stacks), f"wrong callers:\n{yrt.show(wrong)}"
    assert len(seen & set(CALLS)) >= least, f"only {seen}"


def check_chunks(stacks):
    """Every script by the filter and the source or route that its configuration gives, behind that its first line."""
    names = {m[1] for frames, _ in stacks for f in frames if (m := re.search(r'(\[.* "--.*"\])', f))}
    known = {'[tokens "-- What a filter does for every request: it c..."]',
             '[routes/call "-- Asks another server, waits for the answer,..."]',
             '[routes at /inline "-- Reads the body of the answer...."]'}
    assert names == known, names


@yrt.measured
def test_jit_and_interpreter():
    """Two Envoys at once, one of them with jit.off() in its scripts."""
    program = servers.envoy_program()
    for version in EARLIER:
        servers.fetch_envoy(version)
    with servers.Envoy(program) as jit, servers.Envoy(program, jit="off") as interpreter:
        result = yrt.sample_busy("lua-flame", [jit.pid, interpreter.pid], seconds=5)
    yield check_whole(result, processes=2)
    for envoy, least in (jit, 6), (interpreter, 8):
        stacks = yrt.of_process(result, envoy.pid)
        yield check_scripts(stacks)
        check_calls(stacks, least)
        check_chunks(stacks)
        assert yrt.count(stacks, re.compile("tcp_|__x64_sys")) > 10, yrt.show(stacks)


@yrt.measured
def test_traceback():
    """A coroutine in a protected call in Envoy's own coroutine, beside what debug.traceback says inside of it."""
    with servers.Envoy(servers.envoy_program(), jit="off", path="/respond/deep", connections=2) as envoy:
        truth = envoy.get("/respond/deep")
        result = yrt.sample_busy("lua-flame", [envoy.pid], "--lines", seconds=2)
    yield check_whole(result)
    protected, request = re.search(r":(\d+): in function 'burn_protected'\n.*:(\d+): in function <.*>$", truth).groups()
    chain = [f"envoy_on_request:{request}", f"burn_protected:{protected}", "pcall", "burn_in_coroutine", "burn"]
    burning, wrong = 0, []
    for frames, count in result.stacks:
        short = [re.sub(r"^(\w+) \(.*\):(\d+)$", r"\1:\2", f) for f in frames]
        if not any(f.startswith("burn:") for f in short):
            continue
        burning += count
        at = short.index(chain[0]) if chain[0] in short else None
        found = short[at:at + 6] if at is not None else []
        parts = [f if f in chain[:3] else f.rpartition(":")[0] or f for f in found]
        if [p for p in parts if not p.startswith("coroutine.")] != chain:
            wrong.append((frames, count))
    assert burning > 100, f"{burning} of {result.samples} samples burn\n{yrt.show(result.stacks)}"
    assert sum(n for _, n in wrong) <= 0.001 * burning, f"not as Lua tells it:\n{truth}\n{yrt.show(wrong)}"
    yield f"{burning} samples below {chain}"


def replace_script(envoy, turn):
    """
    digest_answer becomes digest_answer_0, _1, ... Waits until no connection runs the script before, by Envoy's own
    count.
    """
    listener = os.path.join(envoy.dir, "lds.yaml")
    with open(listener + ".new", "w") as out:
        out.write(re.sub(r"digest_answer\w*", f"digest_answer_{turn}", yrt.read(listener)))
    os.rename(listener + ".new", listener)
    end = time.monotonic() + 20
    while True:
        stats = dict(re.findall(r"listener_manager\.(\S+): (\d+)", envoy.admin("/stats?filter=listener_manager")))
        if int(stats["listener_in_place_updated"]) > turn and stats["total_filter_chains_draining"] == "0":
            return
        assert time.monotonic() < end, f"script {turn} does not run: {stats}"
        time.sleep(0.1)


@yrt.measured
def test_reload_and_drain():
    """
    Scripts are replaced while they run, and one ends in an error on every request; then Envoy drains and ends. What was
    gathered is kept.
    """
    options = "--drain-time-s", "1", "--drain-strategy", "immediate"
    with servers.Envoy(servers.envoy_program(), options=options) as envoy, envoy.load("/fail", connections=2):
        at = yrt.Run("lua-flame", "-p", envoy.pid, "-d", 50, "-F", RATE).sampling()
        for turn in range(3):
            replace_script(envoy, turn)
            time.sleep(1)
        assert envoy.wrk.poll() is None, "the load ended before the last script"
        envoy.admin("/drain_listeners?graceful")
        time.sleep(0.5)
        envoy.admin("/quitquitquit")
        result = at.result(timeout=300).expect()
    yield check_whole(result, limit=0.005)
    for turn in range(3):
        assert (
            result.share(re.compile(rf"^digest_answer_{turn} \(\[routes/call ")) > 0
        ), f"no digest_answer_{turn}\n{yrt.show(result.stacks)}"
    assert result.share(re.compile(r"^fail_at \(\[routes/fail ")) > 0, yrt.show(result.stacks)
    assert re.search(rf"\b{envoy.pid}\b", result.stderr), result.stderr


@yrt.measured
def test_hot_restart():
    """A second process takes over the listeners, the first one drains and ends: a selection follows."""
    with tempfile.TemporaryDirectory() as directory:
        program = shutil.copy(servers.envoy_program(), os.path.join(directory, "hot-envoy"))
        with servers.Envoy(program, connections=2) as envoy:
            at = yrt.Run("lua-flame", "--select", f"exe={program}", "-d", 600, "-F", RATE).sampling()
            second = subprocess.Popen(
                [
                    program,
                    "-c",
                    f"{envoy.dir}/envoy.yaml",
                    "--concurrency",
                    "2",
                    "--base-id",
                    yrt.read(f"{envoy.dir}/base-id").strip(),
                    "--restart-epoch",
                    "1",
                    "--drain-time-s",
                    "1",
                    "--parent-shutdown-time-s",
                    "2",
                    "-l",
                    "warning",
                    "--log-path",
                    f"{envoy.dir}/second.log",
                ],
                stdin=subprocess.DEVNULL,
            )
            try:
                envoy.process.wait(30)
                yrt.busy_for([second.pid], 1)
                at.interrupt()
                result = at.result(timeout=300).expect()
            finally:
                yrt.stop(second)
                yrt.stop(at.process, signal.SIGKILL)
    yield result.summary()
    assert result.incomplete() < 0.002, yrt.show(result.stacks)
    for pid in envoy.pid, second.pid:
        yield check_scripts(yrt.of_process(result, pid))


@yrt.measured
def test_earlier_versions():
    with contextlib.ExitStack() as stack:
        envoys = [stack.enter_context(servers.Envoy(servers.envoy_program(version))) for version in EARLIER]
        result = yrt.sample_busy("lua-flame", [envoy.pid for envoy in envoys], seconds=5)
    yield check_whole(result, processes=2)
    for envoy in envoys:
        stacks = yrt.of_process(result, envoy.pid)
        yield check_scripts(stacks)
        check_calls(stacks, 6)


yrt.main(globals())
