/* SPDX-License-Identifier: Apache-2.0 */
#include "walker_guess.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "select_find.h"
#include "unwind/cleanup.h"
#include "unwind/runtime.h"
#include "unwind/table.h"

#define LINE_BYTES 512

struct guess {
	const char *proc;
	struct table programs; /* that were looked at */
	u32 runtimes;
};

static bool is_named(const struct runtime_ops *r, const char *line)
{
	for (const char *const *name = r->files; *name; name++)
		if (strstr(line, *name))
			return true;
	return false;
}

u32 walkers_guess_of(const char *proc, pid_t pid)
{
	cleanup(fclose) FILE *maps = NULL;
	char path[64], line[LINE_BYTES];
	u32 ret = 0;

	snprintf(path, sizeof(path), "%s/%d/maps", proc, pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps))
		for (const struct runtime_ops *const *r = runtimes; *r; r++)
			if ((*r)->files && is_named(*r, line))
				ret |= 1u << (*r)->id;
	return ret;
}

/* Of many processes of one program one is looked at. */
static struct error *guess(void *ctx, pid_t pid)
{
	struct guess *g = ctx;
	struct stat st;
	char path[64];
	u64 key;

	snprintf(path, sizeof(path), "%s/%d/exe", g->proc, pid);
	if (stat(path, &st)) /* a thread of the kernel, or gone */
		return NULL;
	key = (st.st_ino ^ st.st_dev << 40) * 0x9e3779b97f4a7c15 | 1;
	if (table_get(&g->programs, key))
		return NULL;
	g->runtimes |= walkers_guess_of(g->proc, pid);
	return table_put(&g->programs, key, 0);
}

struct error *walkers_guess(const char *proc, u32 *ret)
{
	struct guess g = {.proc = proc};
	struct error *err;

	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		g.runtimes |= (*r)->files ? 0 : 1u << (*r)->id;
	err = each_process(proc, guess, &g);
	table_free(&g.programs);
	*ret = g.runtimes;
	return err;
}
