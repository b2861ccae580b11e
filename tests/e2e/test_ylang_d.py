# SPDX-License-Identifier: Apache-2.0
"""
Programs of the Y language as scripts of DTrace: what they are made of, what is refused. In DTrace itself (measured;
2.0.7 of Debian's sid, by YRT_DTRACE or on PATH): what they print is what the VM prints, C computes, a program counted.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading

import yrt
import ylang

SOURCE = """
unsigned char last;
int twice(int n) { return 2 * n; }
_probe _oneshot {
	for (int i = 0; i < 3; i++)
		last += twice(100 / i ?? 7);
	printf("%3d %d|%x\\n", last, list->value, (short)-1);
	int x = torn.next->value;
}
"""
CLAUSES = """
/* _oneshot */
profile-97, rawtp:::sys_enter /pid == PID && !once/
{
	once = 1;
	this->b = 2;
}
profile-97, rawtp:::sys_enter /pid == PID && this->b == 2/
{
	this->s0 = 0;
	this->b = 6;
	this->cause = 5;
	this->where = 0;
}
profile-97, rawtp:::sys_enter /pid == PID && this->b == 6/
{
	this->status = this->cause;
	this->at = this->where;
	this->s5 = 7;
	this->b = 7;
}
profile-97, rawtp:::sys_enter /pid == PID && this->b == 7/
{
	this->s31 = 7;
	this->s10 = 14;
	this->s12 = (int64_t)(uint8_t)(g0 + 14);
	g0 = this->s12;
	this->s0 = 1;
	this->s5 = 100;
	this->b = 13;
}
profile-97, rawtp:::sys_enter /pid == PID && this->b == 13/
{
	this->s31 = 100;
	this->s10 = 200;
	this->s12 = (int64_t)(uint8_t)(g0 + 200);
	g0 = this->s12;
	this->s0 = 2;
	this->s5 = 50;
	this->b = 19;
}
profile-97, rawtp:::sys_enter /pid == PID && this->b == 19/
{
	this->s31 = 50;
	this->s10 = 100;
	this->s12 = (int64_t)(uint8_t)(g0 + 100);
	g0 = this->s12;
	this->s0 = 3;
	this->b = 24;
}
profile-97, rawtp:::sys_enter /pid == PID && this->b == 24/
{
	this->s16 = 0;
	this->s17 = 0;
	this->s18 = g0;
	this->s19 = 0;
	this->s20 = 0;
	this->b = 26;
	this->cause = 1;
	this->where = ADDRESS;
	this->s22 = (int64_t)*(uint64_t *)copyin(ADDRESS, 8);
	this->where = this->s22 + 8;
	this->s23 = (int64_t)(int32_t)((int64_t)*(uint32_t *)copyin(this->s22 + 8, 4));
	this->b = 27;
}
profile-97, rawtp:::sys_enter /pid == PID && this->b == 26/
{
	this->status = this->cause;
	this->at = this->where;
	this->s19 = this->status;
	this->s20 = this->at;
	this->b = 27;
}
profile-97, rawtp:::sys_enter /pid == PID && this->b == 27/
{
	this->s24 = 0;
	this->s25 = 0;
	this->s26 = (-1);
	printf("%3d ", (int64_t)this->s18);
	this->b = 29;
}
profile-97, rawtp:::sys_enter /pid == PID && this->b == 29 && this->s19 == 0/
{
	printf("%d", (int64_t)this->s23);
}
profile-97, rawtp:::sys_enter /pid == PID && this->b == 29 && this->s19 != 0 && this->s20 != 0/
{
	printf("<%s 0x%x>", this->s19 == 1 ? "fault" : this->s19 == 5 ? "division by zero" : "limit", this->s20);
}
profile-97, rawtp:::sys_enter /pid == PID && this->b == 29 && this->s19 != 0 && this->s20 == 0/
{
	printf("<%s>", this->s19 == 1 ? "fault" : this->s19 == 5 ? "division by zero" : "limit");
}
profile-97, rawtp:::sys_enter /pid == PID && this->b == 29/
{
	printf("|%x\\n", (uint64_t)((-1) & 0xffff));
	this->b = 30;
}
profile-97, rawtp:::sys_enter /pid == PID && this->b == 30/
{
	this->b = 1;
	this->cause = 1;
	this->place = 16;
	this->where = ADDRESS;
	this->s29 = (int64_t)*(uint64_t *)copyin(ADDRESS, 8);
	this->where = this->s29 + 8;
	this->s30 = (int64_t)(int32_t)((int64_t)*(uint32_t *)copyin(this->s29 + 8, 4));
	this->b = 0;
}
profile-97, rawtp:::sys_enter /pid == PID && this->b == 1/
{
	this->b = 0;
	@failed[this->place == 16 ? "-e:8:21" : "?",
	        this->cause == 1 ? "fault" : this->cause == 5 ? "division by zero" : "limit",
	        this->where] = count();
}
profile-97, rawtp:::sys_enter /pid == PID && once/
{
	exit(0);
}

