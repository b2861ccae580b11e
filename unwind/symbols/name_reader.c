/* SPDX-License-Identifier: Apache-2.0 */
#include "name_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rtti.h"
#include "thread_start.h"

struct job {
	struct job *next;
	struct image *img;  /* that wants symbols: a name only, in the thread */
	struct image *file; /* the same, opened again */
	struct c_names by_language;
	bool asked_languages;
	char root[64];
	bool read;
};

struct name_reader {
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t asked, read;
	struct job *jobs; /* oldest first */
	bool stop;
	pid_t tid; /* 0: not yet */
	int fd;
};

static void job_destroy(struct job *job)
{
	image_put(job->file);
	c_names_free(&job->by_language);
	free(job);
}

/* What can not be read has no names, as what there is no memory for. */
static void read_names(struct job *job)
{
	error_free(symbols_read(job->file, job->root));
	if (symbols_own(job->file))
		return;
	error_free(rtti_load(job->file));
	job->asked_languages = true;
	error_free(c_names_read(job->file, &job->by_language));
}

static struct job *next_job(struct name_reader *r)
{
	struct job *job = r->jobs;

	while (job && job->read)
		job = job->next;
	return job;
}

static void *run(void *arg)
{
	struct name_reader *r = arg;
	struct job *job;

	pthread_mutex_lock(&r->lock);
	r->tid = gettid();
	pthread_cond_signal(&r->read);
	while (!r->stop) {
		job = next_job(r);
		if (!job) {
			pthread_cond_wait(&r->asked, &r->lock);
			continue;
		}
		pthread_mutex_unlock(&r->lock);
		read_names(job);
		pthread_mutex_lock(&r->lock);
		job->read = true;
		pthread_cond_signal(&r->read);
		eventfd_write(r->fd, 1);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* Takes over job. */
static void ask(struct name_reader *r, struct job *job)
{
	struct job **at = &r->jobs;

	pthread_mutex_lock(&r->lock);
	while (*at)
		at = &(*at)->next;
	*at = job;
	pthread_cond_signal(&r->asked);
	pthread_mutex_unlock(&r->lock);
}

/* Looks for what was asked for img. True: it was, *ret is the job if it is done, which is the caller's then. */
static bool find_job(struct name_reader *r, const struct image *img, struct job **ret)
{
	struct job **at = &r->jobs, *job;

	*ret = NULL;
	pthread_mutex_lock(&r->lock);
	while (*at && (*at)->img != img)
		at = &(*at)->next;
	job = *at;
	if (job && job->read) {
		*at = job->next;
		*ret = job;
	}
	pthread_mutex_unlock(&r->lock);
	return job;
}

/* False: it can not be, so it is to be read where it is needed. */
static bool ask_file(struct name_reader *r, struct image *img, const char *root)
{
	struct job *job = calloc(1, sizeof(*job));
	char path[32];
	int fd;

	if (!job)
		return false;
	job->img = img;
	snprintf(job->root, sizeof(job->root), "%s", root);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", img->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		error_free(image_open(fd, img->path, &job->file));
	if (!job->file) {
		free(job);
		return false;
	}
	ask(r, job);
	return true;
}

bool name_reader_has(struct name_reader *r, struct image *img, const char *root, struct file_names *ret)
{
	struct job *job;

	*ret = (struct file_names){.read = false};
	if (!find_job(r, img, &job))
		return img->fd < 0 || !ask_file(r, img, root);
	if (!job)
		return false;
	symbols_move(img, job->file);
	rtti_move(img, job->file);
	*ret = (struct file_names){.read = job->asked_languages, .by_language = job->by_language};
	job->by_language = (struct c_names){0};
	job_destroy(job);
	return true;
}

void name_reader_wait(struct name_reader *r)
{
	pthread_mutex_lock(&r->lock);
	while (next_job(r))
		pthread_cond_wait(&r->read, &r->lock);
	pthread_mutex_unlock(&r->lock);
}

struct error *name_reader_create(struct name_reader **ret)
{
	struct name_reader *r = calloc(1, sizeof(*r));
	int code;

	if (!r)
		return &error_no_memory;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->asked, NULL);
	pthread_cond_init(&r->read, NULL);
	r->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	code = r->fd < 0 ? errno : thread_start(&r->thread, NULL, run, r);
	if (!code) {
		pthread_mutex_lock(&r->lock);
		while (!r->tid)
			pthread_cond_wait(&r->read, &r->lock);
		pthread_mutex_unlock(&r->lock);
		*ret = r;
		return NULL;
	}
	if (r->fd >= 0)
		close(r->fd);
	free(r);
	return error_errno(code, "cannot start a thread");
}

void name_reader_destroy(struct name_reader *r)
{
	struct job *next;

	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_signal(&r->asked);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	for (struct job *job = r->jobs; job; job = next) {
		next = job->next;
		job_destroy(job);
	}
	close(r->fd);
	free(r);
}

pid_t name_reader_tid(const struct name_reader *r)
{
	return r->tid;
}

int name_reader_fd(const struct name_reader *r)
{
	return r->fd;
}
