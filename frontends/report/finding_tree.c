/* SPDX-License-Identifier: Apache-2.0 */
#include "finding_tree.h"

#include <stdlib.h>
#include <string.h>

#include "frontends/format/text.h"
#include "unwind/cleanup.h"

#define ROWS       24
#define TAKEN_MOST 256u /* of frames, those without a row among them */
#define ABOVE      4u   /* rows above the one where stacks part */
#define FAR        10u  /* rows from there to the site: more are left out */
#define BELOW      6u   /* rows below the site, before others are chosen */
#define LEAST      0.01 /* of all: less is not worth a row */
#define NAME_MAX   140
#define INDENT_MAX 40

struct tree {
	const struct profile *p;
	FILE *out;
	double part;
	bool *taken, *way; /* by node; way: to the site */
	u32 top, site;
	u32 gap, end; /* of the way: the node whose row stands for all up to the end; 0: none is left out */
};

struct place {
	u32 indent;
	u64 bars; /* bit n: the line at indent n goes on below */
	bool branch, last;
};

static const struct profile_function *function_of(const struct tree *t, u32 node)
{
	return &t->p->functions[t->p->nodes[node].function];
}

/* The one that all of it goes on to; 0: it parts, or ends. */
static u32 only_child(const struct tree *t, u32 node)
{
	u32 child = t->p->nodes[node].child;

	while (child && t->p->nodes[child].total < t->p->nodes[node].total)
		child = t->p->nodes[child].sibling;
	return child;
}

/* Of the way through the kernel the system call's name, the last function and branches say something. */
static bool is_folded(const struct tree *t, u32 node)
{
	u32 child = only_child(t, node);

	return node != t->top && child && function_of(t, node)->kind == KIND_KERNEL &&
	       function_of(t, child)->kind == KIND_KERNEL && strncmp(function_of(t, node)->name, "__x64_sys_", 10) != 0;
}

static u32 heaviest_named(const struct tree *t, const char *name)
{
	const struct profile_node *nodes = t->p->nodes;
	char plain[TEXT_CLEAN];
	u32 best = 0;

	for (u32 i = 1; *name && i < t->p->nnodes; i++)
		if ((!best || nodes[i].total > nodes[best].total) &&
		        !strcmp(text_plain_name(function_of(t, i), plain, sizeof(plain)), name))
			best = i;
	return best;
}

static u32 on_way(const struct tree *t, u32 node)
{
	u32 child = t->p->nodes[node].child;

	while (child && !t->way[child])
		child = t->p->nodes[child].sibling;
	return child;
}

/* A long way on which hardly anything parts needs one row. */
static void choose_gap(struct tree *t, u32 from)
{
	u32 first = on_way(t, from), next = first, distance = 0;

	while (next && t->p->nodes[next].total * 10 >= t->p->nodes[first].total * 8) {
		t->end = next;
		distance += !is_folded(t, next);
		next = next == t->site ? 0 : on_way(t, next);
	}
	t->gap = distance > FAR ? first : 0;
}

/* Rows that all stacks share say little: the tree begins at the site, or a little above the place where they part. */
static void choose_top(struct tree *t, const char *name)
{
	u32 at = 0, next, node;

	t->site = heaviest_named(t, name);
	for (node = t->site; node; node = t->p->nodes[node].parent)
		t->way[node] = true;
	while ((next = only_child(t, at)) && (at != t->site || !at))
		at = next;
	t->top = at;
	if (at && at == t->site)
		return;
	for (u32 i = 0; i < ABOVE && t->p->nodes[t->top].parent; i++)
		t->top = t->p->nodes[t->top].parent;
	choose_gap(t, at);
}

/* Takes a node; returns how many rows it has. */
static u32 take(struct tree *t, u32 node)
{
	bool before = t->taken[node];

	t->taken[node] = true;
	return !before && !is_folded(t, node);
}

