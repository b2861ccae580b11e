# SPDX-License-Identifier: Apache-2.0
"""
A real nginx running Lua (fixtures/nginx), under load: whole stacks, true names, true order, workers that come and go.
"""

import os
import re
import signal
import time

import servers
import yrt

RATE = 1999
APP = os.path.join(yrt.SOURCE, "fixtures", "nginx", "app.lua")
FRAME = re.compile(r"^(.*?) ?[(<@]*(?:[^ ]*/)?app\.lua:(\d+)")
NAMELESS = {"", "?", "function", "anonymous", "iterator"}
# A tail call: the callee stands where its caller stood, under the name that the caller was called by, as in
# debug.traceback.
TAIL_CALLS = {"order_total": "order_round_trip"}


def definitions():
    """{line: names} of the functions of app.lua, anonymous ones as None."""
    found = {}
    for number, line in enumerate(yrt.read(APP).splitlines(), 1):
        for name in re.findall(r"function\s*([\w.]*)\s*\(", line):
            found.setdefault(number, set()).add(name.rpartition(".")[2] or None)
    return found


def check_names(result):
    """Every frame of app.lua is defined where it says, under a name that it has there if it has one."""
    lines, wrong, named = definitions(), {}, set()
    for frames, count in result.stacks:
        for frame in frames:
            if not (match := FRAME.match(frame)):
                continue
            name, line = match.group(1).split(" ")[-1].split(".")[-1], int(match.group(2))
            named.add(name)
            known = lines.get(line, set())
            # A function called by an anonymous value (a callback, a member by variable) has no name; line 0 is the file
            # itself.
            if line and (not known or name not in known | NAMELESS | {TAIL_CALLS.get(n) for n in known}):
                wrong[frame] = wrong.get(frame, 0) + count
    assert sum(wrong.values()) <= 0.001 * result.samples, f"defined elsewhere: {wrong}"
    return named


def check_stacks(result, limit=0.001, named=True):
    assert result.samples > 1000, f"only {result.samples} samples\n{result.stderr}"
    assert result.incomplete() <= limit, f"{result.incomplete():.4%} cut: {result.stats['truncated']}\n" \
        + yrt.show([s for s in result.stacks if "_start" not in s[0]])
    rootless = [(f, n) for f, n in result.stacks if "_start" not in f]
    assert sum(n for _, n in rootless) <= limit * result.samples, f"do not begin at _start:\n{yrt.show(rootless)}"
    lua = result.share(re.compile(r"app\.lua:\d+"))
    assert lua > 0.5, f"only {lua:.3f} of the samples have a frame of app.lua\n{yrt.show(result.stacks)}"
    names = check_names(result)
    if named:  # what is not inlined into a trace
        missing = {"order_round_trip", "fill_template", "sort_players", "match_headers", "serve"} - names
        assert not missing, f"no frame named {missing}; seen {sorted(names)}"
    return f"{result.samples} samples, {result.incomplete():.4%} cut, lost {result.lost()}, Lua in {lua:.3f}, " \
           f"BPF {result.stats['bpf_ns_per_sample']} ns a sample, RSS {result.stats['max_rss_kb']} kB, " \
           f"maps {result.stats['map_kb']} kB, first sample after {result.stats['first_sample_ms']} ms"


def index(frames, name):
    return next((i for i, f in enumerate(frames) if re.match(rf"(?:\w+\.)?{name} \(.*app\.lua", f)), None)


def check_order(result, functions):
    """Who calls whom in app.lua: a caller stands before its callee, and serve before all."""
    calls = [("order_round_trip", "make_order"), ("serve", "order_round_trip"),
             ("serve", "fill_template"), ("serve", "sort_players"), ("serve", "cached_digest"),
             ("serve", "sort_numbers"), ("serve", "consume_words")]
    seen = set()
    for frames, count in result.stacks:
        for caller, callee in calls:
            if (below := index(frames, callee)) is not None:
                above = index(frames, caller)
                assert above is not None and above < below, f"{callee} without {caller} above: {';'.join(frames)}"
                seen.add(callee)
    assert len(seen) >= functions, f"only {seen}"


def lua_flame(jit, functions):
    with servers.Nginx(jit=jit) as nginx:
        result = yrt.run("lua-flame", "-p", nginx.workers()[0], "-d", 5, "-F", RATE).expect()
    line = check_stacks(result)
    check_order(result, functions)
    yield line
    sorting = [(f, n) for f, n in result.stacks if index(f, "sort_players") is not None]
    assert any(any("sort" in x and "app.lua" not in x for x in f) for f, _ in sorting), \
        "table.sort between sort_players and its comparator\n" + yrt.show(sorting)


def test_jit():
    yield from lua_flame("on", functions=5)


def test_interpreter():
    yield from lua_flame("off", functions=7)  # all: nothing is inlined


def callers(result, name):
    """{functions of app.lua above it: samples} of the stacks that have this one."""
    found = {}
    for frames, count in result.stacks:
        if index(frames, name) is not None:
            above = [m.group(1) for f in frames if (m := re.match(r"(?:\w+\.)?(\w+) \(.*app\.lua", f))]
            above = tuple(above[:above.index(name)])
            found[above] = found.get(above, 0) + count
    return found


