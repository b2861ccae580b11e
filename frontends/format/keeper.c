/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/loss.h"
#include "unwind/cleanup.h"

#define MOST_OF 0.5
#define MANY    16 /* elements of a collection */
#define NEAR    8  /* boxes before a collection that are shown */

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
	bool left_out = false;

	for (u32 i = 0; out && i < n; i++) {
		const char *name = p->functions[p->nodes[k->node[i]].function].name;

		bool first = !ftell(out), far = !first && i + NEAR < k->collection;

		if (!keeper_is_shared(name) && !far)
			fprintf(out, "%s%s%s", first ? "" : KEEPER_SIGN, left_out ? "..." KEEPER_SIGN : "", name);
		left_out = far;
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

static bool are_many(const struct profile *p, const double *bytes, u32 node)
{
	return p->nodes[node].more >= MANY;
}

char *keeper_describe(const struct profile *p)
{
	char amount[LOSS_AMOUNT], each[LOSS_AMOUNT];
	cleanup(free) char *by = NULL;
	const struct profile_node *element;
	struct keeper k;
	char *ret;

	keeper_find(p, NULL, are_many, &k);
	by = k.sure ? keeper_text(p, &k, k.collection) : NULL;
	if (!by || !*by)
		return NULL;
	element = &p->nodes[k.node[k.collection]];
	return asprintf(&ret, "%s keeps %s, %.0f %% of all, in %lu %s: %s each", by, loss_amount(k.bytes, amount),
	               100 * k.bytes / (double)p->nodes[0].total, element->more,
	               keeper_type(p->functions[element->function].name),
	               loss_amount((double)element->total / (double)element->more, each)) < 0
	               ? NULL
	               : ret;
}
