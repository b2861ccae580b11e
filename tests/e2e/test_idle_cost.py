# SPDX-License-Identifier: Apache-2.0
"""
What yrt itself does while its target does nothing: its system calls are counted, by another yrt, so that nothing depends
on how fast the machine is. One that waits for what is there already makes 70,000 calls a second.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import java
import java_alloc
import lua
import report_apps
import servers
import yrt

SECONDS = 2
LOOKS = 30  # names and tables are read first, by a thread that leaves the CPU to others
MOST = 8000  # calls a second; 50 to 900 were seen
VIEWS = {
    "flame": [],
    "off-flame": [],
    "wall-flame": [],
    "lock-flame": [],
    "io-flame": [],
    "net-flame": [],
    "fault-flame": [],
    "probe": ["-e", "libc:getppid"],
    "latency": ["-e", "libc:getppid"],
    "top": ["-d", 1],
    "record": ["--timeline"],
}
ALL_VIEWS = {**VIEWS, "alloc": [], "leak": []}
OF_LIBC = ("probe", "latency", "alloc", "leak")
IDLE_LUA = """
local ffi = require("ffi")
ffi.cdef("int getpid(void);")
io.write(string.format('{"event":"start","pid":%d,"chain":[]}\\n', ffi.C.getpid()))
io.stdout:flush()
io.read()
"""


@contextlib.contextmanager
def running(pid, views):
    """yrt with each of the views on a process that does nothing, once all of them wait for samples: {view: its pid}"""
    runs = {}
    try:
        for view, options in views.items():
            output = view != "top"
            seconds = ["-d", 600] if output else []
            runs[view] = yrt.Run(view, "-p", pid, *seconds, *options, output=output, stats=output)
        for view, run in runs.items():
            ready = lambda run=run: run.process.poll() is not None or run.is_polling()
            yrt.until(ready, f"{view} waits for samples")
            assert run.process.poll() is None, f"{view}: {run.result().stderr}"
        yield {view: run.process.pid for view, run in runs.items()}
    finally:
        for run in runs.values():
            yrt.stop(run.process, signal.SIGKILL)
            shutil.rmtree(run.dir, ignore_errors=True)


def count_calls(pids):
    """{pid: [(frames, its system calls in SECONDS)]}"""
    named = ",".join(map(str, pids))
    counted = yrt.run(
        "probe", "-e", "raw_syscalls:sys_enter", "-p", named, "-d", SECONDS, "--processes", "each", "--max-cpu", 0
    ).expect()
    return {pid: yrt.of_process(counted, pid) for pid in pids}


def check_idle(pid, views):
    with running(pid, views) as pids:
        for _ in range(LOOKS):
            calls = count_calls(list(pids.values()))
            rates = {view: sum(n for _, n in calls[own]) / SECONDS for view, own in pids.items()}
            if all(0 < rate < MOST for rate in rates.values()):
                break
    busiest = max(rates, key=rates.get)
    assert all(0 < rate < MOST for rate in rates.values()), f"calls a second: {rates}\n{yrt.show(calls[pids[busiest]])}"
    return ["calls a second: " + ", ".join(f"{view} {rate:.0f}" for view, rate in rates.items())]


def only(*views):
    return {view: VIEWS[view] for view in views}


@contextlib.contextmanager
def hidden_lua():
    """A program whose files are named after another runtime than the one that it has."""
    host = lua.host()[0]
    with tempfile.TemporaryDirectory(prefix="yrt-idle-") as directory:
        library, script = os.path.join(directory, "python3", "libengine.so"), os.path.join(directory, "idle.lua")
        os.mkdir(os.path.dirname(library))
        found = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
        shutil.copy(re.search(r"libluajit-5\.1\.so\.2 .* => (\S+)", found)[1], library)
        with open(script, "w") as out:
            out.write(IDLE_LUA)
        with yrt.Fixture(host, "-l", library, script, seconds=None) as fixture:
            yield fixture


MOST_CPU = 1.0  # per cent of one; what spins takes 50 to 90
OVER = 10


def cpu_seconds(pid):
    fields = yrt.read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check_cpu(pid, views):
    """Once it waits, no view uses more than 1 % of a CPU; all of them at once."""
    with running(pid, views) as pids:
        for _ in range(3):  # tables are still being made
            before = {view: cpu_seconds(own) for view, own in pids.items()}
            time.sleep(OVER)
            used = {view: 100 * (cpu_seconds(own) - before[view]) / OVER for view, own in pids.items()}
            if max(used.values()) < MOST_CPU:
                break
    assert all(percent < MOST_CPU for percent in used.values()), used
    return ", ".join(f"{view} {percent:.2f}" for view, percent in used.items())


@contextlib.contextmanager
def in_scene(start):
    scene = report_apps.Scene()
    try:
        yield start(scene)
    finally:
        scene.close()


def idle_java(scene):
    source = os.path.join(scene.folder, "Idle.java")
    with open(source, "w") as out:
        out.write("class Idle { public static void main(String[] a) throws Exception { Thread.sleep(1 << 30); } }")
    return scene.start(*java.words(), source)


def idle_go(scene):
    source = os.path.join(scene.folder, "idle.go")
    with open(source, "w") as out:
        out.write('package main\n\nimport "time"\n\nfunc main() { time.Sleep(time.Hour) }\n')
    program = os.path.join(scene.folder, "idle")
    subprocess.run(["go", "build", "-o", program, source], check=True, cwd=scene.folder)
    return scene.start(program)


def idle_gunicorn(scene):
    address = f"127.0.0.1:{scene.port}"
    pid = scene.start("/usr/bin/gunicorn", "-b", address, "--chdir", report_apps.APPS, "flask_app:app")
    scene.answers()
    return pid


IDLE = {
    "Python": lambda scene: scene.start(sys.executable, "-c", "import signal; signal.pause()"),
    "Perl": lambda scene: scene.start("perl", "-e", "sleep 1000"),
    "Node": lambda scene: scene.start("node", "-e", "setInterval(() => {}, 1e6)"),
    "Java": idle_java,
    "Go": idle_go,
    "gunicorn": idle_gunicorn,
    "Redis": lambda scene: report_apps.redis_server(scene)[0],
    "PostgreSQL": report_apps.postgres_server,
}


@yrt.measured
def test_cpu():
    for name, start in IDLE.items():
        with in_scene(start) as pid:
            time.sleep(2)  # it begins to be idle
            views = {view: of for view, of in ALL_VIEWS.items() if name != "Go" or view not in OF_LIBC}
            yield f"{name}: {check_cpu(pid, views)} % of a CPU"
    with servers.Nginx(load=0) as nginx:
        views = {**ALL_VIEWS, "requests": [], "pools": []}
        yield f"nginx: {check_cpu(nginx.master.pid, views)} % of a CPU"
    with servers.Envoy(servers.envoy_program(), load=0) as envoy:
        yield f"Envoy: {check_cpu(envoy.pid, ALL_VIEWS)} % of a CPU"


def test_runtime_that_files_do_not_reveal():
    with hidden_lua() as fixture:
        return check_idle(fixture.pid, VIEWS)


def test_envoy():
    """Below a folder of Python's packages, where pip puts it."""
    with tempfile.TemporaryDirectory(prefix="yrt-idle-") as directory:
        program = os.path.join(directory, "python3", "envoy")
        os.mkdir(os.path.dirname(program))
        try:
            os.link(servers.envoy_program(), program)
        except OSError:
            shutil.copy(servers.envoy_program(), program)
        with servers.Envoy(program, load=0) as envoy:
            return check_idle(envoy.pid, only("flame", "off-flame"))


def test_python():
    command = [sys.executable, "-c", "import signal; signal.pause()"]
    with yrt.Program(command) as program:
        return check_idle(program.pid, only("flame", "off-flame", "lock-flame"))


def test_java():
    with java_alloc.Sites(2) as sites:
        os.kill(sites.pid, signal.SIGSTOP)
        try:
            return check_idle(sites.pid, {"java-alloc": [], **only("flame", "off-flame")})
        finally:
            os.kill(sites.pid, signal.SIGCONT)


yrt.main(globals())