dtrace:::END
{
	printa("yrt: %s: %s at 0x%x ended a handler %@d times\\n", @failed);
}
"""


def d_of(source, *where):
    done = ylang.run("-e", source, *where, "--emit", "d")
    return done.stdout, done.stderr


def test_scripts():
    """A script as it is meant to be; each case is one, or refused as it is marked; nothing in them writes."""
    with yrt.Fixture("asked", seconds=None, wait=False) as asked:
        text, why = d_of(SOURCE, "-p", asked.pid)
        code = re.sub(r"\b\d{10,}\b", "ADDRESS", text).replace(str(asked.pid), "PID")
        assert code.endswith(CLAUSES), f"{why}\n{code}"
        assert f" *\tdtrace -p {asked.pid} -s THIS\n" in text and "\nint64_t g0; /* last */\n" in text, text
        scripts = refused = 0
        for case in (c for c in ylang.cases() if not c.refused):
            text, why = d_of(case.source, "-p", asked.pid)
            assert bool(text) == ("d" not in case.engines_refuse), f"{case.name}\n{case.source}\n{text}\n{why}"
            assert text or re.search(r"yrt: (-e:\d+:\d+: )?d: .+\n +yrt y runs it by itself\n", why), why
            assert not re.search(r"copyout|system\(|raise\(|stop\(|panic|chill|option destructive", text), text
            scripts += bool(text)
            refused += not text
        assert scripts > 90, (scripts, refused)
        yield f"{scripts} scripts, {refused} refused"


REFUSED = (
    ("_probe _end { _print(list->value); }", ":1:28: d: _end: it runs in no process there"),
    ("_probe _oneshot { _print(_str(text) ~~ rx/a/); }", "d: match: D has no regular expressions"),
    ("_map long n[_stack]; _probe add { n[_stack]++; }", "d: stack: its stacks have no frames of languages"),
    ("_probe add { printf(\"%s\\n\", _comm); }", ":1:29: d: add: DTrace takes it from types of the kernel there"),
    ("_probe add:return { _print($return); }", "d: add:return: its probes of returns put another address"),
    ("_probe _oneshot { for (int i = 0; i < 65; i++) _print(i); }", ":1:19: d: loop: no constant says that it ends"),
    ("_probe _oneshot { for (struct node *n = list; n; n = n->next) { } }", ":1:19: d: loop: no constant says that"),
    ("int f(int n) { return n ? f(n - 1) : 0; } _probe add { f($a); }", ":1:27: d: f: functions that call themselves"),
    ("_map long n[int]; _probe add { n[1]++; _foreach (k : v _in n) { } }", "d: each_begin: D cannot walk over"),
    ("_map long n[int]; _probe add { n[n[1]]++; _print(n); }", "d: n: D prints what is only added to, or reads it"),
    ("_map long n[int]; _probe _oneshot { _print(n[1]); }", "d: n: nothing is ever put into it"),
    ("_map(9) long n[int]; _probe add { n[1]++; }", "d: n: its associative arrays have no limit"),
    ("_probe _oneshot { long a[65]; a[1] = 2; _print(a[1]); }", "d: _oneshot: an array of more than 64 elements"),
)


def test_refusals():
    with yrt.Fixture("asked", seconds=None, wait=False) as asked:
        for source, said in REFUSED:
            text, why = d_of(source, "-p", asked.pid)
            assert not text and said in why, f"{source}\n{text}\n{why}"
        check = ylang.run("-e", "_probe add { _print(_tid); }", "-p", asked.pid, "--check").stdout
        assert "\nd: yes\n" in check, check
        text, why = d_of("_map long n[_str]; _probe syscall:openat { n[_comm]++; }", "-a")
        assert "syscall::openat:entry /pid != $pid/" in text and "for all processes" in text, why


def dtrace():
    """Its command; not that of SystemTap, which has the same name."""
    command = os.environ.get("YRT_DTRACE") or shutil.which("dtrace")
    said = command and subprocess.run([command, "-V"], capture_output=True, text=True, check=False).stdout
    if not said or not said.startswith("dtrace: D 2"):
        raise yrt.Skipped("no DTrace here, on PATH or by YRT_DTRACE")
    return command


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def ran(command, pid, path, source):
    text, why = d_of(source, "-p", pid)
    assert text, why
    done = subprocess.run([command, "-p", str(pid), "-s", write(path, text)], capture_output=True, text=True,
                          errors="replace", timeout=120, check=False)
    lines = done.stdout.splitlines(keepends=True)
    assert lines and lines.pop() == "\n", f"{source}\n{text}\n{done}"  # what dtrace ends with
    return lines, done


RAW = {"strings.y: hostile bytes", "text.y: hostile bytes are made safe"}  # dtrace prints bytes as they are


def is_other(case):
    """Its output is in another form, as the script's head says."""
    return case.name in RAW or "_hist(" in case.source


