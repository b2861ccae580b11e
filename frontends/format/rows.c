/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/cleanup.h"
#include "unwind/grow.h"

struct maker {
	const struct profile *p;
	u64 *self, *total; /* of each node, since then */
	u32 *canon;        /* of each function that of its name and module which most samples are in */
	u64 *weight;       /* of each function the totals of its nodes */
	u32 *active;       /* of each function: how often it is on the way to the current node */
	u32 *at, *when;    /* of each function its row, valid in the round of that number */
	u32 round;
	struct rows *rows;
};

static void cleanup_maker(struct maker *m)
{
	free(m->self);
	free(m->total);
	free(m->canon);
	free(m->weight);
	free(m->active);
	free(m->at);
	free(m->when);
}

/* Strings of a profile are there once: equal ones have equal addresses. */
static int compare_names(const void *a, const void *b, void *maker)
{
	const struct maker *m = maker;
	u32 i = *(const u32 *)a, j = *(const u32 *)b;
	const struct profile_function *f = &m->p->functions[i], *g = &m->p->functions[j];

	if (f->name != g->name)
		return f->name < g->name ? -1 : 1;
	if (f->module != g->module)
		return f->module < g->module ? -1 : 1;
	if (m->weight[i] != m->weight[j])
		return m->weight[i] > m->weight[j] ? -1 : 1;
	return (f > g) - (f < g);
}

static void find_canon(struct maker *m, u32 *order)
{
	const struct profile_function *f = m->p->functions;

	for (u32 i = 0; i < m->p->nfunctions; i++)
		order[i] = i;
	qsort_r(order, m->p->nfunctions, sizeof(*order), compare_names, m);
	for (u32 i = 0; i < m->p->nfunctions; i++) {
		u32 last = i ? order[i - 1] : 0;
		bool same = i && f[last].name == f[order[i]].name && f[last].module == f[order[i]].module;

		m->canon[order[i]] = same ? m->canon[last] : order[i];
	}
}

static struct error *prepare(struct maker *m, const u64 *since, u32 nsince)
{
	const struct profile *p = m->p;
	cleanup(free) u32 *order = calloc(p->nfunctions, sizeof(u32));

	m->self = calloc(p->nnodes, sizeof(u64));
	m->total = calloc(p->nnodes, sizeof(u64));
	m->canon = calloc(p->nfunctions, sizeof(u32));
	m->weight = calloc(p->nfunctions, sizeof(u64));
	m->active = calloc(p->nfunctions, sizeof(u32));
	m->at = calloc(p->nfunctions, sizeof(u32));
	m->when = calloc(p->nfunctions, sizeof(u32));
	if (!order || !m->self || !m->total || !m->canon || !m->weight || !m->active || !m->at || !m->when)
		return &error_no_memory;
	for (u32 i = 0; i < p->nnodes; i++)
		m->total[i] = m->self[i] = p->nodes[i].self - (i < nsince ? since[i] : 0);
	for (u32 i = p->nnodes; i-- > 1;)
		m->total[p->nodes[i].parent] += m->total[i];
	for (u32 i = 0; i < p->nnodes; i++)
		m->weight[p->nodes[i].function] += m->total[i];
	find_canon(m, order);
	return NULL;
}

static struct row *row_of(struct maker *m, u32 f, const struct profile_function *thread)
{
	struct rows *rows = m->rows;

	if (m->when[f] == m->round)
		return &rows->row[m->at[f]];
	if (grow(&rows->row, rows->n, sizeof(*rows->row)))
		return NULL;
	m->when[f] = m->round;
	m->at[f] = rows->n;
	rows->row[rows->n] = (struct row){.function = &m->p->functions[f], .thread = thread};
	return &rows->row[rows->n++];
}

static struct error *enter(struct maker *m, u32 node, const struct profile_function *thread)
{
	u32 f = m->canon[m->p->nodes[node].function];
	struct row *row = row_of(m, f, thread);

	if (!row)
		return &error_no_memory;
	row->self += m->self[node];
	if (!m->active[f]++)
		row->total += m->total[node];
	return NULL;
}

