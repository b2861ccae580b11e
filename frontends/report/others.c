/* SPDX-License-Identifier: Apache-2.0 */
#include "others.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unwind/clean_text.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"
#include "unwind/process/comm.h"

#define NAMED     3
#define LEAST     0.05 /* CPUs */
#define SOCKETS   4096 /* of one process, and of a namespace */
#define TARGETS   64
#define ADDRESS   48
#define LINE_MAX_ 512

struct usage {
	pid_t pid;
	u64 ticks;
};

struct others {
	u64 at_ns;
	u32 n;
	struct usage all[OTHERS_MAX]; /* by pid, as /proc lists them */
};

struct connection {
	char local[ADDRESS], remote[ADDRESS];
	u64 inode;
	bool own; /* a target has it */
};

/* utime and stime: fields 14 and 15, behind the name in parentheses, which may have any character. */
static bool read_ticks(pid_t pid, u64 *ret)
{
	char path[64], text[LINE_MAX_];
	unsigned long user, system;
	const char *rest;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	rest = strrchr(text, ')');
	if (!rest || sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
		return false;
	*ret = user + system;
	return true;
}

struct others *others_look(void)
{
	struct others *ret = calloc(1, sizeof(*ret));
	DIR *dir = ret ? opendir("/proc") : NULL;

	for (struct dirent *e; dir && ret->n < OTHERS_MAX && (e = readdir(dir));) {
		pid_t pid = (pid_t)atoi(e->d_name);

		if (pid > 0 && pid != getpid() && read_ticks(pid, &ret->all[ret->n].ticks))
			ret->all[ret->n++].pid = pid;
	}
	if (dir)
		closedir(dir);
	if (ret)
		ret->at_ns = now_ns();
	return ret;
}

static int by_pid(const void *a, const void *b)
{
	const struct usage *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static u64 ticks_then(const struct others *o, pid_t pid)
{
	const struct usage key = {.pid = pid}, *found = bsearch(&key, o->all, o->n, sizeof(key), by_pid);

	return found ? found->ticks : 0;
}

static u32 sockets_of(pid_t pid, u64 *ret)
{
	char folder[64], target[64];
	unsigned long inode;
	u32 count = 0;
	DIR *dir;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", pid);
	dir = opendir(folder);
	for (struct dirent *e; dir && count < SOCKETS && (e = readdir(dir));) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);

		target[n > 0 ? n : 0] = '\0';
		if (sscanf(target, "socket:[%lu]", &inode) == 1)
			ret[count++] = inode;
	}
	if (dir)
		closedir(dir);
	return count;
}

static u32 add_connections(pid_t pid, const char *table, struct connection *ret, u32 n)
{
	char path[64], line[LINE_MAX_];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", pid, table);
	f = fopen(path, "re");
	while (f && n < SOCKETS && fgets(line, sizeof(line), f)) {
		unsigned long inode;

		if (sscanf(line, " %*d: %47s %47s %*s %*s %*s %*s %*s %*s %lu", ret[n].local, ret[n].remote, &inode) ==
		                3 &&
		        inode) /* 0: it is closed, and only waits for what may still come (TIME_WAIT) */
			ret[n++].inode = inode;
	}
	if (f)
		fclose(f);
	return n;
}

static int by_inode(const void *a, const void *b)
{
	const struct connection *x = a, *y = b;

	return (x->inode > y->inode) - (x->inode < y->inode);
}

static struct connection *find(struct connection *all, u32 n, u64 inode)
{
	const struct connection key = {.inode = inode};

	return bsearch(&key, all, n, sizeof(key), by_inode);
}

static void mark_own(struct connection *all, u32 n, pid_t target, u64 *inodes)
{
	u32 count = sockets_of(target, inodes);

	for (u32 i = 0; i < count; i++) {
		struct connection *c = find(all, n, inodes[i]);

		if (c)
			c->own = true;
	}
}

/* Does a target have the other end of one of its sockets? */
static bool talks(struct connection *all, u32 n, pid_t other, u64 *inodes)
{
	u32 count = sockets_of(other, inodes);

	for (u32 i = 0; i < count; i++) {
		const struct connection *c = find(all, n, inodes[i]);

		for (u32 k = 0; c && k < n; k++)
			if (all[k].own && !strcmp(all[k].local, c->remote) && !strcmp(all[k].remote, c->local))
				return true;
	}
	return false;
}

static bool is_target(const pid_t *pids, u32 n, pid_t pid)
{
	for (u32 i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* The next in order of CPU time; *most: that of the last one, then of this one. */
static pid_t next_of(
        const struct others *then, const struct others *now, const pid_t *pids, u32 n, pid_t last, u64 *most)
{
	u64 best = 0;
	pid_t ret = 0;

	for (u32 i = 0; i < now->n; i++) {
		u64 before = ticks_then(then, now->all[i].pid);
		u64 used = now->all[i].ticks > before ? now->all[i].ticks - before : 0;

		if (used <= best || is_target(pids, n, now->all[i].pid) || now->all[i].pid == last)
			continue;
		if (last && (used > *most || (used == *most && now->all[i].pid < last)))
			continue;
		best = used;
		ret = now->all[i].pid;
	}
	*most = best;
	return ret;
}

static void name_them(
        const struct others *then, const struct others *now, const pid_t *pids, u32 n, char *ret, size_t size)
{
	cleanup(free) struct connection *all = calloc(SOCKETS, sizeof(*all));
	cleanup(free) u64 *inodes = calloc(SOCKETS, sizeof(*inodes));
	double seconds = (double)(now->at_ns - then->at_ns) / 1e9 * (double)sysconf(_SC_CLK_TCK);
	u32 nall = 0;
	size_t used = 0;
	u64 ticks = 0;
	pid_t pid = 0;

	if (!all || !inodes)
		return;
	nall = add_connections(pids[0], "tcp", all, 0);
	nall = add_connections(pids[0], "tcp6", all, nall);
	qsort(all, nall, sizeof(*all), by_inode);
	for (u32 i = 0; i < n && i < TARGETS; i++)
		mark_own(all, nall, pids[i], inodes);
	for (u32 named = 0; named < NAMED && used < size - 1;) {
		char comm[COMM_TEXT];

		pid = next_of(then, now, pids, n, pid, &ticks);
		if (!pid || (double)ticks / seconds < LEAST)
			break;
		comm_read(pid, comm);
		if (!*comm)
			continue; /* it has ended since */
		used += (size_t)snprintf(ret + used, size - used, "%s%s (pid %d, %.2f CPUs%s)",
		        named++ ? ", " : " Of the others used most: ", comm, pid, (double)ticks / seconds,
		        talks(all, nall, pid, inodes) ? ", connected with it" : "");
	}
	if (used && used < size - 1)
		snprintf(ret + used, size - used, ".");
}

void others_facts(struct others *then, const pid_t *pids, u32 n, struct facts *ret)
{
	cleanup(free) struct others *now = others_look();
	cleanup(free) char *clean = NULL;
	char text[512] = "";

	if (then && now && n && now->at_ns > then->at_ns)
		name_them(then, now, pids, n, text, sizeof(text));
	free(then);
	clean = clean_text(text);
	facts_set_text(ret, "others", clean ? clean : "");
}
