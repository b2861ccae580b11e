/* SPDX-License-Identifier: Apache-2.0 */
#include "space.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "binary/image.h"
#include "binary/proc_path.h"
#include "cleanup.h"
#include "search.h"

u32 space_find(const struct space *s, u64 addr)
{
	u32 at = SEARCH(s->maps.nlines, k, s->maps.lines[k].end <= addr);

	return at < s->maps.nlines && addr >= s->maps.lines[at].start ? at : s->maps.nlines;
}

bool space_is_anonymous(const struct space *s, u32 map)
{
	const struct map_line *line = &s->maps.lines[map];

	return !line->ino && !s->of[map].shared && !(~line->prot & (PROT_READ | PROT_WRITE)) &&
	       (!line->path[0] || !strcmp(line->path, "[heap]") || !strncmp(line->path, "[anon", 5));
}

bool space_data(const struct space *s, u32 map, u64 *start, u64 *end)
{
	const struct map_line *l = s->maps.lines;
	u32 last = map;

	if (!(l[map].prot & PROT_WRITE) || !l[map].ino || s->of[map].shared)
		return false;
	if (last + 1 < s->maps.nlines && l[last + 1].start == l[last].end && !l[last + 1].ino &&
	        l[last + 1].prot & PROT_WRITE && strcmp(l[last + 1].path, "[heap]") != 0)
		last++;
	*start = l[map].start;
	*end = l[last].end;
	return true;
}

/* Its writable segments reach so far behind the start of this mapping. 0: it is not of one of them. */
static u64 size_of_variables(const struct image *img, const struct map_line *line)
{
	const struct image_segment *of = NULL;
	u64 size = 0;

	for (u32 i = 0; i < img->nsegments && !of; i++) {
		const struct image_segment *g = &img->segments[i];

		if (g->flags & PF_W && g->filesz && line->offset < g->offset + g->filesz &&
		        line->offset >= (g->offset & ~(PAGES_SIZE - 1)))
			of = g;
	}
	for (u32 i = 0; of && i < img->nsegments; i++) {
		const struct image_segment *g = &img->segments[i];
		u64 end = g->vaddr + g->memsz - (of->vaddr + line->offset - of->offset);

		if (g->flags & PF_W && g->vaddr >= of->vaddr && end > size)
			size = end;
	}
	return size;
}

/*
 * Bytes of the variables that begin with this mapping, as its file says; 0: nobody knows (of a core it may be another
 * file by now).
 */
static u64 variables(const struct space *s, u32 map)
{
	const struct map_line *line = &s->maps.lines[map];
	int fd = s->pid ? map_open(s->pid, line) : -1;
	struct image *img;
	struct error *err;
	u64 size;

	if (fd < 0)
		return 0;
	err = image_open(fd, line->path, &img);
	if (err) {
		error_free(err);
		return 0;
	}
	size = size_of_variables(img, line);
	image_put(img);
	return size;
}

/*
 * Memory that has nothing to do with a file may follow its variables at once: in a Python arenas, full of pointers that
 * each would be tried. And what advice on huge pages concerns is a mapping of its own.
 */
bool space_variables(const struct space *s, u32 map, u64 least, u64 *start, u64 *end)
{
	const struct map_line *l = s->maps.lines;
	u32 last = map;
	u64 size;

	if (!space_data(s, map, start, end))
		return false;
	while (last + 1 < s->maps.nlines && l[last + 1].start == l[last].end && !l[last + 1].ino &&
	        l[last + 1].prot & PROT_WRITE)
		last++;
	if (l[last].end - *start < least)
		return false;
	size = variables(s, map);
	if (size)
		*end = size < l[last].end - *start ? *start + size : l[last].end;
	return *end - *start >= least;
}

void space_claim(struct space *s, u64 start, u64 end)
{
	for (u32 i = SEARCH(s->maps.nlines, k, s->maps.lines[k].end <= start);
	        i < s->maps.nlines && s->maps.lines[i].start < end; i++) {
		u64 from = s->maps.lines[i].start > start ? s->maps.lines[i].start : start;
		u64 to = s->maps.lines[i].end < end ? s->maps.lines[i].end : end;

		s->of[i].claimed.size += to - from;
		pages_add(s->pages, from, to, &s->of[i].claimed);
	}
}

bool space_is_claimed(const struct space *s, u32 map)
{
	return s->of[map].claimed.size;
}

/* --- how much is in memory --- */

static bool begins_mapping(const char *text, u64 *start, bool *shared)
{
	char prot[5];

	if (sscanf(text, "%" SCNx64 "-%*x %4s", start, prot) != 2)
		return false;
	*shared = prot[3] == 's';
	return true;
}

static struct error *read_smaps(struct space *s)
{
	char path[64];
	cleanup(free) char *text = NULL;
	struct space_map *of = NULL;
	size_t size = 0;
	u64 start, kb;
	bool shared;
	FILE *in;

	proc_path(path, sizeof(path), s->pid, "smaps");
	in = fopen(path, "re");
	if (!in)
		return error_errno(errno == ENOENT ? ESRCH : errno, "cannot read the memory map of process %d", s->pid);
	while (getline(&text, &size, in) > 0) {
		if (begins_mapping(text, &start, &shared)) {
			u32 at = space_find(s, start);

			of = at < s->maps.nlines && s->maps.lines[at].start == start ? &s->of[at] : NULL;
			if (of)
				of->shared = shared;
		} else if (of && sscanf(text, "Rss: %" SCNu64 " kB", &kb) == 1) {
			of->all.resident = kb << 10;
		} else if (of && sscanf(text, "Swap: %" SCNu64 " kB", &kb) == 1) {
			of->all.swapped = kb << 10;
		}
	}
	fclose(in);
	return NULL;
}

static struct error *measure(struct space *s)
{
	s->of = calloc(s->maps.nlines + 1, sizeof(*s->of));
	if (!s->of)
		return &error_no_memory;
	for (u32 i = 0; i < s->maps.nlines; i++) {
		s->of[i].all.size = s->maps.lines[i].end - s->maps.lines[i].start;
		s->of[i].named_stack = !strcmp(s->maps.lines[i].path, "[stack]");
		if (s->core)
			pages_add(s->pages, s->maps.lines[i].start, s->maps.lines[i].end, &s->of[i].all);
	}
	return s->core ? NULL : read_smaps(s);
}

struct error *space_open(pid_t pid, struct core_file *core, struct space *ret)
{
	struct error *err;

	*ret = (struct space){.pid = core ? 0 : pid, .core = core};
	ret->memory = core ? core_memory(core) : memory_live(pid);
	ret->pages = malloc(sizeof(*ret->pages));
	if (!ret->memory || !ret->pages) {
		space_close(ret);
		return &error_no_memory;
	}
	pages_open(ret->pages, ret->pid, core);
	err = core ? core_maps(core, &ret->maps) : maps_read(pid, &ret->maps);
	if (!err)
		err = measure(ret);
	if (err)
		space_close(ret);
	return err;
}

void space_close(struct space *s)
{
	if (s->memory)
		memory_destroy(s->memory);
	if (s->pages)
		pages_close(s->pages);
	free(s->pages);
	free(s->of);
	maps_free(&s->maps);
	*s = (struct space){0};
}
