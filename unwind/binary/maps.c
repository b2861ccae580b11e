/* SPDX-License-Identifier: Apache-2.0 */
#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <xxhash.h>

#include "cleanup.h"
#include "proc_path.h"

/* So the kernel shows memory that is shared but no file's (mmap(2): MAP_SHARED | MAP_ANONYMOUS): PHP's JIT has such. */
#define SHARED_MEMORY "/dev/zero (deleted)"

#define MAP_LINES_MAX 1000000
#define TEXT_MAX      (1u << 28)

/* Digits up to the character `end`, which *at is set behind. */
static bool parse_number(const char **at, u32 base, char end, u64 *ret)
{
	const char *from = *at, *c = from;
	u64 value = 0;

	for (;; c++) {
		u32 digit = *c >= '0' && *c <= '9'   ? (u32)(*c - '0')
		            : *c >= 'a' && *c <= 'f' ? (u32)(*c - 'a') + 10
		                                     : 16;

		if (digit >= base)
			break;
		value = value * base + digit;
	}
	if (c == from || *c != end)
		return false;
	*at = c + 1;
	*ret = value;
	return true;
}

/* "start-end perms offset major:minor inode   path": for each process, of many lines; sscanf() took a third of it. */
static bool parse_line(char *text, struct map_line *ret)
{
	const char *at = text;
	u64 major, minor;
	size_t len;

	if (!parse_number(&at, 16, '-', &ret->start) || !parse_number(&at, 16, ' ', &ret->end) || strnlen(at, 5) < 5 ||
	        ret->end <= ret->start)
		return false;
	ret->prot = (at[0] == 'r' ? PROT_READ : 0) | (at[1] == 'w' ? PROT_WRITE : 0) | (at[2] == 'x' ? PROT_EXEC : 0);
	at += 5;
	if (!parse_number(&at, 16, ' ', &ret->offset) || !parse_number(&at, 16, ':', &major) ||
	        !parse_number(&at, 16, ' ', &minor) || !parse_number(&at, 10, ' ', &ret->ino))
		return false;
	ret->dev = makedev((u32)major, (u32)minor);
	text += at - text;
	text += strspn(text, " ");
	len = strlen(text);
	if (!strcmp(text, SHARED_MEMORY)) {
		*text = '\0';
		ret->dev = 0;
		ret->ino = 0;
	} else if (len > 10 && !strcmp(text + len - 10, " (deleted)"))
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

bool maps_have_stack(const struct maps *maps, u64 stack)
{
	for (u32 i = 0; i < maps->nlines; i++)
		if (!strcmp(maps->lines[i].path, "[stack]"))
			return stack >= maps->lines[i].start && stack <= maps->lines[i].end;
	return true;
}

static struct error *unreadable(pid_t pid)
{
	return error_errno(errno == ENOENT ? ESRCH : errno, "cannot read the memory map of process %d", pid);
}

/* The whole file of one thread, with a 0 behind it. */
static struct error *read_text_of(pid_t pid, pid_t tid, char **ret)
{
	cleanup(free) char *text = NULL;
	cleanup(close) int fd = -1;
	size_t size = 0, room = 0;
	char path[64];
	ssize_t n = 1;

	snprintf(path, sizeof(path), "/proc/%d/maps", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return unreadable(pid);
	for (; n > 0 && size < TEXT_MAX; size += (size_t)n) {
		if (room - size < 4096 + 1) {
			char *grown = realloc(text, room ? room * 2 : 16384);

			if (!grown)
				return &error_no_memory;
			text = grown;
			room = room ? room * 2 : 16384;
		}
		n = read(fd, text + size, room - size - 1);
		if (n < 0)
			return unreadable(pid);
	}
	text[size] = '\0';
	*ret = TAKE(text);
	return NULL;
}

/* First that of the thread that mostly has it: this is read all the time. */
static struct error *read_text(pid_t pid, char **ret)
{
	struct error *err = read_text_of(pid, pid, ret);
	pid_t tid;

	if (err ? err->kind != ERROR_NO_PROCESS : **ret)
		return err;
	tid = living_thread(pid);
	if (!tid || tid == pid)
		return err;
	if (err)
		error_free(err);
	else
		free(*ret);
	return read_text_of(pid, tid, ret);
}

/* Of the lines of code: those with an x in "start-end rwxp …". */
static u64 hash_text(const char *text)
{
	u64 hash = 1;

	while (*text) {
		const char *end = strchrnul(text, '\n'), *perms = memchr(text, ' ', (size_t)(end - text));

		if (perms && end - perms > 4 && perms[3] == 'x')
			hash = XXH3_64bits_withSeed(text, (size_t)(end - text), hash);
		text = *end ? end + 1 : end;
	}
	return hash;
}

bool maps_code_is(pid_t pid, u64 text_hash)
{
	cleanup(free) char *text = NULL;
	struct error *err = read_text(pid, &text);

	error_free(err);
	return !err && hash_text(text) == text_hash;
}

struct error *maps_read(pid_t pid, struct maps *ret)
{
	struct maps maps = {0};
	cleanup(free) char *text = NULL;
	struct error *err = read_text(pid, &text);
	u32 capacity = 0;

	if (err)
		return err;
	maps.text_hash = hash_text(text);
	for (char *at = text, *end; !err && *at && maps.nlines < MAP_LINES_MAX; at = end) {
		struct map_line line = {0};

		end = strchrnul(at, '\n');
		if (*end)
			*end++ = '\0';
		if (parse_line(at, &line))
			err = add_line(&maps, &capacity, &line);
	}
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

/* By one thread. */
static int open_by(pid_t tid, const struct map_line *line)
{
	char path[PATH_MAX + 64];
	int fd;

	proc_map_path(path, tid, line->file_end ? line->file_start : line->start,
	        line->file_end ? line->file_end : line->end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/%d/root%s", tid, line->path);
	return open_same(path, line->ino, 0);
}

int map_open(pid_t pid, const struct map_line *line)
{
	int fd = open_by(pid, line), code = errno;
	pid_t tid = fd < 0 ? living_thread(pid) : pid;

	if (tid && tid != pid) {
		fd = open_by(tid, line);
		code = errno;
	}
	if (fd < 0 && code == ENOENT && line->dev)
		return open_same(line->path, line->ino, line->dev);
	errno = code;
	return fd;
}
