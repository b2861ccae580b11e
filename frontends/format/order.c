/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "order.h"

static int compare_u32(u32 a, u32 b)
{
	return (a > b) - (a < b);
}

static int compare_functions(const void *a, const void *b, void *functions)
{
	const struct profile_function *f = (struct profile_function *)functions + *(const u32 *)a;
	const struct profile_function *g = (struct profile_function *)functions + *(const u32 *)b;
	int c;

	if ((c = strcmp(f->name, g->name)) || (c = strcmp(f->module, g->module)) || (c = strcmp(f->file, g->file)) ||
	        (c = compare_u32(f->line, g->line)) || (c = compare_u32(f->kind, g->kind)) ||
	        (c = compare_u32(f->flags, g->flags)))
		return c;
	return compare_u32(*(const u32 *)a, *(const u32 *)b);
}

struct by_rank {
	const struct profile_node *nodes;
	const u32 *rank;
};

/* The last comes first: a stack of nodes gives them back the other way round. */
static int compare_siblings(const void *a, const void *b, void *arg)
{
	const struct by_rank *by = arg;
	u32 i = *(const u32 *)a, j = *(const u32 *)b;

	return compare_u32(by->rank[by->nodes[j].function], by->rank[by->nodes[i].function]);
}

static void sort_functions(const struct profile *p, struct order *o)
{
	for (u32 i = 0; i < p->nfunctions; i++)
		o->functions[i] = i;
	qsort_r(o->functions, p->nfunctions, sizeof(u32), compare_functions, p->functions);
	for (u32 i = 0; i < p->nfunctions; i++)
		o->rank[o->functions[i]] = i;
}

static void sort_nodes(const struct profile *p, struct order *o, u32 *stack)
{
	struct by_rank by = {p->nodes, o->rank};
	u32 n = 0, top = 0;

	stack[top++] = 0;
	while (top) {
		u32 node = stack[--top], first = top;

		if (o->deepest < o->depth[node])
			o->deepest = o->depth[node];
		o->nodes[n++] = node;
		for (u32 c = p->nodes[node].child; c; c = p->nodes[c].sibling) {
			o->depth[c] = o->depth[node] + 1;
			stack[top++] = c;
		}
		qsort_r(stack + first, top - first, sizeof(u32), compare_siblings, &by);
	}
}

struct error *order_create(const struct profile *p, struct order **ret)
{
	struct order *o = calloc(1, sizeof(*o));
	u32 *stack = calloc(p->nnodes, sizeof(u32));

	if (o) {
		o->functions = calloc(p->nfunctions, sizeof(u32));
		o->rank = calloc(p->nfunctions, sizeof(u32));
		o->nodes = calloc(p->nnodes, sizeof(u32));
		o->depth = calloc(p->nnodes, sizeof(u32));
	}
	if (!o || !stack || !o->functions || !o->rank || !o->nodes || !o->depth) {
		order_destroy(o);
		free(stack);
		return &error_no_memory;
	}
	sort_functions(p, o);
	sort_nodes(p, o, stack);
	free(stack);
	*ret = o;
	return NULL;
}

void order_destroy(struct order *o)
{
	if (!o)
		return;
	free(o->functions);
	free(o->rank);
	free(o->nodes);
	free(o->depth);
	free(o);
}
