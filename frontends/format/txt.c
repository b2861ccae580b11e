/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree for terminals: the share of a frame with everything below it, of the frame itself, and its name. It is
 * indented only where stacks part, so that deep ones stay legible. Rare and very deep frames are summed up.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "diff.h"
#include "format.h"
#include "order.h"
#include "text.h"
#include "unwind/cleanup.h"

#define RAREST           0.005 /* of all; what is rarer is left out */
#define DEEPEST          512   /* frames from the root */
#define INDENT_MAX       48
#define NAME_MAX_COLUMNS 160
#define MORE_COLUMNS     12

struct row {
	u32 node;
	u16 indent;     /* branches that it is in */
	bool branch;    /* it begins the last of them */
	bool last;      /* and that has no more of its siblings below it */
	u64 bars;       /* a bit for each branch: the line goes on beside its rows */
	u32 rest;       /* not a node: this many children that are not shown */
	double was, is; /* shares of those together */
};

struct txt {
	const struct profile *p;
	FILE *out;
	struct order *order;
	double *base;     /* of a difference: totals before; NULL */
	struct row *rows; /* a stack of what is still to be printed */
	u32 nrows;
};

static void cleanup_txt(struct txt *w)
{
	order_destroy(w->order);
	free(w->base);
	free(w->rows);
}

static double share(double part, u64 whole)
{
	return whole ? part / (double)whole : 0;
}

static double after(const struct txt *w, u32 node)
{
	return share((double)w->p->nodes[node].total, w->p->nodes[0].total);
}

static double before(const struct txt *w, u32 node)
{
	return w->base && w->base[0] > 0 ? w->base[node] / w->base[0] : 0;
}

static double weight(const struct txt *w, u32 node)
{
	double a = after(w, node), b = before(w, node);

	return a > b ? a : b;
}

/* The heaviest last: it is printed first. */
static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct txt *w = arg;
	u32 i = ((const struct row *)a)->node, j = ((const struct row *)b)->node;
	double x = weight(w, i), y = weight(w, j);
	u32 r = w->order->rank[w->p->nodes[i].function], s = w->order->rank[w->p->nodes[j].function];

	return x != y ? (x > y) - (x < y) : (r < s) - (r > s);
}

static void put_indent(const struct txt *w, const struct row *row)
{
	u32 n = row->indent < INDENT_MAX ? row->indent : INDENT_MAX;

	for (u32 i = 1; i <= n; i++)
		if (i == row->indent && row->branch)
			fputs(row->last ? "\u2514 " : "\u251c ", w->out);
		else
			fputs(row->bars >> i & 1 ? "\u2502 " : "  ", w->out);
}

static void put_name(const struct txt *w, const struct profile_function *f)
{
	char text[TEXT_CLEAN];

	fputs(text_marks(f->flags), w->out);
	text_put_clean(w->out, text_name(f), NAME_MAX_COLUMNS);
	if (*f->module && f->kind != KIND_KERNEL && f->kind != KIND_PROCESS) {
		text_clean(f->module, text);
		fprintf(w->out, "  [%.80s]", text);
	}
	putc('\n', w->out);
}

static void put_shares(const struct txt *w, double was, double is, double self)
{
	if (w->base)
		fprintf(w->out, "%7.2f %7.2f %+7.2f  ", was * 100, is * 100, (is - was) * 100);
	else if (self > 0)
		fprintf(w->out, "%7.2f %7.2f  ", is * 100, self * 100);
	else
		fprintf(w->out, "%7.2f %7s  ", is * 100, "");
}

/* What else was counted of a frame itself, as objects beside bytes. */
static void put_more(const struct txt *w, u64 n)
{
	if (!text_more(&w->p->meta, w->base != NULL))
		return;
	if (n)
		fprintf(w->out, "%*" PRIu64 "  ", MORE_COLUMNS, n);
	else
		fprintf(w->out, "%*s  ", MORE_COLUMNS, "");
}

