# SPDX-License-Identifier: Apache-2.0
"""Programs of others under load, for bench_alloc_programs.py: each yields its process. Not a benchmark itself."""

import contextlib
import os
import socket
import subprocess
import time

from pairs import yrt

PROGRAMS = {}


def tree(pid):
    """A process and all below it."""
    return [pid] + [p for child in yrt.read(f"/proc/{pid}/task/{pid}/children").split() for p in tree(int(child))]


@contextlib.contextmanager
def process(*command, **how):
    how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **how}
    with subprocess.Popen([str(word) for word in command], **how) as started:
        try:
            yield started
        finally:
            for pid in reversed(tree(started.pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def listens(port):
    def answers():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True

    yrt.until(answers, f"a server on {port}")


def written(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def program(f):
    PROGRAMS[f.__name__] = contextlib.contextmanager(f)
    return f


def load(port):
    return process("wrk", "-t1", "-c8", "-d1000", "-H", "Accept-Encoding: gzip", f"http://127.0.0.1:{port}/")


@program
def sqlite(d, env):
    """Phases: a join that allocates nothing, a string that grows."""
    rows = "insert into t select value, printf('%d', value * 7) from generate_series(1, 20000);\n"
    work = "select count(*) from t a join t b on a.a = b.a where a.b like '%7%';\n" \
           "select group_concat(b) from (select b from t order by b desc limit 500);\n"
    sql = written(d, "q.sql", "create table t(a integer primary key, b text);\n" + rows + work * 50000)
    with open(sql, encoding="utf-8") as file, process("sqlite3", ":memory:", env=env, stdin=file) as s:
        yield s


@program
def ruby(_, env):
    code = "require 'json'; loop { a = (1..200).map { |i| {id: i, name: \"n#{i}\" * 5, t: [i, i * 2]} }; " \
           "JSON.parse(JSON.generate(a)).sum { |h| h['name'].upcase.size } }"
    with process("ruby", "-e", code, env=env) as s:
        yield s


@program
def ffmpeg(_, env):
    """A thread that allocates, others that compute."""
    with process("ffmpeg", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=30", "-t", "100000", "-c:v", "mpeg4", "-f",
                 "null", "-", env=env) as s:
        yield s


@program
def node(d, env):
    port = free_port()
    code = "require('http').createServer((q, r) => { const b = Buffer.alloc(20000, 'x'); r.end(JSON.stringify(" \
           f"{{h: q.headers, b: b.toString('base64').slice(0, 3000)}})) }}).listen({port})"
    with process("node", written(d, "s.js", code), env=env) as s:
        listens(port)
        with load(port):
            yield s


@program
def apache(d, env):
    """mpm_event, an index of 40 files, compressed."""
    port, www = free_port(), os.path.join(d, "www")
    modules = "".join(f"LoadModule {m}_module modules/mod_{m}.so\n" for m in (
        "mpm_event", "authz_core", "dir", "mime", "filter", "deflate", "autoindex"))
    config = f"ServerRoot /usr/lib/apache2\nServerName x\nPidFile {d}/a.pid\nListen 127.0.0.1:{port}\nUser nobody\n" \
             f"Group nogroup\n{modules}TypesConfig /etc/mime.types\nDocumentRoot {www}\nErrorLog {d}/a.log\n" \
             "AddOutputFilterByType DEFLATE text/html\nServerLimit 1\nStartServers 1\nThreadsPerChild 16\n" \
             f"MaxRequestWorkers 16\n<Directory {www}>\nOptions Indexes\nRequire all granted\n</Directory>\n"
    os.mkdir(www)
    for i in range(40):
        written(www, f"f{i}.html", "hello " * 400)
    with process("apache2", "-DFOREGROUND", "-f", written(d, "a.conf", config), env=env) as s:
        listens(port)
        with load(port):
            yield s


@program
def mariadb(d, env):
    """sysbench, four clients that read and write."""
    port, data = free_port(), os.path.join(d, "data")
    subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root",
                    "--auth-root-authentication-method=normal"], check=True, capture_output=True)
    with process("mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={d}/m.sock", "--user=root",
                 f"--port={port}", "--innodb-flush-log-at-trx-commit=0", f"--pid-file={d}/m.pid", env=env) as s:
        listens(port)
        subprocess.run(["mariadb", "-S", f"{d}/m.sock", "-uroot", "-e", "create database sbtest"], check=True)
        bench = ["sysbench", "oltp_read_write", f"--mysql-socket={d}/m.sock", "--mysql-user=root", "--tables=2",
                 "--table-size=10000", "--threads=4", "--time=0"]
        subprocess.run([*bench, "prepare"], check=True, capture_output=True)
        with process(*bench, "run"):
            yield s


@program
def cgo(d, env):
    """Three goroutines that call C: a function that allocates, and C.CString()."""
    code = """package main
/*
#include <stdlib.h>
#include <string.h>
static char *twice(const char *s) { size_t n = strlen(s); char *p = malloc(2 * n + 1); return memcpy(p, s, n + 1); }
*/
import "C"
import ("strings"; "unsafe")
func work(n int) {
	s := C.CString(strings.Repeat("x", n))
	C.free(unsafe.Pointer(C.twice(s)))
	C.free(unsafe.Pointer(s))
}
func main() { for i := 1; i < 4; i++ { go func(i int) { for { work(100 * i) } }(i) }; select {} }
"""
    written(d, "go.mod", "module x\n")
    subprocess.run(["go", "build", "-o", f"{d}/x", written(d, "m.go", code)], cwd=d, check=True)
    with process(f"{d}/x", env=env) as s:
        yield s


@program
def python(_, env):
    code = "import json\nwhile True: json.loads(json.dumps([{'id': i, 'name': 'n%d' % i * 50} for i in range(200)]))"
    with process("python3", "-c", code, env=env) as s:
        time.sleep(0.5)
        yield s