/* Adds node and all below it. */
static struct error *walk(struct maker *m, u32 top, const struct profile_function *thread)
{
	const struct profile_node *nodes = m->p->nodes;
	u32 node = top;

	for (;;) {
		struct error *err = m->total[node] ? enter(m, node, thread) : NULL;

		if (err)
			return err;
		if (m->total[node] && nodes[node].child) {
			node = nodes[node].child;
			continue;
		}
		for (;; node = nodes[node].parent) {
			if (m->total[node])
				m->active[m->canon[nodes[node].function]]--;
			if (node == top)
				return NULL;
			if (nodes[node].sibling)
				break;
		}
		node = nodes[node].sibling;
	}
}

static struct error *walk_thread(struct maker *m, u32 node)
{
	const struct profile_function *thread = &m->p->functions[m->p->nodes[node].function];
	struct error *err = NULL;

	m->round++;
	for (u32 c = m->p->nodes[node].child; c && !err; c = m->p->nodes[c].sibling)
		err = walk(m, c, thread);
	return err;
}

static struct error *add_process(struct maker *m, u32 node)
{
	struct row *row = m->total[node] ? row_of(m, m->p->nodes[node].function, NULL) : NULL;

	if (row)
		row->self = row->total = row->total + m->total[node];
	return row || !m->total[node] ? NULL : &error_no_memory;
}

/* What is below the root, a container or a process; threads come last, because each has rows of its own. */
static struct error *walk_level(struct maker *m, u32 parent, bool processes, bool threads)
{
	struct error *err = NULL;

	for (u32 c = m->p->nodes[parent].child; c && !err; c = m->p->nodes[c].sibling) {
		enum profile_kind kind = m->p->functions[m->p->nodes[c].function].kind;

		if (kind == KIND_PROCESS && processes)
			err = threads ? NULL : add_process(m, c);
		else if (kind == KIND_PROCESS || kind == KIND_CONTAINER)
			err = walk_level(m, c, processes, threads);
		else if (!processes && (kind == KIND_THREAD) == threads)
			err = threads ? walk_thread(m, c) : walk(m, c, NULL);
	}
	return err;
}

struct error *rows_create(const struct profile *p, const u64 *since, u32 nsince, bool processes, struct rows *ret)
{
	cleanup(maker) struct maker m = {.p = p, .rows = ret, .round = 1};
	struct error *err;

	*ret = (struct rows){0};
	err = prepare(&m, since, nsince);
	if (!err)
		err = walk_level(&m, 0, processes, false);
	if (!err)
		err = walk_level(&m, 0, processes, true);
	if (err)
		rows_free(ret);
	else
		ret->samples = m.total[0];
	return err;
}

void rows_free(struct rows *rows)
{
	free(rows->row);
	*rows = (struct rows){0};
}

static int compare_u64(u64 a, u64 b)
{
	return (a > b) - (a < b);
}

struct how {
	enum rows_order order;
	bool reversed;
};

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct row *r = a, *q = b;
	const struct how *how = arg;
	int c = 0;

	if (how->order == ROWS_SELF)
		c = compare_u64(q->self, r->self);
	else if (how->order == ROWS_MODULE)
		c = strcmp(r->function->module, q->function->module);
	else if (how->order == ROWS_NAME)
		c = strcmp(r->function->name, q->function->name);
	if (!c && how->order != ROWS_NAME)
		c = compare_u64(q->total, r->total);
	if (how->reversed)
		c = -c;
	if (!c && (c = strcmp(r->function->name, q->function->name)) == 0)
		c = strcmp(r->function->module, q->function->module);
	return c ? c : r->thread && q->thread ? strcmp(r->thread->name, q->thread->name) : 0;
}

void rows_sort(struct rows *rows, enum rows_order order, bool reversed)
{
	struct how how = {order, reversed};

	if (rows->n)
		qsort_r(rows->row, rows->n, sizeof(*rows->row), compare_rows, &how);
}
