/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that had ended before anybody looked at it: its regions come from what the kernel reported of its files,
 * and from the process that it was forked from.
 */
#include <stdlib.h>
#include <string.h>

#include "process.h"

/* *ret has the lines of maps and of more that begin elsewhere, in order. */
static struct error *join_maps(const struct maps *maps, const struct maps *more, struct maps *ret)
{
	struct map_line *lines = calloc(maps->nlines + more->nlines + 1, sizeof(*lines));
	u32 n = 0, i = 0, j = 0;

	*ret = (struct maps){.lines = lines};
	while (lines && (i < maps->nlines || j < more->nlines)) {
		bool known = i < maps->nlines && (j == more->nlines || maps->lines[i].start <= more->lines[j].start);
		const struct map_line *line = known ? &maps->lines[i++] : &more->lines[j++];

		if (n && line->start < lines[n - 1].end)
			continue;
		lines[n] = *line;
		lines[n].path = strdup(line->path);
		ret->nlines = ++n;
		if (!lines[n - 1].path)
			break;
	}
	if (lines && (!n || lines[n - 1].path))
		return NULL;
	maps_free(ret);
	return &error_no_memory;
}

struct error *process_recall(struct process *p, const struct maps *files)
{
	struct maps joined;
	struct error *err;

	if (p->ninstances || !files->nlines)
		return NULL;
	err = join_maps(&p->maps, files, &joined);
	if (err)
		return err;
	if (joined.nlines == p->maps.nlines) {
		maps_free(&joined);
		return NULL;
	}
	maps_free(&p->maps);
	p->maps = joined;
	return process_finish(p);
}

struct error *process_inherit(struct process *p, const struct process *parent)
{
	const struct maps none = {0};
	struct error *err;

	if (p->maps.nlines || !parent->maps.nlines)
		return NULL;
	err = join_maps(&parent->maps, &none, &p->maps);
	return err ? err : process_finish(p);
}
