# SPDX-License-Identifier: Apache-2.0
"""`yrt inspect` on LuaJIT: what it reads from outside is what Lua says inside."""

import json
import os
import re
import subprocess
import tempfile

import yrt

HOST = os.environ.get("YRT_LUA_HOST", yrt.fixture_path("lua_host")).split()
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "lua", "inspected.lua")
SLACK = 16384  # bytes that Lua allocates between counting its heap and waiting


class Inspected:
    """A host in which every VM has printed its facts and the first one waits."""

    def __init__(self, *arguments, vms=1):
        self.process = subprocess.Popen([*HOST, "-n", str(vms), SCRIPT, *map(str, arguments)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.process.stdin.write("\n" * vms)
        self.process.stdin.flush()
        self.facts = []
        for _ in range(vms):
            line = self.process.stdout.readline()
            assert line, "the host ended without a word"
            self.facts.append(json.loads(line))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        yrt.stop(self.process)


def inspect(pid):
    """The sections of the one runtime in a process: [(name, subject, {key: value}, {key: remark})]"""
    result = yrt.run("inspect", "-p", pid, "--json", output=False, stats=False).expect()
    process, = json.loads(result.stdout)["processes"]
    assert process["pid"] == pid and not process["notes"], process["notes"]
    runtime, = process["runtimes"]
    assert runtime["name"] == "luajit"
    return [(s["name"], s.get("subject"), {r["key"]: r["value"] for r in s["rows"]},
             {r["key"]: r.get("remark") for r in s["rows"]}) for s in runtime["sections"]]


def section(sections, name):
    found, = [values for n, _, values, _ in sections if n == name]
    return found


def vms(sections):
    found = [values for name, _, values, _ in sections if name == "vm"]
    assert section(sections, "search")["VMs"] == len(found)
    return found


def failed_checks(sections):
    found = [(subject, key, value) for name, subject, values, _ in sections if name == "checks"
             for key, value in values.items()]
    assert sum(value.startswith("ok") for _, _, value in found) >= 5, found
    return [check for check in found if check[2] == "FAILS"]


def mappings(pid, permissions):
    for line in yrt.read(f"/proc/{pid}/maps").splitlines():
        words = line.split(maxsplit=5)
        if words[1] == permissions and len(words) == 5:
            yield tuple(int(word, 16) for word in words[0].split("-"))


def compare(vm, facts):
    assert vm["JIT"] == ("on" if facts["on"] else "off"), (vm, facts)
    assert sorted(vm["optimisations"].replace("none", "").split()) == sorted(facts["flags"]), (vm, facts)
    assert vm["traces"] == facts["traces"], (vm, facts)
    assert abs(vm["heap"] - facts["heap"]) < SLACK, (vm, facts)


def check(*arguments):
    with Inspected(*arguments) as host:
        sections = inspect(host.pid)
        vm, = vms(sections)
        compare(vm, host.facts[0])
        assert vm["main thread"] == host.facts[0]["thread"], (vm, host.facts)
        assert vm["state"] in ("C function", "interpreter"), vm
        assert not failed_checks(sections), failed_checks(sections)
        return vm, host.facts[0], list(mappings(host.pid, "r-xp"))


def test_jit_on():
    vm, facts, code = check("on", 300)
    assert facts["traces"] >= 300
    assert vm["code areas"] >= 1 and 0 < vm["code of traces"] <= vm["bytes of code areas"], vm
    start, end = (int(word, 16) for word in vm["code"].split("-"))
    assert any(a <= start and end <= b for a, b in code), (vm, code)
    yield f"{facts['traces']} traces, {vm['bytes of code areas']} bytes of code areas, {vm['heap']} bytes of heap"


def test_jit_off():
    _, facts, _ = check("off")
    assert not facts["on"]


def test_fewer_optimisations():
    _, facts, _ = check("less")
    assert sorted(facts["flags"]) == ["cse", "dce", "fold"]


def test_flush():
    vm, _, _ = check("flush", 300)
    assert vm["traces"] == 0 and vm["code areas"] == 0


def test_closed():
    """VMs that were closed are not shown."""
    check("closed")


def test_several():
    for count in 3, 8:
        with Inspected("closed", 40, vms=count) as host:
            sections = inspect(host.pid)
            found = vms(sections)
            assert len(found) == count
            assert len({vm["main thread"] for vm in found}) == count
            facts = {f["thread"]: f for f in host.facts}
            assert len(facts) == count
            for vm in found:
                compare(vm, facts.pop(vm["running thread"]))


def test_layout():
    """Each offset says where it is from; the module is named."""
    with Inspected() as host:
        sections = inspect(host.pid)
        module, code = section(sections, "module"), section(sections, "code")
        assert module["version"].startswith("LuaJIT 2.1") and module["GC64"] in ("yes", "no"), module
        start, end = (int(word, 16) for word in code["range"].split("-"))
        lines = yrt.read(f"/proc/{host.pid}/maps").splitlines()
        holds = [line for line in lines if " r-xp " in line and int(line.split("-")[0], 16) <= start
                 and end <= int(line.split()[0].split("-")[1], 16)]
        assert len(holds) == 1 and holds[0].endswith(os.path.basename(module["file"])), (module, code, holds)
        (values, remarks), = [(values, remarks) for name, _, values, remarks in sections if name == "layout"]
        assert len(values) > 60 and values["global_State.gc.total"] and all(remarks.values()), (values, remarks)
        origins = {re.sub("^([0-9]+ )?(bytes?|names), ", "", remark) for remark in remarks.values()}
        assert "unknown" not in origins, remarks
        text = yrt.run("inspect", "-p", host.pid, output=False, stats=False).expect().stdout
        for part in (f"process {host.pid}  ", module["version"], "lua_State.glref", "luajit: vm 0x"):
            assert part in text, (part, text)
        assert all(re.search(rf"^    {re.escape(key)} ", text, re.M) for key in values)
    yield f"{module['version']}, GC64 {module['GC64']}: " + ", ".join(sorted(origins))


def test_refused():
    """What can not be read is named, with the reason; the process is one of native code then."""
    with Inspected() as host, tempfile.TemporaryDirectory() as dir:
        with open(os.path.join(dir, "wrong.layout"), "w") as f:
            f.write("runtime luajit\nlua_State.base nonsense\n")
        result = yrt.run(
            "inspect", "-p", host.pid, "--json", output=False, stats=False, env={"YRT_LAYOUTS": dir}
        ).expect()
        process, = json.loads(result.stdout)["processes"]
        assert process["runtimes"] == [] and any("wrong.layout" in n["message"] for n in process["notes"]), process
        text = yrt.run("inspect", "-p", host.pid, output=False, stats=False, env={"YRT_LAYOUTS": dir}).expect().stdout
        assert re.search(r"^  note: .*wrong\.layout", text, re.M) and "no language runtime" in text, text


yrt.main(globals())
