# SPDX-License-Identifier: Apache-2.0
"""
The CPU time that `yrt inspect` takes: a process with GiBs in use and TiBs reserved, one with many VMs, one with many
traces.
"""

import json
import os
import resource
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import yrt

GIB, VMS, TRACES = 4, 1000, 10000
LIBRARY = os.environ.get("YRT_LUAJIT", "libluajit-5.1.so.2")
RUNS = 3

MEMORY = f"""
import ctypes, sys
lua, libc = ctypes.CDLL({LIBRARY!r}), ctypes.CDLL(None)
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 4
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
for i in range({GIB}):
    libc.memset(libc.mmap(None, 1 << 30, 3, 0x22, -1, 0), 65, 1 << 30)
    lua.luaL_newstate()
libc.mmap(None, 1 << 40, 3, 0x4022, -1, 0)
print(flush=True)
sys.stdin.readline()
"""
MACHINES = f"""
import ctypes, sys
lua = ctypes.CDLL({LIBRARY!r})
lua.luaL_newstate.restype, lua.luaL_openlibs.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
for i in range({VMS}):
    lua.luaL_openlibs(lua.luaL_newstate())
print(flush=True)
sys.stdin.readline()
"""
MANY_TRACES = f"""
jit.opt.start("maxtrace=20000", "maxmcode=40960", "hotloop=2")
functions = {{}}
for i = 1, {TRACES} do
	functions[i] = loadstring("local s = " .. i .. " for i = 1, 60 do s = s + i end return s")
	functions[i]()
	functions[i]()
end
print() io.flush() io.read()
"""


def cpu_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(*command):
    """The best of some runs, in seconds, and the rows of all sections by name."""
    target = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        target.stdout.readline()
        times = []
        for _ in range(RUNS):
            start = cpu_of_children()
            out = subprocess.run(
                [yrt.YRT, "inspect", "-p", str(target.pid), "--json"], stdout=subprocess.PIPE, check=True
            )
            times.append(cpu_of_children() - start)
    finally:
        target.kill()
        target.communicate()
    runtime, = json.loads(out.stdout)["processes"][0]["runtimes"]
    return min(times), [(s["name"], {r["key"]: r["value"] for r in s["rows"]}) for s in runtime["sections"]]


def vms(sections):
    return [rows for name, rows in sections if name == "vm"]


failed = False
for what, limit, command, right in (
    (
        f"{GIB} VMs in {GIB} GiB in use, 1 TiB reserved",
        GIB * 0.3 + 1,
        (sys.executable, "-c", MEMORY),
        lambda s: len(vms(s)) == GIB,
    ),
    (f"{VMS} VMs", 2, (sys.executable, "-c", MACHINES), lambda s: len(vms(s)) == VMS),
    (f"{TRACES} traces", 0.3, ("luajit", "-e", MANY_TRACES), lambda s: vms(s)[0]["traces"] >= TRACES),
):
    seconds, sections = measure(*command)
    good = seconds <= limit and right(sections)
    failed |= not good
    print(
        f"{'ok  ' if good else 'over'} {what}: {seconds:.2f} s, limit {limit}"
        f" s{'' if right(sections) else '; not all found'}",
        flush=True,
    )
sys.exit(failed)
