/* SPDX-License-Identifier: Apache-2.0 */
/* Allocators that are only recognised, by the names of files and of functions: they are said to be there. */
#include <string.h>
#include <sys/mman.h>

#include "allocators.h"
#include "symbols/symbols.h"

static const struct known {
	const char *name, *file, *symbols[4];
} known[] = {
        {"jemalloc", "libjemalloc", {"mallctl", "je_mallctl", "_rjem_mallctl"}},
        {"tcmalloc", "libtcmalloc", {"tc_malloc", "MallocExtension_Internal_GetNumericProperty"}},
        {"mimalloc", "libmimalloc", {"mi_malloc", "mi_version"}},
        {"musl's malloc", "ld-musl-", {0}},
        {"snmalloc", "libsnmalloc", {"sn_malloc"}},
};

#define KNOWN (sizeof(known) / sizeof(*known))

static bool has_symbol(struct image *img, const struct known *k)
{
	struct symbol symbol;

	for (u32 i = 0; k->symbols[i]; i++)
		if (symbols_lookup(img, k->symbols[i], &symbol))
			return true;
	return false;
}

static void look(struct space *s, u32 map, bool *found)
{
	const struct map_line *line = &s->maps.lines[map];
	const char *slash = strrchr(line->path, '/'), *name = slash ? slash + 1 : line->path;
	struct error *err;
	struct image *img;
	int fd;

	for (u32 i = 0; i < KNOWN; i++)
		found[i] |= !strncmp(name, known[i].file, strlen(known[i].file));
	if (!(line->prot & PROT_EXEC) || strstr(name, ".so"))
		return;
	fd = map_open(s->pid, line);
	if (fd < 0)
		return;
	err = image_open(fd, line->path, &img);
	if (err) {
		error_free(err);
		return;
	}
	for (u32 i = 0; i < KNOWN; i++)
		found[i] |= has_symbol(img, &known[i]);
	image_put(img);
}

static bool is_read(const struct usage *u, const char *name)
{
	static const char of[] = "malloc of ";

	for (u32 i = 1; i < u->nnodes; i++)
		if (!strncmp(u->nodes[i].name, of, strlen(of)) &&
		        !strncmp(u->nodes[i].name + strlen(of), name, strlen(name)))
			return true;
	return false;
}

/* The program itself: libraries of allocators are known by their names. */
static struct error *recognised_read(struct space *s, struct usage *u)
{
	bool found[KNOWN] = {0};
	struct error *err = NULL;

	for (u32 i = 0; i < s->maps.nlines; i++)
		if (s->maps.lines[i].ino && s->maps.lines[i].path[0] == '/')
			look(s, i, found);
	for (u32 i = 0; !err && i < KNOWN; i++)
		if (found[i] && !is_read(u, known[i].name))
			err = usage_say(u, USAGE_NOTE,
			        "%s is in this process: what it holds is not read, and is shown as "
			        "anonymous memory",
			        known[i].name);
	return err;
}

const struct allocator recognised_allocators = {.name = "others", .read = recognised_read};
