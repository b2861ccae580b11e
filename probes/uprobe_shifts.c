/* SPDX-License-Identifier: Apache-2.0 */
#include "uprobe_shifts.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "unwind/grow.h"
#include "unwind/now.h"
#include "unwind/thread_start.h"
#include "uprobe.h"

#define EFFORT_MS 150 /* what it takes to place uprobes and to take them away, about */
#define AT_ONCE   32  /* that are taken away together */
#define LOOK_MS   2   /* between two looks whether something is under way */
#define WHOLE     0.7 /* of the time: to place uprobes for less than all of it would not spare much */
#define A_MS      1000000ull

struct placed {
	struct uprobe_site site;
	int file;
	struct uprobe *uprobe; /* NULL: it is not placed */
};

struct uprobe_shifts {
	struct uprobe_shifts_options options;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool running, ending, closed;
	struct placed *placed;
	u32 nplaced;
	double duty;
	u64 open_since, open_ns; /* since: 0 while hits do not count */
	u64 covered;             /* up to when hits of shifts stand for what was not seen */
	struct uprobe **leaving; /* to be taken away with the next */
	u32 nleaving;
};

/* Some that are taken away, each by a thread, as each waits for a grace period of its own. */
struct departure {
	pthread_t threads[AT_ONCE];
	u32 n;
};

struct error *uprobe_shifts_create(const struct uprobe_shifts_options *options, struct uprobe_shifts **ret)
{
	struct uprobe_shifts *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;

	*ret = s;
	if (!s)
		return &error_no_memory;
	s->options = *options;
	s->duty = 1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attr);
	pthread_condattr_destroy(&attr);
	return NULL;
}

static struct error *place(struct placed *p)
{
	const struct uprobe_site *site = &p->site;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", p->file);
	return uprobe_place(site->program, site->pid, path, site->offset, site->counter, site->cookie, &p->uprobe);
}

/* Under the lock, as what follows. What cannot be placed again is tried in the next shift, unless its process ended. */
static void place_some(struct uprobe_shifts *s, bool last)
{
	for (u32 i = 0; i < s->nplaced; i++) {
		struct placed *p = &s->placed[i];
		struct error *err = p->uprobe || p->site.last != last ? NULL : place(p);

		if (err && kill(p->site.pid, 0) && errno == ESRCH) {
			close(p->file);
			*p = s->placed[--s->nplaced];
			i--;
		}
		error_free(err);
	}
}

/* length: of the shift; 0: it has no end. */
static void begin_counting(struct uprobe_shifts *s, u32 each, u64 length)
{
	place_some(s, true);
	place_some(s, false);
	s->open_since = now_ns();
	s->closed = false;
	s->options.open(s->options.ctx, each, length ? s->open_since + length : UINT64_MAX);
}

static void *take_away(void *uprobe)
{
	uprobe_take_away(uprobe);
	return NULL;
}

static void depart(struct departure *d, struct uprobe *u)
{
	if (thread_start(&d->threads[d->n], NULL, take_away, u))
		uprobe_take_away(u);
	else
		d->n++;
}

/* Who samples must not wait for that. */
static void wait_unlocked(struct uprobe_shifts *s, struct departure *d)
{
	pthread_mutex_unlock(&s->lock);
	while (d->n)
		pthread_join(d->threads[--d->n], NULL);
	pthread_mutex_lock(&s->lock);
}

enum which {
	FIRST, /* those that are a matter of shifts, but not "last" */
	SHIFTS,
	ALL,
};

static bool is_one(const struct placed *p, enum which which)
{
	return which == ALL || (!p->site.always && (which == SHIFTS || !p->site.last));
}

static void take_some_away(struct uprobe_shifts *s, enum which which, struct departure *d)
{
	for (u32 i = 0; i < s->nplaced; i++) {
		struct uprobe *u = s->placed[i].uprobe;

		if (!u || !is_one(&s->placed[i], which))
			continue;
		s->placed[i].uprobe = NULL;
		depart(d, u);
		if (d->n == AT_ONCE)
			wait_unlocked(s, d);
	}
	for (; s->nleaving && d->n < AT_ONCE; s->nleaving--)
		depart(d, s->leaving[s->nleaving - 1]);
}

/* Returns for how long hits counted; length: of the shift; 0: it had no end. */
static u64 stop_counting(struct uprobe_shifts *s, u64 length)
{
	u64 ns = s->open_since ? now_ns() - s->open_since : 0;

	ns = s->options.exact && length && ns > length ? length : ns;
	s->options.open(s->options.ctx, 0, 0);
	s->closed = true;
	s->open_ns += ns;
	s->open_since = 0;
	return ns;
}

static double random_part(void)
{
	u32 number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		number = (u32)now_ns();
	return number / 0x1p32;
}

/* Until then, or until the end. */
static void wait_until(struct uprobe_shifts *s, u64 when)
{
	struct timespec ts = now_timespec(when);

	while (!s->ending && now_ns() < when)
		pthread_cond_timedwait(&s->changed, &s->lock, &ts);
}

static void wait_while_under_way(struct uprobe_shifts *s, u64 limit)
{
	while (!s->ending && now_ns() < limit && s->options.under_way && s->options.under_way(s->options.ctx))
		wait_until(s, now_ns() + LOOK_MS * A_MS);
}

