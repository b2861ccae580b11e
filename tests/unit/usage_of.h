/* SPDX-License-Identifier: Apache-2.0 */
/* What `yrt heap` makes of a fake process, and what it says of one of its parts. */
#ifndef USAGE_OF_H
#define USAGE_OF_H

#include <string.h>

#include "unwind/allocators/allocators.h"

static inline struct usage *read_usage(struct space *s)
{
	struct usage *u = NULL;

	assert_null(allocators_read(s, &u));
	return u;
}

static inline struct amount amount_of(const struct usage *u, const char *above, const char *name)
{
	for (u32 i = 1; i < u->nnodes; i++)
		if (!strcmp(u->nodes[i].name, name) && !strcmp(u->nodes[u->nodes[i].parent].name, above))
			return u->nodes[i].total;
	return (struct amount){0};
}

#endif
