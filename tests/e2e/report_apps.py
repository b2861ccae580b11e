# SPDX-License-Identifier: Apache-2.0
"""
Programs of other authors under load for `yrt report`, with a cause each (fixtures/report/apps) or none. Not a test itself.
By hand: report_apps.py NAME... measures these (all), and prints what the report says; APPS_KEEP=DIR keeps the evidence.
"""

import contextlib
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURES = os.path.join(SOURCE, "fixtures", "report")
APPS = os.environ.get("APPS", os.path.join(FIXTURES, "apps"))
YRT = os.environ.get("YRT", os.path.join(SOURCE, "build", "release", "yrt"))
POSTGRES = "/usr/lib/postgresql/15/bin"
SORT = "select aid, filler from pgbench_accounts order by abalance, filler, aid limit 5 %s;"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Scene:
    """Processes and a folder; ends with all of them."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="yrt-apps-")
        os.chmod(self.folder, 0o755)
        self.processes = []
        self.port = free_port()

    def start(self, *command, **kw):
        output = open(os.path.join(self.folder, f"output-{len(self.processes)}"), "w")
        process = subprocess.Popen(
            [str(c) for c in command], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True, **{"env": {**os.environ, "TMPDIR": self.folder, **kw.pop("extra", {})}, **kw})
        self.processes.append(process)
        return process.pid

    def answers(self, port=None, seconds=300):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port or self.port), 1):
                return
            time.sleep(0.1)
        raise RuntimeError(f"no answer: {self.output()}")

    def exists(self, path, seconds=300):
        end = time.monotonic() + seconds
        while not os.path.exists(path):
            if time.monotonic() > end:
                raise RuntimeError(f"no {path}: {self.output()}")
            time.sleep(0.1)

    def output(self):
        return "".join(open(f).read()[-1500:] for f in glob.glob(os.path.join(self.folder, "output-*")))

    def load(self, path, connections=8, scheme="http", port=None, options=()):
        self.answers(port)
        address = f"{scheme}://127.0.0.1:{port or self.port}{path}"
        self.start("wrk", "-t1", f"-c{connections}", "-d200", *options, address)

    def close(self):
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in self.processes:
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


# --- programs: each starts in a scene, and returns a pid ---


def gunicorn(module, path, *options, connections=8, **extra):
    def start(scene):
        pid = scene.start("/usr/bin/gunicorn", "-b", f"127.0.0.1:{scene.port}", "--chdir", APPS, *options, module,
                          extra={"PYTHONDONTWRITEBYTECODE": "1", "APP_FOLDER": scene.folder, **extra})
        scene.load(path, connections)
        return pid
    return start


def flask(path, *options, **kw):
    return gunicorn("flask_app:app", path, *(options or ("-w", "2")), **kw)


def django(path, **kw):
    return gunicorn("django_app:application", path, "-w", "2", **kw)


def python(file, *arguments, path=None, backend=False, connections=8):
    def start(scene):
        more = []
        if backend:
            port = free_port()
            scene.start("/usr/bin/python3", "-m", "http.server", port, "-b", "127.0.0.1")
            scene.answers(port)
            more = [f"http://127.0.0.1:{port}/"]
        pid = scene.start("/usr/bin/python3", os.path.join(APPS, file), scene.port, *arguments, *more)
        scene.load(path, connections)
        return pid
    return start


def redis_server(scene, *options):
    path = os.path.join(scene.folder, "redis.sock")
    pid = scene.start("redis-server", "--unixsocket", path, "--port", "0", "--save", "", "--dir", scene.folder,
                      *options)
    scene.exists(path)
    return pid, path


def redis_worker(cause):
    def start(scene):
        _, path = redis_server(scene)
        return scene.start("/usr/bin/python3", os.path.join(APPS, "redis_app.py"), cause, path)
    return start


def redis(load, *options):
    """The server under a load: a worker of ours, or redis-benchmark."""
    def start(scene):
        pid, path = redis_server(scene, *options)
        if load in ("keys",):
            scene.start("/usr/bin/python3", os.path.join(APPS, "redis_app.py"), load, path)
        elif load == "script":
            text = "local s = 0 for i = 1, 20000 do s = s + i % 7 end return s"
            scene.start("redis-benchmark", "-s", path, "-q", "-n", "100000000", "-c", "8", "eval", text, "0")
        else:
            scene.start("redis-benchmark", "-s", path, "-q", "-l", "-c", "8", "-t", load)
        return pid
    return start


def postgres_server(scene):
    data, run = os.path.join(scene.folder, "pg"), scene.folder
    os.chmod(scene.folder, 0o777)
    as_user = {"user": "postgres", "group": "postgres"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": True, "cwd": "/tmp"}
    subprocess.run([f"{POSTGRES}/initdb", "-D", data, "-A", "trust"], **as_user, **quiet)
    pid = scene.start(f"{POSTGRES}/postgres", "-D", data, "-k", run, "-c", "listen_addresses=", "-p", scene.port,
                      **as_user)
    scene.exists(os.path.join(run, f".s.PGSQL.{scene.port}"))
    time.sleep(1)
    subprocess.run([f"{POSTGRES}/pgbench", "-h", run, "-p", str(scene.port), "-i", "-s", "2", "postgres"],
                   **as_user, **quiet)
    return pid


def postgres_worker(cause, server=False):
    def start(scene):
        pid = postgres_server(scene)
        mine = scene.start("/usr/bin/python3", os.path.join(APPS, "postgres_app.py"), cause,
                           f"host={scene.folder} port={scene.port} user=postgres dbname=postgres")
        return pid if server else mine
    return start


def pgbench(*options):
    def start(scene):
        pid = postgres_server(scene)
        scene.start(f"{POSTGRES}/pgbench", "-h", scene.folder, "-p", scene.port, "-T", "200", "-c", "4", *options,
                    "postgres", user="postgres", group="postgres")
        return pid
    return start


def pgbench_script(text):
    def start(scene):
        pid = postgres_server(scene)
        path = os.path.join(scene.folder, "script.sql")
        with open(path, "w") as file:
            file.write(text)
        scene.start(f"{POSTGRES}/pgbench", "-h", scene.folder, "-p", scene.port, "-T", "200", "-c", "4", "-n", "-f",
                    path, "postgres", user="postgres", group="postgres")
        return pid
    return start


def mariadb(statements, clients=4):
    """Each client runs these, and commits; RND is a row."""
    def start(scene):
        data, path = os.path.join(scene.folder, "my"), os.path.join(scene.folder, "my.sock")
        os.chmod(scene.folder, 0o777)
        subprocess.run(["mariadb-install-db", "--auth-root-authentication-method=normal", "--user=mysql",
                        f"--datadir={data}", "--skip-test-db"], check=True, capture_output=True)
        pid = scene.start("/usr/sbin/mariadbd", "--no-defaults", "--user=mysql", f"--datadir={data}",
                          f"--socket={path}", "--skip-networking", f"--pid-file={data}/pid")
        scene.exists(path)
        rows = "create database t; use t; create table a (id int primary key, b int, c varchar(99)); "
        rows += "insert into a select seq, seq * 7 mod 1000, repeat('x', 50) from seq_1_to_20000;"
        subprocess.run(["mariadb", "--no-defaults", "-S", path, "-uroot"], input=rows, text=True, check=True)
        for _ in range(clients):
            scene.start("/usr/bin/python3", os.path.join(APPS, "mysql_app.py"), path, statements)
        return pid
    return start


def nginx(path, connections=8, tls=False):
    def start(scene):
        modules = re.search(r"--modules-path=(\S+)", subprocess.run(
            ["nginx", "-V"], capture_output=True, text=True).stderr)[1]
        tls_port = free_port()
        text = open(os.path.join(APPS, "nginx.conf")).read()
        for key, value in (("DIR", scene.folder), ("PORT", scene.port), ("TLS", tls_port), ("MODULES", modules)):
            text = text.replace(f"@{key}@", str(value))
        with open(os.path.join(scene.folder, "nginx.conf"), "w") as file:
            file.write(text)
        with open(os.path.join(scene.folder, "big.txt"), "w") as file:
            file.write("".join(f"line {i} of a text\n" for i in range(5000)))
        for lua in glob.glob(os.path.join(APPS, "*.lua")):
            shutil.copy(lua, scene.folder)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem",
                        "-out", "cert.pem", "-subj", "/CN=localhost", "-days", "2"],
                       cwd=scene.folder, capture_output=True, check=True)
        pid = scene.start("nginx", "-p", scene.folder, "-e", "error.log", "-c", "nginx.conf")
        if tls:
            scene.answers(tls_port)
            scene.load(path, connections, "https", tls_port, () if tls == "kept" else ("-H", "Connection: close"))
        else:
            scene.load(path, connections, options=("-H", "Accept-Encoding: gzip"))
        return pid
    return start


def perl(file, path, *before, backend=False):
    def start(scene):
        extra = {}
        if backend:
            port = free_port()
            scene.start("/usr/bin/python3", "-m", "http.server", port, "-b", "127.0.0.1")
            scene.answers(port)
            extra = {"BACKEND": f"http://127.0.0.1:{port}/"}
        if before:
            pid = scene.start(*before, "--listen", f"127.0.0.1:{scene.port}", os.path.join(APPS, file))
        else:
            pid = scene.start("/usr/bin/perl", os.path.join(APPS, file), scene.port, extra=extra)
        scene.load(path)
        return pid
    return start


def go(path, **extra):
    def start(scene):
        program = os.path.join(scene.folder, "server")
        subprocess.run(["go", "build", "-o", program, os.path.join(APPS, "server.go")], check=True)
        pid = scene.start(program, scene.port, extra=extra)
        scene.load(path)
        return pid
    return start


def tomcat(path, *options):
    def start(scene):
        jars = glob.glob("/usr/share/java/tomcat10-*.jar") + glob.glob("/usr/share/java/tomcat-*.jar")
        jars += glob.glob("/usr/share/java/ecj.jar") + glob.glob("/usr/share/java/*servlet-api*.jar")
        classes = ":".join(jars)
        subprocess.run(["javac", "-g", "-cp", classes, "-d", scene.folder, os.path.join(APPS, "TomcatApp.java")],
                       check=True, stderr=subprocess.DEVNULL)
        pid = scene.start("java", *(options or ("-Xmx256m",)), "-cp", f"{scene.folder}:{classes}", "TomcatApp",
                          scene.port, scene.folder)
        scene.load(path)
        return pid
    return start


def caddy(scene):
    with open(os.path.join(scene.folder, "hello.txt"), "w") as file:
        file.write("hello\n" * 20)
    pid = scene.start("caddy", "file-server", "--listen", f"127.0.0.1:{scene.port}", "--root", scene.folder,
                      extra={"HOME": scene.folder})
    scene.load("/hello.txt")
    return pid


def prometheus(scene):
    with open(os.path.join(scene.folder, "p.yml"), "w") as file:
        file.write(f"""global: {{scrape_interval: 1s}}