/* What a hit of a shift stands for, if hits of the last one stood for the time until "covered". */
static u32 stands_for(const struct uprobe_shifts *s, u64 length, u64 end)
{
	double each = end > s->covered ? (double)(end - s->covered) / (double)length : 1;

	return (u32)fmax(1, round(each));
}

/* A shift at a random moment of a period, which is longer where the shift was. */
static void one_period(struct uprobe_shifts *s)
{
	double ms = fmax(s->options.shift_ms, s->duty * s->options.period_ms), spare = ms / s->duty - ms - EFFORT_MS;
	u64 begin = now_ns(), length = (u64)(ms * A_MS), took, end;
	struct departure leaving = {0};
	u32 each;

	wait_until(s, begin + (u64)(random_part() * fmax(spare, 0) * A_MS));
	if (s->ending)
		return;
	each = stands_for(s, length, begin + (u64)((double)length / s->duty));
	begin_counting(s, each, length);
	wait_until(s, now_ns() + length);
	took = stop_counting(s, length);
	s->covered += each * took;
	end = begin + (u64)((double)took / s->duty);
	take_some_away(s, FIRST, &leaving);
	wait_while_under_way(s, end);
	if (s->options.over)
		s->options.over(s->options.ctx);
	take_some_away(s, SHIFTS, &leaving);
	wait_unlocked(s, &leaving);
	wait_until(s, end);
}

static void begin_shifts(struct uprobe_shifts *s)
{
	struct departure leaving = {0};

	stop_counting(s, 0);
	s->covered = now_ns();
	if (s->options.over)
		s->options.over(s->options.ctx);
	take_some_away(s, SHIFTS, &leaving);
	wait_unlocked(s, &leaving);
}

static void *work(void *arg)
{
	struct uprobe_shifts *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->ending) {
		if (s->duty < 1) {
			if (s->open_since)
				begin_shifts(s);
			one_period(s);
			continue;
		}
		if (!s->open_since)
			begin_counting(s, 1, 0);
		pthread_cond_wait(&s->changed, &s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static struct error *add(struct uprobe_shifts *s, struct placed *p)
{
	struct error *err = s->closed && !p->site.always ? NULL : place(p);

	if (!err)
		err = grow(&s->placed, s->nplaced, sizeof(*s->placed));
	if (err) {
		uprobe_take_away(p->uprobe);
		return err;
	}
	if (!s->open_since && !s->closed)
		s->open_since = now_ns();
	s->placed[s->nplaced++] = *p;
	return NULL;
}

struct error *uprobe_shifts_add(struct uprobe_shifts *s, const struct uprobe_site *site, const char *path)
{
	struct placed p = {.site = *site, .file = open(path, O_PATH | O_CLOEXEC)};
	struct error *err;

	if (p.file < 0 && (errno == ENOENT || errno == ESRCH))
		return NULL;
	if (p.file < 0)
		return error_errno(errno, "cannot open %s for a uprobe in process %d", path, site->pid);
	pthread_mutex_lock(&s->lock);
	err = add(s, &p);
	pthread_mutex_unlock(&s->lock);
	if (err)
		close(p.file);
	return err;
}

bool uprobe_shifts_has(struct uprobe_shifts *s, u32 process)
{
	bool found = false;

	pthread_mutex_lock(&s->lock);
	for (u32 i = 0; i < s->nplaced; i++)
		found |= s->placed[i].site.process == process;
	pthread_mutex_unlock(&s->lock);
	return found;
}

double uprobe_shifts_duty(double allowed, double now, double least)
{
	return allowed >= (now < 1 ? 1 : WHOLE) ? 1 : fmax(allowed, least);
}

void uprobe_shifts_set_duty(struct uprobe_shifts *s, double duty)
{
	pthread_mutex_lock(&s->lock);
	s->duty = duty;
	if (duty < 1 && !s->running)
		s->running = thread_start(&s->thread, NULL, work, s) == 0;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

u64 uprobe_shifts_open_ns(struct uprobe_shifts *s)
{
	u64 ns;

	pthread_mutex_lock(&s->lock);
	ns = s->open_ns + (s->open_since ? now_ns() - s->open_since : 0);
	pthread_mutex_unlock(&s->lock);
	return ns;
}

void uprobe_shifts_take_away(struct uprobe_shifts *s, struct uprobe *u)
{
	bool kept;

	if (!u)
		return;
	pthread_mutex_lock(&s->lock);
	kept = !grow(&s->leaving, s->nleaving, sizeof(*s->leaving));
	if (kept)
		s->leaving[s->nleaving++] = u;
	pthread_mutex_unlock(&s->lock);
	if (!kept)
		uprobe_take_away(u);
}

void uprobe_shifts_clear(struct uprobe_shifts *s)
{
	struct departure leaving = {0};

	pthread_mutex_lock(&s->lock);
	s->ending = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (s->running)
		pthread_join(s->thread, NULL);
	s->running = false;
	pthread_mutex_lock(&s->lock);
	take_some_away(s, ALL, &leaving);
	wait_unlocked(s, &leaving);
	for (u32 i = 0; i < s->nplaced; i++)
		close(s->placed[i].file);
	s->nplaced = 0;
	pthread_mutex_unlock(&s->lock);
}

void uprobe_shifts_destroy(struct uprobe_shifts *s)
{
	if (!s)
		return;
	uprobe_shifts_clear(s);
	free(s->placed);
	free(s->leaving);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
