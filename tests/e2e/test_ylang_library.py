# SPDX-License-Identifier: Apache-2.0
"""
Analysers of library/ on real programs: an nginx built with debug information and held still, live and in its core, in
all engines the same bytes; CPython, against its own gc.
"""

import contextlib
import glob
import os
import re
import select
import shutil
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
def nginx(clients, hold=True):
    """A worker that sends slowly to so many clients, and is stopped; hold=False: it goes on, the port is yielded."""
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
        if not hold:
            yield port, worker, directory
            return
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
    for _ in range(6000):
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


LOADERS = """
import java.io.*;
public class S {
    static class Own extends ClassLoader {
        Class<?> load(byte[] code) { return defineClass("S$Loaded", code, 0, code.length); }
    }
    static class Loaded { }
    static Object[] kept = new Object[20];
    public static void main(String[] a) throws Exception {
        byte[] code = S.class.getClassLoader().getResourceAsStream("S$Loaded.class").readAllBytes();
        for (int i = 0; i < 20; i++)
            kept[i] = new Own().load(code);
        Runnable r = () -> System.out.println("up");
        r.run();
        Thread.sleep(1000000);
    }
}
"""

PILED_LUA = """
jit.off() collectgarbage() collectgarbage("stop")
local function says(...) io.stdout:write(table.concat({...}, " "), "\\n") io.stdout:flush() io.stdin:read("*l") end
io.stdin:read("*l")
says("ready")
local t, f, c = {}, {}, {}
for i = 1, 5000 do t[i] = {i} end
for i = 1, 300 do f[i] = function() return i end end
for i = 1, 7 do c[i] = coroutine.create(print) end
local kb = string.format("%.10f", collectgarbage("count"))
says(kb)
local keep, drop = {}, {}
for i = 1, 200 do keep[i] = string.rep("k", 5000) .. i drop[i] = string.rep("d", 5000) .. i end
drop = nil collectgarbage("restart") collectgarbage() collectgarbage() collectgarbage("stop")
says("holes")
"""


def fetched(port, path):
    """The bytes of a whole answer."""
    with connected(port) as s:
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        return sum(map(len, iter(lambda: s.recv(65536), b"")))


def counted(name, port, worker):
    """What an analyser says of 20 requests of a page and 7 of none, and the bytes of both."""
    source = yrt.read(os.path.join(yrt.SOURCE, "library", name + ".y")) + (
        'int said; _probe _timer(5ms) { if (!said) { said = 1; printf("started\\n"); } }\n')
    with yrt.Program([yrt.YRT, "y", "-e", source, "-p", str(worker)], stdout=subprocess.PIPE, text=True) as y:
        assert y.stdout.readline() == "started\n"
        found, missing = (sum(fetched(port, path) for _ in range(n)) for path, n in (("/small", 20), ("/none", 7)))
        y.send_signal(signal.SIGINT)
        out = y.communicate(timeout=ylang.LIMIT_S)[0]
    return {r[0]: r for r in map(str.split, out.splitlines()[1:3])}, found, missing, out


def test_nginx_counts():
    """Requests by status: their number and bytes as the clients have them; a time of each."""
    with nginx(0, hold=False) as (port, worker, directory):
        with open(os.path.join(directory, "small"), "w", encoding="utf-8") as f:
            f.write("x" * 100)
        rows, found, missing, out = counted("ngx-status", port, worker)
        assert rows["200"][1:3] == ["20", str(found)] and rows["404"][1:3] == ["7", str(missing)], (out, found, missing)
        rows, _, _, out = counted("ngx-latency", port, worker)
        assert rows["200"][1] == "20" and rows["404"][1] == "7", out
        assert "us[200]\n" in out and "us[404]\n" in out, out
        looked = [ylang.verified(name, "-p", worker) for name in ("ngx-status", "ngx-latency")]
    yield f"27 requests by status, with their bytes and times; the kernel looked at {looked} instructions"


def test_all_that_probe_are_verified():
    """Each analyser that runs in the kernel has its ylang.verified() in a test."""
    found = set()
    for path in glob.glob(os.path.join(yrt.SOURCE, "library", "*.y")):
        points = re.findall(r"^_probe (\S+)", yrt.read(path), re.M)
        if any(not re.match("_(oneshot|begin|end|timer)", point) for point in points):
            found.add(os.path.basename(path)[:-2])
    assert found == ylang.PROBING, found
    yield f"{sorted(found)}"


