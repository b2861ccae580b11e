/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi_cache_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cfi.h"
#include "cleanup.h"
#include "grow.h"
#include "hex_text.h"

#define TOUCH_S      3600
#define LOOK_EVERY   (4ull << 20) /* bytes added between two looks at the directory */
#define LIMIT_MB_MAX (1ul << 30)

struct entry {
	char *name;
	u64 bytes;
	struct timespec used;
};

struct listing {
	struct entry *entries;
	u32 n;
	u64 bytes;
};

const char *cfi_default_cache(void)
{
	static char path[PATH_MAX];
	const char *dir = getenv("YRT_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n;

	if (dir && *dir)
		n = snprintf(path, sizeof(path), "%s", dir);
	else if (xdg && *xdg)
		n = snprintf(path, sizeof(path), "%s/yrt", xdg);
	else if (geteuid() == 0)
		n = snprintf(path, sizeof(path), "/var/cache/yrt");
	else if (home && *home)
		n = snprintf(path, sizeof(path), "%s/.cache/yrt", home);
	else
		return NULL;
	return n > 0 && (size_t)n < sizeof(path) ? path : NULL;
}

static void cleanup_listing(struct listing *l)
{
	for (u32 i = 0; i < l->n; i++)
		free(l->entries[i].name);
	free(l->entries);
}

char *cache_path(const char *dir, const struct image *img, u64 which, const char *suffix)
{
	char text[BUILD_ID_MAX * 2 + 1], *path;
	u8 id[BUILD_ID_MAX];
	u32 n = dir && *dir ? image_identity(img, id) : 0;

	if (!n)
		return NULL;
	hex_text(id, n, text);
	return asprintf(&path, "%s/%s-%llx%s", dir, text, (unsigned long long)which, suffix) < 0 ? NULL : path;
}

u64 cache_limit(void)
{
	const char *text = getenv("YRT_CACHE_MB");
	char *end;
	u64 mb = text ? strtoul(text, &end, 10) : 0;

	if (!text || end == text || *end || mb > LIMIT_MB_MAX)
		mb = CACHE_LIMIT_MB;
	return mb << 20;
}

/* <build-id>-<hex>.cfi, .btf, .layout or .search, also one that is just being written, with six letters behind. */
static bool is_ours(const char *name)
{
	static const char hex[] = "0123456789abcdef";
	size_t id = strspn(name, hex), size = name[id] == '-' ? strspn(name + id + 1, hex) : 0;

	const char *end = name + id + 1 + size;

	return id && size &&
	       (!strncmp(end, ".cfi", 4) || !strncmp(end, ".btf", 4) || !strncmp(end, ".layout", 7) ||
	               !strncmp(end, ".search", 7));
}

static void cleanup_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static struct error *list(const char *path, struct listing *ret)
{
	cleanup(dir) DIR *dir = opendir(path);
	struct dirent *d;

	if (!dir)
		return errno == ENOENT ? NULL : error_errno(errno, "cannot read the cache %s", path);
	while ((d = readdir(dir))) {
		struct stat st;
		struct entry *e;

		if (!is_ours(d->d_name) || fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		        !S_ISREG(st.st_mode))
			continue;
		if (grow(&ret->entries, ret->n, sizeof(*ret->entries)))
			return &error_no_memory;
		e = &ret->entries[ret->n];
		*e = (struct entry){.name = strdup(d->d_name), .bytes = (u64)st.st_size, .used = st.st_mtim};
		if (!e->name)
			return &error_no_memory;
		ret->bytes += e->bytes;
		ret->n++;
	}
	return NULL;
}

struct error *cache_use(const char *dir, struct cache_use *ret)
{
	cleanup(listing) struct listing l = {0};
	struct error *err = list(dir, &l);

	*ret = (struct cache_use){l.n, l.bytes};
	return err;
}

static int compare_used(const void *a, const void *b)
{
	const struct timespec *x = &((const struct entry *)a)->used, *y = &((const struct entry *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

struct error *cache_shrink(const char *dir, u64 limit, struct cache_use *removed)
{
	cleanup(listing) struct listing l = {0};
	struct error *err = list(dir, &l);

	*removed = (struct cache_use){0};
	if (!err && l.n)
		qsort(l.entries, l.n, sizeof(*l.entries), compare_used);
	for (u32 i = 0; !err && i < l.n && l.bytes > limit; i++) {
		cleanup(free) char *path = NULL;

		if (asprintf(&path, "%s/%s", dir, l.entries[i].name) < 0)
			return &error_no_memory;
		if (unlink(path) && errno != ENOENT)
			return error_errno(errno, "cannot remove %s", path);
		l.bytes -= l.entries[i].bytes;
		removed->bytes += l.entries[i].bytes;
		removed->files++;
	}
	return err;
}

void cache_touch(const char *path)
{
	struct stat st;

	if (!lstat(path, &st) && time(NULL) - st.st_mtime > TOUCH_S)
		utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
}

void cache_grew(const char *dir, u64 bytes)
{
	static _Atomic u64 since = LOOK_EVERY; /* the first one of a run looks */
	struct cache_use use;

	if (atomic_fetch_add(&since, bytes) < LOOK_EVERY)
		return;
	atomic_store(&since, 0);
	if (!cache_use(dir, &use) && use.bytes > cache_limit())
		error_free(cache_shrink(dir, cache_limit() / 4 * 3, &use));
}

int cache_open(const char *path, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH)) {
		close(fd);
		return -1;
	}
	cache_touch(path);
	*ret_size = (size_t)st.st_size;
	return fd;
}

static bool write_all(int fd, const void *from, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = write(fd, (const u8 *)from + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static void make_dirs(const char *dir)
{
	cleanup(free) char *path = strdup(dir);

	for (char *at = path && *path ? path + 1 : NULL; at; at = *at ? at + 1 : NULL) {
		char c = *at;

		if (c && c != '/')
			continue;
		*at = 0;
		mkdir(path, 0700);
		*at = c;
	}
}

void cache_put(const char *dir, const char *path, const void *bytes, size_t size)
{
	cleanup(free) char *temp = NULL;
	cleanup(close) int fd = -1;

	if (asprintf(&temp, "%s.XXXXXX", path) < 0) {
		temp = NULL;
		return;
	}
	make_dirs(dir);
	fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0)
		return;
	if (!write_all(fd, bytes, size) || rename(temp, path))
		unlink(temp);
	else
		cache_grew(dir, size);
}
