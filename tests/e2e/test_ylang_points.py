# SPDX-License-Identifier: Apache-2.0
"""
Points of the kernel in Y programs: system calls, tracepoints and the clock, with their arguments and stacks.
fixtures/native/called.c writes a line for each line of its input.
"""

import functools
import json
import os
import re
import select
import signal
import subprocess
import tempfile
import time

import go
import yrt
from ylang import LIMIT_S, probed

BEHIND = "long on; _probe serve { on = 1; }\n"  # what came before the first order does not count


def sleeps(pid):
    end = time.monotonic() + LIMIT_S
    while yrt.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[0] != "S":
        assert time.monotonic() < end, "the fixture never waits"
        time.sleep(0.01)


def serve(p, orders):
    """How many bytes the fixture wrote."""
    written = 0
    for many in orders:
        p.fixture.process.stdin.write(f"{many}\n")
        p.fixture.process.stdin.flush()
        written += len(p.fixture.process.stdout.readline())
    sleeps(p.fixture.pid)
    return written


def test_system_calls():
    with probed(BEHIND + """
_agg bytes; _agg results; _map long others[int]; _map long text[_str];
_probe syscall:write / on && $fd == 1 / { bytes <<< $count; text[_str((char *)$buf, 2)]++; }
_probe syscall:write:return / on / { results <<< $return; }
_probe syscall:read / on && $fd != 0 / { others[$fd]++; }
_probe _end { _print(_count(bytes), _sum(bytes), _count(results), _sum(results)); _print(text); _print(others); }
""") as p:
        written = serve(p, [100, 3, 2, 1])
        out, err = p.end()
    lines = out.splitlines()
    assert lines[0] == f"4 {written} 4 {written}", (out, err, written)
    assert [line.split() for line in lines[1:3]] == [["text"], ['{"', "4"]], out
    assert lines[3:] == ["others"], out
    assert ", 0 ended by an error" in err, err
    yield "arguments by name and results of system calls equal what was written"


def test_tracepoints():
    """Arguments by their names, and what they lead to in the kernel's memory."""
    with probed(BEHIND + """
_map long n[_str];
_probe tracepoint:raw_syscalls:sys_enter / on && $id == 1 / { n["writes"]++; n["same"] += $regs->orig_ax == _arg(1); }
_probe tracepoint:sched_switch / on / { n["switches"]++; n["of another"] += _str($prev->comm) != _comm; }
_probe tracepoint:sched_switch / on && !n["null"] / { n["null"]++; int x = ((struct item *)$preempt)->price; }
""") as p:
        serve(p, [100, 3, 2, 1])
        out, err = p.end()
    n = dict(line.rsplit(None, 1) for line in out.splitlines()[1:])
    assert n["writes"] == n["same"] == "4" and int(n["switches"]) > 0 and n["of another"] == "0", out + err
    assert n["null"] == "1" and "1 ended by an error" in err and "absent at 0x8" in err, (out, err)
    yield "tracepoints have arguments, and read the kernel's structures and the target's"


def test_lines():
    """A line's code is counted as often as it runs: once a call, in a loop, where a jump leads, in two functions."""
    with probed("""
_map long n[_str];
_probe called.c:43 { n["serve"]++; }
_probe called.c:36 { n["items"]++; }
_probe native/called.c:59 { n["twice"]++; }
_probe _end { _print(n); }
""") as p:
        serve(p, [100, 3, 2, 1])
        out, err = p.end()
    n = dict(line.split() for line in out.splitlines() if " " in line)
    calls = 100 + 3 + 2 + 1
    items = sum(3 - i % 2 for many in (100, 3, 2, 1) for i in range(many))
    assert n == {"serve": str(calls), "items": str(items), "twice": str(2 * calls)}, (out, err)
    yield f"{items} rounds of a loop"


def line_of(source, text):
    return 1 + next(i for i, line in enumerate(source.splitlines()) if text in line)


