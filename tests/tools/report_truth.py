#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Is what `yrt report` says true? Programs of fixtures/report/unseen, which no rule was written for, are reported on
several times: is the cause the first finding, with its function and line ("here: MARKER")? Healthy ones must have neither a
problem nor waste.

	sudo YRT=build/release/yrt tests/tools/report_truth.py [-n RUNS] [-d SECONDS] [NAME...]

Prints a line a run, and the counts. Not in the gate: it takes a minute a run, and wants a machine that is not busy.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests", "e2e"))
import report_apps  # noqa: E402
from report_apps import Scene  # noqa: E402

UNSEEN = os.path.join(SOURCE, "fixtures", "report", "unseen")
CIRCUMSTANCES = {"machine-busy", "children"}


def unseen(name):
    return os.path.join(UNSEEN, name)


def alone(*command):
    return lambda scene: scene.start(*command)


def c(file, *arguments, compiler=("gcc", "-O2", "-g")):
    def start(scene):
        program = os.path.join(scene.folder, "program")
        subprocess.run([*compiler, "-o", program, unseen(file), "-lpthread"], check=True)
        return scene.start(program, *(a.replace("DIR", scene.folder) for a in arguments))
    return start


def gunicorn(path, module="audit_wsgi:application", options=("-w", "2"), backend=False):
    def start(scene):
        extra = {"PYTHONDONTWRITEBYTECODE": "1", "APP_FOLDER": scene.folder}
        if backend:
            port = report_apps.free_port()
            scene.start("/usr/bin/python3", unseen("slow_backend.py"), port)
            scene.answers(port)
            extra["BACKEND"] = f"http://127.0.0.1:{port}/"
        pid = scene.start("/usr/bin/gunicorn", *options, "-b", f"127.0.0.1:{scene.port}", "--chdir", UNSEEN, module,
                          extra=extra)
        scene.load(path, 4)
        return pid
    return start


def flask(path):
    return gunicorn(path, "rates_flask:app", ("-w", "1", "-k", "gthread", "--threads", "8"), True)


def django(path):
    return gunicorn(path, "stock_django:application", ("-w", "2", "--preload"))


def java(path, *options, program="Desk"):
    def start(scene):
        subprocess.run(["javac", "-g", "-d", scene.folder, unseen(f"{program}.java")], check=True)
        pid = scene.start("java", "-Dsun.net.httpserver.nodelay=true", *options, "-cp", scene.folder, program,
                          scene.port)
        if path:
            scene.load(path, 4)
        return pid
    return start


def journal(how):
    """A heap of which each page is there: the process does not grow."""
    def start(scene):
        subprocess.run(["javac", "-g", "-d", scene.folder, unseen("Journal.java")], check=True)
        return scene.start("java", "-Xms600m", "-Xmx600m", "-Xmn200m", "-XX:+AlwaysPreTouch", "-cp", scene.folder,
                           "Journal", how)
    return start


def go(path, source="feed.go"):
    def start(scene):
        program = os.path.join(scene.folder, "server")
        subprocess.run(["go", "build", "-o", program, unseen(source)], check=True)
        pid = scene.start(program, scene.port, os.path.join(scene.folder, "log"))
        scene.load(path, 4)
        return pid
    return start


def perl(path):
    def start(scene):
        pid = scene.start("/usr/bin/plackup", "-E", "deployment", "--host", "127.0.0.1", "--port", scene.port,
                          unseen("wiki.psgi"))
        scene.load(path, 2)
        return pid
    return start


def starman(path):
    def start(scene):
        pid = scene.start("/usr/bin/starman", "--workers", "2", "--listen", f"127.0.0.1:{scene.port}",
                          unseen("notes.psgi"), extra={"APP_FOLDER": scene.folder})
        scene.load(path, 4)
        return pid
    return start


def ledger(scene):
    return scene.start("/usr/bin/perl", unseen("ledger.pl"), os.path.join(scene.folder, "ledger.txt"))


