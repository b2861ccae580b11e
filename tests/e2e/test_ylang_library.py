# SPDX-License-Identifier: Apache-2.0
"""
Analysers of library/ on real programs: an nginx built with debug information and held still, live and in its core, in
all engines the same bytes; CPython, against its own gc.
"""

import contextlib
import glob
import os
import signal
import socket
import subprocess
import tempfile
import time

import servers
import yrt
import ylang

CONF = """
daemon off; worker_processes 1; pid nginx.pid; error_log error.log warn;
events {{ worker_connections 64; }}
http {{
    access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    scgi_temp_path scgi; uwsgi_temp_path uwsgi;
    server {{ listen 127.0.0.1:{port}; location / {{ root {root}; limit_rate 1k; }} }}
}}
"""


@contextlib.contextmanager
def nginx(clients):
    """A worker that sends slowly to so many clients, and is stopped."""
    script = os.path.join(yrt.SOURCE, "fixtures", "nginx", "debug.sh")
    built = subprocess.run(["sh", script, os.path.join(yrt.BUILD, "nginx-debug")], capture_output=True, text=True)
    if built.returncode:
        raise yrt.Skipped("no nginx with debug information can be built here: " + built.stderr.strip()[-200:])
    program, port = built.stdout.strip(), servers.free_port()
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory, contextlib.ExitStack() as stack:
        os.chmod(directory, 0o755)
        with open(os.path.join(directory, "page"), "w", encoding="utf-8") as f:
            f.write("x" * 200000)
        path = os.path.join(directory, "nginx.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(CONF.format(port=port, root=directory))
        master = stack.enter_context(yrt.Program([program, "-p", directory, "-e", "error.log", "-c", path]))
        yrt.until(lambda: children(master.pid), "a worker")
        (worker,) = children(master.pid)
        stack.callback(end, master, worker)
        for i in range(clients):
            s = stack.enter_context(connected(port))
            s.sendall(f"GET /page?number={i} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert s.recv(1000).startswith(b"HTTP/1.1 200"), "no answer"
        os.kill(worker, signal.SIGSTOP)
        yrt.until(lambda: yrt.read(f"/proc/{worker}/stat").rsplit(")", 1)[1].split()[0] == "T", "it stands still")
        yield program, worker, directory


def end(master, worker):
    """The master first: it would start another worker, which held what ctest waits for."""
    master.kill()
    master.wait()
    os.kill(worker, signal.SIGKILL)


def children(pid):
    return [int(p) for p in yrt.read(f"/proc/{pid}/task/{pid}/children").split()]


def connected(port):
    for _ in range(100):
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection(("127.0.0.1", port), timeout=300)
        time.sleep(0.05)
    raise AssertionError("nginx does not listen")


def test_nginx():
    """Live, core, gdb and lldb: the same bytes; as many requests, connections and timers as there are clients."""
    with nginx(5) as (program, worker, directory):
        core = os.path.join(directory, "core")
        command = ["gdb", "-nx", "-batch", "-p", str(worker), "-ex", f"generate-core-file {core}"]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        told = {}
        for name in ("ngx-requests", "ngx-conns", "ngx-pools", "ngx-timers"):
            live, dead = ylang.run(name, "-p", worker), ylang.run(name, "--core", core)
            assert live.returncode == 0 and live.stdout == dead.stdout, f"{name}\n{live}\n{dead}"
            assert "0 ended by an error" in live.stderr, live
            told[name] = live.stdout
        requests = told["ngx-requests"].splitlines()
        assert requests[0] == "5 requests in 64 connections" and len(requests) == 7, requests
        assert sorted(r.split()[-1] for r in requests[2:]) == [f"/page?number={i}" for i in range(5)], requests
        assert all("sending" in r and "127.0.0.1" in r for r in requests[2:]), requests
        sizes = [int(r.split()[0]) for r in requests[2:]]
        assert sizes == sorted(sizes, reverse=True) and sizes[-1] >= 4096, requests
        assert told["ngx-conns"].count(" sending ") == 5 and " 1 listening" in told["ngx-conns"], told["ngx-conns"]
        timers = told["ngx-timers"].splitlines()[1:]
        assert timers[-1].split()[1:] == ["of", "ngx_http_request_handler"], timers
        assert int(timers[-1].split()[0]) == len(timers) - 1 > 0, timers  # each one that it waits to send again
        assert sum(line.split()[0:2] == ["request", "5"] for line in told["ngx-pools"].splitlines()) == 1, told
        for debugger, run in (("gdb", ylang.gdb), ("lldb", ylang.lldb)):
            if not ylang.available(debugger):
                raise yrt.Skipped(f"no {debugger} here")
            script, output = os.path.join(directory, debugger + "_requests.py"), os.path.join(directory, "out")
            text = ylang.run("ngx-requests", "-p", worker, "--emit", debugger).stdout
            with open(script, "w", encoding="utf-8") as f:
                f.write(f'import os\nos.environ["YRT_OUT"] = {output!r}\n{text}')
            for where in (["-p", worker], [program, "-c", core]):
                said = run([script], *where)
                assert yrt.read(output) == told["ngx-requests"], f"{debugger} {where}: {yrt.read(output)}\n{said}"
                os.unlink(output)
    yield "requests of nginx: the same bytes in the VM, gdb and lldb, live and in a core"


PILED = """
import collections, gc, os
class Piled: pass
keep = [Piled() for _ in range(12345)]
gc.collect()
gc.disable()
print('{"pid": %d, "chain": [], "piled": %d}' % (os.getpid(), sum(type(o) is Piled for o in gc.get_objects())), flush=True)
input()
"""


def test_python():
    """As many of a class as gc.get_objects() has."""
    if not glob.glob("/usr/lib/debug/.build-id/*/*.debug") or not os.path.exists("/usr/bin/python3.11d"):
        raise yrt.Skipped("no python3.11-dbg here")
    with yrt.Fixture("/usr/bin/python3.11", "-c", PILED, seconds=None, wait=False) as f:
        done = ylang.run("py-gc-types", "-p", f.pid)
    assert f"{f.start['piled']:10d}  Piled\n" in done.stdout and f.start["piled"] == 12345, done
    yield "12345 objects of a class"


yrt.main(globals())