def test_variables_in_lines():
    """Parameters, locals and what they lead to where a line begins, in code that is not optimised."""
    path = os.path.join(yrt.SOURCE, "fixtures", "native", "called.c")
    at = functools.partial(line_of, yrt.read(path))
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        plain = os.path.join(directory, "plain")
        subprocess.run(["gcc", "-g", "-O0", "-pthread", "-o", plain, path], check=True, timeout=LIMIT_S)
        with probed(f"""
long prices, sums, numbers, many, flags, whole, n;
_probe called.c:{at("sum += i->price")} {{ prices += $i->price; sums += $sum; }}
_probe called.c:{at("served++")} {{ numbers += $order->number; many += $many; flags += $flag; }}
_probe called.c:{at("by_status[order.status")} {{ whole += $order.status; n = $n; }}
_probe _end {{ _print(prices, sums, numbers, many, flags, whole, n); }}
""", fixture=plain) as p:
            p.serve(300)
            out, err = p.end()
    expected = [150 * (22 + 17), 150 * (5 + 25 + 20), sum(range(300)), sum(i % 4 for i in range(300)),
                sum(i % 256 for i in range(300)), 60 * (200 + 200 + 404 + 200 + 500), 300]
    assert out.split() == [str(x) for x in expected], (out, expected, err)
    yield "variables in registers or the frame, a structure of the frame, what they lead to"


def test_as_bpftrace_has_them():
    """The kernel's names of points and arguments; its types by name, of addresses of its own and of the target's."""
    with probed(BEHIND + """
_map long n[_str]; _map _str s[_str];
_probe tracepoint:syscalls:sys_enter_write / on / {
	struct iovec *pair = (struct iovec *)$buf;
	n["bytes"] += $count;
	n["same"] += (long)pair->iov_base == *(long *)$buf;
	s[_str(_arg(1), 9)] = _str((long)$buf, 1);
}
_probe tracepoint:syscalls:sys_exit_write / on / { n["written"] += $return; }
_probe uretprobe:twice / on && $return < 4 / { n["twice"] += $return; }
_probe tracepoint:sched:sched_switch / on && !n["null"] / {
	struct task_struct *t = $prev;
	n["leader"] = ((struct task_struct *)(long)t->group_leader)->tgid == t->tgid && TASK_COMM_LEN == 16;
	s["comm"] = _str((long)t->comm);
	n["null"]++;
	n["of null"] = ((struct task_struct *)0x10)->pid;
}
_probe _end { _print(n); _print(s); }
""") as p:
        written = serve(p, [100, 3, 2, 1])
        out, err = p.end()
    n = dict(line.rsplit(None, 1) for line in out.splitlines() if " " in line)
    assert n["bytes"] == n["written"] == str(written) and n["same"] == "4" and n["leader"] == "1", out + err
    assert n["twice"] == str(3 * (0 + 2 + 2) + (0 + 2)), out
    assert n['{"served"'] == "{" and n["comm"] == "called", out
    assert "of null" not in n and "absent at 0x" in err, (out, err)
    yield "points, arguments and types of the kernel by their names"


def test_who():
    """System calls by name; the thread's user and cgroup."""
    with probed(BEHIND + """
_map long n[long]; _map long who[unsigned, unsigned]; long inside, calls;
_probe tracepoint:raw_syscalls:sys_enter / on && ($id == 0 || $id == 1) / { n[$id]++; }
_probe syscall:write / on / { who[_uid, _gid]++; calls++; inside += _cgroup == _cgroupid("/sys/fs/cgroup%s"); }
_probe _end {
	_foreach (id : many _in n) printf("%%s %%d\\n", _syscall(id), many);
	_print(who);
	_print(calls - inside, _syscall(-1), _syscall(1 << 20));
}
""" % cgroup()) as p:
        serve(p, [100, 3, 2, 1])
        out, err = p.end()
    assert out.splitlines() == ["read 4", "write 4", "who", f"{os.getuid()}, {os.getgid()}  4", "0  "], out + err
    yield "calls by name, and whose they are"


def cgroup():
    """The path of this process's cgroup (version 2), and so of its children's."""
    path = yrt.read("/proc/self/cgroup").split("0::")[1].splitlines()[0]
    return "" if path == "/" else path