/* Nodes between the gap's row and the site have no row. */
static bool is_in_gap(const struct tree *t, u32 node)
{
	return t->gap && t->way[node] && node > t->gap && node < t->end;
}

static bool is_worth_a_row(const struct tree *t, u32 node)
{
	return (double)t->p->nodes[node].total >= LEAST * (double)t->p->nodes[0].total;
}

static bool is_candidate(const struct tree *t, u32 node)
{
	u32 parent = t->p->nodes[node].parent;

	return !t->taken[node] && t->taken[parent] && !(t->gap && parent == t->gap) && !is_in_gap(t, parent) &&
	       is_worth_a_row(t, node);
}

static u32 heaviest_child(const struct tree *t, u32 node)
{
	u32 best = t->p->nodes[node].child;

	for (u32 c = best; c; c = t->p->nodes[c].sibling)
		if (t->p->nodes[c].total > t->p->nodes[best].total)
			best = c;
	return best;
}

static u32 take_below_site(struct tree *t)
{
	u32 rows = 0, node = t->site && t->taken[t->site] ? heaviest_child(t, t->site) : 0;

	for (; node && rows < BELOW && is_worth_a_row(t, node); node = heaviest_child(t, node))
		rows += take(t, node);
	return rows;
}

/* The site's way, then what is heaviest. A parent's index is below its child's. */
static void choose_rows(struct tree *t)
{
	u32 rows = take(t, t->top), best = 1;

	for (u32 i = t->top + 1; i < t->p->nnodes && rows < ROWS; i++)
		if (t->way[i] && t->taken[t->p->nodes[i].parent])
			rows += take(t, i) && !is_in_gap(t, i);
	rows += take_below_site(t);
	for (u32 n = 0; n < TAKEN_MOST && best && rows < ROWS; n++) {
		best = 0;
		for (u32 i = t->top + 1; i < t->p->nnodes; i++)
			if (is_candidate(t, i) && (!best || t->p->nodes[i].total > t->p->nodes[best].total))
				best = i;
		if (best)
			rows += take(t, best);
	}
}

static bool goes_before(const struct tree *t, u32 a, u32 b)
{
	if (t->way[a] != t->way[b])
		return t->way[a];
	if (t->p->nodes[a].total != t->p->nodes[b].total)
		return t->p->nodes[a].total > t->p->nodes[b].total;
	return a < b;
}

/* The child with a row that comes after this one; 0 as last: the first. */
static u32 next_child(const struct tree *t, u32 parent, u32 last)
{
	u32 ret = 0;

	for (u32 c = t->p->nodes[parent].child; c; c = t->p->nodes[c].sibling)
		if (t->taken[c] && (!last || goes_before(t, last, c)) && (!ret || goes_before(t, c, ret)))
			ret = c;
	return ret;
}

static void put_start(const struct tree *t, u64 total, u64 self, const struct place *at)
{
	double scale = 100 * t->part / (double)t->p->nodes[0].total;

	fprintf(t->out, "%8.1f", (double)total * scale);
	if (self)
		fprintf(t->out, "%8.1f  ", (double)self * scale);
	else
		fprintf(t->out, "%8s  ", "");
	for (u32 i = 1; i <= at->indent; i++)
		if (i == at->indent && at->branch)
			fputs(at->last ? "\u2514 " : "\u251c ", t->out);
		else
			fputs(at->bars >> i & 1 ? "\u2502 " : "  ", t->out);
}

static struct error *put_name(const struct tree *t, u32 node, bool goes_on)
{
	const struct profile_function *f = function_of(t, node);
	char clean[TEXT_CLEAN], *name = NULL;
	size_t size;
	FILE *out = open_memstream(&name, &size);

