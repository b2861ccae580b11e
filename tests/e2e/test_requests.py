# SPDX-License-Identifier: Apache-2.0
"""
requests: each request of a server once, by route; its status and time as nginx's own access log has them; what slow ones
waited for.
"""

import collections
import concurrent.futures
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import tempfile
import time

import go
import java
import servers
import yrt
from counted import Program

TIMES = ("cpu", "queue", "blocked", "idle", "others")


def get(port, method, *paths):
    """Requests of one connection, one after the other."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    for path in paths:
        connection.request(method, path)
        connection.getresponse().read()
    connection.close()


def raw(port, text):
    """What is no request, or one that nobody waits for."""
    with socket.create_connection(("127.0.0.1", port), timeout=300) as s:
        s.sendall(text)
        s.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            while s.recv(4096):
                pass


def logged(nginx):
    """[(method, path, status, seconds)] of the access log."""
    lines = yrt.read(os.path.join(nginx.dir, "access.log")).splitlines()
    return [(m, path, int(status), float(s)) for m, path, status, s in (line.split("|")[:4] for line in lines)]


def attempts(nginx):
    """{(path, status): [(peer, status, response ms, connect ms, header ms)]} of the access log."""
    ret = {}
    for line in yrt.read(os.path.join(nginx.dir, "access.log")).splitlines():
        _, path, status, _, *columns = line.split("|")
        words = [[] if column == "-" and columns[0] == "-" else column.split(", ") for column in columns]
        ret[path, int(status)] = [
            (peer, int(code), *(-1 if t == "-" else round(1000 * float(t)) for t in times))
            for peer, code, *times in zip(*words)]
    return ret


def route(method, path):
    if path == "-":  # nginx could not read it
        return "(requests)"
    return method + " " + re.sub(r"(?<=/)\d+(?=/|$)", ":id", path.split("?")[0])


@contextlib.contextmanager
def watched(nginx, *flags):
    """yrt at work on an nginx whose log is empty; then its result is in .result."""
    await_log(nginx, 1)  # of await_answer()
    with open(os.path.join(nginx.dir, "access.log"), "w"):
        pass
    run = yrt.Run("requests", "-p", nginx.master.pid, "-d", 600, "--max-cpu", 0, *flags).sampling()
    yield run
    run.process.send_signal(signal.SIGINT)
    run.done = run.result().expect()


def await_log(nginx, n):
    """nginx writes the log after the response."""
    yrt.until(lambda: len(logged(nginx)) >= n, f"{n} requests in the log")


def await_read(nginx, s):
    """Waits until nginx has read what a client has sent, and waits for more."""
    peer = f":{s.getsockname()[1]:04X}"

    def is_read():
        rows = (line.split() for line in yrt.read("/proc/net/tcp").splitlines()[1:])
        return any(row[2].endswith(peer) and row[4].endswith(":00000000") and row[9] != "0" for row in rows)
    yrt.until(is_read, "nginx has read it")
    for worker in nginx.workers():
        yrt.waiting(worker, 1)


def links(run):
    """How many probes yrt has placed."""
    names = []
    for fd in os.listdir(f"/proc/{run.process.pid}/fd"):
        with contextlib.suppress(OSError):
            names.append(os.readlink(f"/proc/{run.process.pid}/fd/{fd}"))
    return names.count("anon_inode:bpf_link")


def check_table(stats, log):
    """Counts by route and class of status are those of the log, exactly."""
    wanted = collections.defaultdict(lambda: [0] * 6)
    for method, path, status, _ in log:
        wanted[route(method, path)][status // 100] += 1
    found = {r["route"]: r["status"] for r in stats["routes"]}
    assert found == dict(wanted), f"in the table {found}\nin the log {dict(wanted)}"
    assert stats["begun"] == stats["ended"] == len(log), stats
    assert not any(stats[k] for k in ("unpaired", "left", "full", "lost")), stats
    for r in stats["routes"]:
        assert sum(r["status"]) == r["requests"], r
        assert r["p50_ns"] <= r["p95_ns"] <= r["p99_ns"] <= r["max_ns"] <= r["sum_ns"], r


def test_table():
    """
    Two workers, many requests at once, of all kinds: keep-alive, redirects, errors, subrequests, upstreams, bad ones,
    and clients that go away. The table has each once.
    """
    with servers.Nginx(workers=2, load=0, template="requests.conf.in") as nginx:
        with watched(nginx) as run:
            plain = ["/json", "/old", "/missing", "/page", "/order/17", "/order/4711?x=1", "/refused", "/slow", "/sub"]
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                jobs = [pool.submit(get, nginx.port, "GET", *plain) for _ in range(20)]
                jobs += [pool.submit(get, nginx.port, "HEAD", "/json", "/missing") for _ in range(10)]
                jobs += [pool.submit(get, nginx.port, "POST", "/json") for _ in range(10)]
                jobs += [pool.submit(raw, nginx.port, b"NONSENSE\r\n\r\n") for _ in range(3)]
                jobs += [pool.submit(raw, nginx.port, b"GET /json HTTP/1.1\r\n\r\n") for _ in range(3)]  # no Host
                for job in jobs:
                    job.result()
            with socket.create_connection(("127.0.0.1", nginx.port)) as s:
                s.sendall(b"GET /order/9 HTTP/1.1\r\nHost: x\r\n\r\n")
                await_read(nginx, s)
            await_log(nginx, 20 * (len(plain) + 2) + 20 + 10 + 3 + 3 + 2)
        stats, log = run.done.stats["requests"], logged(nginx)
        check_table(stats, log)
        assert re.search(rf"{len(log)} requests in", run.done.stderr), run.done.stderr
        assert "GET /order/:id" in run.done.stderr, run.done.stderr
        yield f"{len(log)} requests, {len(stats['routes'])} routes"


def answered(envoy, least=0):
    """Envoy's own counters, {name: n}, as soon as `least` requests have come to the listener and none is active."""
    for _ in range(1200):
        text = envoy.admin("/stats?filter=^http.(front|upstream).downstream_rq_")
        stats = collections.Counter()
        for server, name, n in re.findall(r"^http\.(\w+)\.downstream_rq_(\w+): (\d+)", text, re.M):
            stats[name] += int(n)
            stats[server] += int(n) if name == "total" else 0
        if stats["front"] >= least and not stats["active"]:
            return stats
        time.sleep(0.05)
    raise AssertionError(f"not {least} requests: {stats}")


