# SPDX-License-Identifier: Apache-2.0
"""`yrt inspect` on processes of all kinds: what is shown, and what is refused with which code."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import servers
import yrt

NOBODY = 65534
NANOSLEEP = "230 "  # clock_nanosleep, of x86-64


def inspect(*args, **kw):
    return yrt.run("inspect", *args, output=False, stats=False, **kw)


def sections(process, name):
    return [{r["key"]: r["value"] for r in s["rows"]} for runtime in process["runtimes"] for s in runtime["sections"]
            if s["name"] == name]


class Sleeper:
    def __init__(self, *command, **kw):
        self.process = subprocess.Popen(command or ["sleep", "1000"], stdout=subprocess.PIPE, stdin=subprocess.PIPE,
                                        text=True, **kw)
        self.pid = self.process.pid
        if not command:
            yrt.until(lambda: yrt.read(f"/proc/{self.pid}/syscall").startswith(NANOSLEEP), "it sleeps")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        yrt.stop(self.process)


def test_no_runtime():
    with Sleeper() as target:
        text = inspect("-p", target.pid).expect().stdout
        assert re.match(rf"process {target.pid}  /.*\n  malloc: .*glibc.*\n  no language runtime", text), text
        process, = json.loads(inspect("-p", target.pid, "--json").expect().stdout)["processes"]
        assert process["runtimes"] == [] and process["notes"] == [] and "glibc" in process["malloc"], process


def test_errors():
    with Sleeper() as target:
        dead = target.pid
    for args, code in ((("-p", dead), yrt.NO_PROCESS), (("-p", "x"), yrt.NO_PROCESS), ((), yrt.USAGE),
                       (("-p", 1, "extra"), yrt.USAGE), (("--nonsense",), yrt.USAGE)):
        result = inspect(*args).expect(code)
        assert result.stderr.count("yrt: ") >= 1 and not result.stdout, (args, result.stderr)
    help_text = inspect("--help").expect().stdout
    assert "usage: yrt inspect" in help_text and "--json" in help_text and "examples:" in help_text


def test_thread():
    code = (
        "import threading, time; threading.Thread(target=time.sleep, args=(1000,), daemon=True).start();"
        " print(flush=True); time.sleep(1000)"
    )
    with Sleeper(sys.executable, "-c", code) as target:
        target.process.stdout.readline()
        tid, = (int(t) for t in os.listdir(f"/proc/{target.pid}/task") if int(t) != target.pid)
        assert f"-p {target.pid}" in inspect("-p", tid).expect(yrt.USAGE).stderr


def test_permission():
    with Sleeper() as target:
        result = inspect("-p", target.pid, user=NOBODY, group=NOBODY, extra_groups=[]).expect(yrt.PERMISSION)
        assert "root" in result.stderr, result.stderr


def gcore(pid, path):
    subprocess.run(["gdb", "-nx", "-batch", "-p", str(pid), "-ex", f"generate-core-file {path}"], check=True,
                   capture_output=True, timeout=300)
    return path


def test_core():
    """Of a core the same as of the process; a file that was deleted is named with its build-id."""
    with tempfile.TemporaryDirectory(prefix="yrt-inspect-") as directory:
        program, core = os.path.join(directory, "sleeper"), os.path.join(directory, "core")
        shutil.copy("/bin/sleep", program)
        with Sleeper(program, "1000") as target:
            yrt.until(lambda: os.readlink(f"/proc/{target.pid}/exe") == program, "exec")
            pid, _ = target.pid, gcore(target.pid, core)
        wanted = re.search(r"Build ID: (\w+)", subprocess.check_output(["readelf", "-n", program], text=True))[1]
        states = {}
        for state in "here", "missing":
            told, = json.loads(inspect("--core", core, "--json").expect().stdout)["processes"]
            assert told["pid"] == pid and told["program"] == program, told
            states[state] = {f["path"]: (f["state"], f["build_id"]) for f in told["files"]}
            assert states[state].pop(program) == (state, wanted), told
            if state == "here":
                os.unlink(program)
        assert states["here"] == states["missing"] and len(states["here"]) >= 2, states
        text = inspect("--core", core).expect().stdout
        assert f"missing  {program}  build-id {wanted}\n" in text, text
        with Sleeper(sys.executable, "-c", "print(flush=True); input()") as target:
            target.process.stdout.readline()
            gcore(target.pid, core)
            live, = json.loads(inspect("-p", target.pid, "--json").expect().stdout)["processes"]
        dead, = json.loads(inspect("--core", core, "--json").expect().stdout)["processes"]
        assert dead["runtimes"] == live["runtimes"] and live["runtimes"], (live, dead)
    assert "excludes" in inspect("--core", core, "-p", 1).expect(yrt.USAGE).stderr


def test_several():
    """Of several processes those that are there are inspected; a note names one that is gone."""
    with Sleeper() as a, Sleeper() as b, Sleeper() as c:
        pass
    with Sleeper() as a, Sleeper() as b:
        several = inspect("-p", f"{a.pid},{c.pid},{b.pid}").expect()
        assert re.findall(r"^process (\d+)", several.stdout, re.M) == [str(a.pid), str(b.pid)], several.stdout
        assert f"note: there is no process {c.pid};" in several.stderr, several.stderr
        all_of = json.loads(inspect("-p", f"{a.pid},{c.pid}", "--json").expect().stdout)["processes"]
        assert [p["pid"] for p in all_of] == [a.pid], all_of


def test_output():
    with Sleeper() as target, open("/dev/full", "w") as full:
        done = subprocess.run(
            [yrt.YRT, "inspect", "-p", str(target.pid)], stdout=full, stderr=subprocess.PIPE, text=True
        )
        assert done.returncode == yrt.OUTPUT, done


def areas(vm_rows):
    return [tuple(int(word, 16) for word in r["value"].split("-")) for r in vm_rows if r["key"] == "code"]


def test_nginx():
    """
    A VM in the master and in each worker; machine code of traces is distinguished from that of regular expressions.
    """
    with servers.Nginx(workers=2) as nginx:
        yrt.busy_for(nginx.workers(), 0.5)  # traces are compiled
        wanted = [nginx.master.pid, *nginx.workers()]
        result = inspect("-p", nginx.master.pid, "-s", "--json").expect()
        processes = json.loads(result.stdout)["processes"]
        assert [p["pid"] for p in processes] == wanted
        text = inspect("-p", nginx.master.pid, "-s").expect().stdout
        first, *others = re.split(r"^(?=process )", text, flags=re.M)[1:]
        for other in others:  # what they have in common with the master is not shown again
            assert re.search(rf"\d+ rows: as of process {nginx.master.pid}$", other, re.M), other
            assert len(other.splitlines()) < len(first.splitlines()) / 2, text
        for process in processes:
            search, = sections(process, "search")
            vm, = sections(process, "vm")
            assert search["VMs"] == 1 and vm["JIT"] == "on", (search, vm)
            failed = [
                name for checks in sections(process, "checks") for name, value in checks.items() if value == "FAILS"
            ]
            assert not failed, (process["pid"], failed)
        worker = max(processes, key=lambda p: sections(p, "vm")[0]["traces"])
        vm, = sections(worker, "vm")
        rows, = [s["rows"] for s in worker["runtimes"][0]["sections"] if s["name"] == "vm"]
        assert vm["traces"] > 0 and vm["code areas"] > 0, vm
        size = sum(end - start for start, end in areas(rows))
        assert size == vm["bytes of code areas"], (rows, vm)
        yield f"worker {worker['pid']}: {vm['traces']} traces, {size} bytes of code areas, {vm['heap']} bytes of heap"


yrt.main(globals())