	if (!out)
		return &error_no_memory;
	text_clean(text_name(f), clean);
	text_put_short(out, clean, f->kind);
	fclose(out);
	fputs(text_marks(f->flags), t->out);
	text_put_clean(t->out, name ? name : "", NAME_MAX);
	free(name);
	if (*f->module && f->kind != KIND_KERNEL && f->kind != KIND_PROCESS) {
		text_clean(f->module, clean);
		fprintf(t->out, "  [%.80s]", clean);
	}
	fputs(goes_on ? " \u2026\n" : "\n", t->out);
	return NULL;
}

/* Of the children that have no row. */
static u64 rest_of(const struct tree *t, u32 node, u32 *n)
{
	u64 ret = 0;

	*n = 0;
	for (u32 c = t->p->nodes[node].child; c; c = t->p->nodes[c].sibling)
		if (!t->taken[c]) {
			ret += t->p->nodes[c].total;
			++*n;
		}
	return (double)ret >= LEAST * (double)t->p->nodes[0].total ? ret : 0;
}

static struct place below(const struct place *parent, bool several, bool last)
{
	struct place ret = *parent;

	ret.indent += several && ret.indent < INDENT_MAX;
	ret.branch = several;
	ret.last = last;
	if (several)
		ret.bars = last ? ret.bars & ~(1ull << ret.indent) : ret.bars | 1ull << ret.indent;
	return ret;
}

static struct error *put_node(const struct tree *t, u32 node, struct place at);

static void put_rest(const struct tree *t, u64 rest, u32 n, struct place at)
{
	put_start(t, rest, 0, &at);
	fprintf(t->out, "+ %u more\n", n);
}

/* What lies between the place where stacks part and the site, and what leaves there. */
static struct error *put_gap(const struct tree *t, struct place at)
{
	u64 total = t->p->nodes[t->gap].total, rest = total - t->p->nodes[t->end].total;
	bool parts = (double)rest >= LEAST * (double)t->p->nodes[0].total;
	struct error *err;
	u32 calls = 0;

	for (u32 node = t->p->nodes[t->end].parent; node >= t->gap && node; node = t->p->nodes[node].parent)
		calls++;
	put_start(t, total, 0, &at);
	fprintf(t->out, "(%u calls)\n", calls);
	err = put_node(t, t->end, below(&at, parts, false));
	if (!err && parts)
		put_rest(t, rest, 1, below(&at, true, true));
	return err;
}

static struct error *put_children(const struct tree *t, u32 node, struct place at)
{
	u32 child = next_child(t, node, 0), n;
	u64 rest = rest_of(t, node, &n);
	struct error *err = NULL;

	while (!err && child) {
		u32 next = next_child(t, node, child);
		bool several = next || rest || next_child(t, node, 0) != child;

		err = put_node(t, child, below(&at, several, !next && !rest));
		child = next;
	}
	if (!err && rest)
		put_rest(t, rest, n, below(&at, true, true));
	return err;
}

static struct error *put_node(const struct tree *t, u32 node, struct place at)
{
	bool ends = !next_child(t, node, 0);
	struct error *err = NULL;
	u32 n;

	if (node == t->gap && t->gap)
		return put_gap(t, at);
	if (ends || !is_folded(t, node)) {
		put_start(t, t->p->nodes[node].total, t->p->nodes[node].self, &at);
		err = put_name(t, node, ends && rest_of(t, node, &n));
		at.branch = false;
	}
	return err || ends ? err : put_children(t, node, at);
}

struct error *finding_tree_write(const struct profile *p, const char *site, double part, FILE *out)
{
	cleanup(free) bool *taken = calloc(p->nnodes + 1, sizeof(*taken));
	cleanup(free) bool *way = calloc(p->nnodes + 1, sizeof(*way));
	struct tree t = {.p = p, .out = out, .part = part, .taken = taken, .way = way};

	if (!taken || !way)
		return &error_no_memory;
	if (!p->nodes[0].total)
		return NULL;
	choose_top(&t, site);
	choose_rows(&t);
	return put_node(&t, t.top, (struct place){0});
}
