# SPDX-License-Identifier: Apache-2.0
"""
Analysers of library/ that ask nginx with Lua, Debian's own files without debug information, and LuaJIT's cdata: equal
to what the program says of itself, live and in a core.
"""

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import urllib.error

import servers
import yrt
import ylang


def rows(text):
    return [line.split() for line in text.splitlines()]


def cored(pid, directory):
    path = os.path.join(directory, "core")
    command = ["gdb", "-nx", "-batch", "-p", str(pid), "-ex", f"generate-core-file {path}"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return path


def test_zones():
    """Free memory, keys and kinds of values as ngx.shared has them; what is read of the core is the same."""
    with servers.Nginx(load=0, template="analysed.conf.in") as nginx:
        nginx.get("/fill")
        truth = {name: (int(size), int(free), int(keys)) for name, size, free, keys in rows(nginx.get("/zones"))}
        (worker,) = nginx.workers()
        live = ylang.run("ngx-shm", "-D", "KEYS=2", "-p", worker)
        dead = ylang.run("ngx-shm", "-D", "KEYS=2", "--core", cored(worker, nginx.dir))
        zones, dicts = (rows(part) for part in live.stdout.split("\n\n"))
        assert ", 0 ended by an error" in live.stderr, live
        sizes = {r[6]: (int(r[0]), int(r[1])) for r in zones[2:]}
        assert sizes["clients"][0] == 1 << 20 and set(sizes) == {"small", "things", "clients"}, live
        assert [r[5] for r in zones[2:] if r[6] == "clients"] == ["ngx_http_limit_req_module"], live
        assert all(sizes[name] == t[:2] for name, t in truth.items()), (live, truth)
        (refused,) = [int(r[4]) for r in zones[2:] if r[6] == "small"]
        counts = {r[9]: [int(n) for n in r[:9]] for r in dicts[1:] if len(r) == 10}
        assert refused == 3000 - counts["small"][0] > 0, live  # each entry that found no room took another one's
        assert all(counts[name][0] - counts[name][2] == t[2] for name, t in truth.items()), (live, truth)
        entries, limited, expired, keys, values, *kinds = counts["things"]
        assert (entries, limited, expired, kinds) == (1277, 240, 40, [1040, 200, 30, 7]), live
        texts = sum(i % 300 for i in range(1, 1001))
        assert values == texts + 200 * 8 + 30 + 7 * 5 + 40, live
        names = [f"{kind}{i}" for kind, n in (("text", 1000), ("number", 200), ("flag", 30), ("gone", 40))
                 for i in range(1, n + 1)] + [f"list{i}" for i in range(7)]
        assert keys == sum(map(len, names)), live
        assert "evicted next            2  text2\n" in live.stdout, live  # text1 was asked for
        assert dead.stdout == live.stdout, (live, dead)
    yield f"{len(truth)} dictionaries of {sum(t[2] for t in truth.values())} keys"


def test_timers():
    """Those that wait and that run, by function, as ngx.timer counts them."""
    with servers.Nginx(load=0, template="analysed.conf.in") as nginx:
        nginx.get("/timers")
        yrt.until(lambda: nginx.get("/counts") == "6 3\n", "timers run")
        (worker,) = nginx.workers()
        for where in (["-p", worker], ["--core", cored(worker, nginx.dir)]):
            done = ylang.run("lua-timers", *where)
            first, _, *lines = done.stdout.splitlines()
            assert first == "6 pending of at most 1024, 3 running of at most 256", done
            assert "nginx.conf:" in lines[0] and len(lines) == 4, done
            one, two, run, sleep = map(str.split, lines)
            assert one[0] == "5" and one[3] == "pending" and int(one[2]) - int(one[1]) in range(3900, 4100), done
            assert two[:1] + two[3:5] == ["1", "50000000", "pending"] and one[-1] == two[-1], done
            assert run[0] == sleep[0] == "3" and (run[3], sleep[3]) == ("running", "sleeping"), done
            assert run[-1] == sleep[-1] != one[-1], done
            done = ylang.run("ngx-timers", *where)
            of = [(int(r[0]), r[2].rsplit("+0x", 1)[0]) for r in rows(done.stdout) if r[1] == "of"]
            assert of == [(6, "ngx_http_lua_module.so"), (3, "ngx_http_lua_module.so")], done
    yield "6 timers that wait and 3 that run"


def watched(name, nginx, ask):
    """What an analyser says of the requests that ask() makes, and how many instructions the kernel looked at."""
    source = yrt.read(os.path.join(yrt.SOURCE, "library", name + ".y")) + (
        'int said; _probe _timer(5ms) { if (!said) { said = 1; printf("started\\n"); } }\n')
    (worker,) = nginx.workers()
    looked = ylang.verified(name, "-p", worker)
    with yrt.Program([yrt.YRT, "y", "-e", source, "-p", str(worker)], stdout=subprocess.PIPE, text=True) as y:
        assert y.stdout.readline() == "started\n"
        ask()
        nginx.get("/json")  # the worker has done with the last one
        y.send_signal(signal.SIGINT)
        return y.communicate(timeout=ylang.LIMIT_S)[0], looked


def test_phases():
    """As many runs and phases as the requests must have."""
    many = 30
    with servers.Nginx(load=0, template="analysed.conf.in") as nginx:
        def ask():
            for _ in range(many):
                assert nginx.get("/phases") == "ab"

        out, looked = watched("lua-phase-time", nginx, ask)
    found = {r[-1]: r[:-1] for r in rows(out)[1:]}
    runs = {"set": 1, "rewrite": 1, "access": 2, "content": 3, "header_filter": 1, "body_filter": 3, "log": 1}
    assert {phase: int(r[0]) for phase, r in found.items()} == {p: many * n for p, n in runs.items()}, out
    lasted = {phase: int(r[3]) for phase, r in found.items() if len(r) == 6}
    assert lasted == dict.fromkeys(("rewrite", "access", "content"), many), out
    yield f"{len(runs)} phases of {many} requests; the kernel looked at {max(looked)} instructions of a handler"


def test_exits():
    """By status, and the function that calls ngx.exit(); the first may come before its stack can be read."""
    with servers.Nginx(load=0, template="analysed.conf.in") as nginx:
        def ask():
            for path, n in (("/denied", 7), ("/denied?found=1", 5)):
                for _ in range(n):
                    with contextlib.suppress(urllib.error.HTTPError):
                        nginx.get(path)

        out, looked = watched("lua-exits", nginx, ask)
    counts = {}
    for status, n, frames in re.findall(r"^(\d+) +(\d+)\n((?:    .*\n)+)", out, re.M):
        counts.setdefault(status, []).append((int(n), frames))
    assert {status: sum(n for n, _ in found) for status, found in counts.items()} == {"403": 7, "404": 5}, out
    assert any("    deny (content_by_lua" in frames for _, frames in counts["403"]), out
    yield f"12 exits of 2 statuses; the kernel looked at {looked} instructions"


def test_not_reached():
    """A program that is asked of nginx's master has no hit, and the children are named; not so with -s."""
    source = "long n; _probe ngx_http_process_request { n++; } _probe _end { _print(n); }"
    with servers.Nginx(load=0, workers=2, template="analysed.conf.in") as nginx:
        alone = ylang.run("-e", source, "-p", nginx.master.pid, "-d", "0.01")
        together = ylang.run("-e", source, "-s", "-p", nginx.master.pid, "-d", "0.01")
    note = "did not reach its probes (ngx_http_process_request), but it has 2 children: -s asks them, too"
    assert alone.stdout == "0\n" and note in alone.stderr, alone
    assert together.stdout.count("\n0\n") == 3 and "reach" not in together.stderr, together
    yield "nginx's master and its workers"


CDATA_LUA = """
local ffi = require("ffi")
ffi.cdef[[
typedef struct point { double x, y; } point_t;
typedef union both { int i; float f; } both;
typedef struct { int unnamed[3]; } nameless;
struct tail { int n; char text[?]; };
enum colour { RED, BLUE };
typedef int (*handler)(int, void *);
typedef int four __attribute__((vector_size(16)));
]]
jit.off() collectgarbage() collectgarbage("stop")
local kinds = {"point_t", "both", "nameless", "enum colour", "bool", "char", "unsigned char", "short", "unsigned short",
  "int", "unsigned int", "int64_t", "uint64_t", "float", "double", "complex", "complex float", "four", "void *",
  "const char *", "char *const", "const char *const *", "char **", "int[7]", "int[2][3]", "char *[4]", "int (*)[4]",
  "point_t *", "const point_t *", "point_t[2]", "struct tail *", "handler", "handler[2]", "handler *",
  "int (*(*)[2])(void)", "char *(*)[3]", "const volatile int *", "int *volatile", "const point_t *const[5]"}
keep = {}
local function say(n, bytes, object)
  print(n, bytes, (tostring(ffi.typeof(object)):match("^ctype<(.*)>$")))
end
for i, kind in ipairs(kinds) do
  for k = 1, 50 + i do keep[#keep + 1] = ffi.new(kind) end
  say(50 + i, kind == "four" and 48 or 16 + ffi.sizeof(kind), keep[#keep]) -- which is aligned to more than malloc's 8
end
for k = 1, 20 do keep[#keep + 1] = ffi.new("char[?]", 100) end
say(20, 24 + 100, keep[#keep])
for k = 1, 21 do keep[#keep + 1] = ffi.gc(ffi.new("struct tail", 5), function() end) end
say(21, 24 + ffi.sizeof("struct tail", 5), keep[#keep])
print("ready") io.stdout:flush() io.stdin:read("*l")
"""


def test_cdata():
    """Objects by C type, which is written as LuaJIT writes it, and their bytes; lua-heap has as many bytes."""
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory, yrt.Program(
            ["luajit", "-e", CDATA_LUA], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        truth = [line.split(None, 2) for line in iter(p.stdout.readline, "ready\n")]
        done = ylang.run("lj-gc-cdata", "-p", p.pid)
        dead = ylang.run("lj-gc-cdata", "--core", cored(p.pid, directory))
        heap = subprocess.run([yrt.YRT, "lua-heap", "-p", str(p.pid)], capture_output=True, text=True).stdout
    found = {line[36:]: [int(n) for n in line[:34].split()] for line in done.stdout.splitlines()[1:-1]}
    wanted = {name.strip(): [int(n), int(n) * int(size)] for n, size, name in truth}
    # those of ffi.typeof() are cdata, too
    assert {name: found[name][:2] for name in wanted} == wanted and len(wanted) == 41, (done, wanted)
    assert [name for name in wanted if found[name][2]] == ["struct tail"] and found["struct tail"][2] == 21, done
    assert dead.stdout == done.stdout, (done, dead)
    # what nobody has any more is not in lua-heap: an object of ffi.typeof() for each line above, and its parser's
    (kept,) = [(int(n), int(size)) for size, n in re.findall(r"^ +(\d+) +[\d.]+ +(\d+) +cdata$", heap, re.M)]
    more = sum(r[0] for r in found.values()) - kept[0], sum(r[1] for r in found.values()) - kept[1]
    assert more == (41, 41 * 20), (more, done, heap)
    yield f"{len(wanted)} C types"


yrt.main(globals())
