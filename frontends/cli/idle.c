/* SPDX-License-Identifier: Apache-2.0 */
#include "idle.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unwind/cleanup.h"
#include "unwind/process/children.h"

#define PLACES   32
#define CHILDREN 256
#define TOLD     3          /* processes */
#define LOOK_NS  100000000L /* children are looked at twice */

struct place { /* where threads sleep: a function of the kernel */
	char name[64];
	unsigned threads;
};

struct threads {
	unsigned n, stopped, traced, asleep, frozen;
	struct place places[PLACES];
	unsigned nplaces;
};

static bool read_line(char *ret, size_t size, const char *format, pid_t pid, pid_t tid)
{
	char path[96];
	cleanup(fclose) FILE *file = NULL;

	snprintf(path, sizeof(path), format, pid, tid);
	file = fopen(path, "re");
	if (!file || !fgets(ret, (int)size, file))
		return false;
	ret[strcspn(ret, "\n")] = '\0';
	return true;
}

/* Behind the name of a thread, which may hold anything: its state, and later its CPU time. */
static const char *behind_name(const char *stat)
{
	const char *end = strrchr(stat, ')');

	return end && end[1] ? end + 2 : "";
}

static void add_place(struct threads *t, const char *name)
{
	unsigned i = 0;

	while (i < t->nplaces && strcmp(t->places[i].name, name))
		i++;
	if (i == PLACES)
		return;
	if (i == t->nplaces)
		snprintf(t->places[t->nplaces++].name, sizeof(t->places[i].name), "%s", name);
	t->places[i].threads++;
}

/* Where the kernel holds the threads of a frozen control group, of version 1 and 2. */
static bool is_freezer(const char *place)
{
	return !strcmp(place, "__refrigerator") || !strcmp(place, "do_freezer_trap");
}

static void add_thread(struct threads *t, pid_t pid, pid_t tid)
{
	char stat[512], place[64], state;

	if (!read_line(stat, sizeof(stat), "/proc/%d/task/%d/stat", pid, tid))
		return;
	state = *behind_name(stat);
	if (state == 'Z' || state == 'X') /* it has ended */
		return;
	t->n++;
	t->stopped += state == 'T';
	t->traced += state == 't';
	t->asleep += state == 'S' || state == 'D';
	if (read_line(place, sizeof(place), "/proc/%d/task/%d/wchan", pid, tid) && strcmp(place, "0")) {
		add_place(t, place);
		t->frozen += is_freezer(place);
	}
}

static void read_threads(pid_t pid, struct threads *ret)
{
	char path[64];
	struct dirent *entry;
	DIR *dir;

	*ret = (struct threads){0};
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (atoi(entry->d_name) > 0)
			add_thread(ret, pid, atoi(entry->d_name));
	if (dir)
		closedir(dir);
}

struct use { /* of the CPU, by a process */
	unsigned long ticks;
	bool is_runnable; /* its first thread runs, or waits for a CPU */
};

static struct use read_use(pid_t pid)
{
	unsigned long user, system;
	char stat[512], state;

	if (!read_line(stat, sizeof(stat), "/proc/%d/stat", pid, 0) ||
	        sscanf(behind_name(stat), "%c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &state, &user,
	                &system) != 3)
		return (struct use){0};
	return (struct use){.ticks = user + system, .is_runnable = state == 'R'};
}

/* How many children use CPU. On a busy machine one may wait for a CPU all the while, and no tick is counted. */
static unsigned busy_children(pid_t pid)
{
	static const struct timespec moment = {.tv_nsec = LOOK_NS};
	struct use before[CHILDREN], after;
	cleanup(free) pid_t *children = NULL;
	unsigned busy = 0;
	u32 n;

	error_free(children_list(pid, &children, &n));
	n = n < CHILDREN ? n : CHILDREN;
	for (u32 i = 0; i < n; i++)
		before[i] = read_use(children[i]);
	if (n)
		nanosleep(&moment, NULL);
	for (u32 i = 0; i < n; i++) {
		after = read_use(children[i]);
		busy += after.ticks > before[i].ticks || (after.is_runnable && before[i].is_runnable);
	}
	return busy;
}

static const struct place *most_frequent(const struct threads *t)
{
	const struct place *best = NULL;

	for (unsigned i = 0; i < t->nplaces; i++)
		if (!best || t->places[i].threads > best->threads)
			best = &t->places[i];
	return best;
}

static void put_sleep(FILE *out, const struct threads *t)
{
	const struct place *place = most_frequent(t);

	if (t->n == 1)
		fputs(t->asleep ? "its only thread sleeps" : "its only thread waits for a CPU", out);
	else
		fprintf(out, "%u of its %u threads sleep", t->asleep, t->n);
	if (t->asleep && place && place->threads == t->asleep)
		fprintf(out, " in %s", place->name);
	else if (t->asleep && place)
		fprintf(out, ", %u of them in %s", place->threads, place->name);
}

/* What thaws it: the group of the freezer in version 1, the only one in version 2. */
static void put_frozen(FILE *out, pid_t pid)
{
	cleanup(fclose) FILE *file = NULL;
	char path[64], line[512], unified[512] = "";
	const char *group;

	fprintf(out, "process %d is frozen by its control group, or one above it", pid);
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "0::", 3))
			snprintf(unified, sizeof(unified), "%s", line + 3);
		group = strstr(line, ":freezer:");
		if (!group)
			continue;
		fprintf(out, ": `echo THAWED > /sys/fs/cgroup/freezer%s/freezer.state` resumes it\n", group + 9);
		return;
	}
	fprintf(out, *unified ? ": `echo 0 > /sys/fs/cgroup%s/cgroup.freeze` resumes it\n" : "%s\n", unified);
}

static bool explain_stopped(FILE *out, pid_t pid, const struct threads *t)
{
	if (t->traced)
		fprintf(out, "a debugger holds process %d\n", pid);
	else if (t->frozen && t->frozen == t->n)
		put_frozen(out, pid);
	else if (t->stopped)
		fprintf(out, "process %d is stopped; `kill -CONT %d` resumes it\n", pid, pid);
	return t->traced || t->stopped || (t->frozen && t->frozen == t->n);
}

static void explain_one(FILE *out, pid_t pid, double seconds, int follows)
{
	struct threads t;
	unsigned busy;

	read_threads(pid, &t);
	if (!t.n || explain_stopped(out, pid, &t))
		return;
	busy = follows ? 0 : busy_children(pid);
	if (busy) {
		fprintf(out, "process %d used no CPU in %.1f s, but %u of its children did: add -s\n", pid, seconds,
		        busy);
	} else {
		fprintf(out, "process %d used no CPU in %.1f s: ", pid, seconds);
		put_sleep(out, &t);
		fputs("; `yrt off-flame` shows waits\n", out);
	}
}

void idle_explain(FILE *out, const pid_t *pids, int n, double seconds, int follows)
{
	for (int i = 0; i < n && i < TOLD; i++)
		explain_one(out, pids[i], seconds, follows);
	if (n > TOLD)
		fprintf(out, "%d more processes used no CPU\n", n - TOLD);
}

void idle_explain_stopped(FILE *out, const pid_t *pids, int n)
{
	for (int i = 0; i < n && i < TOLD; i++) {
		struct threads t;

		read_threads(pids[i], &t);
		explain_stopped(out, pids[i], &t);
	}
}
