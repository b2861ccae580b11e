/* SPDX-License-Identifier: Apache-2.0 */
/* Names of threads by their number in /proc, also of threads that ended before anyone asked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "hotspot_heap_view.h"
#include "now.h"

#define KEPT_MAX   4096
#define LOOK_NS    1000000000ull
#define LOOK_SHARE 100 /* looks take at most one part in so many of the time */
#define COMM_SAME  7   /* letters of a name that the kernel has in any case: 22 on make Lon..name of a long one */

struct hotspot_named {
	pid_t tid;
	char name[sizeof(((struct hotspot_thread *)0)->name)];
};

/* The number of a thread (tid 0: of the process) in the innermost pid namespace, which is the one that the JVM itself
 * sees. 0: it is gone. */
static pid_t inner_number(pid_t pid, pid_t tid)
{
	char path[64], line[256];
	pid_t ret = tid ? tid : pid;
	cleanup(fclose) FILE *f = NULL;

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	else
		snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		const char *last = strncmp(line, "NSpid:", 6) == 0 ? strrchr(line, '\t') : NULL;

		if (last)
			ret = atoi(last);
	}
	return ret;
}

/* Keeps the names of all threads now, and those of the look before. */
static void look(struct hotspot_heap_view *h, struct memory *m)
{
	cleanup(free) struct hotspot_thread *threads = calloc(KEPT_MAX, sizeof(*threads));
	struct hotspot_kept_names *k = &h->kept;
	struct hotspot_named *names;
	u64 begin = now_ns();
	u32 n = threads ? hotspot_threads(h, m, threads, KEPT_MAX, true) : 0;

	names = n ? calloc(n, sizeof(*names)) : NULL;
	if (names) {
		free(k->names[1]);
		k->names[1] = k->names[0];
		k->n[1] = k->n[0];
		k->names[0] = names;
		k->n[0] = n;
		for (u32 i = 0; i < n; i++) {
			names[i].tid = threads[i].tid;
			memcpy(names[i].name, threads[i].name, sizeof(names[i].name));
		}
	}
	k->next_ns = now_ns() + LOOK_NS + (now_ns() - begin) * LOOK_SHARE;
}

static const char *find(const struct hotspot_kept_names *k, pid_t tid)
{
	for (u32 look = 0; look < 2; look++)
		for (u32 i = 0; i < k->n[look]; i++)
			if (k->names[look][i].tid == tid)
				return k->names[look][i].name;
	return "";
}

/* An ending thread leaves the JVM's list before it is gone. What runs under its number with another name is another
 * one. */
static bool is_still(pid_t pid, pid_t tid, const char *name)
{
	char path[64], comm[32] = "";
	cleanup(fclose) FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	f = fopen(path, "re");
	return f && fgets(comm, sizeof(comm), f) && strncmp(comm, name, strnlen(name, COMM_SAME)) == 0;
}

bool hotspot_thread_name(struct hotspot_heap_view *h, struct memory *m, pid_t pid, pid_t tid, char *ret, size_t size)
{
	pid_t inner = inner_number(pid, tid);
	struct hotspot_thread thread = {0};
	const char *kept;

	if (!size)
		return false;
	if (now_ns() >= h->kept.next_ns)
		look(h, m);
	if (inner && hotspot_thread_of(h, m, inner, &thread)) {
		snprintf(ret, size, "%s", thread.name);
		return *ret != 0;
	}
	/* the number of one that is gone is known only where there is no other namespace */
	kept = find(&h->kept, inner ? inner : tid);
	if (!*kept || !(inner ? is_still(pid, tid, kept) : inner_number(pid, 0) == pid))
		return false;
	snprintf(ret, size, "%s", kept);
	return true;
}

void hotspot_kept_names_free(struct hotspot_kept_names *k)
{
	free(k->names[0]);
	free(k->names[1]);
}
