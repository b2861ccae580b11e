# SPDX-License-Identifier: Apache-2.0
"""
A real nginx running Lua (fixtures/nginx), under load: whole stacks, true names, true order, workers that come and go.
"""

import os
import re
import signal

import lua
import servers
import yrt

RATE = 1999
APP = os.path.join(yrt.SOURCE, "fixtures", "nginx", "app.lua")
FRAME = re.compile(r"^(.*?) ?[(<@]*(?:[^ ]*/)?app\.lua:(\d+)")
SCRIPT = re.compile(r"(app\.lua|nginx\.conf):\d+\)")
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
    assert result.samples > 20, f"only {result.samples} samples\n{result.stderr}"
    assert result.incomplete() <= limit, f"{result.incomplete():.4%} cut: {result.stats['truncated']}\n" \
        + yrt.show([s for s in result.stacks if "_start" not in s[0]])
    # a process that ends has no user stack any more
    rootless = [(f, n) for f, n in result.stacks if "_start" not in f and "do_exit" not in f]
    assert sum(n for _, n in rootless) <= limit * result.samples, f"do not begin at _start:\n{yrt.show(rootless)}"
    entered = lua.check_entered(result.stacks, SCRIPT, 0.8) if named else ""  # ngx_http_lua_run_thread works, too
    names = check_names(result)
    if named:  # what is not inlined into a trace
        missing = {"order_round_trip", "fill_template", "sort_players", "match_headers", "serve"} - names
        assert not missing, f"no frame named {missing}; seen {sorted(names)}"
    return f"{result.samples} samples, {result.incomplete():.4%} cut, lost {result.lost()}, {entered}, " \
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


def flame_has_everything(nginx):
    """flame shows kernel, nginx's own and Lua frames of one stack, in this order: native, Lua, native or kernel."""
    result = yrt.sample_busy("flame", nginx.workers(), seconds=1)
    yield check_stacks(result, named=False)
    assert result.share(re.compile("ngx_")) > 0.9, yrt.show(result.stacks)
    scripts = [(frames, n) for frames, n in result.stacks if yrt.has(frames, FRAME)]
    entered = yrt.count(scripts, re.compile("lua_resume|lua_pcall|ngx_http_lua"))
    assert entered > 0.99 * sum(n for _, n in scripts), yrt.show(scripts)
    kernel = re.compile("tcp_|sys_|ksys_|__x64_sys|vfs_|do_syscall")
    assert yrt.count(result.stacks, kernel) > 5, yrt.show(result.stacks)


def lines(nginx):
    """--lines: frames of app.lua give the line being executed, which lies inside the function."""
    result = yrt.sample_busy("lua-flame", nginx.workers(), "--lines", seconds=1)
    seen = {int(m.group(1)) for frames, _ in result.stacks for f in frames
            if (m := re.match(r"make_order \(.*app\.lua:\d+\):(\d+)$", f))}
    start = next(n for n, names in definitions().items() if "make_order" in names)
    assert len(seen) >= 2 and all(start <= line <= start + 6 for line in seen), f"lines of make_order: {sorted(seen)}"
    yield f"lines of make_order: {sorted(seen)}"


def lua_flame(jit, functions, more):
    with servers.Nginx(jit=jit) as nginx:
        result = yrt.sample_busy("lua-flame", nginx.workers(), seconds=2)
        yield from more(nginx)
    line = check_stacks(result)
    check_order(result, functions)
    yield line
    sorting = [(f, n) for f, n in result.stacks if index(f, "sort_players") is not None]
    assert any(any("sort" in x and "app.lua" not in x for x in f) for f, _ in sorting), \
        "table.sort between sort_players and its comparator\n" + yrt.show(sorting)


@yrt.measured
def test_jit():
    yield from lua_flame("on", 5, flame_has_everything)


