# SPDX-License-Identifier: Apache-2.0
"""
Probes of Y programs: what they count and print equals the account of the program that is probed. fixtures/native/called.c
serves as many orders as each line of its input says.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import ylang
import yrt
from ylang import LIMIT_S, READY, probed

KERNELS = [{}, {"YRT_NO_MULTI": "1"}, {"YRT_NO_SLEEPABLE": "1"}]  # as older ones have it


def test_counts():
    for env in KERNELS:
        with probed("_agg by[short]; _agg number; _probe serve { by[$order->status] <<< $many; number <<< $order->number; }"
                    " _probe _end { _print(by); _print(number); }", env=env) as p:
            truth = p.serve(1000)
            out, err = p.end()
        rows = [line.split() for line in out.splitlines()]
        ok, missing, failed = truth["by_status"]
        assert [(r[0], int(r[1])) for r in rows[1:4]] == [("200", ok), ("404", missing), ("500", failed)], out + err
        assert sum(int(r[2]) for r in rows[1:4]) == sum(i % 4 for i in range(1000)), out
        assert rows[5] == ["1000", "499500", "0", "999", "499"], out
        assert ", 0 ended by an error" in err, err
    yield "aggregates equal the program's account, as this kernel and older ones place and read"


def test_steps():
    with probed("""_agg far; _agg near[short];
_probe serve { far <<< (long)$order->number - 10; near[$order->status] <<< $many; }
_probe _end { _lhist(far, 0, 256, 1); _lhist(near, -5, 1, 3); }
""") as p:
        truth = p.serve(1000)
        out, err = p.end()
    far, near = out.split("near", 1)
    rows = [line.split("|")[0].rsplit(None, 1) for line in far.splitlines()[1:]]
    ranges = ["(..., 0)", *(f"[{i}, {i + 1})" for i in range(256)), "[256, ...)"]
    assert [r[0].strip() for r in rows] == ranges, far + err
    assert [int(r[1]) for r in rows] == [10, *[1] * 256, 734], far
    ok = near.split("near[", 1)[0].splitlines()[1:]
    assert [line.split("|")[0].split()[-1] for line in ok] == [str(sum(i % 5 in (0, 1, 3) and i % 4 == 0
                                                                       for i in range(1000))),
                                                               str(sum(i % 5 in (0, 1, 3) and i % 4 > 0
                                                                       for i in range(1000)))], (near, truth)
    yield "histograms by equal steps"


def test_values():
    """Strings, lists, functions, parameters in registers and on the stack, predicates."""
    with probed("""
_map long n[_str];
long takings;
int sum(struct item *i) { int s = 0; for (; i; i = i->next) s += i->price; return s; }
_probe serve { n[_str($order->customer)]++; takings += (long)sum($order->items) * $many; }
_probe serve / $order->number < 3 / { printf("%s %d %u %d\\n", $order->customer, $many, $flag, sum($order->items)); }
_probe seven / $g == 8 / { _print(_arg(0), _arg(5), _arg(6), $g); }
_probe serve:return / $return < 0 / { n["failed"]++; }
_probe _end { _print(n); _print(takings); }
""") as p:
        truth = p.serve(1000)
        out, err = p.end()
    lines = out.splitlines()
    assert sorted(lines[:4]) == ["1 6 8 8", "ada 0 0 22", "bob 1 1 17", "cy 2 2 22"], out + err
    table = dict(line.split() for line in lines[5:9])
    assert table == {"ada": "334", "bob": "333", "cy": "333", "failed": str(truth["failures"])}, out
    assert lines[9] == str(truth["takings"]), (out, truth)
    yield "strings, lists, parameters, returns and globals"


def test_errors():
    """A read that fails ends a handler, or is handled there, and is counted by place."""
    with probed("""_map long n[int];
