# SPDX-License-Identifier: Apache-2.0
"""
A real Envoy with Lua filters (fixtures/envoy), under load: whole stacks of its workers, the truth that scripts report
of themselves.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import servers
import yrt

RATE = 1999
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "envoy", "filter.lua")
LUA = re.compile(r'^(.*) \((?:\[string ".*"\]|.*):\d+\)$')


def functions(frames):
    """The names of a stack's functions in Lua, outermost first."""
    return [m[1].rpartition(".")[2] for f in frames if (m := LUA.match(f))]


def check_whole(result, limit=0.001):
    """Of few samples, as on a busy machine, two may be cut: a stack that is being moved at that moment."""
    assert result.samples > 300, f"only {result.samples} samples\n{result.stderr}"
    most = max(2, limit * result.samples)
    assert (
        result.incomplete() * result.samples <= most
    ), f"{result.incomplete():.4%} cut: {result.stats['truncated']}\n{yrt.show(result.stacks)}"
    rootless = [(f, n) for f, n in result.stacks if not re.match(r"(_start|clone3?)\b", f[0])]
    assert sum(n for _, n in rootless) <= most, f"begin elsewhere:\n{yrt.show(rootless)}"
    return (
        f"{result.samples} samples, {result.incomplete():.4%} cut, lost {result.lost()}, BPF"
        f" {result.stats['bpf_ns_per_sample']:.0f} ns a sample, RSS {result.stats['max_rss_kb']} kB, maps"
        f" {result.stats['map_kb']} kB, armed after {result.stats['armed_ms']:.0f} ms"
    )


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


def check_calls(result, least):
    """Who calls whom in the scripts; envoy_on_request and _response have no caller in Lua."""
    wrong, seen = [], set()
    for frames, count in result.stacks:
        names = functions(frames)
        for above, name in zip([None, *names], names):
            seen.add(name)
            if name not in CALLS or CALLS[name] != above:
                wrong.append((frames, count))
    assert sum(n for _, n in wrong) <= 0.001 * result.samples, f"wrong callers:\n{yrt.show(wrong)}"
    assert len(seen & set(CALLS)) >= least, f"only {seen}"


def flame(jit, least):
    with servers.Envoy(servers.envoy_program(), jit=jit) as envoy:
        result = yrt.run("lua-flame", "-p", envoy.pid, "-d", 5, "-F", RATE).expect()
    yield check_whole(result)
    check_calls(result, least)
    names = {m[0] for frames, _ in result.stacks for f in frames if (m := re.search(r'\[string ".*"\]', f))}
    assert any("What a filter does" in n for n in names) and any("Reads the body" in n for n in names), names
    assert not any("SPDX" in n for n in names), names
    lua = result.share(LUA)
    assert lua > 0.3, f"only {lua:.3f} of the samples have a function in Lua\n{yrt.show(result.stacks)}"
    assert result.share(re.compile("^Envoy::Extensions::HttpFilters::Lua::")) > 0.3, yrt.show(result.stacks)
    assert result.share(re.compile("tcp_|__x64_sys")) > 0.05, yrt.show(result.stacks)


def test_jit():
    yield from flame("on", 6)


def test_interpreter():
    yield from flame("off", 8)


def test_traceback():
    """A coroutine in a protected call in Envoy's own coroutine, beside what debug.traceback says inside of it."""
    with servers.Envoy(servers.envoy_program(), jit="off", path="/respond/deep", connections=2) as envoy:
        truth = envoy.get("/respond/deep")
        result = yrt.run("lua-flame", "-p", envoy.pid, "-d", 4, "-F", RATE, "--lines").expect()
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
    assert burning > 0.3 * result.samples, f"{burning} of {result.samples} samples burn\n{yrt.show(result.stacks)}"
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


def test_reload_and_drain():
    """Scripts are replaced while they run, then Envoy drains and ends: what was gathered is kept."""
    options = "--drain-time-s", "1", "--drain-strategy", "immediate"
    with servers.Envoy(servers.envoy_program(), options=options) as envoy:
        at = yrt.Run("lua-flame", "-p", envoy.pid, "-d", 50, "-F", RATE).sampling()
        for turn in range(3):
            replace_script(envoy, turn)
            time.sleep(2)
        assert envoy.wrk.poll() is None, "the load ended before the last script"
        envoy.admin("/drain_listeners?graceful")
        time.sleep(0.5)
        envoy.admin("/quitquitquit")
        result = at.result(timeout=30).expect()
    yield check_whole(result, limit=0.005)
    for turn in range(3):
        assert (
            result.share(re.compile(rf"^digest_answer_{turn} ")) > 0
        ), f"no digest_answer_{turn}\n{yrt.show(result.stacks)}"
    assert re.search(rf"\b{envoy.pid}\b", result.stderr), result.stderr


def test_failing_script():
    """A script that ends in an error on every request."""
    with servers.Envoy(servers.envoy_program(), path="/fail", connections=2) as envoy:
        result = yrt.run("lua-flame", "-p", envoy.pid, "-d", 3, "-F", RATE).expect()
    yield check_whole(result, limit=0.005)
    assert result.share(re.compile("^fail_at ")) > 0.02, yrt.show(result.stacks)


def test_hot_restart():
    """A second process takes over the listeners, the first one drains and ends: a selection follows."""
    with tempfile.TemporaryDirectory() as directory:
        program = shutil.copy(servers.envoy_program(), os.path.join(directory, "hot-envoy"))
        with servers.Envoy(program, connections=2) as envoy:
            at = yrt.Run("lua-flame", "--select", f"exe={program}", "-d", 60, "-F", RATE).sampling()
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
                    "2",
                    "--parent-shutdown-time-s",
                    "4",
                    "-l",
                    "warning",
                    "--log-path",
                    f"{envoy.dir}/second.log",
                ],
                stdin=subprocess.DEVNULL,
            )
            try:
                envoy.process.wait(30)
                used = yrt.cpu_seconds(second.pid)
                end = time.monotonic() + 30
                while yrt.cpu_seconds(second.pid) < used + 1 and time.monotonic() < end:
                    time.sleep(0.1)
                at.interrupt()
                result = at.result(timeout=30).expect()
            finally:
                yrt.stop(second)
                yrt.stop(at.process, signal.SIGKILL)
    yield result.summary()
    assert result.incomplete() < 0.002, yrt.show(result.stacks)
    for pid in envoy.pid, second.pid:
        stacks = [(frames, n) for frames, n in result.stacks if frames[0].endswith(f"(pid {pid})")]
        lua = sum(n for frames, n in stacks if yrt.has(frames, LUA))
        assert lua > 0.2 * sum(n for _, n in stacks) > 10, f"{pid}: {lua}\n{yrt.show(stacks)}"


def test_earlier_versions():
    for version in "1.36.2", "1.38.3":
        with servers.Envoy(servers.envoy_program(version)) as envoy:
            result = yrt.run("lua-flame", "-p", envoy.pid, "-d", 5, "-F", RATE).expect()
        yield f"{version}: {check_whole(result)}"
        check_calls(result, 6)


yrt.main(globals())
