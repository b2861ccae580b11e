/* SPDX-License-Identifier: Apache-2.0 */
#include "counters.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/now.h"
#include "unwind/read_text.h"
#include "unwind/runtime.h"

#define COLLECTOR_THREADS 10 /* a runtime that publishes what it has in use has more: others are not asked */
#define TEXT_BYTES        16384
#define FDS_MAX           1000000

static bool read_file(const char *path, char text[TEXT_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	read_text(fd, text, TEXT_BYTES);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool read_of(pid_t pid, const char *name, char text[TEXT_BYTES])
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return read_file(path, text);
}

/* The number that follows a word at the start of a line; 0 if no line starts with it. */
static u64 field(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL)
		if (!strncmp(line, word, n) && (isspace((unsigned char)line[n]) || line[n] == ':'))
			return strtoull(line + n + 1, NULL, 10);
	return 0;
}

/* The same of lines "Max open files   1024   4096   files"; 0: unlimited, or it is not there. */
static u64 limit(const char *text, const char *word)
{
	const char *line = strstr(text, word);

	return line ? strtoull(line + strlen(word), NULL, 10) : 0;
}

static void count_fds(struct process_counters *p)
{
	char path[64], target[32];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", p->pid);
	dir = opendir(path);
	for (struct dirent *e; dir && (e = readdir(dir)) && p->fds < FDS_MAX;) {
		ssize_t length;

		if (*e->d_name == '.')
			continue;
		p->fds++;
		length = readlinkat(dirfd(dir), e->d_name, target, sizeof(target));
		p->sockets += length > 7 && !memcmp(target, "socket:", 7);
	}
	p->has_fds = dir;
	if (dir)
		closedir(dir);
}

/* False: there is no such process, or it is a zombie. */
static bool read_stat(struct process_counters *p, char text[TEXT_BYTES])
{
	const char *end = read_of(p->pid, "stat", text) ? strrchr(text, ')') : NULL;
	char state;

	return end &&
	       sscanf(end, ") %c %*d %*d %*d %*d %*d %*u %lu %*u %lu %*u %lu %lu %*d %*d %*d %*d %lu", &state,
	               &p->minor, &p->major, &p->user, &p->system, &p->threads) == 6 &&
	       !(strchr("ZX", state) && p->threads < 2);
}

static u64 used_after_collection(pid_t pid)
{
	u64 used = 0;

	for (const struct runtime_ops *const *r = runtimes; *r && !used; r++)
		used = (*r)->used_after_collection ? (*r)->used_after_collection(pid) : 0;
	return used;
}

static bool read_process(struct process_counters *p)
{
	cleanup(free) char *text = malloc(TEXT_BYTES);

	if (!text || !read_stat(p, text))
		return false;
	read_of(p->pid, "status", text);
	p->rss = field(text, "VmRSS") << 10;
	p->anon = field(text, "RssAnon") << 10;
	p->file = field(text, "RssFile") << 10;
	p->shmem = field(text, "RssShmem") << 10;
	p->swap = field(text, "VmSwap") << 10;
	p->locked = field(text, "VmLck") << 10;
	if (p->threads >= COLLECTOR_THREADS)
		p->collected = used_after_collection(p->pid);
	if (read_of(p->pid, "io", text)) {
		p->read = field(text, "rchar");
		p->written = field(text, "wchar");
		p->read_calls = field(text, "syscr");
		p->write_calls = field(text, "syscw");
		p->read_bytes = field(text, "read_bytes");
		p->written_bytes = field(text, "write_bytes");
	}
	read_of(p->pid, "limits", text);
	p->fd_limit = limit(text, "Max open files");
	p->thread_limit = limit(text, "Max processes");
	p->memory_limit = limit(text, "Max address space");
	count_fds(p);
	return true;
}