def test_envoy():
    """
    A stripped Envoy: each request once, with the status that Envoy's statistics count; those of its administration
    interface are listed, too. The line of Lua that asks another server is where a request waits.
    """
    plain = ["/", "/call", "/old", "/missing/4711", "/refused", "/inline", "/fail", "/respond/x"]
    with servers.Envoy(servers.envoy_program(), load=0) as envoy:
        before = answered(envoy)
        run = yrt.Run("requests", "-p", envoy.pid, "-d", 600, "--max-cpu", 0).sampling()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            jobs = [pool.submit(get, envoy.port, "GET", *plain) for _ in range(10)]
            jobs += [pool.submit(get, envoy.port, "HEAD", "/", "/missing/1") for _ in range(5)]
            jobs += [pool.submit(get, envoy.port, "POST", "/call") for _ in range(5)]
            jobs += [pool.submit(raw, envoy.port, b"GET / HTTP/1.1\r\n\r\n") for _ in range(3)]  # no Host
            jobs += [pool.submit(raw, envoy.port, b"NONSENSE\r\n\r\n") for _ in range(3)]
            for job in jobs:
                job.result()
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", envoy.port)) as s:  # gone before it has asked
                s.sendall(b"GET /call HTTP/1.1\r\nHost: x\r\n")
        truth = answered(envoy, before["front"] + 10 * len(plain) + 5 * 2 + 5 + 3 + 3 + 3) - before
        run.process.send_signal(signal.SIGINT)
        result = run.result().expect()
    stats = result.stats["requests"]
    routes = {r["route"]: r for r in stats["routes"]}
    own = routes.pop("POST /stats")
    found = [sum(r["status"][i] for r in routes.values()) for i in range(1, 6)]
    assert found == [truth[f"{i}xx"] for i in range(1, 6)], f"{found}\n{truth}\n{routes}"
    assert own["status"][2] == own["requests"] and stats["begun"] == stats["ended"], own
    assert not any(stats[k] for k in ("unpaired", "left", "full", "lost")), stats["begun"]
    assert sum(r["requests"] for r in routes.values()) == truth["total"], f"{routes}\n{truth}"
    for name, n in (("GET /old", 10), ("GET /missing/:id", 10), ("GET /refused", 10), ("HEAD /missing/:id", 5),
                    ("GET /fail", 10)):
        assert routes[name]["requests"] == n, (name, routes)
    calls = [s for s in stats["slowest"] if s["request"].endswith(" /call") and s["status"] == 200]
    waits = [k["frames"] for s in calls for k in s["stacks"] if k["reason"] == "waits for an event"]
    assert any("ask_upstream ([routes/call" in frames for frames in waits), waits
    assert "phases:" not in result.stderr, result.stderr
    yield f"{truth['total']} requests: {dict(truth)}"