def redis(how):
    def start(scene):
        _, path = report_apps.redis_server(scene)
        return scene.start("/usr/bin/python3", unseen("counter_redis.py"), how, path)
    return start


def nginx(path):
    def start(scene):
        modules = re.search(r"--modules-path=(\S+)", subprocess.run(
            ["nginx", "-V"], capture_output=True, text=True, check=True).stderr)[1]
        os.chmod(scene.folder, 0o777)
        with open(os.path.join(scene.folder, "nginx.conf"), "w") as file:
            file.write(f"""load_module {modules}/ndk_http_module.so;
load_module {modules}/ngx_http_lua_module.so;
daemon off;
worker_processes 1;
pid nginx.pid;
error_log error.log warn;
events {{ worker_connections 256; }}
http {{
	access_log off;
	keepalive_requests 1000000;
	lua_package_path "{UNSEEN}/?.lua;;";
	server {{
		listen 127.0.0.1:{scene.port};
		location /put {{ content_by_lua_block {{ ngx.say(require("shop").put()) }} }}
		location /price {{ content_by_lua_block {{ ngx.say(require("shop").price()) }} }}
		location /write {{ content_by_lua_block {{ ngx.say(require("visit").write("{scene.folder}")) }} }}
		location /keep {{ content_by_lua_block {{ ngx.say(require("visit").keep()) }} }}
	}}
}}
""")
        pid = scene.start("nginx", "-p", scene.folder, "-e", "error.log", "-c", "nginx.conf")
        scene.load(path, 2)
        return pid
    return start


# name: (start, rules of which one has to be the first, file and marker of the line; None: remarks alone may be said)
def nagle(scene):
    scene.start("/usr/bin/python3", unseen("talk.py"), "server", scene.port)
    scene.answers()
    return scene.start("/usr/bin/python3", unseen("talk.py"), "client", scene.port)


