# SPDX-License-Identifier: Apache-2.0
"""
Debug files from a debuginfod on this machine: symbolize and profiles with it, without an answer, with a wrong one.
"""

import contextlib
import http.server
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

import servers
import yrt

NOTE = "debuginfod at"


def run(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


def build_id(path):
    return re.search("Build ID: ([0-9a-f]+)", run("readelf", "-n", path))[1]


class Place:
    """A program of fixtures/native without symbols, and its debug file where only a server looks."""

    def __init__(self, name="inlines"):
        self.dir = tempfile.mkdtemp(prefix="yrt-debuginfod-")
        os.chmod(self.dir, 0o755)
        self.whole = yrt.fixture_path(name)
        self.program, self.files = os.path.join(self.dir, "bare"), os.path.join(self.dir, "files")
        os.mkdir(self.files)
        run("objcopy", "--strip-all", self.whole, self.program)
        run("objcopy", "--only-keep-debug", self.whole, os.path.join(self.files, "x.debug"))
        self.id = build_id(self.program)
        self.work = re.search(r"^(\w+) . work$", run("nm", self.whole), re.M)[1]

    def env(self, urls, **more):
        cache = tempfile.mkdtemp(dir=self.dir)
        return {"DEBUGINFOD_URLS": urls, "DEBUGINFOD_CACHE_PATH": cache, "DEBUGINFOD_TIMEOUT": "2", **more}

    def symbolize(self, env):
        done = subprocess.run(
            [yrt.YRT, "symbolize", "-e", self.program, "0x" + self.work],
            capture_output=True,
            text=True,
            env={**os.environ, **env},
            timeout=300,
        )
        assert done.returncode == yrt.OK, done.stderr
        return done.stdout, done.stderr

    def sample(self, env, *flags):
        with yrt.Fixture(self.program) as fixture:
            return yrt.sample(fixture, "-U", *flags, seconds=2, rate=999, env=env)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir)


def wait_for(process, url):
    """Until the server has found the file: it scans when it starts."""
    for _ in range(3000):
        assert process.poll() is None, "debuginfod ended: see fixtures/setup.sh"
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            with urllib.request.urlopen(url) as answer:
                return answer.read(1)
        time.sleep(0.1)
    raise AssertionError(f"{url} does not come")


@contextlib.contextmanager
def debuginfod(place):
    url = f"http://127.0.0.1:{servers.free_port()}"
    with open(os.path.join(place.dir, "log"), "w") as log:
        process = subprocess.Popen(["debuginfod", "-d", ":memory:", "-p", url.rpartition(":")[2], "-F", place.files],
                                   stdout=log, stderr=log, env={**os.environ, "DEBUGINFOD_URLS": ""})
    try:
        wait_for(process, f"{url}/buildid/{place.id}/debuginfo")
        yield url
    finally:
        yrt.stop(process)


@contextlib.contextmanager
def answering(body):
    """A server that sends the same to everybody. None: it takes the question and never answers."""
    over = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if body is None:
                over.wait()
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        over.set()
        server.shutdown()
        server.server_close()


def lines_of_whole(place):
    return run(yrt.YRT, "symbolize", "-e", place.whole, "0x" + place.work)


def test_symbolize():
    with Place() as place, debuginfod(place) as url:
        out, err = place.symbolize(place.env(url))
        assert out == lines_of_whole(place) and "inlines.c:" in out and not err, (out, err)
        out, err = place.symbolize({"DEBUGINFOD_URLS": " "})
        assert out.startswith("??\n") and NOTE not in err, (out, err)


@yrt.measured
def test_profile():
    """
    Functions that have no name here get theirs, with what is inlined; without the server they are places of the file.
    """
    with Place() as place, debuginfod(place) as url:
        with_it, without = place.sample(place.env(url)), place.sample({"DEBUGINFOD_URLS": ""})
        chain = ["main", "work", "twice", "thrice", "burn"]
        found = sum(n for frames, n in with_it.stacks if frames[-len(chain):] == chain)
        assert found > 0.9 * with_it.samples > 0, yrt.show(with_it.stacks)
        assert with_it.share(re.compile(r"^bare\+0x")) == 0, yrt.show(with_it.stacks)
        assert without.share(re.compile(r"^bare\+0x")) > 0.9 and without.share("work") == 0, yrt.show(without.stacks)


@yrt.measured
def test_nobody_listens():
    """One line, however many files there were to ask for, and all that is known without an answer."""
    with Place() as place:
        url = f"http://127.0.0.1:{servers.free_port()}"
        out, err = place.symbolize(place.env(url))
        assert out.startswith("??\n") and err.count("\n") == err.count(NOTE) == 1 and url in err, (out, err)
        result = place.sample(place.env(url))
        assert result.stderr.count(NOTE) == 1, result.stderr
        assert result.share(re.compile(r"^bare\+0x")) > 0.9 and result.samples > 100, yrt.show(result.stacks)


def test_no_answer():
    """The setting of the user ends it, not the library's 90 seconds."""
    with Place() as place, answering(None) as url:
        out, err = place.symbolize(place.env(url, DEBUGINFOD_TIMEOUT="1"))
        assert out.startswith("??\n") and err.count("\n") == err.count(NOTE) == 1, (out, err)


@yrt.measured
def test_interrupted():
    """Ctrl-C once ends sampling, once more what is being asked for; the profile is whole."""
    with Place() as place, answering(None) as url, yrt.Fixture(place.program) as fixture:
        run = yrt.Run("flame", "-p", fixture.pid, "-U", "-F", "999", env=place.env(url, DEBUGINFOD_TIMEOUT="100000"))
        run.sampling()
        fixture.release()
        time.sleep(1)
        while run.process.poll() is None:
            run.process.send_signal(signal.SIGINT)
            time.sleep(0.5)
        result = run.result().expect()
        assert "Interrupted" in result.stderr and result.stderr.count(NOTE) == 1, result.stderr
        assert result.share(re.compile(r"^bare\+0x")) > 0.9, yrt.show(result.stacks)


def test_file_of_another_build():
    with Place() as place:
        with open(yrt.fixture_path("inlines_cc"), "rb") as f, answering(f.read()) as url:
            out, err = place.symbolize(place.env(url))
        assert out.startswith("??\n") and "another build" in err, (out, err)
        with answering(b"no ELF file at all") as url:
            out, err = place.symbolize(place.env(url))
        assert out.startswith("??\n"), (out, err)


def test_without_the_library():
    """A directory in front of all others has a library of that name that cannot be loaded."""
    with Place() as place:
        with open(os.path.join(place.dir, "libdebuginfod.so.1"), "w"):
            pass
        out, err = place.symbolize(place.env("http://127.0.0.1:1", LD_LIBRARY_PATH=place.dir))
        assert out.startswith("??\n") and err.count("install libdebuginfod1") == 1, (out, err)


yrt.main(globals())
