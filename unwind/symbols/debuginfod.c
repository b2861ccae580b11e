/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "now.h"

#define LIBRARY    "libdebuginfod.so.1"
#define PATIENCE_S 10

typedef struct debuginfod_client debuginfod_client;

/* As elfutils/debuginfod.h of 0.188 declares them; a negative result is -errno. */
struct client_functions {
	debuginfod_client *(*begin)(void);
	void (*end)(debuginfod_client *client);
	int (*find_debuginfo)(debuginfod_client *client, const unsigned char *build_id, int len, char **path);
	void (*set_progressfn)(debuginfod_client *client, int (*progress)(debuginfod_client *client, long a, long b));
};

struct debuginfod {
	struct client_functions call;
	debuginfod_client *client; /* NULL: not asked yet */
	bool over;                 /* nobody is asked any more */
	volatile sig_atomic_t *stop;
	u64 patience_ns, moved_ns; /* how long nothing may come, and when something came last */
	long seen;                 /* the progress then */
	int given_up;              /* errno of why the transfer was ended; 0: it was not */
};

/* Not unloaded: libcurl stays initialized, and what libdebuginfod got is a thread's own until it ends. */
static bool load(struct client_functions *call)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return false;
	call->begin = dlsym(library, "debuginfod_begin");
	call->end = dlsym(library, "debuginfod_end");
	call->find_debuginfo = dlsym(library, "debuginfod_find_debuginfo");
	call->set_progressfn = dlsym(library, "debuginfod_set_progressfn");
	return call->begin && call->end && call->find_debuginfo && call->set_progressfn;
}

static _Thread_local struct debuginfod *asking; /* whose transfer is under way: callbacks are not passed it */

static const char *setting(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

bool debuginfod_serves(const struct image *img)
{
	return img->build_id_len && setting("DEBUGINFOD_URLS")[strspn(setting("DEBUGINFOD_URLS"), " ")];
}

struct error *debuginfod_create(struct debuginfod **ret)
{
	struct debuginfod *d = calloc(1, sizeof(*d));
	u64 seconds = strtoul(setting("DEBUGINFOD_TIMEOUT"), NULL, 10);

	if (!d)
		return &error_no_memory;
	d->patience_ns = (seconds && seconds < UINT32_MAX ? seconds : PATIENCE_S) * 1000000000;
	*ret = d;
	return NULL;
}

void debuginfod_destroy(struct debuginfod *d)
{
	if (d && d->client)
		d->call.end(d->client);
	free(d);
}

/*
 * What set_progressfn() wants; not 0 ends the transfer. It is called at least once a second. a is bytes once a server
 * sends, before that it counts the calls: a step of one is nothing that came.
 */
static int on_progress(debuginfod_client *client, long a, long b)
{
	struct debuginfod *d = asking;
	u64 now = now_ns();

	if (a != d->seen && a != d->seen + 1)
		d->moved_ns = now;
	d->seen = a;
	if (d->stop && *d->stop)
		d->given_up = EINTR;
	else if (now - d->moved_ns >= d->patience_ns)
		d->given_up = ETIMEDOUT;
	return d->given_up;
}

static struct error *start(struct debuginfod *d)
{
	if (!load(&d->call))
		return error_new(ERROR_UNSUPPORTED,
		        "DEBUGINFOD_URLS is set, but " LIBRARY " is not here: install libdebuginfod1");
	d->client = d->call.begin();
	if (!d->client)
		return error_new(ERROR_UNSUPPORTED, "debuginfod is not asked: " LIBRARY " does not start");
	d->call.set_progressfn(d->client, on_progress);
	return NULL;
}

/* A file descriptor, or -errno. */
static int transfer(struct debuginfod *d, const struct image *img, char **path)
{
	int fd;

	d->seen = 0;
	d->moved_ns = now_ns();
	asking = d;
	fd = d->call.find_debuginfo(d->client, img->build_id, img->build_id_len, path);
	return fd < 0 && d->given_up ? -d->given_up : fd;
}

/* A file that is missing or larger than DEBUGINFOD_MAXSIZE says nothing about the next one. */
static bool is_answer(int fd)
{
	return fd >= 0 || fd == -ENOENT || fd == -EFBIG;
}

static bool belongs(const struct image *img, const struct image *debug)
{
	return debug->machine == img->machine && debug->build_id_len == img->build_id_len &&
	       !memcmp(debug->build_id, img->build_id, img->build_id_len);
}

static struct error *open_file(int fd, const char *path, const struct image *img, struct image **ret)
{
	struct image *debug;
	struct error *err = image_open(fd, path, &debug);

	if (err)
		return err;
	if (belongs(img, debug)) {
		*ret = debug;
		return NULL;
	}
	image_put(debug);
	return error_new(
	        ERROR_INPUT, "debuginfod's file for %s belongs to another build: not used (%s)", img->path, path);
}

struct error *debuginfod_find(
        struct debuginfod *d, const struct image *img, volatile sig_atomic_t *stop, struct image **ret)
{
	cleanup(free) char *path = NULL;
	struct error *err;
	int fd;

	*ret = NULL;
	if (d->over)
		return NULL;
	d->stop = stop;
	err = d->client ? NULL : start(d);
	d->over = err;
	if (err)
		return err;
	fd = transfer(d, img, &path);
	if (fd >= 0)
		return open_file(fd, path, img, ret);
	d->over = !is_answer(fd);
	return d->over ? error_errno(-fd, "debuginfod at %s is not asked any more", setting("DEBUGINFOD_URLS")) : NULL;
}
