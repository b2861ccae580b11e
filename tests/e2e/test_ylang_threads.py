# SPDX-License-Identifier: Apache-2.0
"""
Thread-local variables in Y: of the program, of a library that it is linked with, of one that it loads late, of the C
library; by a loop over threads (live, in a core, as a script of gdb) and in probes.
"""

import os
import subprocess
import tempfile

import ylang
import yrt

PROGRAM = """
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
__thread char name[70] = "of main";
__thread int own = 1;
extern int *early_of(void);
static int *(*late_of)(void);
static pthread_barrier_t all;
__attribute__((noinline)) void hit(int n) { __asm__ volatile("" ::"r"(n) : "memory"); }
static void set(int n)
{
	own = n;
	*early_of() = 10 * n;
	*late_of() = 100 * n;
	printf("%d %d\\n", (int)syscall(SYS_gettid), n);
}
static void *work(void *arg)
{
	int n = (int)(long)arg;
	set(n);
	snprintf(name, sizeof(name), "thread %d", n);
	pthread_barrier_wait(&all);
	for (;; usleep(2000)) {
		errno = 1000 + n;
		hit(n);
	}
}
int main(int argc, char **argv)
{
	pthread_t thread;
	late_of = (int *(*)(void))dlsym(dlopen(argv[argc - 1], RTLD_NOW), "late_of");
	pthread_barrier_init(&all, NULL, 4);
	for (long i = 2; i < 5; i++)
		pthread_create(&thread, NULL, work, (void *)i);
	set(1);
	pthread_barrier_wait(&all);
	puts("ready");
	fflush(stdout);
	getchar();
}
"""
LIBRARY = "static __thread char room[%d]; __thread int %s; int *%s_of(void) { room[0]++; return &%s; }\n"
EACH = """_probe _oneshot {
	_foreach (_thread t)
		printf("%d %d %d %d %s\\n", t, own, early, late, _str(&name[0]));
	_foreach (_thread t)
		if (own != 3)
			continue;
		else
			break;
	printf("end\\n");
}
"""
PROBE = """_probe hit { printf("%d %d %d %d %s %d\\n", _tid, own, early, late, name, *(int *)&errno); }"""


def compiled(directory):
    """late is too large for what the C library keeps for files that come later: it is in the vector."""
    libraries = []
    for what, room in (("early", 5), ("late", 1 << 16)):
        libraries.append(os.path.join(directory, f"lib{what}.so"))
        subprocess.run(["gcc", "-g", "-O1", "-shared", "-fPIC", "-xc", "-", "-o", libraries[-1]], check=True,
                       input=LIBRARY % (room, what, what, what), text=True)
    program = os.path.join(directory, "threads")
    subprocess.run(["gcc", "-g", "-O1", "-pthread", "-o", program, "-xc", "-", "-xnone", libraries[0],
                    f"-Wl,-rpath,{directory}", "-ldl"], check=True, input=PROGRAM, text=True)
    return [program, libraries[1]]


def started(p):
    """The program's own account: {thread: its number}."""
    lines = iter(p.stdout.readline, "ready\n")
    return {int(tid): int(n) for tid, n in map(str.split, lines)}


def row(tid, n):
    return f"{tid} {n} {10 * n} {100 * n} " + (f"thread {n}" if n > 1 else "of main")


def test_each_thread():
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        command = compiled(directory)
        with yrt.Program(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            wanted = sorted(row(*one) for one in started(p).items())
            core, script = os.path.join(directory, "core"), os.path.join(directory, "each.py")
            subprocess.run(["gdb", "-nx", "-batch", "-p", str(p.pid), "-ex", f"generate-core-file {core}"], check=True,
                           capture_output=True, timeout=300)
            live = ylang.run("-e", EACH, "-p", p.pid)
            dead = ylang.run("-e", EACH, "--core", core)
            assert len(wanted) == 4 and live.stdout == dead.stdout, (live, dead)
            lines = live.stdout.splitlines()
            assert sorted(lines[:-1]) == wanted and lines[-1] == "end", (live, wanted)
            with open(script, "w", encoding="utf-8") as f:
                output = os.path.join(directory, "out.txt")
                f.write(f'import os\nos.environ["YRT_OUT"] = {output!r}\n')
                f.write(ylang.run("-e", EACH, "-p", p.pid, "--emit", "gdb").stdout)
            said = ylang.gdb([script], command[0], "-c", core)
            assert yrt.read(output) == live.stdout, said
            refused = ylang.run("-e", "_probe _oneshot { _print(own); }", "-p", p.pid)
            assert refused.returncode == yrt.USAGE and "_foreach (_thread t)" in refused.stderr, refused
    yield "four threads' own, live, in a core and in gdb"


def test_in_probes():
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        with yrt.Program(compiled(directory), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            wanted = {f"{row(tid, n)} {1000 + n}" for tid, n in started(p).items() if n > 1}
            with yrt.Program([yrt.YRT, "y", "-e", PROBE, "-p", str(p.pid)], stdout=subprocess.PIPE, text=True) as y:
                seen = set()
                while seen != wanted:
                    line = y.stdout.readline().rstrip("\n")
                    assert line in wanted, (line, wanted)
                    seen.add(line)
    yield "three threads' own, as they call a function"


yrt.main(globals())