static void read_thread(pid_t pid, pid_t tid, char text[TEXT_BYTES], struct thread_counters *ret)
{
	char name[64];

	*ret = (struct thread_counters){.tid = tid, .pid = pid};
	snprintf(name, sizeof(name), "task/%d/schedstat", tid);
	if (read_of(pid, name, text))
		sscanf(text, "%lu %lu", &ret->run_ns, &ret->queued_ns);
	snprintf(name, sizeof(name), "task/%d/status", tid);
	if (read_of(pid, name, text)) {
		ret->voluntary = field(text, "voluntary_ctxt_switches");
		ret->involuntary = field(text, "nonvoluntary_ctxt_switches");
		sscanf(text, "Name: %31[^\n]", ret->comm);
	}
}

static struct error *read_threads(struct counters *c, pid_t pid)
{
	cleanup(free) char *text = malloc(TEXT_BYTES);
	struct error *err = text ? NULL : &error_no_memory;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	for (struct dirent *e; !err && dir && (e = readdir(dir));) {
		if (!isdigit((unsigned char)*e->d_name))
			continue;
		if (c->nthreads == COUNTERS_THREADS) {
			c->cut = true;
			break;
		}
		err = grow(&c->threads, c->nthreads, sizeof(*c->threads));
		if (!err)
			read_thread(pid, atoi(e->d_name), text, &c->threads[c->nthreads++]);
	}
	if (dir)
		closedir(dir);
	return err;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234" */
static u64 pressure(const char *path, char text[TEXT_BYTES], bool *known)
{
	const char *total = read_file(path, text) && !strncmp(text, "some", 4) ? strstr(text, "total=") : NULL;

	*known |= total != NULL;
	return total ? strtoull(total + 6, NULL, 10) : 0;
}

/* Two lines, "Tcp: A B C" and "Tcp: 1 2 3": the number below a word. */
static u64 column(const char *text, const char *table, const char *word)
{
	const char *names = text, *numbers;
	size_t n = strlen(table);

	while (names && strncmp(names, table, n))
		names = strchr(names, '\n'), names += names != NULL;
	numbers = names ? strchr(names, '\n') : NULL;
	if (!numbers || strncmp(numbers + 1, table, n) != 0)
		return 0;
	numbers++;
	for (;;) {
		size_t a = strcspn(names, " \n"), b = strcspn(numbers, " \n");

		if (a == strlen(word) && !strncmp(names, word, a))
			return strtoull(numbers, NULL, 10);
		if (names[a] != ' ' || numbers[b] != ' ')
			return 0;
		names += a + 1;
		numbers += b + 1;
	}
}

/* Lines "cpu3 user nice system idle iowait irq softirq …" of /proc/stat. */
static u64 allowed_busy(const char *text, pid_t pid)
{
	cpu_set_t set;
	u64 sum = 0;

	if (sched_getaffinity(pid, sizeof(set), &set))
		CPU_ZERO(&set);
	for (const char *line = strstr(text, "\ncpu"); line; line = strstr(line + 1, "\ncpu")) {
		u64 user, nice, system, irq, softirq;
		u32 cpu;

		if (sscanf(line, " cpu%u %lu %lu %lu %*u %*u %lu %lu", &cpu, &user, &nice, &system, &irq, &softirq) ==
		                6 &&
		        cpu < CPU_SETSIZE && CPU_ISSET(cpu, &set))
			sum += user + nice + system + irq + softirq;
	}
	return sum;
}

static void read_machine(struct machine_counters *m, pid_t pid)
{
	cleanup(free) char *text = malloc(TEXT_BYTES);
	u64 user, nice, system, idle, iowait, irq, softirq, steal;
	bool known = false;

	if (!text)
		return;
	if (read_file("/proc/stat", text) && sscanf(text, "cpu %lu %lu %lu %lu %lu %lu %lu %lu", &user, &nice, &system,
	                                             &idle, &iowait, &irq, &softirq, &steal) == 8) {
		m->busy = user + nice + system + irq + softirq;
		m->idle = idle;
		m->iowait = iowait;
		m->steal = steal;
	}
	m->allowed_busy = allowed_busy(text, pid);
	m->pressure_cpu = pressure("/proc/pressure/cpu", text, &known);
	m->pressure_io = pressure("/proc/pressure/io", text, &known);
	m->pressure_memory = pressure("/proc/pressure/memory", text, &known);
	if (read_of(pid, "net/snmp", text)) {
		m->retransmits = column(text, "Tcp:", "RetransSegs");
		m->sent_segments = column(text, "Tcp:", "OutSegs");
	}
	if (read_of(pid, "net/netstat", text))
		m->overflows = column(text, "TcpExt:", "ListenOverflows");
	read_file("/proc/vmstat", text);
	m->swapped_in = field(text, "pswpin");
	m->swapped_out = field(text, "pswpout");
	read_file("/proc/meminfo", text);
	m->memory = field(text, "MemTotal") << 10;
	m->memory_free = field(text, "MemAvailable") << 10;
}

/* A number, or "max": 0. */
static u64 number_in(const char *folder, const char *name, char text[TEXT_BYTES])
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return read_file(path, text) && strncmp(text, "max", 3) != 0 ? strtoull(text, NULL, 10) : 0;
}

