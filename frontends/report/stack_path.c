/* SPDX-License-Identifier: Apache-2.0 */
#include "stack_path.h"

#include <string.h>

#include "frontends/format/text.h"
#include "place.h"

u32 stack_path(const struct profile *p, u32 node, u32 *ret)
{
	u32 n = 0;

	for (; node && n < STACK_PATH_MAX; node = p->nodes[node].parent)
		ret[n++] = node;
	return n;
}

const struct profile_function *stack_path_function(const struct profile *p, u32 node)
{
	return &p->functions[p->nodes[node].function];
}

bool stack_path_has(const struct profile *p, const u32 *path, u32 from, u32 n, const char *name)
{
	char plain[NAME_LENGTH];

	for (u32 i = from; i < n; i++)
		if (!strcmp(text_plain_name(stack_path_function(p, path[i]), plain, sizeof(plain)), name))
			return true;
	return !*name;
}

u32 stack_path_find(const struct profile *p, const u32 *path, u32 n, const char *start)
{
	u32 i = 0;

	while (i < n && strncmp(stack_path_function(p, path[i])->name, start, strlen(start)) != 0)
		i++;
	return i;
}