_probe serve { n[1]++; int x = $order->number % 2 ? ((struct order *)0x18)->status : 0; n[2]++; }
_probe serve { int x = ((struct order *)0x18)->status ?? -7; n[x]++;
	_try { long y = 1 / ($order->number - $order->number); } _catch { n[100 + _status]++; } }
""") as p:
        p.serve(100)
        out, err = p.end()
    table = dict(line.split() for line in out.splitlines()[1:])
    assert table == {"1": "100", "2": "50", "-7": "100", "105": "100"}, out
    assert "fault at 0x28; it ended the handler 50 times" in err and "50 ended by an error" in err, err
    yield "errors end handlers or are handled, and are counted"


def test_loops_end():
    with probed("""_map long n[int];
_probe serve { n[0]++; int i = 0; while (1) i++; }
_probe serve { int i = 0; for (int a = 0; a < 3; a++) for (int b = 0; b < 3; b++) if (a != b) i++; n[i]++; }
""") as p:
        p.serve(20)
        out, err = p.end()
    assert dict(line.split() for line in out.splitlines()[1:]) == {"0": "20", "6": "20"}, out + err
    assert "limit; it ended the handler 20 times" in err, err
    yield "a loop without an end has one"


def test_exit_and_timer():
    with probed("""_map long n[int];
_probe serve { n[1]++; if ($order->number == 9) _exit(); }
_probe _end { _print(n[1]); }
""") as p:
        p.serve(50)
        out, err = p.y.communicate(timeout=LIMIT_S)
    assert out.splitlines()[-1] == "10", out + err
    with probed("""_map long n[int]; long seen;
_probe serve { n[1]++; }
_probe _timer(10ms) { if (n[1] == 50) { seen = n[1]; _clear(n); _exit(); } }
_probe _end { _print(seen, n[1]); }
""") as p:
        p.serve(50)
        out, err = p.y.communicate(timeout=LIMIT_S)
    assert out.splitlines()[-1] == "50 0", out + err
    yield "_exit ends the run at once; a timer sees and clears what probes count"


LOSSLESS = [  # each counts all calls, whatever its timer does meanwhile
    "_map long n[int]; _probe serve { n[1]++; } _probe _timer(1ms) { all += n[1]; _clear(n); } "
    "_probe _end { _print(all + n[1]); }",
    "_map long n[int]; _probe serve { n[1] += 1; } _probe _timer(1ms) { if (all) _delete(n[1]); } "
    "_probe _end { _print(n[1]); }",
    "_agg n[int]; _probe serve { n[1] <<< 1; } _probe _timer(1ms) { all += _sum(n[1]); _clear(n); } "
    "_probe _end { _print(all + _sum(n[1])); }",
    "_map long n[_stack]; _probe serve { n[_stack]++; } _probe _timer(1ms) { _foreach (k : v _in n) all += v; "
    "_clear(n); } _probe _end { _foreach (k : v _in n) all += v; _print(all); }",
    "long n[2]; _probe serve { n[0]++; } _probe _timer(1ms) { n[1]++; } _probe _end { _print(n[0]); }",
    "_map long n[int]; _probe serve { if (n[1]++ < 0) all++; } _probe _timer(1ms) { n[1] += 1000000; } "
    "_probe _end { _print(n[1] % 1000000); }",
]


def test_timers_lose_no_hit():
    calls, rounds = 5000, 4
    for source in LOSSLESS:
        with probed("long all;\n" + source) as p:
            for _ in range(rounds):
                p.serve(calls)
            out, err = p.end()
        assert out == f"{calls * rounds}\n", (source, out, err)
        assert "lost" not in err and "not handled" not in err, err
    yield f"{len(LOSSLESS)} programs count {calls * rounds} calls beside a timer of 1 ms that changes what they count"


def test_threads_lose_no_hit():
    """Threads on all CPUs add to the same elements, variable and entries of a map."""
    calls, threads, parts = 20000, 8, 4
    with probed("""long n[5], all; unsigned char small[4]; _map long m[int];