@yrt.measured
def test_interpreter():
    yield from lua_flame("off", 7, lines)  # all: nothing is inlined


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
        result = yrt.sample_busy("flame", nginx.workers(), seconds=1.5)
    found = callers(result, "produce_sums")
    samples = sum(found.values())
    assert samples > 20, yrt.show(result.stacks)
    whole = found.get(("serve", "nested", "pass_sums"), 0)
    assert whole >= 0.999 * samples, f"{whole} of {samples} below nested and pass_sums: {found}"
    # New coroutines grow: a stack that is being moved can not be read.
    assert result.incomplete() <= 0.005, f"{result.incomplete():.4%} cut: {result.stats['truncated']}"
    yield f"{samples} samples in the inner coroutine of {result.samples}, {whole} below both that wait for it"


@yrt.measured
def test_nested_jit():
    yield from nested("on")


@yrt.measured
def test_nested_interpreter():
    yield from nested("off")


@yrt.measured
def test_spawned():
    """Nobody waits for a thread of ngx_lua's, though it has a parent which waits for another coroutine meanwhile."""
    with servers.Nginx(jit="off", path="/spawned", connections=32) as nginx:
        result = yrt.sample_busy("flame", nginx.workers(), seconds=1)
    found = callers(result, "work_alone")
    assert sum(found.values()) > 100, yrt.show(result.stacks)
    assert set(found) == {()}, f"above a thread that nobody waits for: {found}"


@yrt.measured
def test_several_workers():
    with servers.Nginx(workers=2) as nginx:
        before = [yrt.cpu_seconds(p) for p in nginx.workers()]
        result = yrt.sample_busy("lua-flame", nginx.workers(), seconds=1)
        used = sum(yrt.cpu_seconds(p) for p in nginx.workers()) - sum(before)
    check_stacks(result)
    assert result.samples < used * RATE * 1.1, f"{result.samples} samples, but only {used} s of CPU"
    yield f"{result.samples} samples of two workers that used {used:.2f} s"


@yrt.measured
def test_master_and_reload():
    """-s on the master: workers that exist, and those of two reloads while sampling."""
    with servers.Nginx(workers=2) as nginx:
        at = yrt.Run("lua-flame", "-p", nginx.master.pid, "-s", "-d", 120, "-F", RATE).sampling()
        workers = nginx.workers()
        for _ in range(2):
            yrt.busy_for(workers, 1)
            old = set(nginx.workers())
            nginx.reload()
            yrt.until(lambda: len(set(nginx.workers()) - old) == 2, "new workers")
            workers = [p for p in nginx.workers() if p not in old]
        yrt.busy_for(workers, 1.5)
        at.interrupt()
        result = at.result().expect()
        nginx.get("/json")
        ended = sum(yrt.cpu_seconds(p) for p in workers)
    line = check_stacks(result)
    # The last workers, forked during sampling, used most of the rest of the time.
    assert ended > 1, f"the last workers used {ended} s only"
    assert result.samples + result.missing(RATE * ended) > 0.85 * RATE * (
        ended - 1
    ), f"{result.samples} samples; the last workers alone used {ended} s"
    yield line


@yrt.measured
def test_worker_killed():
    """The worker is killed amid: the result is kept, the exit code is 0, a line says so."""
    with servers.Nginx() as nginx:
        worker = nginx.workers()[0]
        at = yrt.Run("lua-flame", "-p", worker, "-d", 120, "-F", RATE).sampling()
        yrt.busy_for([worker], 1)
        os.kill(worker, signal.SIGKILL)
        result = at.result(timeout=300).expect()
    check_stacks(result, named=False)
    assert re.search(rf"\b{worker}\b", result.stderr) and re.search(
        "exit|ended|gone|died", result.stderr
    ), result.stderr


@yrt.measured
def test_target_is_not_disturbed():
    """Every request during sampling is answered."""
    with servers.Nginx(load=3) as nginx:
        result = yrt.run("lua-flame", "-p", nginx.workers()[0], "-d", 2, "-F", RATE).expect()
        report, _ = nginx.wrk.communicate(timeout=300)
        worker = nginx.workers()[0]
        assert yrt.read(f"/proc/{worker}/status").count("TracerPid:\t0") == 1
        log = yrt.read(os.path.join(nginx.dir, "error.log"))
    assert "Non-2xx" not in report and "Socket errors" not in report, report
    assert not log, log
    assert result.samples > 20


yrt.main(globals())
