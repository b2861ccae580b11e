# SPDX-License-Identifier: Apache-2.0
"""
Programs of a Debian suite that run Lua, in a chroot of what fixtures/suites.sh has unpacked: Neovim, nginx, and modules
in C and in Lua under luajit. Their stacks are whole and have the functions that are known to run.
"""

import contextlib
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

import lua  # noqa: E402
import version  # noqa: E402
import yrt  # noqa: E402

SECONDS, RATE = 4, 1999
VERSION = version.Version(os.environ["YRT_LUA_VERSION"])
PROGRAMS = os.path.join(yrt.SOURCE, "fixtures", "lua", "programs")
NGINX = os.path.join(yrt.SOURCE, "fixtures", "nginx")


def prepare(*packages):
    """Unpacks packages and what a chroot needs besides."""
    VERSION.unpack(*packages)
    shutil.copytree(PROGRAMS, os.path.join(VERSION.root, "tmp", "programs"), dirs_exist_ok=True)
    os.makedirs(os.path.join(VERSION.root, "dev"), exist_ok=True)
    for name, minor in (("null", 3), ("urandom", 9)):
        path = os.path.join(VERSION.root, "dev", name)
        if not os.path.exists(path):
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))


@contextlib.contextmanager
def program(*command):
    """A program in the chroot that has said that it is ready; its pid is that of the words' first."""
    with subprocess.Popen(["chroot", VERSION.root, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        try:
            said = []
            while not said or "ready" not in said[-1]:
                said.append(process.stdout.readline())
                assert said[-1], f"{command} ended without having been ready: {''.join(said)}"
            yield process
        finally:
            process.kill()


def sample(*command):
    with program(*command) as process:
        return lua.Sampling(process.pid, seconds=SECONDS, rate=RATE).result()


def function(frame):
    """Its name; where C has called it none is known, then "file:line" of its definition."""
    name = frame.name.split(" ")[0]
    return f"{os.path.basename(frame.file)}:{frame.line}" if name == "function" else name


def check(result, *least, order=()):
    """
    least: (name, share of the samples that have it). order: who stands directly above whom, as far as Lua is concerned.
    """
    line = lua.check_complete(result, 1000)
    for name, share in least:
        seen = sum(n for frames, n in result.stacks if any(function(f) == name for f in frames)) / result.samples
        assert seen >= share, f"only {seen:.4f} in {name}, not {share}\n{lua.show(result.stacks)}"
    for above, name in order:
        for frames, n in result.stacks:
            names = [function(f) for f in frames if f.module == "luajit" and not f.flags & lua.APPROX]
            for at in (i for i, known in enumerate(names) if known == name):
                assert (
                    at and names[at - 1] == above
                ), f"{name} below {names[at - 1]}, not {above}\n{lua.show([(frames, n)])}"
    return line


def test_busy():
    prepare("luajit2" if "openresty" in VERSION.name else "luajit")
    yield check(
        sample("luajit", "/tmp/programs/busy.lua"),
        ("busy", 0.9),
        ("each", 0.2),
        ("sorted", 0.1),
        ("table.sort", 0.05),
        order=(("busy", "each"), ("busy", "sorted"), ("sorted", "table.sort")),
    )


def test_neovim():
    prepare("neovim")
    result = sample("nvim", "--headless", "-u", "NONE", "-i", "NONE", "-c", "luafile /tmp/programs/busy.lua", "-c", "q")
    yield check(result, ("busy", 0.9), ("each", 0.2), ("sorted", 0.1), ("table.sort", 0.05), ("main", 0.9),
                order=(("busy", "each"), ("busy", "sorted"), ("sorted", "table.sort")))


def test_lpeg():
    prepare("lua-lpeg")
    result = sample("luajit", "/tmp/programs/lpeg.lua")
    yield check(result, ("parse", 0.9), ("lpeg.lua:6", 0.01), ("lpeg.lua:14", 0.01))


def test_cjson():
    prepare("lua-cjson")
    result = sample("luajit", "/tmp/programs/cjson.lua")
    yield check(result, ("round_trip", 0.9))
    names = {function(f) for frames, _ in result.stacks for f in frames}
    assert any(re.search("encode", n) for n in names) and any(re.search("decode", n) for n in names), sorted(names)


def test_busted():
    prepare("lua-busted")
    result = sample("luajit", "/usr/bin/busted", "/tmp/programs/busy_spec.lua")
    yield check(result, ("check_often", 0.9), ("xpcall", 0.9))
    spec = [frames for frames, _ in result.stacks if any(f.file.endswith("busy_spec.lua") for f in frames)]
    assert all(
        any("busted" in f.file for f in frames) for frames in spec
    ), "a stack of the spec without busted's own frames"


def test_ldoc():
    prepare("lua-ldoc")
    result = sample("luajit", "/tmp/programs/documented.lua", "/usr/bin/ldoc")
    yield check(result, ("document", 0.9))
    files = {os.path.basename(f.file) for frames, _ in result.stacks for f in frames if f.file.endswith(".lua")}
    assert len(files) > 5, files


class Nginx:
    """
    An nginx of the suite, in the foreground, with app.lua of fixtures/nginx; or with busy work where the libraries are
    missing.
    """

    CONFIGURATION = """
load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
user root root;
daemon off;
worker_processes 1;
pid nginx.pid;
error_log error.log warn;
events {{ worker_connections 64; }}
http {{
	access_log off;
	default_type text/plain;
	keepalive_requests 1000000;
	client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; scgi_temp_path scgi; uwsgi_temp_path uwsgi;
	lua_shared_dict counters 1m;
	lua_package_path "/tmp/nginx/?.lua;/usr/share/lua/5.1/?.lua;;";
	init_by_lua_block {{ {jit} {libraries} app = require "app" }}
	server {{
		listen 127.0.0.1:{port};
		location ~ ^/(.*) {{ content_by_lua_block {{ app.serve(ngx.var[1]) }} }}
	}}
}}
"""

    def __init__(self, jit):
        self.whole = os.path.exists(os.path.join(VERSION.root, "usr/share/lua/5.1/resty/lrucache.lua"))
        self.dir = os.path.join(VERSION.root, "tmp", "nginx")
        shutil.rmtree(self.dir, ignore_errors=True)
        shutil.copytree(NGINX, self.dir)
        if not self.whole:
            self.simpler_app()
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.write("nginx.conf", self.CONFIGURATION.format(port=self.port, jit="" if jit else "jit.off()",
                                                           libraries='require "resty.core"' if self.whole else ""))
        for name in ("passwd", "group"):
            self.write(f"../../etc/{name}", "root:x:0:0:root:/:/bin/false\n" if name == "passwd" else "root:x:0:\n")
        self.write("error.log", "")
        self.master = subprocess.Popen(
            ["chroot", VERSION.root, "/usr/sbin/nginx", "-p", "/tmp/nginx", "-c", "nginx.conf"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.load = None

    def write(self, name, text):
        with open(os.path.join(self.dir, name), "w") as f:
            f.write(text)

    def simpler_app(self):
        """busy.lua's functions as an app with one route."""
        text = yrt.read(os.path.join(PROGRAMS, "busy.lua"))
        self.write(
            "app.lua", text[: text.index('io.write("ready')] + "return { serve = function() busy() ngx.say(1) end }\n"
        )

    def __enter__(self):
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                break
            assert self.master.poll() is None, "nginx ended: " + yrt.read(os.path.join(self.dir, "error.log"))
            time.sleep(0.05)
        self.load = subprocess.Popen(
            ["wrk", "-t1", "-c4", "-d30", "-s", os.path.join(NGINX, "load.lua"), f"http://127.0.0.1:{self.port}/"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        time.sleep(1)
        return self

    def __exit__(self, *_):
        for process in (self.load, self.master):
            if process:
                yrt.stop(process)

    def worker(self):
        return yrt.read(f"/proc/{self.master.pid}/task/{self.master.pid}/children").split()[0]


def nginx(jit):
    prepare(
        "nginx-light",
        "libnginx-mod-http-lua",
        "lua-cjson",
        *(() if VERSION.suite == "bullseye" else ("lua-resty-core",)),
    )
    with Nginx(jit) as server:
        result = lua.Sampling(server.worker(), seconds=SECONDS, rate=RATE).result()
        log = yrt.read(os.path.join(server.dir, "error.log"))
    functions = ("sort_players", "fill_template", "order_round_trip") if server.whole else ("busy", "sorted")
    yield check(result, *((name, 0.005) for name in functions), ("serve", 0.5)) + (f"; {log[-200:]}" if log else "")


def test_nginx_jit():
    yield from nginx(True)


def test_nginx_interpreter():
    yield from nginx(False)


# In bookworm nginx's module needs OpenResty's LuaJIT, which takes the place of the other one.
scope = {name: f for name, f in globals().items() if not (VERSION.name == "bookworm" and name.startswith("test_nginx"))}
yrt.main(scope)