_probe crowd { n[$n % 4]++; n[4] += 3; all++; small[$n % 4] -= 3; m[(int)($n % 4)]++; }
_probe _timer(1ms) { n[4] += 0; small[0] += 256; }
_probe _end { for (int i = 0; i < 4; i++) _print(n[i], m[i], small[i]); _print(n[4], all); }
""") as p:
        p.serve(f"{calls} {threads}")
        out, err = p.end()
    each = calls * threads // parts
    expected = f"{each} {each} {-3 * each % 256}\n" * parts + f"{3 * calls * threads} {calls * threads}\n"
    assert out == expected and "lost" not in err and "not handled" not in err, out + err
    yield f"{threads} threads with {calls} calls each: elements of arrays, a variable and a map have them all"


def test_returns():
    """relay() ends by a jump to twice(), which others call, too."""
    with probed("""long all, calls;
_probe relay:return { all += $return; calls++; }
_probe _end { _print(calls, all); }
""") as p:
        p.serve(100)
        out, err = p.end()
    assert out.splitlines() == [f"100 {sum(2 * (i + 1) for i in range(100))}"], out + err
    with probed("#define FUNC serve\n" + yrt.read(os.path.join(yrt.SOURCE, "library", "func-latency.y"))) as p:
        p.serve(200)
        out, err = p.end()
    assert out.split()[0] == "200", out + err
    yield "returns, also by a jump; func-latency"


def test_stacks():
    with probed("""_agg by[_stack]; _map long n[int, _stack];
_probe price_of { by[_stack] <<< 5; }
_probe seven { n[$a, _stack]++; }
_probe _end { _print(by); _print(n); _foreach (s : v _in by) printf("%s %d\\n", s, v); }
""") as p:
        p.serve(1000)
        out, err = p.end()
    lines = out.splitlines()
    rows = [line.split() for line in lines]
    assert rows[1] == ["1000", "5000", "5", "5", "5"] and rows[2:5] == [["price_of"], ["serve"], ["main"]], out + err
    assert ["1", "1000"] in rows and rows[rows.index(["1", "1000"]) + 1:][:2] == [["seven"], ["main"]], out
    assert lines[-1].endswith(";main;serve;price_of 5000"), out
    yield "counts by stack, with another key, and as text"


def test_which_of_several():
    """The place of a hit, as a key and by name; also of each function of a pattern."""
    with probed("""_map long n[long]; _map long pattern[long];
_probe serve, price_of, twice { n[_ip]++; }
_probe called:t*e { pattern[_ip]++; }
_probe _end {
	_foreach (p : v _in n) printf("%s %d\\n", _sym(p), v);
	_foreach (p : v _in pattern) printf("pattern %s %d\\n", _sym(p), v);
}
""") as p:
        p.serve(100)
        out, err = p.end()
    assert sorted(out.splitlines()) == ["pattern twice 200", "price_of 100", "serve 100", "twice 200"], out + err
    yield "three functions, and a pattern"


def test_strings_beside_a_stack():
    """A string, whose text a key has whole; one of more than 64 bytes is lost, and counted as such."""
    with probed("""_map long n[_str, _ustack, short]; _map long long_ones[_str, _stack];