def test_stacks():
    with probed(BEHIND + """
_map long n[_stack, int];
_probe syscall:write / on / { n[_stack, $fd]++; }
""") as p:
        serve(p, [100, 3, 2, 1])
        out, err = p.end()
    heads = [line.split() for line in out.splitlines()[1:] if not line.startswith("    ")]
    frames = [line.strip() for line in out.splitlines() if line.startswith("    ")]
    assert heads and all(h[0] == "1" for h in heads) and sum(int(h[1]) for h in heads) == 4, out + err
    assert "main" in frames and "do_syscall_64" in frames and not any(f.startswith("bpf_") for f in frames), out
    with probed(BEHIND + """
_map long u[_ustack]; _agg k[_kstack]; _map long none[_kstack];
_probe syscall:write / on / { u[_ustack]++; }
_probe syscall:write / on / { k[_kstack] <<< 2; }
_probe price_of / on / { none[_kstack]++; }
""") as p:
        serve(p, [3, 2])
        out, err = p.end()
    u, k, none = (part.split() for part in re.split("^(?:u|k .*|none)\n", out, flags=re.M)[1:])
    assert u[0] == k[0] == "2" and k[1] == "4" and none == ["5", "[none]"], out + err
    assert "main" in u and "do_syscall_64" not in u and u[-1] == "_start", out
    assert "main" not in k and k[-1].startswith("entry_SYSCALL_64"), out
    yield "kernel and native frames of a system call, without the probe's own; each part alone"