def nested(jit):
    """coroutine.wrap and .resume of ngx_lua yield to nginx: who waits for a coroutine stands above it all the same."""
    with servers.Nginx(jit=jit, path="/nested") as nginx:
        result = yrt.run("flame", "-p", nginx.workers()[0], "-d", 4, "-F", RATE).expect()
    found = callers(result, "produce_sums")
    samples = sum(found.values())
    assert samples > 0.5 * result.samples, yrt.show(result.stacks)
    whole = found.get(("serve", "nested", "pass_sums"), 0)
    assert whole >= 0.999 * samples, f"{whole} of {samples} below nested and pass_sums: {found}"
    # New coroutines grow: a stack that is being moved can not be read.
    assert result.incomplete() <= 0.005, f"{result.incomplete():.4%} cut: {result.stats['truncated']}"
    yield f"{samples} samples in the inner coroutine of {result.samples}, {whole} below both that wait for it"


def test_nested_jit():
    yield from nested("on")


def test_nested_interpreter():
    yield from nested("off")


def test_spawned():
    """Nobody waits for a thread of ngx_lua's, though it has a parent which waits for another coroutine meanwhile."""
    with servers.Nginx(jit="off", path="/spawned", connections=32) as nginx:
        result = yrt.run("flame", "-p", nginx.workers()[0], "-d", 4, "-F", RATE).expect()
    found = callers(result, "work_alone")
    assert sum(found.values()) > 0.5 * result.samples, yrt.show(result.stacks)
    assert set(found) == {()}, f"above a thread that nobody waits for: {found}"


def test_flame_has_everything():
    """flame shows kernel, nginx's own and Lua frames of one stack, in this order: native, Lua, native or kernel."""
    with servers.Nginx() as nginx:
        result = yrt.run("flame", "-p", nginx.workers()[0], "-d", 4, "-F", RATE).expect()
    check_stacks(result)
    assert result.share(re.compile("ngx_")) > 0.9, yrt.show(result.stacks)
    assert result.share(re.compile("lua_resume|lua_pcall|ngx_http_lua")) > 0.5, yrt.show(result.stacks)
    assert result.share(re.compile("tcp_|sys_|ksys_|__x64_sys|vfs_|do_syscall")) > 0.01, yrt.show(result.stacks)


def test_several_workers():
    with servers.Nginx(workers=2) as nginx:
        pids = ",".join(map(str, nginx.workers()))
        before = [yrt.cpu_seconds(p) for p in nginx.workers()]
        result = yrt.run("lua-flame", "-p", pids, "-d", 4, "-F", RATE).expect()
        used = sum(yrt.cpu_seconds(p) for p in nginx.workers()) - sum(before)
    check_stacks(result)
    assert result.samples < used * RATE * 1.1, f"{result.samples} samples, but only {used} s of CPU"
    yield f"{result.samples} samples of two workers that used {used:.2f} s"


def test_master_and_reload():
    """-s on the master: workers that exist, and those of two reloads while sampling."""
    with servers.Nginx(workers=2) as nginx:
        at = yrt.Run("lua-flame", "-p", nginx.master.pid, "-s", "-d", 9, "-F", RATE).sampling()
        first, used = nginx.workers(), 0
        for _ in range(2):
            time.sleep(1.5)
            old = nginx.workers()
            used += sum(yrt.cpu_seconds(p) for p in old)
            nginx.reload()
            time.sleep(1)
            assert set(nginx.workers()) - set(old), "no new workers"
        last = [p for p in nginx.workers() if p not in first]
        result = at.result().expect()
        nginx.get("/json")
        ended = sum(yrt.cpu_seconds(p) for p in last)
    line = check_stacks(result)
    # The last workers, forked during sampling, used most of the rest of the time.
    assert ended > 1, f"the last workers used {ended} s only"
    assert result.samples + result.missing(RATE * ended) > 0.85 * RATE * (
        ended - 1
    ), f"{result.samples} samples; the last workers alone used {ended} s"
    yield line


def test_worker_killed():
    """The worker is killed amid: the result is kept, the exit code is 0, a line says so."""
    with servers.Nginx() as nginx:
        worker = nginx.workers()[0]
        at = yrt.Run("lua-flame", "-p", worker, "-d", 20, "-F", RATE).sampling()
        time.sleep(3)
        os.kill(worker, signal.SIGKILL)
        result = at.result(timeout=15).expect()
    check_stacks(result, named=False)
    assert re.search(rf"\b{worker}\b", result.stderr) and re.search(
        "exit|ended|gone|died", result.stderr
    ), result.stderr


def test_target_is_not_disturbed():
    """Every request during sampling is answered."""
    with servers.Nginx(load=4) as nginx:
        result = yrt.run("lua-flame", "-p", nginx.workers()[0], "-d", 3, "-F", RATE).expect()
        report, _ = nginx.wrk.communicate(timeout=20)
        worker = nginx.workers()[0]
        assert yrt.read(f"/proc/{worker}/status").count("TracerPid:\t0") == 1
        log = yrt.read(os.path.join(nginx.dir, "error.log"))
    assert "Non-2xx" not in report and "Socket errors" not in report, report
    assert not log, log
    assert result.samples > 500


def test_lines():
    """--lines: frames of app.lua give the line being executed, which lies inside the function."""
    with servers.Nginx(jit="off") as nginx:
        result = yrt.run("lua-flame", "--lines", "-p", nginx.workers()[0], "-d", 4, "-F", RATE).expect()
    seen = {int(m.group(1)) for frames, _ in result.stacks for f in frames
            if (m := re.match(r"make_order \(.*app\.lua:\d+\):(\d+)$", f))}
    start = next(n for n, names in definitions().items() if "make_order" in names)
    assert len(seen) >= 2 and all(start <= line <= start + 6 for line in seen), f"lines of make_order: {sorted(seen)}"


yrt.main(globals())
