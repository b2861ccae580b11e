/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_waits.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "unwind/cleanup.h"
#include "unwind/process/switches.h"

#define THREADS_MOST 48
#define TOGETHER     16    /* windows that follow each other: one alone has few waits */
#define WAITS_LEAST  4     /* in all windows */
#define WHOLE        0.8   /* of the time that windows with calls stand for, that those with a wait do */
#define WAIT_RARE    200e6 /* ns: who waits more rarely than once in that time does not wait for work */
#define READY        0.8   /* of the time: who is ready to run for so long does not, either */
#define DIM          0.5   /* of the time between hits, that these take: less, and CPU time says more */

/* proc(5): /proc/PID/schedstat: on a CPU, and waiting for one. */
static void add_thread(pid_t pid, int tid, struct alloc_waited *ret)
{
	cleanup(fclose) FILE *file = NULL;
	struct switches of;
	u64 ran, queued;
	char path[64];

	if (!switches_read((u32)pid, (u32)tid, &of))
		return;
	ret->voluntary += of.voluntary;
	ret->others += of.others;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	file = fopen(path, "re");
	if (file && fscanf(file, "%lu %lu", &ran, &queued) == 2)
		ret->ready += ran + queued;
}

bool alloc_waits_count(pid_t pid, struct alloc_waited *ret)
{
	const struct dirent *entry;
	char path[64];
	DIR *dir;
	u32 n = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && n <= THREADS_MOST && (entry = readdir(dir)))
		if (entry->d_name[0] != '.') {
			n++;
			add_thread(pid, atoi(entry->d_name), ret);
		}
	if (dir)
		closedir(dir);
	return n <= THREADS_MOST;
}

static double more(u64 from, u64 to)
{
	return to > from ? (double)(to - from) : 0;
}

bool alloc_waits_often(const struct alloc_waited *from, const struct alloc_waited *to, double ns)
{
	double waits = more(from->voluntary, to->voluntary);

	return waits > more(from->others, to->others) && waits > ns / WAIT_RARE &&
	       more(from->ready, to->ready) < READY * ns;
}

bool alloc_waits_tell(const struct alloc_slice *slices, u32 n, const struct alloc_cold *cold)
{
	double seen = 0, whole = 0, waits = 0, behind = 0, ousted = 0, gaps = 0, hits = 0, gap_ns = 0, hits_ns = 0,
	       cpu_ns = 0, ns = 0, ready = 0;

	for (u32 i = 0; i < n; i++) {
		const struct alloc_slice *s = &slices[i];

		seen += s->calls > 0 ? s->ns_behind : 0;
		whole += s->calls > 0 && s->waits > 0 ? s->ns_behind : 0;
		waits += s->waits;
		behind += s->waits_behind;
		ousted += s->ousted_behind;
		ready += s->ready_behind;
		gaps += s->gaps;
		hits += s->hits;
		gap_ns += s->gap_ns;
		hits_ns += s->gaps * (s->exception_ns + cold->ns);
		cpu_ns += s->stands_for;
		ns += s->ns_behind;
	}
	return seen > 0 && whole >= WHOLE * seen && waits >= WAITS_LEAST && cpu_ns < ALLOC_WAITS_BUSY * ns &&
	       behind > ousted && ready < READY * ns && (gaps < hits / 2 || hits_ns > DIM * gap_ns);
}

void alloc_waits_weights(const struct alloc_slice *slices, u32 n, double *by_waits, double *by_time)
{
	for (u32 first = 0, end; first < n; first = end) {
		double waits = 0, waits_behind = 0, ns = 0, ns_behind = 0;

		end = n - first < 2 * TOGETHER ? n : first + TOGETHER;
		for (u32 i = first; i < end; i++) {
			waits += slices[i].waits;
			waits_behind += slices[i].waits_behind;
			ns += slices[i].ns;
			ns_behind += slices[i].ns_behind;
		}
		for (u32 i = first; i < end; i++) {
			by_time[i] = ns > 0 ? fmax(ns_behind / ns, 1) : 1;
			by_waits[i] = waits > 0 ? fmax(waits_behind / waits, 1) : by_time[i];
		}
	}
}
