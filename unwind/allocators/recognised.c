/* SPDX-License-Identifier: Apache-2.0 */
/* Allocators that are only recognised, by the names of files and of functions: they are said to be there. */
#include <string.h>
#include <sys/mman.h>

#include "allocator_names.h"
#include "allocators.h"

#define SAID 8 /* of them in a process, at most */

/* Libraries are known by their names; else it is the program itself that may have one. */
static const struct allocator_name *allocator_at(struct space *s, u32 map)
{
	const struct map_line *line = &s->maps.lines[map];
	const struct allocator_name *ret = allocator_of_file(line->path);
	struct error *err;
	struct image *img;
	int fd;

	if (ret || !(line->prot & PROT_EXEC) || strstr(line->path, ".so"))
		return ret;
	fd = map_open(s->pid, line);
	if (fd < 0)
		return NULL;
	err = image_open(fd, line->path, &img);
	if (err) {
		error_free(err);
		return NULL;
	}
	ret = allocator_of_image(img);
	image_put(img);
	return ret;
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

static bool was_said(const struct allocator_name *const *said, const struct allocator_name *a)
{
	while (*said && *said != a)
		said++;
	return *said;
}

static struct error *recognised_read(struct space *s, struct usage *u)
{
	const struct allocator_name *said[SAID + 1] = {0};
	struct error *err = NULL;

	for (u32 i = 0, n = 0; !err && n < SAID && i < s->maps.nlines; i++) {
		const struct map_line *line = &s->maps.lines[i];
		const struct allocator_name *a = line->ino && line->path[0] == '/' ? allocator_at(s, i) : NULL;

		if (!a || was_said(said, a) || is_read(u, a->name))
			continue;
		said[n++] = a;
		err = usage_say(u, USAGE_NOTE,
		        "%s is in this process: what it holds is not read, and is shown as anonymous memory", a->name);
	}
	return err;
}

const struct allocator recognised_allocators = {.name = "others", .read = recognised_read};
