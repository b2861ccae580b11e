/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_used.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unwind/cleanup.h"
#include "unwind/process/own_tid.h"

#define FILE_MAX     (1u << 20) /* -XX:PerfDataMemorySize is 32 or 64 KiB */
#define ENTRIES_MAX  4096
#define MAGIC        "\xca\xfe\xc0\xc0"
#define LITTLE       1
#define FIRST_ENTRY  24 /* of struct PerfDataPrologue */
#define NENTRIES     28
#define PROLOGUE     32
#define NAME_OFFSET  4 /* of struct PerfDataEntry, whose first word is its length */
#define VALUE_OFFSET 16
#define ENTRY        20

struct counters_file {
	const u8 *data;
	size_t size;
};

static u32 word(const struct counters_file *f, size_t at)
{
	u32 ret = 0;

	if (at + sizeof(ret) <= f->size)
		memcpy(&ret, f->data + at, sizeof(ret));
	return ret;
}

/* "sun.gc.generation.1.space.0.used", not of generation 0. */
static bool is_old(const struct counters_file *f, size_t at)
{
	static const char before[] = "sun.gc.generation.", after[] = ".used";
	const char *name = (const char *)f->data + at;
	size_t n = at < f->size ? strnlen(name, f->size - at) : 0;

	return n > sizeof(before) + sizeof(after) && at + n < f->size && !strncmp(name, before, sizeof(before) - 1) &&
	       name[sizeof(before) - 1] != '0' && strstr(name, ".space.") &&
	       !strcmp(name + n - sizeof(after) + 1, after);
}

static u64 sum_old(const struct counters_file *f)
{
	u32 n = word(f, NENTRIES);
	size_t at = word(f, FIRST_ENTRY);
	u64 sum = 0, value;

	for (u32 i = 0; i < n && i < ENTRIES_MAX && at < f->size; i++) {
		u32 length = word(f, at), offset = word(f, at + VALUE_OFFSET);

		if (length < ENTRY || length > f->size - at)
			break;
		if (is_old(f, at + word(f, at + NAME_OFFSET)) && offset <= length - sizeof(value)) {
			memcpy(&value, f->data + at + offset, sizeof(value));
			sum += value;
		}
		at += length;
	}
	return sum;
}

u64 hotspot_used_of(const void *data, size_t size)
{
	const struct counters_file f = {data, size};

	return size >= PROLOGUE && !memcmp(data, MAGIC, 4) && f.data[4] == LITTLE ? sum_old(&f) : 0;
}

static u64 used_of(const char *path)
{
	cleanup(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	cleanup(free) u8 *data = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < PROLOGUE || st.st_size > FILE_MAX)
		return 0;
	data = malloc((size_t)st.st_size);
	n = data ? read(fd, data, (size_t)st.st_size) : 0;
	return n > 0 ? hotspot_used_of(data, (size_t)n) : 0;
}

u64 hotspot_used(pid_t pid)
{
	char pattern[128];
	glob_t found = {0};
	u64 ret = 0;

	snprintf(pattern, sizeof(pattern), "/proc/%d/root/tmp/hsperfdata_*/%d", pid, own_tid(pid, pid));
	if (!glob(pattern, GLOB_NOSORT, NULL, &found))
		for (size_t i = 0; i < found.gl_pathc && !ret; i++)
			ret = used_of(found.gl_pathv[i]);
	globfree(&found);
	return ret;
}