def test_go():
    """Go's convention, results, and variables of a package."""
    source = """
long n, wrong, before;
_probe main.beat { wrong += _arg(0) != $n || _arg(1) != 2 || main.beats != $n; before = $n; n++; }
_probe main.beat:return { wrong += n && $return != before + 2; if (n == 3) _exit(); }
_probe _end { _print(n, wrong, main.beats > 3, sizeof(struct runtime.stack), offsetof(struct runtime.stack, hi)); }
"""
    p = subprocess.Popen([go.build("pulse")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        p.stdout.readline()
        done = subprocess.run([yrt.YRT, "y", "-e", source, "-p", str(p.pid)], capture_output=True, text=True,
                              timeout=LIMIT_S)
        assert done.stdout == "3 0 1 16 8\n", done
    finally:
        yrt.stop(p, signal.SIGKILL)
    yield "arguments by number and name, a result, a variable, a type"


def test_profile():
    """-o: the map's counts by stack as folded stacks, which add up to it."""
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        path = os.path.join(directory, "x.folded")
        with probed("_map long n[_stack]; _probe serve { n[_stack] += $many; } _probe price_of { n[_stack]++; }",
                    options=["-o", path]) as p:
            p.serve(1000)
            out, err = p.end()
        rows = dict(line.rsplit(" ", 1) for line in yrt.read(path).splitlines())
        found = {stack.rpartition(";")[2]: int(n) for stack, n in rows.items()}
        assert found == {"serve": sum(i % 4 for i in range(1000)), "price_of": 1000}, (rows, out, err)
        assert all("main;serve" in stack for stack in rows), rows
        for source, options, said in (("_map long n[int];", ["-o", path], "the program has none"),
                                      ("_map long a[_stack]; _map long b[_stack];", ["-o", path], "the program has 2"),
                                      ("_map long a[_stack];", ["-o", path, "--format", "x"], "no format")):
            with yrt.Fixture("called", seconds=None, wait=False) as f:
                done = subprocess.run([yrt.YRT, "y", "-e", source + "_probe serve { }", "-p", str(f.pid), *options],
                                      capture_output=True, text=True, timeout=LIMIT_S)
                assert done.returncode == yrt.USAGE and said in done.stderr, done
    yield "a map by stack as a profile"


def test_json():
    """--json: an object a line, of what the VM and probes print."""
    with probed("""
_map long n[_str, short]; _map long by[_stack]; _agg a[short]; _agg all;
_probe serve { n[_str($order->customer), $order->status]++; by[_stack]++; a[$order->status] <<< $many; all <<< $many; }
_probe serve / $order->number == 2 / { printf("a \\"%s\\"\\n", $order->customer); }
_probe _end { _print(n); _print(by); _print(a); _hist(a); _print(all); }
""", options=["--json"]) as p:
        truth = p.serve(60)
        out, err = p.end()
    said = [json.loads(line) for line in out.splitlines()]
    text = [o["data"] for o in said if o["kind"] == "text"]
    assert text[0] == "ready\n" and text.count('a "cy"\n') == 1, (text, err)
    n, by, a, whole = (o for o in said if o["kind"] == "table")
    assert n["title"] == "n" and n["keys"] == 2 and n["columns"] == ["value"], n
    assert sum(row[2] for row in n["data"]) == 60 and ["ada", 404] in [row[:2] for row in n["data"]], n
    (stack, count), = by["data"]
    assert stack[-2:] == ["main", "serve"] and count == 60, by
    assert [row[:2] for row in a["data"]] == [[200, truth["by_status"][0]], [404, 12], [500, 12]], (a, truth)
    assert whole["data"] == [[60, 90, 0, 3, 1]] and whole["columns"][0] == "count", whole
    histograms = {o["key"][0]: o["data"] for o in said if o["kind"] == "histogram"}
    assert sum(many for _, _, many in histograms[200]) == 36 and histograms[200][0][:2] == [0, 1], histograms
    yield f"{len(said)} objects"


def test_clock():
    """Only the target's threads are seen; whether a tick comes is a matter of time, so it is waited for."""
    with probed("""
long said; _map long who[_str]; _map long where[_stack];
_probe _profile(997) { who[_comm]++; where[_stack]++; }
_probe begin_serving / !said && who["called"] / { said = 1; printf("ticked\\n"); }
""") as p:
        end = time.monotonic() + LIMIT_S
        while "ticked" not in p.before:
            assert time.monotonic() < end, "no tick"
            p.serve(500000)
            p.look()
        out, err = p.end()
    assert "called" in out and "    main\n" in out, out + err
    who = out.split("who\n")[1].split("where")[0].split()
    assert who[0] == "called" and len(who) == 2 and int(who[1]) > 0, out
    yield "ticks of the target's threads, with their stacks"


NOTED = r"""
#include <stdio.h>
/* A note as <sys/sdt.h> writes it. */
#define NOTE(name, operands, ...) __asm__ volatile( \
	"990: nop\n.pushsection .note.stapsdt,\"?\",\"note\"\n.balign 4\n.4byte 992f-991f, 994f-993f, 3\n" \
	"991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b, _.stapsdt.base, 0\n" \
	".asciz \"shop\"\n.asciz \"" name "\"\n.asciz \"" operands "\"\n994: .balign 4\n.popsection\n" :: __VA_ARGS__)
__asm__(".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n.weak _.stapsdt.base\n"
	".hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n.popsection");
struct { long a; int b; } pair = {7, -9};
int main(void)
{
	for (int c, i = 0; (c = getchar()) != EOF;) {
		if (c != 'x') { puts("told"); fflush(stdout); continue; }
		i++;
		NOTE("sold", "-4@%0 8@%1 1@$5 -4@8(%2) 8@(%2)", "r"(-i), "r"("apple"), "r"(&pair));
		NOTE("sold", "-4@$-100 8@%1 -2@%w0 -1@%b0 8@%2", "r"(i), "r"("pear"), "r"(-1L));
	}
	return 0;
}
"""


def test_usdt():
    """Arguments by the notes of two places that have them elsewhere."""
    source = """
_agg first; _map long n[_str]; _agg rest; long said;
_probe usdt:shop:sold { first <<< _arg(0); n[_str((char *)_arg(1))]++; rest <<< _arg(2) + 1000 * _arg(3) + 1000000 * _arg(4);
	if (!said++) printf("ready\\n"); }
_probe _end { _print(n); _print(rest); _print(first); }
"""
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        program = os.path.join(directory, "noted")
        subprocess.run(["gcc", "-O1", "-xc", "-", "-o", program], input=NOTED, text=True, check=True)
        with yrt.Program([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p, yrt.Program(
                [yrt.YRT, "y", "-e", source, "-p", str(p.pid)], stdout=subprocess.PIPE, text=True) as y:
            sold, end = 0, time.monotonic() + LIMIT_S
            while not select.select([y.stdout], [], [], 0.05)[0]:
                assert time.monotonic() < end, "no probe was hit"
                p.stdin.write("x.")
                p.stdin.flush()
                p.stdout.readline()
                sold += 1
            y.send_signal(signal.SIGINT)
            out = y.communicate(timeout=LIMIT_S)[0]
            for bad, said in (("usdt:shop:sold { _print(_arg(5)); }", "has 5 arguments"),
                              ("usdt:shop:sold:return { }", "has no return")):
                done = subprocess.run([yrt.YRT, "y", "-e", "_probe " + bad, "-p", str(p.pid)], capture_output=True,
                                      text=True, timeout=LIMIT_S)
                assert done.returncode in (yrt.USAGE, yrt.UNSUPPORTED) and said in done.stderr, done
    lines = [line.split() for line in out.splitlines()]
    n = {words[0]: int(words[1]) for words in lines[2:4]}
    assert lines[0] == ["ready"] and lines[1] == ["n"] and 1 <= n["apple"] == n["pear"] <= sold, out
    assert int(lines[5][3]) == 5 - 9000 + 7000000, (out, "the largest: a constant, and two words of memory")
    last = sold - n["apple"] + 1, sold  # those that were seen
    assert int(lines[7][1]) == -100 * n["pear"] - sum(range(last[0], last[1] + 1)), (out, sold)
    yield f"{2 * n['pear']} hits with five arguments each"


def test_refused():
    cases = [
        ("_probe syscall:opena { }", "no system call opena; near names: open"),
        ("_probe syscall:read { _print($nothing); }", "system call read has no argument nothing"),
        ("_probe syscall:read:return { _print($fd); }", "its arguments are gone"),
        ("_probe syscall:read { _print(_arg(6)); }", "read has 6 arguments"),
        ("_probe syscall:read { _print($return); }", "only a return has it"),
        ("_probe tracepoint:sched_swich { }", "this kernel has no tracepoint sched_swich; near names: sched_switch"),
        ("_probe tracepoint:syscalls:sys_enter_opena { }", "no system call opena; near names: open"),
        ("_probe syscall:read { _print($x); }", "(it has: fd, buf, count)"),
        ("_probe syscall:read { struct task_structs *t = 0; }", "the target has no struct task_structs"),
        ("_probe _oneshot { struct task_struct *t = 0; }", "the target has no struct task_struct"),
        ("_probe tracepoint:sched_switch { _print($nobody); }", "has no argument nobody"),
        ("_probe tracepoint:sched_switch { _print($prev->nothing); }", "struct task_struct has no member 'nothing'"),
        ("_probe _profile(9) { _print(_arg(0)); }", "a tick of the clock has no arguments"),
        ("_probe _profile(0) { }", "_profile needs a rate"),
        ("_probe called.c:40 { }", "called.c:40: no code begins in this line; the next one that has is 42"),
        ("_probe alled.c:43 { }", "alled.c:43: no debug information has code of this file from that line on"),
        ("_probe called.c:43 { _print(_arg(0)); }", "registers hold other things in a line"),
        ("_probe called.c:43 { _print($manny); }", "no variable manny is in scope at 0x"),
        ("_probe _oneshot { _print(_uid); }", "_uid is of a thread: a probe has it"),
        ("_probe syscall:read / _cgroup == _cgroupid(\"/nope\") / { }", "there is no cgroup /nope"),
        ("_map long n[_stack]; _probe serve { n[_ustack]++; }", "the key has type _stack, this has type _ustack"),
        ("_map long n[_str]; _probe tracepoint:sys_enter { n[_syscall($id)]++; }",
         "take _syscall of the keys in _timer"),
    ]
    with yrt.Fixture("called", seconds=None, wait=False) as f:
        for source, message in cases:
            done = subprocess.run([yrt.YRT, "y", "-e", source, "-p", str(f.pid)], capture_output=True, text=True,
                                  timeout=LIMIT_S)
            assert done.returncode in (yrt.USAGE, yrt.UNSUPPORTED) and message in done.stderr, (source, done)
    yield f"{len(cases)} programs are refused by what they ask"


yrt.main(globals())