/* The limits of a cgroup and of those that it is in: the least of each holds. */
static void read_limits(struct cgroup_counters *g, const char *folder, char text[TEXT_BYTES])
{
	u64 memory = number_in(folder, "memory.max", text), high = number_in(folder, "memory.high", text),
	    pids = number_in(folder, "pids.max", text);
	char path[PATH_MAX + 32];
	double quota, period;

	snprintf(path, sizeof(path), "%s/cpu.max", folder);
	if (read_file(path, text) && sscanf(text, "%lf %lf", &quota, &period) == 2 && period > 0 && quota > 0 &&
	        (g->cpus == 0 || quota / period < g->cpus)) {
		g->cpus = quota / period;
		snprintf(path, sizeof(path), "%s/cpu.stat", folder);
		read_file(path, text);
		g->periods = field(text, "nr_periods");
		g->throttled = field(text, "nr_throttled");
		g->throttled_us = field(text, "throttled_usec");
	}
	if (memory && (!g->memory_limit || memory < g->memory_limit)) {
		g->memory_limit = memory;
		g->memory = number_in(folder, "memory.current", text);
		snprintf(path, sizeof(path), "%s/memory.events", folder);
		read_file(path, text);
		g->oom_kills = field(text, "oom_kill");
		g->memory_max_events = field(text, "max");
	}
	if (high && (!g->memory_high || high < g->memory_high))
		g->memory_high = high;
	if (pids && (!g->pids_limit || pids < g->pids_limit)) {
		g->pids_limit = pids;
		g->pids = number_in(folder, "pids.current", text);
	}
}

/* Of cgroup v2. */
static void read_unified(struct cgroup_counters *g, char *folder, size_t root, char text[TEXT_BYTES])
{
	char path[PATH_MAX + 32], *end;

	snprintf(path, sizeof(path), "%s/cpu.pressure", folder);
	g->pressure_cpu = pressure(path, text, &g->pressure);
	snprintf(path, sizeof(path), "%s/io.pressure", folder);
	g->pressure_io = pressure(path, text, &g->pressure);
	snprintf(path, sizeof(path), "%s/memory.pressure", folder);
	g->pressure_memory = pressure(path, text, &g->pressure);
	while ((end = strrchr(folder + root, '/'))) {
		read_limits(g, folder, text);
		*end = '\0';
	}
}

/* Of cgroup v1: cpu.cfs_*_us, memory.*_in_bytes. */
static void read_cpu_v1(struct cgroup_counters *g, const char *folder, char text[TEXT_BYTES])
{
	u64 quota = number_in(folder, "cpu.cfs_quota_us", text), period = number_in(folder, "cpu.cfs_period_us", text);
	char path[PATH_MAX + 32];

	if (!period || !quota || quota > 1ull << 40 || (g->cpus > 0 && (double)quota / (double)period >= g->cpus))
		return; /* -1: no limit */
	g->cpus = (double)quota / (double)period;
	snprintf(path, sizeof(path), "%s/cpu.stat", folder);
	read_file(path, text);
	g->periods = field(text, "nr_periods");
	g->throttled = field(text, "nr_throttled");
	g->throttled_us = field(text, "throttled_time") / 1000;
}

