/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_unnamed.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/cleanup.h"

/* "file+0x1149", where its beginning is known, or "[file]". */
static bool is_unnamed(const struct profile_function *f)
{
	size_t n = strlen(f->module);
	bool brackets = f->name[0] == '[';
	const char *name = f->name + brackets;

	return f->image && n && !strncmp(name, f->module, n) &&
	       (brackets ? !strcmp(name + n, "]") : !strncmp(name + n, "+0x", 3));
}

u32 profile_unnamed(const struct profile *p, double *share)
{
	cleanup(free) u64 *frames = calloc(p->nimages + 1, sizeof(*frames));
	u32 best = 0;
	u64 all = 0;

	for (u32 i = 1; frames && i < p->nnodes; i++) {
		const struct profile_function *f = &p->functions[p->nodes[i].function];

		all += p->nodes[i].total;
		if (is_unnamed(f) && f->image < p->nimages)
			frames[f->image] += p->nodes[i].total;
	}
	for (u32 i = 1; frames && i < p->nimages; i++)
		best = frames[i] > frames[best] ? i : best;
	*share = best && all ? (double)frames[best] / (double)all : 0;
	return best;
}

char *profile_unnamed_text(const struct profile *p, u32 image, char *ret, size_t size)
{
	const char *id = p->images[image].build_id, *servers = getenv("DEBUGINFOD_URLS");

	if (strlen(id) < 3)
		snprintf(ret, size,
		        "It is stripped, and has no build-id to find its symbols by: run a build that is not "
		        "stripped.");
	else
		snprintf(ret, size,
		        "It is stripped: install its symbols (a package -dbgsym or -debuginfo)%s. yrt looks for "
		        "/usr/lib/debug/.build-id/%.2s/%s.debug.",
		        servers && *servers ? "" : ", or name a server of the distribution in DEBUGINFOD_URLS", id,
		        id + 2);
	return ret;
}