def check_case(command, case, pid, path):
    lines, done = ran(command, pid, path, case.source)
    told = [line for line in lines if line.startswith("yrt: ")]
    said = "".join(line for line in lines if not line.startswith("yrt: "))
    text = f"{case.name}\n{case.source}\n--- stdout\n{said}\n--- stderr\n{done.stderr}"
    assert (said == case.out) != is_other(case), text
    assert bool(told) == bool(case.err), f"{told}\n{text}"


@contextlib.contextmanager
def fed(process):
    """Its input goes on, so that it makes system calls."""
    ended = threading.Event()

    def feed():
        while not ended.wait(0.05):
            process.stdin.write("\n")
            process.stdin.flush()

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        yield
    finally:
        ended.set()
        feeder.join()


@yrt.measured
def test_cases_in_dtrace():
    command, n = dtrace(), 0
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory, \
            yrt.Fixture("asked", seconds=None, wait=False) as asked, fed(asked.process):
        for case in ylang.cases():
            if not case.refused and "d" not in case.engines_refuse:
                check_case(command, case, asked.pid, os.path.join(directory, "y.d"))
                n += not is_other(case)
    assert n > 90, n
    yield f"{n} programs print in DTrace what they print in the VM"


@yrt.measured
def test_c_is_the_oracle():
    command, seed = dtrace(), int(os.environ.get("YRT_SEED", "1"))
    with ylang.expressions(seed, 500) as (process, truth, parts, directory), fed(process):
        said = []
        for part in parts:
            for i in range(0, len(part), 25):
                prints = "".join(f'{{ long r = (long)({e}); printf("%ld\\n", r); }}\n' for e in part[i : i + 25])
                path = os.path.join(directory, "y.d")
                lines, _ = ran(command, process.pid, path, f"_probe _oneshot {{ {prints} }}")
                said += [line.strip() for line in lines]
        assert said == truth, f"seed {seed}: {[x for x in zip(truth, said) if x[0] != x[1]][:5]}"
    yield f"{len(truth)} random expressions are what C makes of them"


COUNTS = """
_map long by[short]; _map long price[_str]; _agg many[short]; long served; long written;
_probe begin_serving { printf("ready\\n"); }
_probe serve { by[$order->status]++; price[_str($order->customer)] += $order->items->price; served++; }
_probe serve / $order->status == 404 / { many[$order->status] <<< $many; long x = *(long *)0x10; }
_probe syscall:write:return { written += $return > 0; }
_probe _end { _print(by); _print(many); _print(served, written); }
"""


@yrt.measured
def test_counts_in_dtrace():
    command = dtrace()
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory, \
            yrt.Fixture("called", seconds=None, wait=False) as called:
        path, out = os.path.join(directory, "y.d"), os.path.join(directory, "out")
        text, why = d_of(COUNTS, "-p", called.pid)
        assert text, why
        with open(out, "w", encoding="utf-8") as f:
            d = subprocess.Popen([command, "-p", str(called.pid), "-s", write(path, text)], stdout=f,
                                 stderr=subprocess.PIPE, text=True)
        try:
            while "ready" not in yrt.read(out):
                assert d.poll() is None, d.stderr.read()
                ylang.serve(called, 0)
            account = ylang.serve(called, 1000)
            d.send_signal(signal.SIGINT)
            d.communicate(timeout=60)
        finally:
            yrt.stop(d, signal.SIGKILL)
        said = yrt.read(out)
        by = account["by_status"]
        assert f"by\n200\t{by[0]}\n404\t{by[1]}\n500\t{by[2]}\n" in said, (account, said)
        assert re.search(rf"many\n404\t{by[1]}\t\d+\t0\t3\t1\n{account['served']} \d+\n", said), (account, said)
        assert re.search(rf"yrt: -e:5:\d+: fault at 0x10 ended a handler {by[1]} times\n", said), (account, said)
    yield f"{account['served']} calls are counted"


yrt.main(globals())