scrape_configs: [{{job_name: self, static_configs: [{{targets: ["127.0.0.1:{scene.port}"]}}]}}]
""")
    pid = scene.start("prometheus", f"--web.listen-address=127.0.0.1:{scene.port}", "--config.file=p.yml",
                      f"--storage.tsdb.path={scene.folder}/data")
    scene.load("/metrics", 2)
    return pid


PY, PL, GO, JAVA, DJANGO, ASYNC, PG = ("flask_app.py", "mojo_app.pl", "server.go", "TomcatApp.java", "django_app.py",
                                       "aiohttp_app.py", "postgres_app.py")
THREADS = ("-k", "gthread", "--threads", "8")
STARMAN = ("/usr/bin/starman", "--workers", "2")
# name: (start, the rule that has to be the first, where: the file with the line marked "here: MARKER")
PROGRAMS = {
    "flask-regex": (flask("/regex"), "python-regex-compiled", PY, "regex"),
    "flask-template": (flask("/template"), "python-template-compiled", PY, "template"),
    "flask-logging": (flask("/logging"), "python-logging", PY, "logging"),
    "flask-yaml": (flask("/yaml"), "python-yaml", PY, "yaml"),
    "flask-deepcopy": (flask("/deepcopy"), "python-deepcopy", PY, "deepcopy"),
    "flask-dns": (flask("/dns"), "dns-per-request", PY, "dns"),
    "flask-grow": (flask("/grow"), "memory-growth", PY, "grow"),
    "flask-subprocess": (flask("/subprocess"), "python-subprocess", PY, "subprocess"),
    "flask-gil": (flask("/gil", *THREADS), "python-gil", PY, "gil"),
    "flask-lock": (flask("/lock", *THREADS), "lock-convoy", PY, "lock"),
    "flask-fsync": (flask("/fsync"), "fsync", PY, "fsync"),
    "flask-sleep": (flask("/sleep"), "sleep-in-request", PY, "sleep"),
    "flask-import": (flask("/import"), "python-import", PY, "import"),
    "flask-backtrack": (flask("/regex_backtrack"), "python-regex-matching", PY, "regex_backtrack"),
    "flask-small-io": (flask("/small_io"), "small-io", PY, "small_io"),
    "flask-nplus1": (flask("/nplus1"), "python-n-plus-one", PY, "nplus1"),
    "flask-pandas": (flask("/pandas"), "python-pandas-rows", PY, "pandas"),
    "flask-strptime": (flask("/strptime"), "python-strptime", PY, "strptime"),
    "flask-tls-context": (flask("/tls_context"), "python-tls-context", PY, "tls_context"),
    "flask-inspect": (flask("/inspect"), "python-stack-inspected", PY, "inspect"),
    "flask-collect": (flask("/collect"), "python-gc-collections", PY, "collect"),
    "flask-pickle": (flask("/pickle"), "python-pickle", PY, "pickle"),
    "django-nplus1": (django("/nplus1"), "python-n-plus-one", DJANGO, "nplus1"),
    "django-template": (django("/template"), "python-template-compiled", DJANGO, "template"),
    "django-debug": (django("/healthy", APP_DEBUG="1"), "django-debug", None, None),
    "aiohttp-sync": (python(ASYNC, path="/sync_call", backend=True), "python-asyncio-blocked", ASYNC, "sync_call"),
    "aiohttp-sleep": (python(ASYNC, path="/sleep"), "python-asyncio-blocked", ASYNC, "sleep"),
    "aiohttp-json": (python(ASYNC, path="/big_json"), "python-asyncio-busy", ASYNC, "big_json"),
    "aiohttp-session": (python(ASYNC, path="/session", backend=True), "connect-per-request", ASYNC, "session"),
    "psycopg-nplus1": (postgres_worker("nplus1"), "database-wait", PG, "nplus1"),
    "psycopg-connect": (postgres_worker("connect"), "database-connect", PG, "connect"),
    "psycopg-row-lock": (postgres_worker("row_lock"), "database-wait", PG, "row_lock"),
    "postgres-row-lock": (postgres_worker("row_lock", True), "postgres-lock-wait", None, None),
    "postgres-commit": (pgbench("-N"), "fsync", None, None),
    "redis-aof": (redis("set", "--appendonly", "yes", "--appendfsync", "always"), "fsync", None, None),
    "redis-keys": (redis("keys"), "redis-keys", None, None),
    "redis-script": (redis("script"), "redis-script", None, None),
    "mariadb-row-lock": (mariadb("update a set b = b + 1 where id = 7; select sleep(0.02)", 6), "mysql-lock-wait",
                         None, None),
    "postgres-scan": (pgbench_script("select count(*) from pgbench_accounts where abalance = 77;"), "database-scan",
                      None, None),
    "postgres-sort": (pgbench_script(SORT % "OFFSET 150000"), "database-sort-spilled", None, None),
    "postgres-connections": (pgbench("-C", "-S", "-n"), "database-backend-started", None, None),
    "redis-lock": (redis_worker("lock"), "lock-in-store", "redis_app.py", "lock"),
    "redis-answers": (redis_worker("answers"), "database-answers", "redis_app.py", "answers"),
    "redis-client": (redis_worker("client"), "database-reconnect", "redis_app.py", "client"),
    "redis-round-trips": (redis_worker("round_trips"), "database-wait", "redis_app.py", "round_trips"),
    "nginx-regex": (nginx("/regex"), "lua-regex-compiled", "regex.lua", "regex"),
    "nginx-popen": (nginx("/popen"), "lua-process", "popen.lua", "popen"),
    "nginx-concat": (nginx("/concat"), "lua-string-building", "concat.lua", "concat"),
    "nginx-tables": (nginx("/tables"), "lua-gc", "tables.lua", "tables"),
    "nginx-file": (nginx("/file"), "lua-file-read", "file.lua", "file"),
    "nginx-sleep": (nginx("/sleep"), "lua-sleep", "sleep.lua", "sleep"),
    "nginx-access-log": (nginx("/logged"), "nginx-access-log", None, None),
    "nginx-gzip": (nginx("/zip"), "gzip-level", None, None),
    "nginx-upstream": (nginx("/unkept"), "connect-per-request", None, None),
    "nginx-tls": (nginx("/static", tls=True), "tls-handshakes", None, None),
    "mojo-regex": (perl(PL, "/regex"), "perl-regex-compiled", PL, "regex"),
    "mojo-eval": (perl(PL, "/eval"), "perl-eval-string", PL, "eval"),
    "mojo-template": (perl(PL, "/template"), "perl-eval-string", PL, "template"),
    "mojo-nplus1": (perl(PL, "/nplus1"), "sql-prepared", PL, "nplus1"),
    "mojo-sleep": (perl(PL, "/sleep"), "sleep-in-request", PL, "sleep"),
    "mojo-blocked": (perl(PL, "/blocked", backend=True), "perl-loop-blocked", PL, "blocked"),
    "mojo-process": (perl(PL, "/process"), "perl-process", PL, "process"),
    "dancer-json": (perl("dancer_app.pl", "/json", *STARMAN), "perl-json", "dancer_app.pl", "json"),
    "go-regex": (go("/regex"), "go-regex-compiled", GO, "regex"),
    "go-lock": (go("/lock"), "go-mutex", GO, "lock"),
    "go-leak": (go("/leak"), "go-goroutine-leak", GO, "leak"),
    "go-garbage": (go("/garbage"), "go-string-building", GO, "garbage"),
    "go-process": (go("/process"), "go-process", GO, "process"),
    "go-client": (go("/client"), "go-no-keepalive", GO, "client"),
    "go-json": (go("/marshal"), "go-reflection-json", GO, "marshal"),
    "go-maps": (go("/maps"), "go-map-growth", GO, "maps"),
    "go-stacks": (go("/stacks"), "go-stack-growth", GO, "stacks"),
    "go-grow": (go("/grow"), "memory-growth", GO, "grow"),
    "tomcat-regex": (tomcat("/regex"), "java-regex-compiled", JAVA, "regex"),
    "tomcat-monitor": (tomcat("/monitor"), "java-monitor", JAVA, "monitor"),
    "tomcat-gc": (tomcat("/garbage", "-Xmx40m", "-XX:+UseSerialGC"), "java-gc", JAVA, "garbage"),
    "tomcat-exceptions": (tomcat("/exceptions"), "java-exceptions", JAVA, "exceptions"),
    "tomcat-logging": (tomcat("/logging"), "java-logging", JAVA, "logging"),
    "tomcat-grow": (tomcat("/grow", "-Xmx3g"), "memory-growth", JAVA, "grow"),
    "tomcat-concat": (tomcat("/concat"), "java-string-building", JAVA, "concat"),
    "tomcat-load": (tomcat("/load"), "java-class-loading", JAVA, "load"),
    "tomcat-random": (tomcat("/random"), "java-random", JAVA, "random"),
}
# The same programs without the cause of a rule.
NEAR = {
    "python-template-compiled": flask("/template_near"),
    "python-yaml": flask("/yaml_near"),
    "python-deepcopy": flask("/deepcopy_near"),
    "python-subprocess": flask("/subprocess_near"),
    "python-regex-matching": flask("/regex_matching_near"),
    "python-n-plus-one": django("/healthy"),
    "python-pandas-rows": flask("/pandas_near"),
    "python-strptime": flask("/strptime_near"),
    "python-tls-context": flask("/tls_context_near"),
    "python-stack-inspected": flask("/inspect_near"),
    "python-gc-collections": flask("/deepcopy_near"),
    "python-pickle": flask("/pickle_near"),
    "python-asyncio-busy": python(ASYNC, path="/serial"),
    "django-debug": django("/healthy"),
    "connect-per-request": nginx("/kept"),
    "database-wait": postgres_worker("computing"),
    "database-connect": postgres_worker("nplus1"),
    "postgres-lock-wait": postgres_worker("row_lock_near", True),
    "redis-keys": redis("set,get"),
    "database-answers": redis_worker("healthy"),
    "lock-in-store": redis_worker("healthy"),
    "redis-script": redis("set,get"),
    "mysql-lock-wait": mariadb("update a set b = b + 1 where id = RND; select c from a where id = RND"),
    "database-scan": pgbench("-S"),
    "lua-string-building": nginx("/concat_near"),
    "lua-gc": nginx("/tables_near"),
    "lua-sleep": nginx("/sleep_near"),
    "gzip-level": nginx("/static"),
    "tls-handshakes": nginx("/static", tls="kept"),
    "sql-prepared": perl(PL, "/nplus1_near"),
    "database-sort-spilled": pgbench_script(SORT % "OFFSET 150"),
    "database-backend-started": pgbench("-S"),
    "perl-loop-blocked": perl(PL, "/blocked_near", backend=True),
    "perl-process": perl(PL, "/process_near"),
    "perl-json": perl("dancer_app.pl", "/healthy", *STARMAN),
    "go-regex-compiled": go("/regex_near"),
    "go-goroutine-leak": go("/healthy"),
    "go-string-building": go("/garbage_near"),
    "go-process": go("/healthy"),
    "go-no-keepalive": go("/client_near"),
    "go-reflection-json": go("/sorted"),
    "go-map-growth": go("/maps_near"),
    "go-stack-growth": go("/stacks_near"),
    "java-regex-compiled": tomcat("/regexNear"),
    "java-logging": tomcat("/loggingNear"),
    "java-string-building": tomcat("/concatNear"),
    "java-class-loading": tomcat("/loadNear"),
    "java-random": tomcat("/randomNear"),
}
HEALTHY = {
    "ok-flask": flask("/healthy"),
    "ok-flask-threads": flask("/joined", "-k", "gthread", "--threads", "2"),
    "ok-django": django("/healthy"),
    "ok-aiohttp": python("aiohttp_app.py", path="/healthy"),
    "ok-redis": redis("set,get"),
    "ok-redis-worker": redis_worker("healthy"),
    "ok-postgres": pgbench("-S"),
    "ok-nginx-static": nginx("/static"),
    "ok-nginx-lua": nginx("/healthy"),
    "ok-nginx-proxy": nginx("/kept"),
    "ok-mojo": perl(PL, "/healthy"),
    "ok-dancer": perl("dancer_app.pl", "/healthy", "/usr/bin/starman", "--workers", "2"),
    "ok-go": go("/healthy"),
    "ok-go-sorted": go("/sorted"),
    "ok-tomcat": tomcat("/healthy"),
    "ok-caddy": caddy,
    "ok-prometheus": prometheus,
}


def line_of(file, marker):
    for n, line in enumerate(open(os.path.join(APPS, file)), 1):
        if re.search(rf"here: {marker}$", line.rstrip()):
            return n
    raise KeyError(f"{marker} in {file}")


def findings(start, name, seconds=int(os.environ.get("APPS_SECONDS", "20")), warm=4):
    scene = Scene()
    keep = os.path.join(os.environ.get("APPS_KEEP", scene.folder), name)
    try:
        pid = start(scene)
        time.sleep(warm)
        shutil.rmtree(keep, ignore_errors=True)
        done = subprocess.run(
            [YRT, "report", "-p", str(pid), "-s", "-d", str(seconds), "-q", "-f", "json", "--keep", keep],
            capture_output=True, text=True, timeout=300)
        if done.returncode not in (0, 10):
            raise RuntimeError(done.stderr + scene.output())
        return json.loads(done.stdout)
    finally:
        scene.close()


def judge(name, report):
    """Empty, or what is wrong with a report."""
    found = [f for f in report["findings"] if f["rule"] not in ("machine-busy",)]
    if name.startswith("near-"):
        return " ".join(f["rule"] for f in found if f["rule"] == name[5:])
    if name in HEALTHY:
        return " ".join(f["rule"] for f in found if f["severity"] != "remark")
    _, rule, file, marker = PROGRAMS[name]
    if not found or found[0]["rule"] != rule:
        return f"not {rule}"
    where = found[0]["where"][0] if found[0]["where"] else {}
    if file and os.path.basename(where.get("file", "")) != file:
        return f"where: {where}"
    if marker and abs(where["line"] - line_of(file, marker)) > 0:
        return f"line {where['line']}, not {line_of(file, marker)}"
    return ""


def tell(name, report, wrong, out):
    found = [f for f in report["findings"]]
    print(f"{'OK  ' if not wrong else 'FAIL'} {name}: {wrong}", file=out)
    for f in found[:4]:
        where = f["where"][0] if f["where"] else None
        print(f"      {f['severity']:8} {f['rule']}: {f['title']}"
              + (f"  [{where['function']} {os.path.basename(where['file'])}:{where['line']}]" if where else ""),
              file=out)
    for step in report["not_looked_at"]:
        print(f"      not looked at: {step}", file=out)
    out.flush()


def start_of(name):
    return PROGRAMS[name][0] if name in PROGRAMS else NEAR[name[5:]] if name.startswith("near-") else HEALTHY[name]


def main(names):
    for name in names or [*PROGRAMS, *HEALTHY, *("near-" + rule for rule in NEAR)]:
        try:
            report = findings(start_of(name), name)
            tell(name, report, judge(name, report), sys.stdout)
        except Exception as e:
            print(f"FAIL {name}: {type(e).__name__} {e}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
