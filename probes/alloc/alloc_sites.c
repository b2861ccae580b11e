/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_sites.h"

#include <link.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "unwind/cleanup.h"
#include "unwind/now.h"
#include "probes/uprobe.h"

#define SHIFT_MS   200
#define EFFORT_MS  150 /* what it takes to place sites and to take them away, about */
#define AT_ONCE    32  /* sites that are taken away together */
#define PATH_SIZE  128
#define NO_PROBE   UINT32_MAX /* the program finds nothing, and ends */
#define MEASURED   9          /* hits */
#define COLD_BYTES (8u << 20) /* written between them: more than a CPU's own caches have */
#define LINE       64
#define A_MS       1000000ull

struct site {
	u32 process, cookie;
	pid_t pid;
	u64 offset;
	bool always;
	char path[PATH_SIZE];
	struct uprobe *uprobe; /* NULL: it is not placed */
};

struct alloc_sites {
	struct object *object;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool running, ending;
	struct site *sites;
	u32 nsites;
	double duty;
	u64 placed_since, placed_ns; /* since: 0 while they are not */
	struct uprobe *measured;     /* in this program, where nothing runs */
};

struct error *alloc_sites_create(struct object *o, struct alloc_sites **ret)
{
	struct alloc_sites *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;

	*ret = s;
	if (!s)
		return &error_no_memory;
	s->object = o;
	s->duty = 1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attr);
	pthread_condattr_destroy(&attr);
	return NULL;
}

static struct error *place(struct alloc_sites *s, struct site *site)
{
	return alloc_object_attach_site(s->object, site->pid, site->path, site->offset, site->cookie, &site->uprobe);
}

/* Under the lock, as what follows. */
static void place_all(struct alloc_sites *s)
{
	for (u32 i = 0; i < s->nsites; i++)
		if (!s->sites[i].uprobe)
			error_free(place(s, &s->sites[i])); /* gone with its process */
	s->placed_since = now_ns();
	alloc_object_set_open(s->object, true);
}

static void *take_away(void *uprobe)
{
	uprobe_take_away(uprobe);
	return NULL;
}

/* Together, each by a thread, as each waits for a grace period of its own. */
static void take_away_together(struct uprobe **uprobes, u32 n)
{
	pthread_t threads[AT_ONCE];
	u32 started = 0;

	while (started < n && !pthread_create(&threads[started], NULL, take_away, uprobes[started]))
		started++;
	for (u32 i = started; i < n; i++)
		uprobe_take_away(uprobes[i]);
	while (started)
		pthread_join(threads[--started], NULL);
}

/* Some of those that are a matter of shifts, or of all; *ret has room for AT_ONCE. Returns how many. */
static u32 let_go(struct alloc_sites *s, bool all, struct uprobe **ret)
{
	u32 n = 0;

	if (s->measured)
		ret[n++] = TAKE(s->measured);
	for (u32 i = 0; i < s->nsites && n < AT_ONCE; i++) {
		struct site *site = &s->sites[i];

		if (!site->uprobe || (site->always && !all))
			continue;
		ret[n++] = site->uprobe;
		site->uprobe = NULL;
	}
	return n;
}

static void end_shift(struct alloc_sites *s)
{
	struct uprobe *uprobes[AT_ONCE];
	u32 n;

	alloc_object_set_open(s->object, false);
	if (s->placed_since)
		s->placed_ns += now_ns() - s->placed_since;
	s->placed_since = 0;
	while ((n = let_go(s, false, uprobes))) {
		pthread_mutex_unlock(&s->lock); /* who samples must not wait for that */
		take_away_together(uprobes, n);
		pthread_mutex_lock(&s->lock);
	}
}

static double random_part(void)
{
	u32 number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		number = (u32)now_ns();
	return number / 0x1p32;
}

/* Until then, or until something changes. */
static void wait_until(struct alloc_sites *s, u64 when)
{
	struct timespec ts = {.tv_sec = (time_t)(when / 1000000000), .tv_nsec = (long)(when % 1000000000)};

	while (!s->ending && now_ns() < when)
		pthread_cond_timedwait(&s->changed, &s->lock, &ts);
}

/* A shift at a random moment of a period, which is longer where the shift was. */
static void one_period(struct alloc_sites *s)
{
	u64 begin = now_ns(), before = s->placed_ns;
	double spare = SHIFT_MS / s->duty - SHIFT_MS - EFFORT_MS;

	end_shift(s);
	wait_until(s, begin + (u64)(random_part() * fmax(spare, 0) * A_MS));
	if (s->ending)
		return;
	place_all(s);
	wait_until(s, now_ns() + SHIFT_MS * A_MS);
	end_shift(s);
	wait_until(s, begin + (u64)((double)(s->placed_ns - before) / s->duty));
}