def test_slow():
    """Slow requests say where they waited: the line of Lua, the upstream; those that spin were on the CPU."""
    with servers.Nginx(load=0, template="requests.conf.in") as nginx:
        with watched(nginx, "--over", "40ms") as run:
            get(nginx.port, "GET", "/json", "/slow?n=1", "/slow?n=2", "/sub?n=3", "/order/7", "/spin", "/json")
            await_log(nginx, 8)
        stats, log = run.done.stats["requests"], logged(nginx)
        check_table(stats, log)
        slow = {s["request"]: s for s in stats["slowest"]}
        assert set(slow) >= {"GET /slow?n=1", "GET /slow?n=2", "GET /sub?n=3", "GET /order/7", "GET /backend/7"}, slow
        for name, least in (("/slow?n=1", 0.1), ("/slow?n=2", 0.1), ("/sub?n=3", 0.1), ("/order/7", 0.025)):
            s = slow["GET " + name]
            assert s["ns"] >= least * 1e9 and s["status"] == 200, s
            assert sum(s["time_ns"][t] for t in TIMES) == s["ns"], s
            waits = [k for k in s["stacks"] if k["reason"] == "waits for an event"]
            assert waits and sum(k["ns"] for k in waits) <= s["ns"], s
            where = "wait_for_stock (content_by_lua" if "order" not in name else "ngx_event_connect_peer"
            assert any(where in k["frames"] for k in waits), s
        assert stats["slowest"] == sorted(stats["slowest"], key=lambda s: -s["ns"])
        assert all(s["ns"] >= 40e6 for s in stats["slowest"]), slow
        assert "slowest requests:" in run.done.stderr and "wait_for_stock" in run.done.stderr, run.done.stderr
        assert any("wait_for_stock" in f for frames, _ in run.done.stacks for f in frames), yrt.show(run.done.stacks)


def test_later():
    """What a request runs after its wait is not the wait's time, also before it calls a function that is probed."""
    with servers.Nginx(load=0, template="requests.conf.in") as nginx:
        with watched(nginx, "--over", "40ms") as run:
            get(nginx.port, "GET", "/later")
            await_log(nginx, 1)
    (slow,) = run.done.stats["requests"]["slowest"]
    time_ns = slow["time_ns"]
    waited, ran = (
        sum(s["ns"] for s in slow["stacks"] if s["reason"] == reason) for reason in ("waits for an event", "running")
    )
    assert 50e6 <= waited <= slow["ns"] - time_ns["cpu"] - time_ns["queue"], slow
    assert ran > time_ns["cpu"] / 2 and any("count_stock (content_by_lua" in s["frames"] for s in slow["stacks"]), slow
    yield f"waited {waited / 1e6:.1f} ms, ran {ran / 1e6:.1f} of {time_ns['cpu'] / 1e6:.1f} ms"


def test_socket():
    """A wait that begins after another, before the request shows itself, is told with its own stack, to the line."""
    with servers.Nginx(load=0, template="requests.conf.in") as nginx:
        with watched(nginx, "--over", "40ms") as run:
            get(nginx.port, "GET", "/socket")
            await_log(nginx, 2)
    (slow,) = (s for s in run.done.stats["requests"]["slowest"] if s["request"] == "GET /socket")
    waits = [k["frames"] for k in slow["stacks"] if k["reason"] == "waits for an event"]
    assert any(re.search(r"ask_stock \(content_by_lua\([^)]*\):2\):3", frames) for frames in waits), slow