PROGRAMS = {
    "gunicorn-visits": (gunicorn("/visit"), "memory-kept", "audit_wsgi.py", "note"),
    "gunicorn-deepcopy": (gunicorn("/profile"), "python-deepcopy", "audit_wsgi.py", "profile"),
    "asyncio-subprocess": (alone("/usr/bin/python3", unseen("poller.py"), "blocked"),
                           "python-asyncio-blocked python-subprocess", "poller.py", "blocked"),
    "threads-gil": (alone("/usr/bin/python3", unseen("crawler.py")), "python-gil", "crawler.py", "gil"),
    "c-fsync": (c("journal.c", "sync", "DIR/journal"), "fsync", "journal.c", "fsync"),
    "c-strcat": (c("inverted.c"), "string-scanned", "inverted.c", "strcat"),
    "cxx-sort": (c("parts.cc", compiler=("g++", "-O2", "-g")), "hot-function", "parts.cc", "sort"),
    "c-cache": (c("slots.c"), "lock-convoy", "slots.c", "cache"),
    "cxx-mutex": (c("bank.cc", "lock", compiler=("g++", "-O2", "-g")), "lock-convoy", "bank.cc", "lock"),
    "cxx-cycle": (c("bank.cc", "cycle", compiler=("g++", "-O2", "-g")), "memory-leak", "bank.cc", "cycle"),
    "java-tickets": (java("/ticket", "-Xmx3g"), "memory-kept-collected", "Desk.java", "ticket"),
    "java-journal": (journal("leak"), "memory-kept-collected", None, "journal"),
    "java-format": (java("/report"), "java-format", "Desk.java", "report"),
    "go-subscribers": (go("/subscribe"), "memory-kept-collected", None, "feed"),
    "go-regex": (go("/render"), "go-regex-compiled", "feed.go", "render"),
    "plack-versions": (perl("/edit"), "memory-kept", "wiki.psgi", "edit"),
    "plack-json": (perl("/export"), "perl-json", "wiki.psgi", "export"),
    "nginx-baskets": (nginx("/put"), "memory-kept-collected", None, "baskets"),
    "flask-lock": (flask("/rates"), "lock-convoy", "rates_flask.py", "rates"),
    "django-rows": (django("/value"), "python-gc-collections hot-function", "stock_django.py", "value"),
    "nginx-write": (nginx("/write"), "small-io lua-file-read", "visit.lua", "write"),
    "go-mutex-write": (go("/sync", "audit.go"), "go-mutex fsync", "audit.go", "sync"),
    "starman-connect": (starman("/connect"), "database-reconnect", "notes.psgi", "connect"),
    "redis-connect": (redis("each"), "database-reconnect database-wait connect-per-request",
                      "counter_redis.py", "each"),
    "cxx-endl": (c("echo.cc", "flush", "DIR/log", compiler=("g++", "-O2", "-g")), "small-io", "echo.cc", "endl"),
    "cxx-copy": (c("scores.cc", compiler=("g++", "-O2", "-g")), "malloc-churn", "scores.cc", "copy"),
    "java-linked-list": (java(None, program="Basket"), "list-searched", "Basket.java", "total"),
    "lua-front": (alone("lua5.4", unseen("front.lua")), "list-searched", "front.lua", "drain"),
    "perl-sync": (ledger, "fsync", "ledger.pl", "append"),
    "python-files": (alone("/usr/bin/python3", unseen("exports.py")), "fd-leak", "exports.py", "export"),
    "java-pool": (java("/where", program="Track"), "java-thread-wait", "Track.java", "pool"),
    "java-replace": (java("/clean", program="Track"), "hot-function java-regex-compiled regex-matching", "Track.java",
                     "replace"),
    "go-config": (go("/allowed", "gate.go"), "file-parsed go-reflection-json", "gate.go", "config"),
    "go-body": (go("/price", "gate.go"), "go-body-unclosed", "gate.go", "body"),
    "go-deepequal": (go("/reconcile", "gate.go"), "hot-function", "gate.go", "deepequal"),
    "perl-grep": (alone("/usr/bin/perl", unseen("import.pl"), "grep"), "hot-function", "import.pl", "grep"),
    "cxx-rand": (c("dice.cc", compiler=("g++", "-O2", "-g")), "lock-convoy", "dice.cc", "rand"),
    "cxx-regex": (c("access.cc", compiler=("g++", "-O2", "-g")), "pattern-compiled", "access.cc", "regex"),
    "cxx-localtime": (c("stamp.cc", compiler=("g++", "-O2", "-g")), "file-opened", "stamp.cc", "localtime"),
    "asyncio-sleep0": (alone("/usr/bin/python3", unseen("bridge.py")), "python-asyncio-spins", "bridge.py", "sleep0"),
    "python-nagle": (nagle, "delayed-acknowledgement", None, "read"),
    "python-lru": (alone("/usr/bin/python3", unseen("quotes.py"), "cached"), "memory-kept memory-kept-collected", None,
                   "quote"),
    "ok-flask-each": (flask("/each"), None),
    "ok-django-count": (django("/count"), None),
    "ok-nginx-keep": (nginx("/keep"), None),
    "ok-go-buffered": (go("/buffered", "audit.go"), None),
    "ok-java-queued": (java("/queued", program="Mailer"), None),
    "ok-starman-kept": (starman("/kept"), None),
    "ok-redis-pipeline": (redis("pipeline"), None),
    "ok-cxx-buffered": (c("echo.cc", "full", "DIR/log", compiler=("g++", "-O2", "-g")), None),
    "ok-ticker": (alone("/usr/bin/python3", unseen("ticker.py")), None),
    "ok-lua-words": (alone("lua5.4", unseen("words.lua")), None),
    "ok-gunicorn": (gunicorn("/ok"), None),
    "ok-asyncio": (alone("/usr/bin/python3", unseen("poller.py"), "cached"), None),
    "ok-java-journal": (journal("not"), None),
    "ok-java-recent": (java("/recent"), None),
    "ok-go-sum": (go("/sum"), None),
    "ok-nginx-price": (nginx("/price"), None),
    "ok-cxx-pool": (c("bank.cc", "pool", compiler=("g++", "-O2", "-g")), None),
    "ok-c-batch": (c("journal.c", "batch", "DIR/journal"), None),
    "ok-java-one": (java("/one", program="Track"), None),
    "ok-go-top": (go("/top", "gate.go"), None),
    "ok-perl-hash": (alone("/usr/bin/perl", unseen("import.pl"), "hash"), None),
    "ok-cxx-own": (c("dice.cc", "own", compiler=("g++", "-O2", "-g")), None),
    "ok-python-plain": (alone("/usr/bin/python3", unseen("quotes.py"), "plain"), None),
    "ok-plack-read": (perl("/read"), None),
}