static void put_row(const struct txt *w, const struct row *row)
{
	const struct profile_node *node = &w->p->nodes[row->node];

	if (row->rest) {
		put_shares(w, row->was, row->is, 0);
		put_more(w, 0);
		put_indent(w, row);
		fprintf(w->out, "(%u more)\n", row->rest);
		return;
	}
	put_shares(w, before(w, row->node), after(w, row->node), share((double)node->self, w->p->nodes[0].total));
	put_more(w, node->more);
	put_indent(w, row);
	put_name(w, &w->p->functions[node->function]);
}

/* Puts the row of a child below its parent's; of several, each begins a branch. */
static void place_row(const struct row *parent, struct row *row, bool several, bool last)
{
	row->indent = several && parent->indent < INDENT_MAX ? parent->indent + 1 : parent->indent;
	row->bars = parent->bars;
	row->branch = several;
	row->last = last;
	if (several && last)
		row->bars &= ~(1ull << row->indent);
	else if (several)
		row->bars |= 1ull << row->indent;
}

/* Pushes the children of a node that are worth showing, and below them a row for the others if it is worth that. */
static void push_children(struct txt *w, const struct row *parent)
{
	bool deep = w->order->depth[parent->node] >= DEEPEST;
	struct row rest = {0};
	u32 first = w->nrows++, n;

	for (u32 c = w->p->nodes[parent->node].child; c; c = w->p->nodes[c].sibling) {
		if (!deep && weight(w, c) >= RAREST) {
			w->rows[w->nrows++] = (struct row){.node = c};
			continue;
		}
		rest.was += before(w, c);
		rest.is += after(w, c);
		rest.rest++;
	}
	n = w->nrows - first - 1;
	qsort_r(w->rows + first + 1, n, sizeof(*w->rows), compare_rows, w);
	w->rows[first] = rest;
	if (rest.is < RAREST && rest.was < RAREST) {
		memmove(w->rows + first, w->rows + first + 1, n * sizeof(*w->rows));
		w->nrows--;
	}
	for (u32 i = first; i < w->nrows; i++)
		place_row(parent, &w->rows[i], w->nrows - first > 1, i == first);
}

static void put_line(FILE *out, const char *text)
{
	char clean[TEXT_CLEAN];

	if (!text || !*text)
		return;
	text_clean(text, clean);
	fprintf(out, "%s\n", clean);
}

static void put_head(const struct txt *w)
{
	const struct profile_meta *m = &w->p->meta;
	bool any = false;
	const char *const lines[] = {m->heading, m->target, m->command, m->before, m->loss};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		if (lines[i] && lines[i] == m->before)
			fputs("compared with ", w->out);
		put_line(w->out, lines[i]);
		any = any || (lines[i] && *lines[i]);
	}
	fprintf(w->out, "%s%s", any ? "\n" : "", w->base ? " before   after  change" : "  total    self");
	if (text_more(m, w->base != NULL))
		fprintf(w->out, "  %*s", MORE_COLUMNS, m->more);
	fprintf(w->out, "  frames (%%; below %.1f %% left out)\n", RAREST * 100);
}

static struct error *write_txt(const struct profile *p, FILE *out)
{
	cleanup(txt) struct txt w = {.p = p, .out = out};
	struct error *err = order_create(p, &w.order);

	if (!err)
		err = diff_totals(p, &w.base);
	if (err)
		return err;
	w.rows = calloc(p->nnodes + 1ul, sizeof(*w.rows));
	if (!w.rows)
		return &error_no_memory;
	put_head(&w);
	w.rows[w.nrows++] = (struct row){.node = 0};
	while (w.nrows && !ferror(out)) {
		struct row row = w.rows[--w.nrows];

		put_row(&w, &row);
		if (!row.rest)
			push_children(&w, &row);
	}
	return text_finish(out, "tree");
}

const struct format format_txt = {
        .name = "txt",
        .extension = ".txt",
        .description = "a tree for terminals",
        .compares = true,
        .write = write_txt,
};