def test_upstreams():
    """Each upstream that was asked for a request, as nginx logs them: its address, status and times."""
    with servers.Nginx(load=0, template="requests.conf.in") as nginx:
        with watched(nginx, "--over", "1ns") as run:
            get(nginx.port, "GET", "/order/1", "/two/1", "/two/2", "/two/3", "/refused", "/json")
            await_log(nginx, 10)
        slow, log = run.done.stats["requests"]["slowest"], attempts(nginx)
        found = {(s["request"].split()[1], s["status"]): [tuple(u.values()) for u in s["upstreams"]] for s in slow}
        assert found == log, f"{found}\n{log}"
        assert any(len(asked) == 2 for asked in log.values()) and log["/json", 200] == [], log
        assert "upstream 127.0.0.1:1  502" in run.done.stderr, run.done.stderr
        yield f"{sum(map(len, log.values()))} upstreams of {len(log)} requests"


def test_phases():
    """A request's time is that of its phases; each has the handler that it waited in."""
    with servers.Nginx(load=0, template="requests.conf.in") as nginx:
        with watched(nginx, "--over", "40ms") as run:
            get(nginx.port, "GET", "/json")  # where members are is found as the first request ends
            await_log(nginx, 1)
            get(nginx.port, "GET", "/phases/1", "/spin")
            await_log(nginx, 4)
        slow = {s["request"].split()[1]: s for s in run.done.stats["requests"]["slowest"]}
        phases = {p["phase"]: p["ns"] for p in slow["/phases/1"]["phases"]}
        for s in slow.values():
            assert sum(p["ns"] for p in s["phases"]) == s["ns"], s
        for phase, least in (("rewrite (ngx_http_lua_rewrite_handler)", 10e6), ("content", 25e6),
                             ("access (ngx_http_lua_access_handler)", 30e6)):
            assert any(name.startswith(phase) and ns >= least for name, ns in phases.items()), phases
        assert "access (ngx_http_lua_access_handler) " in run.done.stderr, run.done.stderr
        assert any("check_token (access_by_lua" in k["frames"] for k in slow["/phases/1"]["stacks"]), slow
        spun = max(slow["/spin"]["phases"], key=lambda p: p["ns"])
        assert spun["phase"] == "content (ngx_http_lua_content_handler)", slow["/spin"]
        yield ", ".join(f"{name} {ns / 1e6:.1f} ms" for name, ns in phases.items())


def test_workers():
    """Workers of a reload are followed; what is under way as the run ends, or began before it, is said."""
    with servers.Nginx(load=0, template="requests.conf.in") as nginx:
        before = nginx.workers()
        with socket.create_connection(("127.0.0.1", nginx.port)) as s:
            s.sendall(b"GET /json HTTP/1.1\r\n")  # begun, and not ended before yrt is there
            await_read(nginx, s)
            with watched(nginx) as run:
                s.sendall(b"Host: x\r\nConnection: close\r\n\r\n")
                while s.recv(4096):
                    pass
                await_log(nginx, 1)
                placed = links(run)
                nginx.reload()
                yrt.until(lambda: nginx.workers() and not set(nginx.workers()) & set(before), "a new worker")
                yrt.until(lambda: links(run) > placed and run.is_polling(), "yrt watches the new worker")
                get(nginx.port, "GET", "/json", "/json")
                await_log(nginx, 3)
                with socket.create_connection(("127.0.0.1", nginx.port)) as other:
                    other.sendall(b"GET /json HTTP/1.1\r\n")
                    await_read(nginx, other)
                    run.process.send_signal(signal.SIGINT)
                    run.process.wait(300)
        stats = run.done.stats["requests"]
        assert stats["unpaired"] == 1 and stats["ended"] == 2 and stats["begun"] == 3, stats
        assert "1 requests had begun before" in run.done.stderr and "1 not over" in run.done.stderr, run.done.stderr


