/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_pace.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "probes/cpu_time.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/now.h"
#include "unwind/process/switches.h"

#define THREADS_MOST  48   /* that are asked how long they waited for a CPU */
#define MEMORY        64   /* shifts that sums go back, about */
#define IDLE          0.5  /* CPUs: with less, progress is time, */
#define BUSY          0.8  /* and from here on it is CPU time again */
#define SATURATED     0.5  /* of time that hits take: a program at a fixed rate may have no time to wait then */
#define KEPT_LEAST    0.02 /* no program was seen to be slower in a shift */
#define OUTSIDE_LEAST 10e6 /* ns, to know how the program runs without hits */
#define HIT_OFF       0.25 /* of what a hit costs: it differs between programs, and between times */

void pace_free(struct pace *p)
{
	free(p->processes);
}

/* proc(5): /proc/PID/schedstat. */
static struct pace_process read_threads(pid_t pid)
{
	struct pace_process ret = {.pid = pid, .cpu = cpu_of_process(pid)};
	const struct dirent *entry;
	char path[320];
	DIR *dir;
	u32 n = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && n < THREADS_MOST && (entry = readdir(dir))) {
		cleanup(fclose) FILE *file = NULL;
		struct switches switches;
		u64 of[2];

		if (entry->d_name[0] == '.')
			continue;
		n++;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", pid, entry->d_name);
		file = fopen(path, "re");
		if (!file || fscanf(file, "%lu %lu", &of[0], &of[1]) != 2)
			continue;
		ret.ran += of[0];
		ret.ready += of[1];
		if (switches_read((u32)pid, (u32)atoi(entry->d_name), &switches))
			ret.waits += switches.voluntary;
	}
	if (dir)
		closedir(dir);
	return ret;
}

struct error *pace_add(struct pace *p, pid_t pid)
{
	struct error *err;

	for (u32 i = 0; i < p->nprocesses; i++)
		if (p->processes[i].pid == pid)
			return NULL;
	err = grow(&p->processes, p->nprocesses, sizeof(*p->processes));
	if (err)
		return err;
	p->at = p->at ?: now_ns();
	p->processes[p->nprocesses++] = read_threads(pid);
	return NULL;
}

/* Threads and processes may have ended: nothing is known of these then. */
static double grown(u64 was, u64 now)
{
	return was && now > was ? (double)(now - was) : 0;
}

static struct pace_span since_last(struct pace *p, u64 now, double hits_ns)
{
	struct pace_span ret = {.hits = hits_ns - p->hits, .wall = p->at ? (double)(now - p->at) : 0};

	for (u32 i = 0; i < p->nprocesses; i++) {
		struct pace_process was = p->processes[i], is = read_threads(was.pid);

		p->processes[i] = is;
		ret.cpu += grown(was.cpu, is.cpu);
		ret.ran += grown(was.ran, is.ran);
		ret.ready += grown(was.ready, is.ready);
		ret.waits += grown(was.waits, is.waits);
	}
	p->at = now;
	p->hits = hits_ns;
	return ret;
}

static void add(struct pace_span *sum, const struct pace_span *s, double keep)
{
	sum->cpu = keep * sum->cpu + s->cpu;
	sum->hits = keep * sum->hits + s->hits;
	sum->wall = keep * sum->wall + s->wall;
	sum->ran = keep * sum->ran + s->ran;
	sum->ready = keep * sum->ready + s->ready;
	sum->waits = keep * sum->waits + s->waits;
}

/* ns of a second that a program needs at most for what hits cost: it may have to wait for the CPU. */
static double lost_at_most(const struct pace_span *s)
{
	double waits = s->ran > 0 ? 1 + s->ready / s->ran : 1;

	return s->wall > 0 ? (1 + HIT_OFF) * waits * s->hits / s->wall : 0;
}

static double own(const struct pace_span *s, double dearer)
{
	return s->cpu - dearer * s->hits;
}

static double ratio(const struct pace *p, double inside, double outside)
{
	return outside > 0 ? inside / p->inside.wall / (outside / p->outside.wall) : 1;
}