static void *work(void *arg)
{
	struct alloc_sites *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->ending) {
		if (s->duty < 1) {
			one_period(s);
			continue;
		}
		if (!s->placed_since)
			place_all(s);
		pthread_cond_wait(&s->changed, &s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

struct error *alloc_sites_add(
        struct alloc_sites *s, u32 process, pid_t pid, const char *path, u64 offset, u32 cookie, bool always)
{
	struct site site = {.process = process, .cookie = cookie, .pid = pid, .offset = offset, .always = always};
	struct error *err;
	struct site *more;

	snprintf(site.path, sizeof(site.path), "%s", path);
	err = place(s, &site);
	if (err)
		return err;
	pthread_mutex_lock(&s->lock);
	more = realloc(s->sites, (s->nsites + 1) * sizeof(*s->sites));
	if (more) {
		s->sites = more;
		s->sites[s->nsites++] = site;
		if (s->nsites == 1)
			s->placed_since = now_ns();
	}
	pthread_mutex_unlock(&s->lock);
	if (more)
		return NULL;
	uprobe_take_away(site.uprobe);
	return &error_no_memory;
}

bool alloc_sites_has(struct alloc_sites *s, u32 process)
{
	bool found = false;

	pthread_mutex_lock(&s->lock);
	for (u32 i = 0; i < s->nsites; i++)
		found |= s->sites[i].process == process;
	pthread_mutex_unlock(&s->lock);
	return found;
}

void alloc_sites_set_duty(struct alloc_sites *s, double duty)
{
	pthread_mutex_lock(&s->lock);
	s->duty = duty;
	if (duty < 1 && !s->running)
		s->running = pthread_create(&s->thread, NULL, work, s) == 0;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

u64 alloc_sites_placed_ns(struct alloc_sites *s)
{
	u64 ns;

	pthread_mutex_lock(&s->lock);
	ns = s->placed_ns + (s->placed_since ? now_ns() - s->placed_since : 0);
	pthread_mutex_unlock(&s->lock);
	return ns;
}

void alloc_sites_clear(struct alloc_sites *s)
{
	struct uprobe *uprobes[AT_ONCE];
	u32 n;

	pthread_mutex_lock(&s->lock);
	s->ending = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (s->running)
		pthread_join(s->thread, NULL);
	s->running = false;
	while ((n = let_go(s, true, uprobes)))
		take_away_together(uprobes, n);
	s->nsites = 0;
}

void alloc_sites_destroy(struct alloc_sites *s)
{
	if (!s)
		return;
	alloc_sites_clear(s);
	free(s->sites);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* Nothing but a place for a uprobe: an instruction that the kernel emulates, as it does where functions begin. */
void alloc_sites_nothing(void);
__asm__(".text\n.type alloc_sites_nothing, @function\nalloc_sites_nothing: nop\nret\n.size alloc_sites_nothing, . - "
        "alloc_sites_nothing\n");

/* Where it lies in the file of this program. */
static int find_offset(struct dl_phdr_info *info, size_t size, void *ret)
{
	u64 addr = (u64)alloc_sites_nothing - info->dlpi_addr;

	for (u32 i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && addr >= ph->p_vaddr && addr - ph->p_vaddr < ph->p_filesz)
			*(u64 *)ret = addr - ph->p_vaddr + ph->p_offset;
	}
	return 1; /* the program is the first */
}

static int by_value(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

u64 alloc_sites_measure(struct alloc_sites *s)
{
	cleanup(free) volatile u8 *cold = calloc(1, COLD_BYTES);
	u64 offset = 0, took[MEASURED];
	struct error *err;

	dl_iterate_phdr(find_offset, &offset);
	err = cold && offset ? alloc_object_attach_site(s->object, 0, "/proc/self/exe", offset, NO_PROBE, &s->measured)
	                     : &error_no_memory;
	if (err) {
		error_free(err);
		return 0;
	}
	for (u32 i = 0; i < MEASURED; i++) {
		u64 begin;

		for (u32 k = 0; k < COLD_BYTES; k += LINE)
			cold[k]++;
		begin = now_ns();
		alloc_sites_nothing();
		took[i] = now_ns() - begin;
	}
	qsort(took, MEASURED, sizeof(*took), by_value);
	return took[MEASURED / 2];
}
