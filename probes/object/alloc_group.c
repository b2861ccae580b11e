/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probes/uprobe.h"
#include "unwind/grow.h"

/* path: proc_map_path(), of a mapping of its code. */
static u64 start_of(const struct process *p, const char *path)
{
	const char *name = strrchr(path, '/');
	const struct mapping *m = name ? process_mapping(p, strtoul(name + 1, NULL, 16)) : NULL;

	return m && m->prot & PROT_EXEC ? m->start - m->offset : 0;
}

static struct alloc_group *group_of(struct alloc_group **groups, u32 *n, const struct process *p, const char *path,
        const struct alloc_window_place *place)
{
	struct alloc_group *g;

	for (u32 i = 0; i < *n; i++) {
		g = &(*groups)[i];
		if (g->process == p->number && g->program == place->program && g->following == place->following &&
		        g->tail == place->tail && !g->placed && g->n < ALLOC_GROUP_MAX && !strcmp(g->path, path))
			return g;
	}
	if (grow(groups, *n, sizeof(**groups)))
		return NULL;
	g = &(*groups)[*n];
	*g = (struct alloc_group){.process = p->number,
	        .pid = p->pid,
	        .program = place->program,
	        .following = place->following,
	        .tail = place->tail,
	        .start = start_of(p, path)};
	snprintf(g->path, sizeof(g->path), "%s", path);
	g->file = open(path, O_PATH | O_CLOEXEC);
	if (g->file >= 0)
		(*n)++;
	return g;
}

struct error *alloc_groups_add(struct alloc_group **groups, u32 *n, const struct process *p, const char *path,
        const struct alloc_window_place *place)
{
	struct alloc_group *g = group_of(groups, n, p, path, place);

	if (!g)
		return &error_no_memory;
	if (g->file < 0)
		return errno == ENOENT || errno == ESRCH
		               ? NULL
		               : error_errno(errno, "cannot open %s for a uprobe in process %d", path, p->pid);
	g->offset[g->n] = place->offset;
	g->cookie[g->n++] = place->cookie;
	if (!g->pair)
		g->pair = place->pair;
	return NULL;
}

static struct error *place(const struct alloc_group *g, const struct bpf_program *program, const u64 *offset,
        const u64 *cookie, u32 n, struct alloc_breakpoint *last, struct uprobe **ret)
{
	struct error *err;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", g->file);
	alloc_breakpoint_before(last, g->pid, g->start ? g->start + offset[n - 1] : 0);
	err = uprobe_place_all(program, g->pid, path, offset, cookie, n, ret);
	alloc_breakpoint_after(last, *ret);
	return err;
}

struct error *alloc_group_place(struct alloc_group *g)
{
	return g->uprobe || !g->n ? NULL : place(g, g->program, g->offset, g->cookie, g->n, &g->last, &g->uprobe);
}

void alloc_group_place_pair(struct alloc_group *g, const struct bpf_program *program)
{
	u64 cookie = 0;

	if (g->pair && g->uprobe && !g->second)
		error_free(place(g, program, &g->pair, &cookie, 1, &g->last_second, &g->second));
}

void alloc_group_forget(struct alloc_group *g, struct alloc_departures *d)
{
	alloc_depart(d, &g->second, &g->last_second);
	alloc_depart(d, &g->uprobe, &g->last);
	close(g->file);
}