/* With hits that cost so much more. */
static double kept_if(const struct pace *p, double dearer)
{
	bool by_waits = p->by_time && lost_at_most(&p->inside) < SATURATED;
	double kept = by_waits ? ratio(p, p->inside.waits, p->outside.waits)
	                       : ratio(p, own(&p->inside, dearer), own(&p->outside, 1));

	return fmin(fmax(kept, fmax(1 - lost_at_most(&p->inside), KEPT_LEAST)), 1);
}

/* Waits for a CPU are no rest. */
static bool is_idle(const struct pace *p, const struct pace_span *s)
{
	double ready = s->ran > 0 ? 1 + s->ready / s->ran : 1;

	return own(s, 1) * ready < (p->by_time ? BUSY : IDLE) * s->wall;
}

static void learn(struct pace *p)
{
	double outside;
	bool by_time;

	if (p->inside.wall <= 0 || p->outside.wall < OUTSIDE_LEAST)
		return;
	outside = own(&p->outside, 1) / p->outside.wall;
	by_time = is_idle(p, &p->outside);
	p->changed = by_time == p->by_time || outside <= 0 ? 0 : by_time ? 1 / outside : outside;
	p->by_time = by_time;
	p->kept = kept_if(p, 1);
	p->dearer = p->inside.hits > 0 ? (p->inside.cpu - p->kept * outside * p->inside.wall) / p->inside.hits : 1;
	p->dearer = fmin(fmax(p->dearer, 1 - HIT_OFF), 1 + HIT_OFF);
}

static double progress(const struct pace *p, const struct pace_span *s, bool shift)
{
	return p->by_time ? s->wall * (shift && p->kept > 0 ? p->kept : 1)
	                  : own(s, shift && p->dearer > 0 ? p->dearer : 1);
}

double pace_step(struct pace *p, u64 now, double hits_ns, bool shift)
{
	struct pace_span s = since_last(p, now, hits_ns);
	double ret;

	p->changed = 0;
	add(shift ? &p->inside : &p->outside, &s, 1 - 1.0 / MEMORY);
	if (shift)
		learn(p);
	ret = progress(p, &s, shift);
	p->done += ret;
	return ret;
}

void pace_skip(struct pace *p, u64 now, double hits_ns)
{
	struct pace_span s = since_last(p, now, hits_ns);

	add(&p->inside, &s, 1);
	p->by_time = is_idle(p, &s);
}

double pace_expect(const struct pace *p, double ns, bool shift)
{
	const struct pace_span *s = shift ? &p->inside : &p->outside;

	return s->wall > 0 ? fmax(progress(p, s, shift) / s->wall * ns, 0) : 0;
}

void pace_saw(struct pace *p, double calls, double progress, double weight)
{
	calls *= weight;
	progress *= weight;
	p->calls += calls;
	p->stands_for += progress;
	p->squares += calls * calls;
	p->products += calls * progress;
	p->parts += progress * progress;
}

/* By chance, as of a ratio: what differs between shifts is how many calls come with as much progress. */
static double by_chance(const struct pace *p)
{
	double rate = p->stands_for > 0 ? p->calls / p->stands_for : 0;

	return p->calls > 0 ? sqrt(fmax(p->squares - 2 * rate * p->products + rate * rate * p->parts, 0)) / p->calls
	                    : 1;
}

/* What the sum may be off by what is not known of hits. */
static double by_hits(const struct pace *p)
{
	double low = fmax(1 - lost_at_most(&p->inside), KEPT_LEAST);

	if (p->kept <= 0)
		return 0;
	if (p->by_time)
		return fmax(1 / p->kept, p->kept / low) - 1;
	return fmax(kept_if(p, 1 - HIT_OFF) / p->kept, p->kept / kept_if(p, 1 + HIT_OFF)) - 1;
}

double pace_error_by_chance(const struct pace *p)
{
	return 1.96 * by_chance(p);
}

double pace_error(const struct pace *p)
{
	return 1.96 * by_chance(p) + by_hits(p);
}