_probe serve { n[_str($order->customer), _ustack, $order->status]++; }
_probe price_of { long_ones[_cat(_str($order->customer), "-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"), _stack]++; }
_probe _end { _foreach (who, stack, status : v _in n) printf("%s %d %d %s\\n", who, status, v, stack); _print(long_ones); }
""") as p:
        p.serve(1500)
        out, err = p.end()
    rows = {tuple(line.split()[:3]) for line in out.splitlines() if line.endswith(";main;serve")}
    wanted = {(who, status, many) for who in ("ada", "bob", "cy")
              for status, many in (("200", "300"), ("404", "100"), ("500", "100"))}
    assert rows == wanted, out + err
    assert re.search(r"^cy-x{61}  500$", out, re.M) and "ada-x" not in out, out + err
    assert "1000 updates of full maps lost" in err, err
    yield "text beside stacks"


STARTED = (
    "_probe _end { } int started_; "
    "_probe _timer(5ms) { if (!started_) { started_ = 1; printf(\"started\\n\"); } }\n"
)
REFUSED = {  # what a probe cannot do, of tests/ylang
    "_foreach", "regular expressions", "functions that call themselves", "the order of strings",
    "what an aggregate has so far, as each CPU has a part of it", "conversions of floating-point numbers",
    "arithmetic with floating-point numbers", "clearing a whole map", "_sym",
}


def asked(source):
    """What a program prints whose handler runs at the only call of add(), at the target's end."""
    with yrt.Fixture("asked", seconds=None, wait=False) as f:
        y = subprocess.Popen(
            [yrt.YRT, "y", "-e", source + STARTED, "-p", str(f.pid), "--max-steps", "110000", "--max-hit", "1000"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        try:
            before = ""
            while (line := y.stdout.readline()) not in ("", "started\n"):
                before += line
            f.process.stdin.close()
            f.process.stdin = None
            out, err = y.communicate(timeout=LIMIT_S)
        finally:
            yrt.stop(y, signal.SIGKILL)
    return before + out, err


def test_conformance():
    """The cases of tests/ylang print the same as in the VM, or are refused for one of REFUSED."""
    same, reasons = 0, set()
    for case in ylang.cases():
        if case.refused or "_oneshot" not in case.source or "_timer" in case.source:
            continue
        out, err = asked(case.source.replace("_probe _oneshot", "_probe add"))
        refused = re.search("a probe cannot do this: (.*)", err)
        if refused:
            reasons.add(refused[1])
            continue
        assert out == case.out, f"{case.name}\n{case.source}\n{out}\n--- not\n{case.out}\n{err}"
        same += 1
    assert reasons <= REFUSED, reasons - REFUSED
    assert same >= 40, same
    yield f"{same} programs print in the kernel what they print in the VM; others: {sorted(reasons)}"


def test_c_is_the_oracle():
    """Random expressions in the kernel, as gcc -fwrapv computes them: fifty in each of so many probes of a function."""
    seed, many = int(os.environ.get("YRT_SEED", "11")), int(os.environ.get("YRT_EXPRESSIONS", "1000"))
    with ylang.expressions(seed, many) as (p, truth, parts, directory):
        source, names = ylang.functions(parts)
        path = os.path.join(directory, "e.y")
        with open(path, "w", encoding="utf-8") as f:
            probes = (f"_probe hit {{ {name}(); if (++ended == {len(names)}) _exit(); }}\n" for name in names)
            f.write("long ended;\n" + source + "".join(probes))
        told = os.path.join(directory, "out"), os.path.join(directory, "err")
        with open(told[0], "w", encoding="utf-8") as out, open(told[1], "w", encoding="utf-8") as err:
            y = subprocess.Popen([yrt.YRT, "y", path, "-p", str(p.pid)], stdout=out, stderr=err)
        end = time.monotonic() + 2 * LIMIT_S
        while y.poll() is None and time.monotonic() < end:
            p.stdin.write("x")  # hit() is called, whether the probes are placed or not yet
            p.stdin.flush()
            time.sleep(0.02)
        yrt.stop(y, signal.SIGKILL)
        done = subprocess.CompletedProcess(y.args, y.returncode, yrt.read(told[0]), yrt.read(told[1]))
    ylang.equal(seed, parts, truth, done)
    yield f"{many} expressions in {len(names)} probes"


ALLOWED = {"map_lookup_elem", "map_update_elem", "map_delete_elem", "ktime_get_ns", "ringbuf_output", "tail_call",
           "get_smp_processor_id", "get_ns_current_pid_tgid", "get_attach_cookie", "get_current_pid_tgid",
           "get_current_comm", "get_current_task", "get_current_uid_gid", "get_current_cgroup_id", "probe_read_user",
           "probe_read_kernel", "probe_read_user_str", "probe_read_kernel_str",
           "copy_from_user", "iter_num_new", "iter_num_next", "iter_num_destroy"}


def test_helpers():
    """Each case as a probe calls nothing but readers, maps, clocks and the ring: nothing that writes or signals."""
    seen, programs = set(), 0
    by_stack = "_map long n[_stack]; "
    more = [by_stack + "_probe tracepoint:sched_switch { _print($prev->comm[0]); n[_stack]++; }",
            "_probe syscall:read:return { _print($return, _str((char *)0), _comm, _tid, _cpu, _ns, _wall); }",
            "_probe syscall:read { _print(_uid, _gid, _cgroup); }",
            by_stack + "_probe _profile(9) { n[_stack]++; }", by_stack + "_probe add { n[_stack]++; }"]
    sources = [c.source.replace("_probe _oneshot", "_probe add") for c in ylang.cases() if not c.refused] + more
    with yrt.Fixture("asked", seconds=None, wait=False) as f:
        for source in sources:
            done = ylang.run("-e", source, "-p", f.pid, "--emit", "bpf")
            called = set(re.findall(r"call bpf_(\S+)", done.stdout))
            assert called <= ALLOWED and "?" not in "".join(called), (source, called - ALLOWED)
            seen |= called
            programs += bool(called)
    assert programs >= 50, programs
    assert {"tail_call", "copy_from_user", "probe_read_kernel", "iter_num_next"} <= seen, seen
    yield f"{programs} programs call {len(seen)} helpers, all of the list"


def test_listing_and_check():
    """Only the helpers of the list, and what the verifier looked at is within the budget."""
    with yrt.Fixture("called", seconds=None, wait=False) as f:
        where = ["-p", str(f.pid), "-D", "FUNC=serve"]
        looked = ylang.verified("func-latency", *where)
        assert len(looked) == 2, looked
        done = subprocess.run([yrt.YRT, "y", "func-latency", "--emit", "bpf", *where], capture_output=True, text=True,
                              timeout=LIMIT_S)
        helpers = set(re.findall(r"call bpf_(\w+)", done.stdout))
        assert "_probe serve:return:" in done.stdout and "map_update_elem" in helpers, done
        assert helpers <= {"map_lookup_elem", "map_update_elem", "map_delete_elem", "ktime_get_ns", "ringbuf_output",
                           "get_smp_processor_id", "get_ns_current_pid_tgid", "get_attach_cookie"}, helpers
    yield f"the kernel looked at {looked} instructions"


def test_several_processes():
    """-p A,B and --select with probes: each process has its own maps, timers print while they run, one may end."""
    program = READY + """_map long n[short]; int done;
_probe serve { n[$order->status]++; }
_probe _timer(10ms) { if (!done && n[200] >= 60) { done = 1; printf("many\\n"); } }
_probe _end { _print(n); }"""
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        own = os.path.join(directory, f"called{os.getpid()}")
        shutil.copy(yrt.fixture_path("called"), own)
        name = os.path.basename(own)[:15]
        for select in (False, True):
            with yrt.Fixture(own, seconds=None, wait=False) as a, yrt.Fixture(own, seconds=None, wait=False) as b:
                where = ["--select", f"exe={os.path.basename(own)}"] if select else ["-p", f"{a.pid},{b.pid}"]
                with ylang.Several(["-e", program, *where], [a, b]) as y:
                    ylang.serve(a, 100)
                    ylang.serve(b, 30)
                    y.until("many")  # while both run
                    a.process.stdin.close()
                    a.process.stdin = None
                    y.until("200  60")  # it has ended, the other one goes on
                    ylang.serve(b, 5)
                    out, err = y.end()
            heads = {f: f"==> {name} (pid {f.pid}) <==\n" for f in (a, b)}
            tables = {a: "n\n200  60\n404  20\n500  20\n", b: "n\n200  21\n404  7\n500  7\n"}
            for f in (a, b):
                parts = [part for part in re.split("(?===> )", out) if part.startswith(heads[f])]
                text = "".join(part.replace(heads[f], "") for part in parts)
                assert text == "many\n" * (f is a) + tables[f], (select, out, err)
                assert f"yrt: {name} (pid {f.pid}): " in err, err
            assert err.count(", 0 ended by an error") == 2, err
    yield "two processes, by their ids and by --select: their own counts, as they come, one ends before the other"


def test_link():
    """A program that is started by a link: the link's name and path mean its file."""
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        link = os.path.join(directory, "linked-name")
        os.symlink(yrt.fixture_path("called"), link)
        with yrt.Fixture(link, seconds=None, wait=False) as f:
            for module in ("linked-name", f"uprobe:{link}", "called"):
                source = f'_probe _begin {{ printf("ready\\n"); }} _probe {module}:serve {{ }}'
                done = subprocess.run([yrt.YRT, "y", "-e", source, "-p", str(f.pid), "-d", "0.01"],
                                      capture_output=True, text=True, timeout=LIMIT_S)
                assert done.returncode == 0 and done.stdout == "ready\n", (module, done)
    yield "three names"


def test_refused():
    cases = [
        ("_probe libc:serve { _print(1); }", "called has it, but is not called libc"),
        ("_probe usdt:serve:order { _print(1); }", "-e:1:1: _probe usdt:serve:order: no file of the process has such"),
        ("_probe libc:*a* { _print(1); }", "_probe libc:*a*: "),
        ("_probe nowhere { _print(1); }", "no file of the process has such a function"),
        ("_probe serv { _print(1); }", "near: serve"),
        ("_probe serve { _print($nothing); }", "serve has no parameter nothing"),
        ("_probe serve { _print($return); }", "only a probe of a return has it"),
        ("_probe serve:return { _print($many); }", "its parameters are gone"),
        ("_map long n[int]; _probe serve { _foreach (k : v _in n) _print(k); }", "a probe cannot do this: _foreach"),
        ("_probe serve { printf(\"%s\", _stack); }", "a probe cannot do this: printing a stack"),
        ("_agg a[_stack]; _probe serve { a[_stack] <<< 1; } _probe _end { _hist(a); }", "without _hist"),
        ("int f(int n) { return n ? f(n - 1) : 0; } _probe serve { _print(f(3)); }", "functions that call themselves"),
    ]
    with yrt.Fixture("called", seconds=None, wait=False) as f:
        for source, message in cases:
            done = subprocess.run([yrt.YRT, "y", "-e", source, "-p", str(f.pid)], capture_output=True, text=True,
                                  timeout=LIMIT_S)
            assert done.returncode in (yrt.USAGE, yrt.UNSUPPORTED) and message in done.stderr, (source, done)
        sources = [c.source.replace("_probe _oneshot", "_probe add") for c in ylang.cases() if not c.refused]
        refused = set()
        with yrt.Fixture("asked", seconds=None, wait=False) as other:
            for source, pid in [(s, f.pid) for s, _ in cases] + [(s, other.pid) for s in sources]:
                done = ylang.run("--check", "-e", source, "-p", pid)
                for engine, why, hint in re.findall(r"^(\w+): no: \S+ (.*)\n(\t?.*)", done.stdout, re.M):
                    assert hint.startswith("\tinstead: "), (source, done.stdout)
                    refused.add((engine, why))
        assert {engine for engine, _ in refused} == {"bpf", "core", "d", "gdb", "lldb", "stap"}, refused
    yield f"{len(cases)} programs are refused by what they ask; {len(refused)} refusals say what to do instead"


yrt.main(globals())
