/* SPDX-License-Identifier: Apache-2.0 */
#include "perf_map.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binary/proc_path.h"
#include "binary/root.h"
#include "cleanup.h"
#include "grow.h"
#include "now.h"
#include "search.h"

#define ENTRIES_MAX (1u << 21)
#define NAMES_MAX   (256u << 20)
#define NAME_MAX_   1024u
#define CHUNK       (64u << 10)
#define AGAIN_NS    100000000ull

struct entry {
	u64 start, end, reach; /* reach: the highest end up to here */
	u32 name, number;      /* number: in the order of the file */
};

struct perf_map {
	int root; /* of the target; -1: gone */
	uid_t uid;
	char path[64];
	u64 offset; /* what was read of the file */
	u64 looked_ns;
	struct entry *entries; /* sorted by start, then number */
	u32 n;
	char *names;
	u32 names_size, names_room;
};

/* The pid in the innermost namespace is the last one on the line. */
static pid_t inner_pid(pid_t pid)
{
	char path[64], line[512];
	long last = pid;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		char *at = line + 6, *end;
		long value;

		if (strncmp(line, "NSpid:", 6))
			continue;
		for (value = strtol(at, &end, 10); end != at; value = strtol(at, &end, 10)) {
			last = value;
			at = end;
		}
	}
	if (file)
		fclose(file);
	return (pid_t)last;
}

struct error *perf_map_create(pid_t pid, struct perf_map **ret)
{
	struct perf_map *m = calloc(1, sizeof(*m));
	char path[64];
	struct stat st;

	if (!m)
		return &error_no_memory;
	proc_path(path, sizeof(path), pid, "root");
	m->root = root_open(path);
	snprintf(path, sizeof(path), "/proc/%d", pid);
	m->uid = stat(path, &st) ? 0 : st.st_uid;
	snprintf(m->path, sizeof(m->path), "tmp/perf-%d.map", inner_pid(pid));
	*ret = m;
	return NULL;
}

void perf_map_destroy(struct perf_map *m)
{
	if (!m)
		return;
	if (m->root >= 0)
		close(m->root);
	free(m->entries);
	free(m->names);
	free(m);
}

/* Not through a symbolic link, wherever it leads; kernels before 5.6 cannot promise that for /tmp itself. */
static int open_map(const struct perf_map *m)
{
	int fd = m->root < 0 ? -1 : root_open_file(m->root, m->path, O_NOFOLLOW);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode) || (st.st_uid && st.st_uid != m->uid))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool add_name(struct perf_map *m, const char *name, u32 len)
{
	u32 room = m->names_room ? m->names_room * 2 : 4096;
	char *grown;

	while (room < m->names_size + len + 1)
		room *= 2;
	if (room > NAMES_MAX)
		return false;
	if (room > m->names_room && m->names_size + len + 1 > m->names_room) {
		grown = realloc(m->names, room);
		if (!grown)
			return false;
		m->names = grown;
		m->names_room = room;
	}
	memcpy(m->names + m->names_size, name, len);
	m->names[m->names_size + len] = 0;
	m->names_size += len + 1;
	return true;
}

static void add_entry(struct perf_map *m, u64 start, u64 size, const char *name, u32 len)
{
	u32 at = m->names_size;

	if (!size || start + size < start || !len || m->n == ENTRIES_MAX)
		return;
	if (grow(&m->entries, m->n, sizeof(*m->entries)))
		return;
	if (add_name(m, name, len < NAME_MAX_ ? len : NAME_MAX_)) {
		m->entries[m->n] = (struct entry){.start = start, .end = start + size, .name = at, .number = m->n};
		m->n++;
	}
}

/* "START SIZE NAME": both numbers in hexadecimal, with or without 0x. */
static void parse_line(struct perf_map *m, char *line, u32 len)
{
	char *at, *end;
	u64 start = strtoull(line, &at, 16), size;

	if (at == line || *at != ' ')
		return;
	size = strtoull(at, &end, 16);
	if (end == at || *end != ' ')
		return;
	end++;
	add_entry(m, start, size, end, strnlen(end, len - (end - line)));
}

static int compare(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

static void sort(struct perf_map *m)
{
	u64 reach = 0;

	if (m->n)
		qsort(m->entries, m->n, sizeof(*m->entries), compare);
	for (u32 i = 0; i < m->n; i++) {
		reach = m->entries[i].end > reach ? m->entries[i].end : reach;
		m->entries[i].reach = reach;
	}
}

/* The whole lines of buf; how many bytes those are. A line that fills it is left out. */
static size_t parse_lines(struct perf_map *m, char *buf, size_t size)
{
	size_t used = 0;
	char *newline;

	while ((newline = memchr(buf + used, '\n', size - used))) {
		*newline = 0;
		parse_line(m, buf + used, newline - (buf + used));
		used = newline + 1 - buf;
	}
	return used || size < CHUNK ? used : size;
}

/* What was appended. A file that became shorter is another one. */
void perf_map_look(struct perf_map *m)
{
	cleanup(close) int fd = open_map(m);
	cleanup(free) char *buf = fd >= 0 ? malloc(CHUNK + 1) : NULL;
	u32 before = m->n;
	struct stat st;
	size_t used;
	ssize_t n;

	if (!buf || fstat(fd, &st))
		return;
	if ((u64)st.st_size < m->offset)
		m->offset = m->n = m->names_size = 0;
	do {
		n = pread(fd, buf, CHUNK, (off_t)m->offset);
		used = n > 0 ? parse_lines(m, buf, (size_t)n) : 0;
		m->offset += used;
	} while (used && m->n < ENTRIES_MAX);
	if (m->n != before)
		sort(m);
}

static const struct entry *find(const struct perf_map *m, u64 addr)
{
	const struct entry *best = NULL;
	u32 at = SEARCH(m->n, k, m->entries[k].start <= addr);

	while (at-- && m->entries[at].reach > addr)
		if (m->entries[at].end > addr && (!best || m->entries[at].number > best->number))
			best = &m->entries[at];
	return best;
}

static bool may_look(struct perf_map *m)
{
	u64 now = now_ns();

	if (m->looked_ns && now - m->looked_ns < AGAIN_NS)
		return false;
	m->looked_ns = now;
	return true;
}

const char *perf_map_find(struct perf_map *m, u64 addr)
{
	const struct entry *e = find(m, addr);

	if (!e && may_look(m)) {
		perf_map_look(m);
		e = find(m, addr);
	}
	return e ? m->names + e->name : NULL;
}
