# SPDX-License-Identifier: Apache-2.0
"""
Y programs on all processes (-a): what they count of two copies of fixtures/native/called.c is what each of these wrote,
whatever else the machine does.
"""

import os
import select
import signal
import subprocess
import time

import yrt
from ylang import LIMIT_S, serve

SOURCE = """
_map long n[int, _str]; _map long pids[int]; _map long by[_stack, int]; _map long said[int];
_probe syscall:write { pids[_pid]++; }
_probe syscall:write / (_pid == %d || _pid == %d) && $fd == 1 / {
	if (!said[_pid]++)
		printf("ready %%d %%d\\n", _pid, _tid);
	n[_pid, _str((char *)$buf, 14)]++;
	by[_stack, _pid]++;
}
_probe syscall:write:return / _pid == %d / { n[0, "returned"] += $return; }
_probe _end { _print(n); _print(by); _print(pids); }
"""
ORDERS = [107, 203, 107]


def test_two_processes():
    with yrt.Fixture("called", seconds=None, wait=False) as a, yrt.Fixture("called", seconds=None, wait=False) as b:
        pids = [a.pid, b.pid]
        y = subprocess.Popen([yrt.YRT, "y", "-a", "-e", SOURCE % (*pids, a.pid)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        said, end = "", time.monotonic() + LIMIT_S
        try:
            while said.count("ready") < 2:
                assert time.monotonic() < end and y.poll() is None, (said, y.poll() is not None and y.stderr.read())
                for fixture in (a, b):
                    serve(fixture, 0)
                if select.select([y.stdout], [], [], 0.05)[0]:
                    said += os.read(y.stdout.fileno(), 65536).decode()
            for many in ORDERS:
                serve(a, many)
            serve(b, 999)
            y.send_signal(signal.SIGINT)
            out, err = y.communicate(timeout=LIMIT_S)
        finally:
            yrt.stop(y, signal.SIGKILL)
        assert sorted(said.splitlines()) == sorted(f"ready {p} {p}" for p in pids), said
        counted, stacks = out[: out.index("by\n")], out[out.index("by\n"):out.index("pids\n")]
        rows = [line.rsplit(None, 1) for line in counted.splitlines()[1:]]
        n = {tuple(key.split(", ", 1)): int(value) for key, value in rows}
        for pid, served in ((a.pid, {"107": 2, "203": 1}), (b.pid, {"999": 1})):
            found = {text[-3:]: many for (p, text), many in n.items() if p == str(pid) and text[-3:].isdigit()}
            assert found == served, (n, err)
        heads = [line.split() for line in stacks.splitlines()[1:] if not line.startswith("    ")]
        assert sum(int(h[1]) for h in heads) == sum(v for (p, _), v in n.items() if p != "0"), (heads, n)
        others = {line.split()[0] for line in out[out.index("pids\n"):].splitlines()[1:]}
        assert {str(p) for p in pids} <= others and str(y.pid) not in others, others
        assert "lost" not in err and "0 ended by an error" in err, err
    yield "system calls of two processes, with their stacks; yrt itself is left out"


def test_without_a_process():
    for source, out in (("_probe _oneshot { _print(*(int *)4 ?? -1, _pid, _comm); }", "-1 0 \n"),
                        ("_probe _begin { _print(_sym((void *)4)); }", None)):
        done = subprocess.run([yrt.YRT, "y", "-a", "-e", source], capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == 0 and (out is None or done.stdout == out), done
    cases = [("_probe timer:1s { }", [], "in Y: _probe _timer(1s)"),
             ("_probe profile:99 { }", [], "in Y: _probe _profile(99)"),
             ("_probe kprobe:vfs_read { }", [], "functions of the kernel are not probed"),
             ("_probe serve { }", [], "functions belong to a process: -p PID or --select"),
             ("_probe _oneshot { _print(served); }", [], "has a name served"),
             ("_probe _oneshot { }", ["-p", str(os.getpid())], "-a is all processes"),
             ("_probe _oneshot { }", ["--types", yrt.YRT], "-a is all processes")]
    for source, options, said in cases:
        done = subprocess.run([yrt.YRT, "y", "-a", "-e", source, *options], capture_output=True, text=True,
                              timeout=LIMIT_S)
        assert done.returncode == yrt.USAGE and said in done.stderr, (source, done)
    done = subprocess.run([yrt.YRT, "y", "-a", "--check", "-e", "_probe syscall:read { _exit(); }"],
                          capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0 and "bpf: yes" in done.stdout, done
    yield f"{len(cases)} programs that need a process are refused"


yrt.main(globals())
