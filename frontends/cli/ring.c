/* SPDX-License-Identifier: Apache-2.0 */
#include "ring.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "output.h"
#include "unwind/cleanup.h"

#define STAMP      (OUTPUT_STAMP - 1)
#define RESERVED_S (24 * 60 * 60)

/* "watch-20260102-030405.yrt", "watch-20260102-030405-2.txt" */
static int is_ours(const struct dirent *entry)
{
	const char *name = entry->d_name;
	size_t n = strlen(name);

	return n > 10 && !strncmp(name, "watch-", 6) &&
	       (!strcmp(name + n - 4, RING_RECORDING) || !strcmp(name + n - 4, RING_DUMP)) &&
	       strspn(name + 6, "0123456789-") == n - 10;
}

/* Without what follows the dot, so that TIME-2 comes after TIME and before TIME-10. */
static int by_age(const struct dirent **a, const struct dirent **b)
{
	char stem[2][sizeof((*a)->d_name)];

	snprintf(stem[0], sizeof(stem[0]), "%.*s", (int)strlen((*a)->d_name) - 4, (*a)->d_name);
	snprintf(stem[1], sizeof(stem[1]), "%.*s", (int)strlen((*b)->d_name) - 4, (*b)->d_name);
	return strverscmp(stem[0], stem[1]);
}

static void free_list(struct dirent **list, int n)
{
	for (int i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

static struct error *list_ring(const char *dir, struct dirent ***ret, int *n)
{
	*n = scandir(dir, ret, is_ours, by_age);
	if (*n < 0)
		return error_hint(
		        error_errno(errno, "cannot read the folder %s", dir), "--dir takes the folder of recordings");
	return NULL;
}

struct error *ring_each(const char *dir, struct error *(*found)(void *ctx, const char *path), void *ctx)
{
	struct dirent **list;
	int n;
	struct error *err = list_ring(dir, &list, &n);

	for (int i = 0; !err && i < n; i++) {
		cleanup(free) char *path = NULL;

		err = asprintf(&path, "%s/%s", dir, list[i]->d_name) < 0 ? &error_no_memory : found(ctx, path);
	}
	if (n >= 0)
		free_list(list, n);
	return err;
}

struct error *ring_reserve(const char *dir, const char *kind, char **ret)
{
	struct dirent **list;
	char stamp[OUTPUT_STAMP];
	cleanup(free) char *stem = NULL;
	unsigned long first = 1;
	int n;
	struct error *err = list_ring(dir, &list, &n);
	const char *newest = err || !n ? "" : list[n - 1]->d_name + 6;

	*ret = NULL;
	output_stamp(stamp);
	if (strspn(newest, "0123456789-") >= STAMP && strncmp(newest, stamp, STAMP) >= 0) {
		snprintf(stamp, sizeof(stamp), "%s", newest);
		first = newest[STAMP] == '-' ? strtoul(newest + STAMP + 1, NULL, 10) + 1 : 2;
	}
	if (!err)
		err = asprintf(&stem, "%s/watch-%s", dir, stamp) < 0 ? &error_no_memory
		                                                     : output_reserve(stem, kind, first, ret);
	if (n >= 0)
		free_list(list, n);
	return err && n >= 0 ? error_hint(err, "free some space, or give another folder with --dir") : err;
}

struct trim {
	u64 bytes, limit;
	u32 files, deleted;
	bool measuring;
};

static struct error *trim_one(void *ctx, const char *path)
{
	struct trim *t = ctx;
	struct stat st;

	if (stat(path, &st))
		return NULL;
	if (!st.st_size) { /* somebody's next one; or what is left of somebody who was killed */
		if (!t->measuring && st.st_mtime < time(NULL) - RESERVED_S)
			unlink(path);
		return NULL;
	}
	if (t->measuring) {
		t->bytes += (u64)st.st_size;
		t->files++;
	} else if (t->bytes > t->limit && t->files > 1 && !unlink(path)) {
		t->bytes -= (u64)st.st_size;
		t->files--;
		t->deleted++;
	}
	return NULL;
}

struct error *ring_trim(const char *dir, u64 limit, u32 *deleted)
{
	struct trim t = {.limit = limit, .measuring = true};
	struct error *err = ring_each(dir, trim_one, &t);

	t.measuring = false;
	if (!err)
		err = ring_each(dir, trim_one, &t);
	*deleted = t.deleted;
	return err;
}

static struct error *measure_one(void *ctx, const char *path)
{
	u64 *bytes = ctx;
	struct stat st;

	*bytes += stat(path, &st) ? 0 : (u64)st.st_size;
	return NULL;
}

struct error *ring_drop_oldest(const char *dir, u32 *deleted)
{
	u64 bytes = 0;
	struct error *err = ring_each(dir, measure_one, &bytes);

	return err ? err : ring_trim(dir, bytes ? bytes - 1 : 0, deleted);
}

u64 ring_key(const char *path)
{
	const char *slash = strrchr(path, '/');
	u64 ret = 0;

	for (const char *c = slash ? slash + 1 : path; *c; c++)
		if (*c >= '0' && *c <= '9')
			ret = ret * 10 + (u64)(*c - '0');
	return ret * 0x9e3779b97f4a7c15 | 1;
}