static void read_memory_v1(struct cgroup_counters *g, const char *folder, char text[TEXT_BYTES])
{
	u64 most = number_in(folder, "memory.limit_in_bytes", text);

	if (!most || most > 1ull << 50 || (g->memory_limit && most >= g->memory_limit))
		return;
	g->memory_limit = most;
	g->memory = number_in(folder, "memory.usage_in_bytes", text);
	g->memory_max_events = number_in(folder, "memory.failcnt", text);
}

static bool has_word(const char *list, size_t n, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = list; at < list + n; at += strcspn(at, ",:") + 1)
		if (strcspn(at, ",:") == length && !strncmp(at, word, length))
			return true;
	return false;
}

/* A line "N:controllers:/path" of v1, where each has a tree of its own; "0::/path" is v2. */
static void read_hierarchy(struct cgroup_counters *g, const char *line, char text[TEXT_BYTES])
{
	const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
	char folder[PATH_MAX];
	size_t n;

	if (!path || strstr(path, ".."))
		return;
	n = (size_t)(path - names - 1);
	if (!n)
		snprintf(folder, sizeof(folder), "%s%s",
		        access("/sys/fs/cgroup/unified", F_OK) ? "/sys/fs/cgroup" : "/sys/fs/cgroup/unified", path + 1);
	else
		snprintf(folder, sizeof(folder), "/sys/fs/cgroup/%.*s%s", (int)strcspn(names + 1, ",:"), names + 1,
		        path + 1);
	g->known = true;
	if (!n)
		read_unified(g, folder, strlen(folder) - strlen(path + 1), text);
	else if (has_word(names + 1, n, "cpu"))
		read_cpu_v1(g, folder, text);
	else if (has_word(names + 1, n, "memory"))
		read_memory_v1(g, folder, text);
}

static void read_cgroup(struct cgroup_counters *g, pid_t pid)
{
	cleanup(free) char *text = malloc(TEXT_BYTES);
	cleanup(free) char *lines = malloc(TEXT_BYTES);
	char *at = lines, *line;

	if (!text || !lines || !read_of(pid, "cgroup", lines))
		return;
	while ((line = strsep(&at, "\n")))
		read_hierarchy(g, line, text);
}

static int by_tid(const void *a, const void *b)
{
	const struct thread_counters *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

struct error *counters_take(const pid_t *pids, u32 n, struct counters *ret)
{
	struct error *err = NULL;

	*ret = (struct counters){.at_ns = now_ns()};
	for (u32 i = 0; !err && i < n; i++) {
		struct process_counters p = {.pid = pids[i]};

		if (ret->nprocesses == COUNTERS_PROCESSES) {
			ret->cut = true;
			break;
		}
		if (!read_process(&p))
			continue;
		err = grow(&ret->processes, ret->nprocesses, sizeof(*ret->processes));
		if (!err)
			ret->processes[ret->nprocesses++] = p;
		if (!err)
			err = read_threads(ret, pids[i]);
	}
	if (!err && n) {
		read_machine(&ret->machine, pids[0]);
		read_cgroup(&ret->cgroup, pids[0]);
	}
	if (ret->nthreads)
		qsort(ret->threads, ret->nthreads, sizeof(*ret->threads), by_tid);
	if (err)
		counters_free(ret);
	return err;
}

const struct thread_counters *counters_thread(const struct counters *c, pid_t tid)
{
	const struct thread_counters key = {.tid = tid};

	return c->nthreads ? bsearch(&key, c->threads, c->nthreads, sizeof(*c->threads), by_tid) : NULL;
}

void counters_free(struct counters *c)
{
	free(c->processes);
	free(c->threads);
	*c = (struct counters){0};
}
