/* SPDX-License-Identifier: Apache-2.0 */
#include "unnamed.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"
#include "unwind/cleanup.h"
#include "unwind/profile/profile.h"

#define MUCH 0.2 /* of all frames */

/* It is called after its file: "file+0x1149", where its beginning is known, or "[file]". */
static bool is_unnamed(const struct profile_function *f)
{
	size_t n = strlen(f->module);
	bool brackets = f->name[0] == '[';
	const char *name = f->name + brackets;

	return f->image && n && !strncmp(name, f->module, n) &&
	       (brackets ? !strcmp(name + n, "]") : !strncmp(name + n, "+0x", 3));
}

/* The image of most frames without a name, and the share that they have of all frames; 0: there are none. */
static u32 most_unnamed(const struct profile *p, double *share)
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
	*share = all && frames ? (double)frames[best] / (double)all : 0;
	return best;
}

void unnamed_note(const struct profile *p)
{
	const char *servers = getenv("DEBUGINFOD_URLS"), *path, *id;
	double share;
	u32 image = most_unnamed(p, &share);

	if (!image || share < MUCH)
		return;
	path = p->images[image].path;
	id = p->images[image].build_id;
	if (strlen(id) < 3)
		say_note("%.0f %% of all frames are functions of %s without a name. It is stripped, and has no "
		         "build-id to "
		         "find its symbols by: run a build that is not stripped",
		        100 * share, path);
	else
		say_note("%.0f %% of all frames are functions of %s without a name. It is stripped: install its "
		         "symbols (a "
		         "package -dbgsym or -debuginfo)%s. yrt looks for /usr/lib/debug/.build-id/%.2s/%s.debug",
		        100 * share, path,
		        servers && *servers ? "" : ", or name a server of the distribution in DEBUGINFOD_URLS", id,
		        id + 2);
}
