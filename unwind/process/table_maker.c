/* SPDX-License-Identifier: Apache-2.0 */
#include "table_maker.h"

#include <stdio.h>
#include <stdlib.h>

#include "symbols/symbols.h"
#include "thread_start.h"

struct job {
	struct job *next;
	struct image *img;
	dev_t dev;
	ino_t ino;
	char root[64];
	bool begun, made;
};

struct table_maker {
	struct cfi_options options;
	enum table_order order;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t asked, done;
	struct job *jobs;
	u32 made;
	bool stop;
	bool at_work; /* on a file */
	bool left;    /* nobody waits for the thread: it frees all this */
};

struct error *tables_load(struct image *img, const struct cfi_options *options, const char *root)
{
	struct cfi_options with_debug = *options;
	struct error *err = cfi_load(img, options, &img->cfi);

	if (err || !cfi_is_sparse(img, img->cfi))
		return err;
	err = symbols_debug_file(img, root, &with_debug.debug);
	if (err || !with_debug.debug)
		return err;
	cfi_destroy(img->cfi);
	img->cfi = NULL;
	err = cfi_load(img, &with_debug, &img->cfi);
	image_put(with_debug.debug);
	return err;
}

static bool helps(const struct table_maker *m)
{
	return m->order == TABLES_LARGEST_FIRST;
}

/* The last one comes first in the list. */
static bool goes_before(const struct table_maker *m, const struct job *job, const struct job *other)
{
	return m->order == TABLES_OLDEST_FIRST || (job->img->size < other->img->size) != helps(m);
}

static struct job *next_job(struct table_maker *m)
{
	struct job *best = NULL;

	for (struct job *job = m->jobs; job; job = job->next)
		if (!job->begun && (!best || goes_before(m, job, best)))
			best = job;
	return best;
}

static void job_destroy(struct job *job)
{
	image_put(job->img);
	free(job);
}

static void maker_free(struct table_maker *m)
{
	struct job *next;

	for (struct job *job = m->jobs; job; job = next) {
		next = job->next;
		job_destroy(job);
	}
	pthread_cond_destroy(&m->asked);
	pthread_cond_destroy(&m->done);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

/* Without memory the image comes back without tables: whoever loads it fails for the same reason. */
static void *run(void *arg)
{
	struct table_maker *m = arg;
	struct job *job;
	bool left;

	pthread_mutex_lock(&m->lock);
	while (!m->stop) {
		job = next_job(m);
		if (!job) {
			pthread_cond_wait(&m->asked, &m->lock);
			continue;
		}
		job->begun = m->at_work = true;
		pthread_mutex_unlock(&m->lock);
		error_free(tables_load(job->img, &m->options, job->root));
		pthread_mutex_lock(&m->lock);
		m->at_work = false;
		job->made = true;
		m->made++;
		pthread_cond_signal(&m->done);
	}
	left = m->left;
	pthread_mutex_unlock(&m->lock);
	if (left)
		maker_free(m);
	return NULL;
}

struct table_maker *table_maker_create(const struct cfi_options *options, enum table_order order)
{
	struct table_maker *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->options = *options;
	m->order = order;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->asked, NULL);
	pthread_cond_init(&m->done, NULL);
	if (!thread_start(&m->thread, NULL, run, m))
		return m;
	free(m);
	return NULL;
}

void table_maker_destroy(struct table_maker *m)
{
	pthread_t thread;
	bool left;

	if (!m)
		return;
	thread = m->thread;
	pthread_mutex_lock(&m->lock);
	m->stop = true;
	left = m->left = m->at_work;
	pthread_cond_signal(&m->asked);
	if (left) /* from the unlocking on m may be gone */
		pthread_detach(thread);
	pthread_mutex_unlock(&m->lock);
	if (left)
		return;
	pthread_join(thread, NULL);
	maker_free(m);
}

static struct job **find_job(struct table_maker *m, dev_t dev, ino_t ino)
{
	struct job **at = &m->jobs;

	while (*at && ((*at)->ino != ino || (*at)->dev != dev))
		at = &(*at)->next;
	return at;
}

bool table_maker_put(struct table_maker *m, struct image *img, dev_t dev, ino_t ino, const char *root)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return false;
	*job = (struct job){.img = img, .dev = dev, .ino = ino};
	snprintf(job->root, sizeof(job->root), "%s", root);
	pthread_mutex_lock(&m->lock);
	job->next = m->jobs;
	m->jobs = job;
	pthread_cond_signal(&m->asked);
	pthread_mutex_unlock(&m->lock);
	return true;
}

bool table_maker_take(struct table_maker *m, dev_t dev, ino_t ino, struct image **ret)
{
	struct job *job, **at;

	*ret = NULL;
	pthread_mutex_lock(&m->lock);
	at = find_job(m, dev, ino);
	job = *at;
	while (job && helps(m) && job->begun && !job->made)
		pthread_cond_wait(&m->done, &m->lock);
	if (job && (job->made || helps(m))) {
		*at = job->next;
		*ret = job->img;
	}
	pthread_mutex_unlock(&m->lock);
	if (*ret)
		free(job);
	return job;
}

bool table_maker_has(struct table_maker *m, dev_t dev, ino_t ino)
{
	bool has;

	pthread_mutex_lock(&m->lock);
	has = *find_job(m, dev, ino);
	pthread_mutex_unlock(&m->lock);
	return has;
}

u32 table_maker_made(struct table_maker *m)
{
	u32 made;

	pthread_mutex_lock(&m->lock);
	made = m->made;
	pthread_mutex_unlock(&m->lock);
	return made;
}
