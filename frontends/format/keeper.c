/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper.h"

#include <stdio.h>
#include <string.h>

#define MOST_OF 0.5

static bool is_element(const char *name)
{
	return !strncmp(name, "[]", 2) || !strncmp(name, "{}", 2) || !strncmp(name, "{key}", 5) || *name == '?';
}

static double below(const struct profile *p, const double *bytes, u32 node)
{
	return bytes ? bytes[node] : (double)p->nodes[node].total;
}

static void set_collection(struct keeper *k, u32 n, double bytes)
{
	k->collection = n;
	k->bytes = bytes;
}

void keeper_find(const struct profile *p, const double *bytes, keeper_test *test, struct keeper *ret)
{
	u32 node = 0;

	*ret = (struct keeper){0};
	while (ret->n < KEEPER_FRAMES) {
		u32 best = 0;

		for (u32 c = p->nodes[node].child; c; c = p->nodes[c].sibling)
			if (!best || below(p, bytes, c) > below(p, bytes, best))
				best = c;
		if (!best || below(p, bytes, best) < MOST_OF * below(p, bytes, 0))
			break;
		if (!ret->sure && ret->n && is_element(p->functions[p->nodes[best].function].name)) {
			ret->sure = test(p, bytes, best);
			if (ret->sure || !ret->collection)
				set_collection(ret, ret->n, below(p, bytes, node));
		}
		ret->node[ret->n++] = best;
		node = best;
	}
	if (!ret->collection)
		set_collection(ret, ret->n, below(p, bytes, node));
}

bool keeper_is_shared(const char *name)
{
	return !strcmp(name, "shared") || !strncmp(name, "shared by ", 10);
}

char *keeper_text(const struct profile *p, const struct keeper *k, u32 n)
{
	char *ret = NULL;
	size_t size;
	FILE *out = open_memstream(&ret, &size);

	for (u32 i = 0; out && i < n; i++) {
		const char *name = p->functions[p->nodes[k->node[i]].function].name;

		if (!keeper_is_shared(name))
			fprintf(out, "%s%s", ftell(out) ? KEEPER_SIGN : "", name);
	}
	if (out)
		fclose(out);
	return ret;
}

const char *keeper_type(const char *name)
{
	const char *colon = strstr(name, ": ");

	return colon ? colon + 2 : name;
}