def line_of(file, marker):
    with open(unseen(file)) as lines:
        return next(n for n, line in enumerate(lines, 1) if re.search(rf"here: {marker}\b", line))


def judge(name, said):
    """What is wrong with what was said; "": nothing."""
    found = [f for f in said["findings"] if f["rule"] not in CIRCUMSTANCES]
    if PROGRAMS[name][1] is None:
        return " ".join(f["rule"] for f in found if f["severity"] != "remark")
    _, rules, file, marker = PROGRAMS[name]
    if not found or found[0]["rule"] not in rules.split():
        return f"first: {found[0]['rule'] if found else 'nothing'}, not {rules}"
    if not file:
        return "" if marker in found[0]["title"] else f"title without {marker}"
    where = found[0]["where"][0] if found[0]["where"] else {}
    if os.path.basename(where.get("file", "")) != file:
        return f"where: {where}"
    distance = abs(where["line"] - line_of(file, marker))
    return "" if distance <= 1 else f"line {where['line']}, not {line_of(file, marker)}"


def run(name, seconds, keep):
    scene = Scene()
    try:
        pid = PROGRAMS[name][0](scene)
        time.sleep(4)
        more = []
        if keep:
            os.makedirs(keep, exist_ok=True)
            shutil.rmtree(os.path.join(keep, name), ignore_errors=True)
            more = ["--keep", os.path.join(keep, name)]
        command = [report_apps.YRT, "report", "-p", str(pid), "-d", str(seconds), "-q", "-f", "json", *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10 * seconds)
        if done.returncode not in (0, 10):
            return None, f"exit code {done.returncode}: {done.stderr[-300:]} {scene.output()[-300:]}"
        said = json.loads(done.stdout)
        return said, judge(name, said)
    finally:
        scene.close()


def tell(name, said, wrong):
    print("WRONG" if wrong else "right", name, wrong, flush=True)
    for finding in (said["findings"][:3] if wrong and said else []):
        print(f"      {finding['severity']} {finding['rule']}: {finding['title']}")
    for text in (said["not_looked_at"] if wrong and said else []):
        print("      not looked at:", text, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--runs", type=int, default=5)
    parser.add_argument("-d", "--seconds", type=int, default=30)
    parser.add_argument("--keep", help="a folder for the evidence of the last run of each")
    parser.add_argument("names", nargs="*", default=[])
    options = parser.parse_args()
    counts = {}
    for _ in range(options.runs):
        for name in [n for n in PROGRAMS if not options.names or n in options.names]:
            said, wrong = run(name, options.seconds, options.keep)
            tell(name, said, wrong)
            right, all_ = counts.get(name, (0, 0))
            counts[name] = (right + (not wrong), all_ + 1)
    for name, (right, all_) in counts.items():
        print(f"{right} of {all_}  {name}")
    return 0 if all(right == all_ for right, all_ in counts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