def test_any_server():
    """A server that yrt does not know: its functions are given. Each request has the time of its own steps."""
    flags = ("--begin", "request_begin", "--end", "request_end", "--run", "request_work", "--loop", "loop_turn",
             "--key", "arg2")
    with yrt.Fixture("serving") as fixture:
        run = yrt.Run("requests", *flags, "-p", fixture.pid, "-d", 600, "--max-cpu", 0).sampling()
        fixture.release()
        fixture.finish()
        result = run.result().expect()
    stats = result.stats["requests"]
    assert stats["begun"] == stats["ended"] == 24 and [r["requests"] for r in stats["routes"]] == [24], stats
    assert len(stats["slowest"]) == 24, stats
    computed, slept = [], []
    for s in stats["slowest"]:
        times = s["time_ns"]
        assert sum(times[t] for t in TIMES) == s["ns"] and times["idle"] + times["others"] > 0, s
        (slept if any(k["reason"] == "sleep" for k in s["stacks"]) else computed).append(times)
    # of its three steps each computes for 1 ms, or sleeps for 2 ms, if that is not over before it begins
    assert len(computed) >= 12 and slept, stats["slowest"]
    assert all(t["cpu"] >= 2.9e6 for t in computed), computed
    assert all(t["cpu"] + t["queue"] + t["blocked"] >= 6e6 for t in slept), slept
    waits = [k for s in stats["slowest"] for k in s["stacks"] if k["reason"] == "sleep"]
    inside = re.compile(r"; request_work(:\d+)?; serve(:\d+)?; main")
    assert waits and all(inside.search(k["frames"]) for k in waits), stats["slowest"]
    assert any("request_work:" in ";".join(frames) and "[sleep]" in frames for frames, _ in result.stacks), \
        yrt.show(result.stacks)


def test_frameworks():
    """An application of a framework is known without being told: each request by route, as often as it was called."""
    python = ("/usr/bin/python3", f"{yrt.SOURCE}/fixtures/python/framework_calls.py")
    perl = ("/usr/bin/perl", f"{yrt.SOURCE}/fixtures/perl/served.pl")
    for name in ("flask", "django", "wsgi", "asgi", "psgi", "dancer2"):
        with Program(*(perl if name in ("psgi", "dancer2") else python), name) as program:
            program.do("once")  # its modules are there
            run = yrt.Run("requests", "-p", program.pid, "-d", 600, "--max-cpu", 0).sampling()
            due = program.do("again")
            run.interrupt()
            stats = run.result().expect().stats["requests"]
        assert {r["route"]: r["requests"] for r in stats["routes"]} == due, (name, due, stats["routes"])
        assert stats["begun"] == stats["ended"] == sum(due.values()), stats
        yield f"{name}: {due}"


def test_go_and_java():
    """The same of a server of Go's net/http, whose functions are native, and of the JDK's own, by fields of objects."""
    stripped = go.build("served", "-ldflags=-s -w", name="served-stripped")
    served = [*java.words(), "-Xint", "-cp", java.class_path(), "served"]
    for words in ([stripped], served, *([[*served, "virtual"]] if java.version() >= 21 else [])):
        with Program(*words) as program:
            program.do("once")
            run = yrt.Run("requests", "-p", program.pid, "-d", 600, "--max-cpu", 0).sampling()
            due = program.do("again")
            run.interrupt()
            stats = run.result().expect().stats["requests"]
        assert {r["route"]: r["requests"] for r in stats["routes"]} == due, (words, due, stats["routes"])
        assert stats["begun"] == stats["ended"] == sum(due.values()), stats
        for slow in (r for r in stats["routes"] if r["route"].endswith("/slow")):
            waited = slow["time_ns"]["blocked"] + slow["time_ns"]["queue"]  # a busy machine keeps it waiting for a CPU
            assert slow["p50_ns"] >= 19e6 and slow["time_ns"]["blocked"] >= 57e6, slow
            assert waited >= 0.9 * slow["sum_ns"], slow
        yield f"{due}"


def test_attributes():
    """A route along attributes of Python's objects: in a dict, in values that its class has keys for, in a slot."""
    key = "self.request.method,self.request.path<__main__.Path>.parts[1]"
    with Program("/usr/bin/python3", f"{yrt.SOURCE}/fixtures/python/framework_calls.py", "attributes") as program:
        program.do("once")
        run = yrt.Run("requests", "--begin", "python:Handler.execute", "--key", key, "-p", program.pid, "-d", 600,
                      "--max-cpu", 0).sampling()
        due = program.do("again")
        run.interrupt()
        stats = run.result().expect().stats["requests"]
    assert {r["route"]: r["requests"] for r in stats["routes"]} == due, (due, stats["routes"])


def test_several_applications():
    """Where several functions take what an application takes, the user is asked which it is."""
    source = ("import json, os, sys\ndef one(environ, start_response): pass\n"
              "def two(environ, start_response): pass\nprint(json.dumps({'pid': os.getpid()}), flush=True)\n"
              "sys.stdin.read()\n")
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(source)
        script.flush()
        with Program("/usr/bin/python3", script.name) as program:
            run = yrt.run("requests", "-p", program.pid, "-d", 1, output=False, stats=False)
    assert run.code == yrt.USAGE, run.stderr
    assert all(word in run.stderr for word in ("__main__.one", "__main__.two", "--begin python:NAME --key")), run.stderr


