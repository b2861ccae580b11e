/* SPDX-License-Identifier: Apache-2.0 */
#include "source_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unwind/binary/root.h"
#include "unwind/clean_text.h"
#include "unwind/cleanup.h"

#define FILE_MOST (4 << 20)
#define TEXT_MOST 140
#define CUT       "..."

/* A report may go to others: what not all may read stays where it is. */
FILE *source_open(int root, const char *path, u64 before_unix_ns)
{
	int fd = *path == '/' ? root_open_regular(root, path) : -1;
	struct stat s;
	FILE *ret = NULL;

	if (fd >= 0 && !fstat(fd, &s) && s.st_mode & S_IROTH && s.st_size <= FILE_MOST &&
	        (!before_unix_ns || (u64)s.st_mtim.tv_sec <= before_unix_ns / 1000000000))
		ret = fdopen(fd, "r");
	if (fd >= 0 && !ret)
		close(fd);
	return ret;
}

void source_where(const pid_t *pids, u32 n, struct evidence *e)
{
	struct stat own, first = {0}, s;
	bool others = false;
	char path[32];

	if (stat("/proc/self/root/", &own))
		return;
	for (u32 i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "/proc/%d/root/", (int)pids[i]);
		if (stat(path, &s))
			continue;
		if (!first.st_ino) {
			first = s;
			snprintf(e->root, sizeof(e->root), "%s", path);
		}
		others |= s.st_dev != first.st_dev || s.st_ino != first.st_ino;
	}
	if (!first.st_ino || (first.st_dev == own.st_dev && first.st_ino == own.st_ino))
		*e->root = '\0';
	e->elsewhere = others;
	facts_set(&e->facts, "root.other", *e->root || others);
}

char *source_text(const struct evidence *e, const char *path, u32 line)
{
	cleanup(close) int root = line && !e->elsewhere ? root_open(e->root) : -1;
	FILE *in = NULL;
	char *text = NULL, *ret = NULL, *from;
	size_t size = 0;
	ssize_t length = -1;

	if (line && !e->elsewhere && (root >= 0 || !*e->root))
		in = source_open(root, path, e->start_unix_ns);
	if (!in)
		return NULL;
	while (line && (length = getline(&text, &size, in)) >= 0)
		line--;
	if (!line && length > 0) {
		from = text + strspn(text, " \t");
		from[strcspn(from, "\r\n")] = '\0';
		if (strlen(from) > TEXT_MOST + strlen(CUT))
			strcpy(from + TEXT_MOST, CUT);
		ret = *from ? clean_text(from) : NULL;
	}
	free(text);
	fclose(in);
	return ret;
}