ARENAS = r"""
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *kept[3000];
static void *work(void *first)
{
	for (long i = (long)first; i < (long)first + 1000; i++)
		kept[i] = malloc(16 + i % 5000);
	for (long i = (long)first; i < (long)first + 1000; i += 3)
		free(kept[i]);
	return NULL;
}
int main(void)
{
	pthread_t t[2];
	static char buffer[4096];
	setvbuf(stdin, buffer, _IOFBF, sizeof(buffer));
	for (long i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, work, (void *)(1000 * (i + 1)));
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	work(0);
	malloc_stats();
	fputs("end\n", stderr);
	getchar();
}
"""


def test_malloc():
    """Each arena's bytes as malloc_stats() of the process itself has them."""
    if not glob.glob("/usr/lib/debug/.build-id/*/*.debug"):
        raise yrt.Skipped("no libc6-dbg here")
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        program = os.path.join(directory, "arenas")
        subprocess.run(["gcc", "-O1", "-pthread", "-xc", "-", "-o", program], input=ARENAS, text=True, check=True)
        with yrt.Program([program], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
            said = "".join(iter(p.stderr.readline, "end\n"))
            done = ylang.run("malloc-arenas", "-p", p.pid)
    truth = re.findall(r"^Arena .*\nsystem bytes += +(\d+)\nin use bytes += +(\d+)", said, re.M)
    found = [tuple(line.split()[1:3]) for line in done.stdout.splitlines()[1:]]
    assert found == truth and len(truth) >= 2, f"{said}\n{done}"
    yield f"{len(truth)} arenas"


CLOSURES_LUA = """
local f = {}
local function one() f[1] = function() return f end end
local function many(n) for i = 1, n do f[i] = function() return i end end return f end
while true do
    local n = tonumber(io.stdin:read("*l"))
    if n == 1 then one() else many(n) end
    io.stdout:write("done\\n") io.stdout:flush()
end
"""


def test_python():
    """As many of a class as gc.get_objects() has."""
    if not glob.glob("/usr/lib/debug/.build-id/*/*.debug") or not os.path.exists("/usr/bin/python3.11d"):
        raise yrt.Skipped("no python3.11-dbg here")
    with yrt.Fixture("/usr/bin/python3.11", "-c", PILED, seconds=None, wait=False) as f:
        done = ylang.run("py-gc-types", "-p", f.pid)
    assert f"{f.start['piled']:10d}  Piled\n" in done.stdout and f.start["piled"] == 12345, done
    yield "12345 objects of a class"
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        bare = os.path.join(directory, "python3.11")
        subprocess.run(["objcopy", "-R", ".note.gnu.build-id", "-R", ".gnu_debuglink", "/usr/bin/python3.11", bare],
                       check=True)
        with yrt.Fixture(bare, "-c", PILED, seconds=None, wait=False) as f:
            other = ylang.run("py-gc-types", "--explain", "-p", f.pid)
    assert other.stdout == done.stdout, f"{done}\n{other}"
    assert "PyInterpreterState.gc: offset 648, struct _gc_runtime_state, from what yrt" in other.stderr, other
    yield "the same without debug information"


def test_java():
    """As many classes of each kind of loader as the JVM's own account has."""
    jcmd = shutil.which("jcmd")
    if not jcmd:
        raise yrt.Skipped("no JDK here")
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        path = os.path.join(directory, "S.java")
        with open(path, "w", encoding="utf-8") as f:
            f.write(LOADERS)
        java = os.path.join(os.path.dirname(os.path.realpath(jcmd)), "java")
        with yrt.Program([java, "-XX:TieredStopAtLevel=1", "-Xmx64m", path], stdout=subprocess.PIPE, text=True) as p:
            assert p.stdout.readline() == "up\n"
            account = [jcmd, str(p.pid), "VM.classloader_stats"]
            subprocess.run(account, capture_output=True, check=True, timeout=120)  # the command loads classes, too
            said = subprocess.run(account, capture_output=True, text=True, check=True, timeout=120).stdout
            done = ylang.run("java-classes", "--explain", "-p", p.pid)
    truth, name = {}, ""
    for words in (line.split() for line in said.splitlines()):
        if words and words[0].startswith("0x"):
            name = "(bootstrap)" if "<boot" in words[6] else words[6].replace(".", "/")
            truth[name] = truth.get(name, 0) + int(words[3])
        elif words[-2:] == ["hidden", "classes"]:
            truth[name] += int(words[0])
    found = {line.split()[2]: int(line.split()[0]) for line in done.stdout.splitlines()[1:]}
    assert found == truth and len(truth) >= 3, f"{done}\n{said}"
    assert sum(line.split()[1:] == ["20", "S$Own"] for line in done.stdout.splitlines()) == 1, done
    # no look into the debug information of the JVM, which takes seconds where it is installed
    assert "gHotSpotVMStructs: at 0x" in done.stderr, done.stderr
    yield f"{sum(truth.values())} classes of {len(truth)} kinds of loaders"


def luajit(lua):
    """A LuaJIT with debug information that runs this script, then waits."""
    script = os.path.join(yrt.SOURCE, "fixtures", "lua", "debug.sh")
    built = subprocess.run(["sh", script, os.path.join(yrt.BUILD, "luajit-debug")], capture_output=True, text=True)
    if built.returncode:
        raise yrt.Skipped("no LuaJIT with debug information can be built here: " + built.stderr.strip()[-200:])
    return yrt.Program([built.stdout.strip(), "-e", lua], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def stepped(p, line=""):
    """The next step of the script has been taken: what it says of itself."""
    p.stdin.write(line + "\n")
    p.stdin.flush()
    return p.stdout.readline().split()


def objects(pid):
    """{type: (objects, bytes)}, and the bytes in all."""
    done = ylang.run("lj-gc-count", "-p", pid)
    assert done.returncode == 0 and ", 0 ended by an error" in done.stderr, done
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    return {r[2]: (int(r[0]), int(r[1])) for r in rows if len(r) == 3}, int(rows[-1][0]), done.stdout


def chunks(pid):
    """The table of lj-free."""
    return {r[0]: r[1:] for r in map(str.split, ylang.run("lj-free", "-p", pid).stdout.splitlines()[1:5])}


def test_luajit():
    """Objects that a script makes, the collector's own account, and holes that it leaves in the heap."""
    with luajit(PILED_LUA) as p:
        stepped(p)
        before, _, _ = objects(p.pid)
        kilobytes = float(stepped(p)[0])
        after, total, text = objects(p.pid)
        made = {name: after[name][0] - before.get(name, (0, 0))[0] for name in after}
        assert made["table"] == 5004 and made["thread"] == 7, (made, text)  # four that hold and print them
        assert made["function"] == made["upvalue"] == 300, (made, text)
        assert 0 <= total - round(kilobytes * 1024) < 4096, (total, kilobytes, text)  # what printing made behind it
        counted = sum(b for _, b in after.values())
        assert 0.9 * total < counted <= total, text
        whole = chunks(p.pid)
        stepped(p)
        holes = chunks(p.pid)
        assert int(holes["free"][0]) - int(whole["free"][0]) >= 100, (whole, holes)
        mapped = sum(int(holes[row][1]) for row in ("used", "free", "top"))
        assert 0 <= int(holes["segments"][1]) - mapped < 128 * int(holes["segments"][0]), holes
    yield "objects by type, bytes in all, and free chunks"


# Of LuaJIT's structures what programs use, by yrt's own layouts as by debug information.
LAYOUT = {
    "MRef": "ptr64", "GCRef": "gcptr64", "TValue": "u64 it64 n gcr i it", "Node": "val key next",
    "GChead": "nextgc marked gct unused1 unused2 env gclist metatable", "GCstr": "nextgc gct reserved len",
    "GCudata": "udtype unused2 env len metatable align1", "GCcdata": "ctypeid",
    "GCproto": "numparams framesize sizebc k uv sizekgc sizekn sizept sizeuv flags trace chunkname firstline numline "
               "lineinfo uvinfo varinfo",
    "GCupval": "closed immutable tv v dhash", "GCfuncC": "ffid nupvalues env gclist pc f upvalue",
    "GCfuncL": "ffid nupvalues env gclist pc uvptr", "GCfunc": "c l",
    "GCtab": "nomm colo array gclist metatable node asize hmask freetop",
    "lua_State": "dummy_ffid status glref gclist base top maxstack stack openupval env cframe stacksize",
    "GCobj": "gch str uv th pt fn cd tab ud", "StrInternState": "tab mask num",
    "global_State": "allocf allocd gc str vmstate hookmask mainthref cur_L jit_base",
    "GCState": "total threshold currentwhite state nocdatafin lightudnum sweepstr root",
}
WITHOUT_SIZE = ("StrInternState", "GCState")  # of which yrt knows the beginning


def test_luajit_stripped():
    """Without debug information the same bytes as with it, live, in a core and in gdb; each offset and size, too."""
    with luajit(PILED_LUA) as p, tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        whole, stripped = f"/proc/{p.pid}/exe", os.path.join(directory, "luajit")
        subprocess.run(["strip", "-s", "-o", stripped, whole], check=True)
        asked = "".join(
            f'printf("{t}{"" if t in WITHOUT_SIZE else " %ld"}{" %ld" * len(members.split())}\\n"' +
            ("" if t in WITHOUT_SIZE else f", sizeof({t})") +
            "".join(f", offsetof({t}, {m})" for m in members.split()) + ");\n" for t, members in LAYOUT.items())
        with yrt.Program([stripped, "-e", PILED_LUA], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as s:
            stepped(s)
            stepped(s)
            os.kill(s.pid, signal.SIGSTOP)
            core, script, out = (os.path.join(directory, name) for name in ("core", "s.py", "out"))
            subprocess.run(["gdb", "-nx", "-batch", "-p", str(s.pid), "-ex", f"generate-core-file {core}"], check=True,
                           capture_output=True, timeout=300)
            env = dict(os.environ, XDG_CACHE_HOME=directory)  # no layout of the same build by its debug information
            for program in (["lj-gc-count"], ["lj-free"], ["-e", f"_probe _oneshot {{ {asked} }}"]):
                done = ylang.run(*program, "-p", s.pid, env=env)
                assert done.returncode == 0 and done.stdout, done
                for where in (["--core", core], ["-p", s.pid, "--types", os.path.realpath(whole)]):
                    other = ylang.run(*program, *where, env=env)
                    assert other.stdout == done.stdout, f"{where}\n{done}\n{other}"
            done = ylang.run("lj-gc-count", "-p", s.pid, "--explain", env=env)
            assert re.search(r"^struct GCproto\.sizept: offset 56, .* library debian", done.stderr, re.M), done.stderr
            assert re.search(r"^_luajit: struct lua_State \* 0x\w+, number 0 of 1 ", done.stderr, re.M), done.stderr
            with open(script, "w", encoding="utf-8") as f:
                f.write(f"import os\nos.environ['YRT_OUT'] = {out!r}\n")
                f.write(ylang.run("lj-gc-count", "-p", s.pid, "--emit", "gdb", env=env).stdout)
            said = ylang.gdb([script], stripped, "-c", core)
            assert yrt.read(out) == done.stdout, said
            assert "whose type it is: no luajit was found" in ylang.run("lj-free", "-p", os.getpid()).stderr
    yield f"{sum(len(m.split()) for m in LAYOUT.values())} offsets, objects and chunks without debug information"


COROUTINES_LUA = """
jit.off()
local function waits() coroutine.yield() end
local function ends() return 1 end
local function fails() error("x") end
local kept, says = {}, function() io.stdout:write("ready\\n") io.stdout:flush() io.stdin:read("*l") end
local function make(n, f, runs)
    for i = 1, n do
        local c = coroutine.create(f)
        kept[#kept + 1] = c
        for k = 1, runs do coroutine.resume(c) end
    end
end
make(30, waits, 1) make(5, waits, 0) make(4, waits, 2) make(11, ends, 1) make(3, fails, 1) make(2, print, 0)
long = string.rep("long one ", 2000)
io.stdin:read("*l")
make(1, says, 1)
"""


def exported(name, where, directory):
    """What the script of an analyser prints in gdb."""
    script, out = os.path.join(directory, "e.py"), os.path.join(directory, "e.out")
    with open(script, "w", encoding="utf-8") as f:
        f.write(f"import os\nos.environ['YRT_OUT'] = {out!r}\n" + ylang.run(name, *where, "--emit", "gdb").stdout)
    said = ylang.gdb([script], *where)
    return yrt.read(out) if os.path.exists(out) else str(said)


def test_coroutines_and_strings():
    """As many of each state as the script has made, by the line of their function; its longest string."""
    with luajit(COROUTINES_LUA) as p, tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        stepped(p)
        done = ylang.run("lj-coroutines", "-p", p.pid)
        rows = {(r[2], r[3].rsplit(":", 1)[-1]): int(r[0]) for r in
                (line.split(None, 3) for line in done.stdout.splitlines()[1:])}
        assert rows == {("suspended", "3"): 35, ("dead", "returned"): 15, ("dead", "5"): 3, ("active", "6"): 1,
                        ("suspended", "a function of C"): 2}, done
        assert exported("lj-coroutines", ["-p", p.pid], directory) == done.stdout
        done = ylang.run("lj-strings", "-p", p.pid)
        assert re.search(r"^\d+ strings of \d+ bytes, the longest of 18000\n", done.stdout), done
        assert "\n     18000  long one long one " in done.stdout, done
    yield "56 coroutines by state and function"


STREAMS = r"""
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char line[100];
	FILE *written = fopen(argv[1], "w"), *read = fopen(argv[2], "r"), *full = fopen("/dev/full", "w");
	setvbuf(full, NULL, _IONBF, 0);
	fputs("x", full);
	fgets(line, sizeof(line), read);
	fprintf(written, "%0123d", 5);
	puts("ready");
	fflush(stdout);
	printf("abc");
	for (;;)
		pause();
}
"""


def test_lists():
    """Lists that end, that turn back on themselves, that break off."""
    wanted = {"list": "3 nodes\n", "many": "100000 nodes\n", "&round_a": "a circle of 2 nodes\n", "torn.next": ""}
    with yrt.Fixture("asked", seconds=None, wait=False) as f:
        for head, said in wanted.items():
            done = ylang.run("list-len", "-D", f"HEAD={head}", "-D", "TYPE=struct node", "-p", f.pid)
            assert done.stdout == said and ("fault at" in done.stderr) == (not said), (head, done)
        done = ylang.run("list-len", "-p", f.pid)
        assert done.returncode == yrt.USAGE and "which list? -D HEAD=list" in done.stderr, done
    yield ", ".join(wanted.values()).replace("\n", "")


def test_streams():
    """What a program has not written yet, and has read ahead."""
    if not glob.glob("/usr/lib/debug/.build-id/*/*.debug"):
        raise yrt.Skipped("no libc6-dbg here")
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        program, source = os.path.join(directory, "streams"), os.path.join(directory, "text")
        subprocess.run(["gcc", "-O1", "-w", "-xc", "-", "-o", program], input=STREAMS, text=True, check=True)
        with open(source, "w", encoding="utf-8") as f:
            f.write("one line\n" + "x" * 1000)
        command = [program, os.path.join(directory, "out"), source]
        with yrt.Program(command, stdout=subprocess.PIPE, text=True) as p:
            assert p.stdout.readline() == "ready\n"
            yrt.until(lambda: yrt.read(f"/proc/{p.pid}/stat").rsplit(")", 1)[1].split()[0] == "S", "it waits")
            done = ylang.run("stdio-buffers", "-p", p.pid)
            assert exported("stdio-buffers", ["-p", p.pid], directory) == done.stdout
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [r[:3] for r in rows] == [["5", "0", "0"], ["4", "0", "1000"], ["3", "123", "0"], ["2", "0", "0"],
                                     ["1", "3", "0"], ["0", "0", "0"]], done
    assert rows[0][4:] == ["unbuffered", "failed"], done
    yield "six streams"


def rows_of(text, n):
    return [line.split(None, n) for line in text.splitlines()]


@yrt.measured
def test_redis():
    """Keys by type and encoding, and clients, as Redis itself has them. (Its build takes minutes.)"""
    script = os.path.join(yrt.SOURCE, "fixtures", "redis", "debug.sh")
    built = subprocess.run(["sh", script, os.path.join(yrt.BUILD, "redis-debug")], capture_output=True, text=True)
    if built.returncode or not shutil.which("redis-cli"):
        raise yrt.Skipped("no Redis with debug information can be built here: " + built.stderr.strip()[-200:])
    port = servers.free_port()

    def cli(*words):
        done = subprocess.run(["redis-cli", "-p", str(port), *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    ping = ["redis-cli", "-p", str(port), "ping"]
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory, yrt.Program(
            [built.stdout.strip(), "--port", str(port), "--save", "", "--dir", directory],
            stdout=subprocess.DEVNULL) as p:
        yrt.until(lambda: subprocess.run(ping, capture_output=True).stdout == b"PONG\n", "Redis answers")
        cli("eval", """
            for i = 1, 1000 do redis.call("set", "n" .. i, i) redis.call("set", "s" .. i, "text " .. i) end
            local call = redis.call
            for i = 1, 7 do call("set", "big" .. i, string.rep("x", 1000 * i)) call("expire", "big" .. i, 10000) end
            for i = 1, 300 do call("rpush", "list", i) call("hset", "hash", "field" .. i, string.rep("v", 100)) end
            for i = 1, 200 do call("sadd", "ints", i) call("sadd", "words", "w" .. i) call("zadd", "z", i, i) end
            redis.call("hset", "small", "a", 1, "b", 2) redis.call("xadd", "stream", "*", "a", 1)""", "0")
        keys = cli("keys", "*").split()
        truth = {}
        for key in keys:
            kind = "string", "int" if key[0] == "n" else "embstr"  # not 2,000 questions to it
            if key[0] not in "ns" or key in ("small", "stream"):
                kind = cli("type", key), cli("object", "encoding", key)
            truth[kind] = truth.get(kind, 0) + 1
        done = ylang.run("redis-keys", "-p", p.pid)
        rows = rows_of(done.stdout, 5)
        found = {(r[1], r[2]): int(r[3]) for r in rows[1:] if len(r) == 6}
        assert found == truth, (found, truth, done)
        assert "db0: 7 keys expire\n" in done.stdout and sum(found.values()) == int(cli("dbsize")), done
        largest = [(int(r[0]), r[2]) for r in rows[1:] if len(r) == 3 and r[1] == "db0"]
        assert largest[:2] == [(7000, "big7"), (6000, "big6")] and (300, "list") in largest, done
        lengths = {r[2]: int(r[4]) for r in rows[1:] if len(r) == 6 and r[1] != "string"}
        assert lengths["quicklist"] == 300 and lengths["intset"] == 200 and lengths["listpack"] == 2, done
        with socket.create_connection(("127.0.0.1", port)) as named:
            named.sendall(b"CLIENT SETNAME someone\r\n")
            assert named.recv(100) == b"+OK\r\n"
            listed = cli("client", "list").splitlines()
            (mine,) = [dict(w.split("=", 1) for w in line.split()) for line in listed if "name=someone" in line]
            done = ylang.run("redis-clients", "-p", p.pid)
            (row,) = [r for r in rows_of(done.stdout, 6) if r[-1] == "someone"]
            assert row[0] == mine["id"] and row[1] == mine["db"] and row[5] == mine["cmd"], (row, mine)
            assert done.stdout.startswith("1 clients\n"), done
        with tempfile.TemporaryDirectory(prefix="yrt-y-") as here:
            for name in ("redis-keys", "redis-clients"):
                live = ylang.run(name, "-p", p.pid)
                assert exported(name, ["-p", p.pid], here) == live.stdout, live
    yield f"{len(keys)} keys of {len(truth)} kinds"


def test_closures():
    """Those that a function makes, by their stack."""
    ready = '_probe lj_func_newL_gc / !said / { said = 1; printf("ready\\n"); }\nlong said;\n'
    source = ready + yrt.read(os.path.join(yrt.SOURCE, "library", "lj-newfunc.y"))
    with luajit(CLOSURES_LUA) as p:
        looked = ylang.verified("lj-newfunc", "-p", p.pid)
    with luajit(CLOSURES_LUA) as p, yrt.Program([yrt.YRT, "y", "-e", source, "-p", str(p.pid)],
                                                stdout=subprocess.PIPE, text=True) as y:
        end = time.monotonic() + ylang.LIMIT_S
        while not select.select([y.stdout], [], [], 0.05)[0]:
            assert time.monotonic() < end, "no closure was seen"
            stepped(p, "1")
        stepped(p, "1000")
        y.send_signal(signal.SIGINT)
        out = y.communicate(timeout=ylang.LIMIT_S)[0]
    stacks = re.findall(r"^ +(\d+)\n((?:    .*\n)+)", out, re.M)
    many = [int(n) for n, frames in stacks if "    many (" in frames]
    assert many == [1000] and all("lj_func_newL_gc" in frames for _, frames in stacks), out
    yield f"1000 closures of a function; the kernel looked at {looked} instructions"


yrt.main(globals())
