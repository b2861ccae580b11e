/* SPDX-License-Identifier: Apache-2.0 */
#include "ring.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unwind/cleanup.h"

/* "watch-20260102-030405.yrt" */
static int is_ours(const struct dirent *entry)
{
	const char *name = entry->d_name;
	size_t n = strlen(name);

	return n > 10 && !strncmp(name, "watch-", 6) && !strcmp(name + n - 4, ".yrt") &&
	       strspn(name + 6, "0123456789-") == n - 10;
}

static void free_list(struct dirent **list, int n)
{
	for (int i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

static struct error *list_ring(const char *dir, struct dirent ***ret, int *n)
{
	*n = scandir(dir, ret, is_ours, alphasort);
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

struct trim {
	u64 bytes, limit;
	u32 files, deleted;
	bool measuring;
};

static struct error *trim_one(void *ctx, const char *path)
{
	struct trim *t = ctx;
	struct stat st;

	if (stat(path, &st) || (!st.st_size && !unlink(path))) /* of a full volume */
		return NULL;
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
