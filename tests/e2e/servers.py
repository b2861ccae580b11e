# SPDX-License-Identifier: Apache-2.0
"""Servers that the tests sample under load: nginx and Envoy, each with fixtures of its own. Not a test itself."""

import contextlib
import functools
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

import yrt


def free_port():
    """One that the kernel gives to nobody who does not ask for it: connections made meanwhile leave it free."""
    above = int(yrt.read("/proc/sys/net/ipv4/ip_local_port_range").split()[0])
    for port in random.sample(range(20000, max(above, 30000)), 1000):
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def start_wrk(fixtures, port, load, connections, path):
    """Starts wrk for a number of seconds: on a single path, or with load.lua of a folder of fixtures."""
    return subprocess.Popen(
        [
            "wrk",
            "-t1",
            f"-c{connections}",
            f"-d{load}",
            *([] if path else ["-s", os.path.join(fixtures, "load.lua")]),
            f"http://127.0.0.1:{port}{path or '/'}",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )


class Nginx:
    """An nginx of fixtures/nginx, under the load of wrk for a bounded time: of load.lua, or of one path."""

    def __init__(self, workers=1, jit="on", load=300, connections=8, path=None, template="nginx.conf.in"):
        self.dir = tempfile.mkdtemp(prefix="yrt-nginx-")
        os.chmod(self.dir, 0o755)
        self.port = free_port()
        here = os.path.join(yrt.SOURCE, "fixtures", "nginx")
        self.master = subprocess.Popen(
            ["sh", os.path.join(here, "run.sh"), self.dir, str(self.port), str(workers), jit, template],
            stdin=subprocess.DEVNULL,
        )
        self.wrk = None
        try:
            self.await_answer()
            if load:
                self.wrk = start_wrk(here, self.port, load, connections, path)
        except BaseException:
            self.close()
            raise

    def await_answer(self):
        for _ in range(3000):
            with contextlib.suppress(OSError):
                self.get("/json")
                return
            assert self.master.poll() is None, "nginx has exited: " + yrt.read(os.path.join(self.dir, "error.log"))
            time.sleep(0.05)
        raise AssertionError("nginx does not answer")

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as r:
            return r.read().decode()

    def workers(self):
        return [int(p) for p in yrt.read(f"/proc/{self.master.pid}/task/{self.master.pid}/children").split()]

    def reload(self):
        self.master.send_signal(signal.SIGHUP)

    def close(self):
        if self.wrk:
            yrt.stop(self.wrk)
        yrt.stop(self.master)
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


_fetching = {}  # {version: get.sh}


def fetch_envoy(version):
    """Begins to fetch an Envoy, while the test goes on."""
    if version not in _fetching:
        get = os.path.join(yrt.SOURCE, "fixtures", "envoy", "get.sh")
        directory = os.environ.get("YRT_ENVOY") or os.path.join(yrt.BUILD, "envoy")
        _fetching[version] = subprocess.Popen(["sh", get, directory, version], stdout=subprocess.PIPE, text=True)
    return _fetching[version]


@functools.cache
def envoy_program(version="1.40.0"):
    """Where Envoy is, fetched once."""
    get = fetch_envoy(version)
    out, _ = get.communicate()
    if get.returncode:
        del _fetching[version]
        raise yrt.Skipped(f"Envoy {version} can not be had (see above)")
    return out.strip()


class Envoy:
    """An Envoy of fixtures/envoy, under the load of wrk for a bounded time: of load.lua, or of one path."""

    def __init__(self, program, workers=2, jit="on", load=300, connections=8, path=None, options=(), directory=None):
        self.dir = directory or tempfile.mkdtemp(prefix="yrt-envoy-")
        self.port = free_port()
        here = os.path.join(yrt.SOURCE, "fixtures", "envoy")
        self.process = subprocess.Popen(
            ["sh", os.path.join(here, "run.sh"), program, self.dir, str(self.port), str(workers), jit, *options],
            stdin=subprocess.DEVNULL,
        )
        self.wrk = None
        try:
            self.await_answer()
            if load:
                self.wrk = start_wrk(here, self.port, load, connections, path)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self):
        return self.process.pid

    @contextlib.contextmanager
    def load(self, path, connections, seconds=300):
        """Another wrk, on one path."""
        wrk = start_wrk("", self.port, seconds, connections, path)
        try:
            yield wrk
        finally:
            yrt.stop(wrk)

    def await_answer(self):
        for _ in range(3000):
            with contextlib.suppress(OSError):
                self.get("/")
                return
            assert self.process.poll() is None, "Envoy has exited: " + self.log()
            time.sleep(0.05)
        raise AssertionError("Envoy does not answer: " + self.log())

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as r:
            return r.read().decode()

    def admin(self, path):
        """Sends Envoy a command: POST to its administration interface."""
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(os.path.join(self.dir, "admin"))
            s.sendall(f"POST {path} HTTP/1.1\r\nHost: admin\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            return s.makefile("rb").read().decode()

    def log(self):
        return yrt.read(os.path.join(self.dir, "envoy.log"))

    def close(self):
        if self.wrk:
            yrt.stop(self.wrk)
        yrt.stop(self.process)
        base = yrt.read(os.path.join(self.dir, "base-id")).strip()
        if base:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"/dev/shm/envoy_shared_memory_{base}0")  # Envoy 1.40 leaves it
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
