/* SPDX-License-Identifier: Apache-2.0 */
#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <xxhash.h>

#include "cleanup.h"

#define MAP_LINES_MAX 1000000

static bool parse_line(char *text, struct map_line *ret)
{
	unsigned int major, minor;
	char perms[5];
	int path = 0;
	size_t len;

	if (sscanf(text, "%lx-%lx %4s %lx %x:%x %lu %n", &ret->start, &ret->end, perms, &ret->offset, &major, &minor,
	            &ret->ino, &path) < 7 ||
	        ret->end <= ret->start)
		return false;
	ret->prot = (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
	            (perms[2] == 'x' ? PROT_EXEC : 0);
	ret->dev = makedev(major, minor);
	text += path;
	len = strcspn(text, "\n");
	text[len] = '\0';
	if (len > 10 && !strcmp(text + len - 10, " (deleted)"))
		text[len - 10] = '\0';
	ret->path = strdup(text);
	return ret->path != NULL;
}

static struct error *add_line(struct maps *maps, u32 *capacity, const struct map_line *line)
{
	if (maps->nlines == *capacity) {
		u32 grown = *capacity ? *capacity * 2 : 64;
		struct map_line *lines = realloc(maps->lines, grown * sizeof(*lines));

		if (!lines)
			return &error_no_memory;
		maps->lines = lines;
		*capacity = grown;
	}
	maps->lines[maps->nlines++] = *line;
	return NULL;
}

static u64 hash_line(u64 hash, const struct map_line *line)
{
	u64 facts[] = {line->start, line->end, line->offset, line->prot, line->dev, line->ino};

	return line->prot & PROT_EXEC ? XXH3_64bits_withSeed(facts, sizeof(facts), hash) : hash;
}

u64 maps_hash(const struct maps *maps)
{
	u64 hash = 1;

	for (u32 i = 0; i < maps->nlines; i++)
		hash = hash_line(hash, &maps->lines[i]);
	return hash;
}

struct error *maps_read(pid_t pid, struct maps *ret)
{
	struct maps maps = {0};
	cleanup(free) char *text = NULL;
	cleanup(fclose) FILE *file = NULL;
	struct error *err = NULL;
	size_t size = 0;
	u32 capacity = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "re");
	if (!file)
		return error_errno(errno == ENOENT ? ESRCH : errno, "cannot read the memory map of process %d", pid);
	while (!err && maps.nlines < MAP_LINES_MAX && getline(&text, &size, file) > 0) {
		struct map_line line = {0};

		if (!parse_line(text, &line))
			continue;
		err = add_line(&maps, &capacity, &line);
	}
	if (!err && ferror(file))
		err = error_errno(errno, "cannot read the memory map of process %d", pid);
	if (err) {
		maps_free(&maps);
		return err;
	}
	*ret = maps;
	return NULL;
}

void maps_free(struct maps *maps)
{
	for (u32 i = 0; i < maps->nlines; i++)
		free(maps->lines[i].path);
	free(maps->lines);
	*maps = (struct maps){0};
}

/* dev: it must be of this device, too; 0: it need not. */
static int open_same(const char *path, u64 ino, dev_t dev)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == ino && (!dev || st.st_dev == dev))
		return fd;
	close(fd);
	errno = ESTALE;
	return -1;
}

int map_open(pid_t pid, const struct map_line *line)
{
	char path[PATH_MAX + 64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", pid, line->start, line->end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/%d/root%s", pid, line->path);
	fd = open_same(path, line->ino, 0);
	return fd < 0 && errno == ENOENT && line->dev ? open_same(line->path, line->ino, line->dev) : fd;
}
