# SPDX-License-Identifier: Apache-2.0
"""
Programs of the Y language as scripts of DTrace: what they are made of, what is refused. In DTrace itself (measured;
2.0.7 of Debian's sid, by YRT_DTRACE or on PATH): what they print is what the VM prints.
"""

import os
import re
import shutil
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


def feed(fixture, ended):
    """Keeps it reading, so that it makes system calls."""
    while not ended.wait(0.05):
        fixture.process.stdin.write("\n")
        fixture.process.stdin.flush()


def check_case(command, case, pid, path):
    text, why = d_of(case.source, "-p", pid)
    done = subprocess.run([command, "-p", str(pid), "-s", write(path, text)], capture_output=True, text=True,
                          errors="replace", timeout=120, check=False)
    lines = done.stdout.splitlines(keepends=True)
    assert lines.pop() == "\n", f"{case.name}\n{text}\n{why}\n{done}"  # what dtrace ends with
    told = [line for line in lines if line.startswith("yrt: ")]
    said = "".join(line for line in lines if not line.startswith("yrt: "))
    assert said == case.out, f"{case.name}\n{case.source}\n--- stdout\n{said}\n--- stderr\n{done.stderr}"
    assert bool(told) == bool(case.err), f"{case.name}\n{told}"


@yrt.measured
def test_cases_in_dtrace():
    command, n, ended = dtrace(), 0, threading.Event()
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory, \
            yrt.Fixture("asked", seconds=None, wait=False) as asked:
        feeder = threading.Thread(target=feed, args=(asked, ended))
        feeder.start()
        try:
            for case in ylang.cases():
                if not case.refused and "d" not in case.engines_refuse:
                    check_case(command, case, asked.pid, os.path.join(directory, "y.d"))
                    n += 1
        finally:
            ended.set()
            feeder.join()
    yield f"{n} programs print in DTrace what they print in the VM"


yrt.main(globals())
