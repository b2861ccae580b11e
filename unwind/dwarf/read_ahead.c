/* SPDX-License-Identifier: Apache-2.0 */
#include "read_ahead.h"

#include <stdlib.h>

#include "section.h"
#include "thread_start.h"

#define STEP SECTION_CHUNK /* what is saved on the way lies at chunks */

struct read_ahead {
	struct unpacker *u;
	u8 *base;
	u64 size;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	u64 done, limit; /* offsets: unpacked up to, and allowed up to */
	bool stop, failed;
};

/* The next offset to unpack to; 0: no more. */
static u64 next_step(struct read_ahead *a)
{
	u64 to = 0;

	pthread_mutex_lock(&a->lock);
	while (!a->stop && a->done < a->size && a->done >= a->limit)
		pthread_cond_wait(&a->changed, &a->lock);
	if (!a->stop && a->done < a->size)
		to = a->size - a->done < STEP ? a->size : a->done + STEP;
	pthread_mutex_unlock(&a->lock);
	return to;
}

static void *run(void *arg)
{
	struct read_ahead *a = arg;
	bool good = true;
	u64 to;

	while (good && (to = next_step(a))) {
		good = unpacker_next(a->u, a->base + a->done, to - a->done);
		pthread_mutex_lock(&a->lock);
		a->failed = !good;
		a->done = good ? to : a->done;
		pthread_cond_signal(&a->changed);
		pthread_mutex_unlock(&a->lock);
	}
	return NULL;
}

struct read_ahead *read_ahead_start(struct unpacker *u, u8 *base, u64 size)
{
	struct read_ahead *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	*a = (struct read_ahead){.u = u, .base = base, .size = size, .done = unpacker_at(u), .limit = unpacker_at(u)};
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	if (!thread_start(&a->thread, NULL, run, a))
		return a;
	free(a);
	return NULL;
}

bool read_ahead_wait(struct read_ahead *a, u64 offset, u64 limit)
{
	bool there;

	pthread_mutex_lock(&a->lock);
	a->limit = limit;
	pthread_cond_signal(&a->changed);
	while (a->done < offset && !a->failed)
		pthread_cond_wait(&a->changed, &a->lock);
	there = a->done >= offset;
	pthread_mutex_unlock(&a->lock);
	return there;
}

void read_ahead_stop(struct read_ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a);
}
