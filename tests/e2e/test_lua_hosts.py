# SPDX-License-Identifier: Apache-2.0
"""
Real hosts of PUC-Lua under load, Debian's stripped builds: Redis (its own 5.1) and HAProxy (5.3). Each stack with Lua
in it must be one that the script can have, in true order with what C calls back; functions in C of the libraries have
their names.
"""

import collections
import contextlib
import hashlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import servers
import yrt

SECONDS, RATE = 4, 999
HAPROXY = os.path.join(yrt.SOURCE, "fixtures", "lua", "haproxy.lua")
REDIS = """
local function spin(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
local function less(a, b) spin(200) return a < b end
local list = {}
for i = 1, 20 do
	redis.call("SET", "k" .. i, i)
	list[i] = cjson.encode({a = i, b = redis.call("GET", "k" .. i)})
end
table.sort(list, less)
local x = spin(5000)
return x
"""
FUNCTIONS = """#!lua name=lib
local function spin(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
local function first() local x = spin(50000) return x end
redis.register_function("first_function", first)
redis.register_function("second_function", function() local x = spin(100000) return x end)
"""
LUA = re.compile(r" \((?:haproxy\.lua|user_script|f_[0-9a-f]{40})(?::(\d+))?\)$")


def command(s, *words):
    words = [w.encode() for w in words]
    s.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
    answer = s.recv(65536)
    assert answer and answer[:1] != b"-", answer
    return answer


def ask_redis(port, stop):
    with socket.create_connection(("127.0.0.1", port)) as s:
        sha = command(s, "SCRIPT", "LOAD", REDIS).split(b"\r\n")[1].decode()
        while not stop.is_set():
            command(s, "EVALSHA", sha, "0")


def ask_functions(port, stop):
    with socket.create_connection(("127.0.0.1", port)) as s:
        command(s, "FUNCTION", "LOAD", FUNCTIONS)
        while not stop.is_set():
            command(s, "FCALL", "first_function", "0")
            command(s, "FCALL", "second_function", "0")


def ask_haproxy(port, stop):
    while not stop.is_set():
        with socket.create_connection(("127.0.0.1", port)) as s:
            for _ in range(200):
                s.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
                answer = s.recv(65536)
                assert answer.startswith(b"HTTP/1.1 200"), answer


@contextlib.contextmanager
def serving(words, port, ask):
    """The pid of a server that is asked all the time."""
    assert shutil.which(words[0]), f"{words[0]} is missing: fixtures/setup.sh installs it"
    server = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    stop, client = threading.Event(), None
    try:
        for _ in range(100):
            assert server.poll() is None, f"{words[0]} ended with {server.returncode}"
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            time.sleep(0.1)
        client = threading.Thread(target=ask, args=(port, stop))
        client.start()
        time.sleep(0.5)
        yield server.pid
        assert client.is_alive(), "the client ended"
    finally:
        stop.set()
        if client:
            client.join(10)
        yrt.stop(server)


def within(frames):
    """Where the innermost function in Lua of these is defined."""
    return next((int(m[1] or 0) for m in map(LUA.search, reversed(frames)) if m), None)


def check(pid, legal, names):
    """
    legal: the chains of lines where functions are defined, outermost first; names: what must be seen, with the function
    in Lua right around it.
    """
    result = yrt.run("lua-flame", "-p", str(pid), "-d", str(SECONDS), "-F", str(RATE)).expect()
    seen, wrong, found = collections.Counter(), collections.Counter(), collections.Counter()
    prefixes = {chain[:n] for chain in legal for n in range(1, len(chain) + 1)}
    for frames, count in result.stacks:
        chain = tuple(int(m[1] or 0) for m in map(LUA.search, frames) if m)
        seen[chain] += count
        if chain and chain not in prefixes:
            wrong[chain, frames[-1]] += count
        for name, around in names.items():
            found[name] += count * (name in frames and within(frames[:frames.index(name)]) == around)
    lua = sum(n for chain, n in seen.items() if chain)
    assert lua > 200, f"only {lua} of {result.samples} samples are in Lua\n{yrt.show(result.stacks)}"
    assert (
        sum(wrong.values()) <= 0.002 * lua
    ), f"{sum(wrong.values())} of {lua} stacks are not of the script: {wrong.most_common(6)}"
    missing = [chain for chain in legal if not seen[chain]]
    assert not missing, f"never seen whole: {missing}, but {seen.most_common(8)}"
    assert not (
        unseen := [name for name in names if not found[name]]
    ), f"never seen: {unseen}\n{yrt.show(result.stacks)}"
    assert result.incomplete() <= 0.001 + 1 / result.samples, result.stderr
    return f"{result.summary()}; {lua} in Lua, {sum(wrong.values())} wrong; " + ", ".join(
        f"{name} {n}" for name, n in found.items()
    )


@yrt.measured
def test_redis():
    port = servers.free_port()
    with tempfile.TemporaryDirectory() as directory:
        words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", directory]
        with serving(words, port, ask_redis) as pid:
            sha = hashlib.sha1(REDIS.encode()).hexdigest()
            yield check(
                pid, [(0,), (0, 2), (0, 3, 2)], {"sort": 0, f"f_{sha} (user_script)": None, f"spin (f_{sha}:2)": 0}
            )


@yrt.measured
def test_redis_functions():
    """By the names that they were registered by: those of the callbacks, which are met while they run."""
    port = servers.free_port()
    with tempfile.TemporaryDirectory() as directory:
        words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", directory]
        with serving(words, port, ask_functions) as pid:
            result = yrt.run("lua-flame", "-p", str(pid), "-d", str(SECONDS), "-F", str(RATE)).expect()
    seen = collections.Counter()
    for frames, count in result.stacks:
        for frame in frames:
            if frame.endswith((" (user_function:3)", " (user_function:5)")):
                seen[frame] += count
    first, second = seen["first_function (user_function:3)"], seen["second_function (user_function:5)"]
    assert set(seen) <= {f"{name} (user_function:{line})" for name, line in
                         (("first_function", 3), ("second_function", 5), ("function", 3), ("function", 5))}, seen
    assert first and second and first + second > 0.5 * sum(seen.values()), seen
    yield f"{first} and {second} of {sum(seen.values())} samples have the name"


def lines_of(text):
    return [1 + i for i, line in enumerate(open(HAPROXY)) if text in line]


@yrt.measured
def test_haproxy():
    port = servers.free_port()
    spin, by_length, words, action, service, task = (
        lines_of(text)[0]
        for text in (
            "function spin",
            "function by_length",
            "function words",
            "register_action",
            "register_service",
            "register_task",
        )
    )
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "haproxy.cfg")
        with open(path, "w") as f:
            f.write(f"""global
    lua-load {HAPROXY}
    nbthread 1
defaults
    mode http
    timeout client 5s
    timeout server 5s
    timeout connect 5s
frontend front
    bind 127.0.0.1:{port}
    http-request lua.check
    http-request use-service lua.words
""")
        with serving(["haproxy", "-db", "-q", "-f", path], port, ask_haproxy) as pid:
            yield check(pid, [(action, spin), (service, words, by_length, spin), (task, spin)], {"table.sort": words})


yrt.main(globals())