def test_several_servers():
    """Targets of several kinds, nginx beside two frameworks: one table has the requests of all, with the language."""
    source, python = f"{yrt.SOURCE}/fixtures/python/framework_calls.py", "/usr/bin/python3"
    with servers.Nginx(load=0, template="requests.conf.in") as nginx, Program(python, source, "flask") as flask, \
            Program(python, source, "django") as django:
        flask.do("once"), django.do("once")
        with watched(nginx, "-p", f"{flask.pid},{django.pid}") as run:
            due = collections.Counter()
            for program in (flask, django):
                due.update({f"python: {route}": n for route, n in program.do("again").items()})
            get(nginx.port, "GET", "/json", "/json", "/order/17")
            await_log(nginx, 4)
        stats = run.done.stats["requests"]
        due.update(route(method, path) for method, path, _, _ in logged(nginx))
    assert {r["route"]: r["requests"] for r in stats["routes"]} == due, (due, stats["routes"])
    assert stats["begun"] == stats["ended"] == sum(due.values()), stats
    yield f"{dict(due)}"


def test_page():
    """The page, also of a recording, has the table and the slowest with their stacks; hostile paths are harmless."""
    with servers.Nginx(load=0, template="requests.conf.in") as nginx, tempfile.TemporaryDirectory() as at:
        path = os.path.join(at, "requests.yrt")
        await_log(nginx, 1)
        run = yrt.Run(
            "requests", "-p", nginx.master.pid, "-d", 600, "--max-cpu", 0, "-o", path, output=False).sampling()
        get(nginx.port, "GET", "/slow?n=1", "/json")
        raw(nginx.port, b"GET /</script><b>%22\x1b[31m HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await_log(nginx, 4)
        run.process.send_signal(signal.SIGINT)
        result = run.result().expect()
        page = yrt.run("render", path, "-f", "html", "-o", "-", output=False, stats=False).expect().stdout
    data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', page, re.S)[1])["requests"]
    stats = result.stats["requests"]
    assert data["times"] == list(TIMES), data
    wanted = [[r["route"], r["requests"], r["errors"]] + [r[k] for k in ("p50_ns", "p95_ns", "p99_ns", "max_ns")]
              + [list(r["time_ns"].values())] for r in stats["routes"]]
    assert data["routes"] == wanted and len(wanted) == 3, (data, wanted)
    slowest = [[s[k] for k in ("request", "status", "ns", "pid")] + [list(s["time_ns"].values())]
               + [[[k["ns"], k["reason"], k["frames"]] for k in s["stacks"]]]
               + [[[k["phase"], k["ns"]] for k in s["phases"]], [list(k.values())[:3] for k in s["upstreams"]]]
               for s in stats["slowest"]]
    assert data["slowest"] == slowest and slowest[0][0] == "GET /slow?n=1", (data, slowest)
    assert "\x1b" not in result.stderr + page, result.stderr


def test_refused():
    """What has no requests that yrt knows is refused with what to do; so are options that make no sense."""
    with yrt.Fixture("calls") as fixture:
        run = yrt.run("requests", "-p", fixture.pid, "-d", 1, output=False, stats=False)
        assert run.code == yrt.UNSUPPORTED and "--begin FUNCTION" in run.stderr, run.stderr
        run = yrt.run("requests", "--begin", "calls:loopin", "--end", "calls:work", "-p", fixture.pid, output=False,
                      stats=False)
        assert run.code == yrt.USAGE and "near:" in run.stderr and "looping" in run.stderr, run.stderr
        for flags in (("--begin", "f"), ("--begin", "python:f", "--end", "f"), ("--end", "f"), ("--run", "f"),
                      ("--key", "arg2"), ("--begin", "f", "--end", "g", "--key", "arg7"),
                      ("--begin", "f", "--end", "g", "--key", "x"), ("--begin", "f", "--key", "arg1+"),
                      ("--begin", "f", "--key", "arg1+8,arg10+8")):
            run = yrt.run("requests", *flags, "-p", fixture.pid, output=False, stats=False)
            assert run.code == yrt.USAGE, f"{flags}: {run.stderr}"


yrt.main(globals())
