/* SPDX-License-Identifier: Apache-2.0 */
#include "glibc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "allocators.h"
#include "binary/image.h"
#include "cleanup.h"

#define TRIES 4

/* --- where it is --- */

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_libc(const char *path)
{
	const char *name = file_name(path);

	return !strcmp(name, "libc.so.6") || (!strncmp(name, "libc-2.", 7) && strstr(name, ".so"));
}

/* "2.36" behind the words with which libc introduces itself. */
static void read_version(struct glibc *g, u32 map)
{
	static const char words[] = "release version ";
	const struct map_line *line = &g->space->maps.lines[map];
	struct image *img = NULL;
	struct error *err;
	Elf_Data *data = NULL;
	const char *found = NULL;
	u64 addr;
	int fd = map_open(g->space->pid, line);

	if (fd < 0)
		return;
	err = image_open(fd, line->path, &img);
	if (err) {
		error_free(err);
		return;
	}
	data = image_section(img, ".rodata", &addr);
	if (data)
		found = memmem(data->d_buf, data->d_size, words, strlen(words));
	if (found) {
		size_t left = data->d_size - (size_t)(found + strlen(words) - (const char *)data->d_buf);
		size_t n = 0;

		for (const char *at = found + strlen(words); n < left && n + 1 < sizeof(g->version); n++)
			if (!strchr("0123456789.", at[n]) || !at[n])
				break;
			else
				g->version[n] = at[n];
		while (n && g->version[n - 1] == '.')
			n--;
		g->version[n] = '\0';
	}
	image_put(img);
}

/* --- all of it --- */

static void claim(struct glibc *g)
{
	for (u32 i = 0; i < g->nsegments; i++)
		space_claim(g->space, g->segments[i].start, g->segments[i].end);
}

static struct error *read_all(struct glibc *g, u64 bins, u32 map)
{
	bool found = false;
	struct error *err = block_reader_open(g->space, &g->reader);

	if (!err)
		err = glibc_read_arenas(g, bins, &found);
	if (!err && !found)
		err = usage_say(g->usage, USAGE_NOTE, "the malloc of %s is of an unknown layout: not read",
		        g->space->maps.lines[map].path);
	if (err || !found)
		return err;
	for (u32 i = 0; !err && i < g->nsegments; i++)
		err = glibc_walk(g, i);
	if (!err)
		err = glibc_read_caches(g);
	claim(g);
	if (!err)
		err = glibc_read_mapped(g);
	read_version(g, map);
	return err ? err : glibc_show(g);
}

static void release(struct glibc *g)
{
	for (u32 i = 0; i < g->narenas; i++) {
		free(g->arenas[i].unsorted);
		free(g->arenas[i].fast);
		for (u32 k = 0; k < GLIBC_STATES; k++)
			free(g->arenas[i].states[k]);
	}
	free(g->arenas);
	free(g->segments);
	free(g->caches);
	block_reader_close(&g->reader);
	free(g);
}

/* tries: a program that allocates all the time changes its bins meanwhile. */
static struct error *read_one(struct space *s, struct usage *u, u32 map, u32 tries, bool *found)
{
	u64 start, end, bins;
	struct glibc *g;
	struct error *err;

	*found = false;
	if (space_data(s, map, &start, &end))
		for (u32 i = 0; !*found && i < tries; i++)
			*found = glibc_find_arena(s, start, end, &bins);
	if (!*found)
		return NULL;
	g = calloc(1, sizeof(*g));
	if (!g)
		return &error_no_memory;
	g->space = s;
	g->usage = u;
	g->data = start;
	g->data_size = end - start;
	err = read_all(g, bins, map);
	release(g);
	return err;
}

/* libc's own; a program that is linked statically has it in its data. */
static struct error *glibc_read(struct space *s, struct usage *u)
{
	bool found = false, any = false, libc = false;
	struct error *err = NULL;

	for (u32 i = 0; !err && i < s->maps.nlines; i++) {
		if (!is_libc(s->maps.lines[i].path))
			continue;
		libc = true;
		err = read_one(s, u, i, TRIES, &found);
		any |= found;
	}
	for (u32 i = 0; !err && !libc && !any && i < s->maps.nlines; i++)
		err = read_one(s, u, i, 1, &any);
	if (!err && libc && !any)
		err = usage_say(u, USAGE_NOTE, "glibc's malloc has not been used, or its layout is unknown: not read");
	return err;
}

const struct allocator glibc_allocator = {.name = "glibc", .read = glibc_read};
