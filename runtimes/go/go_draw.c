/* SPDX-License-Identifier: Apache-2.0 */
#include "go_draw.h"

#include <stdio.h>
#include <string.h>

static struct error *draw_place(
        const struct go_places *p, const struct go_place *at, bool lines, struct profile *ret, u32 *node)
{
	char name[NAME_MAX_BYTES + 16];
	struct profile_function fn = {.name = name,
	        .module = "go",
	        .file = go_place_file(p, at),
	        .line = lines ? at->line : at->definition,
	        .kind = KIND_SCRIPT_JIT};
	struct error *err;
	u32 function;

	if (at->wrapper || !strcmp(go_place_name(p, at), "runtime.goexit"))
		return NULL;
	snprintf(name, sizeof(name), lines ? "%s:%u" : "%s", go_place_name(p, at), at->line);
	err = profile_function(ret, 0, &fn, false, &function);
	return err ? err : profile_child(ret, *node, function, node);
}

struct error *go_draw_chain(const struct go_places *p, const struct go_stacks *s, const struct go_chain *c, bool lines,
        struct profile *ret, u32 *node)
{
	struct error *err = NULL;

	for (u32 i = c->n; !err && i > 0; i--) {
		u32 n;
		const struct go_place *at = go_places_at(p, s->pcs[c->first + i - 1], &n);

		n = go_stacks_functions(s, c, i - 1, n);
		for (u32 k = n; !err && at && k > 0; k--)
			err = draw_place(p, at + k - 1, lines, ret, node);
	}
	return err;
}
