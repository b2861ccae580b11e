/* SPDX-License-Identifier: Apache-2.0 */
#include "picture.h"

#include <stdlib.h>
#include <string.h>

#include "frontends/format/order.h"
#include "frontends/format/text.h"
#include "unwind/cleanup.h"

#define WIDTH     940.0
#define ROW       17
#define ROWS_MOST 16u
#define TRUNK     3u   /* frames that all stacks share and are shown */
#define NARROWEST 1.5  /* pixels */
#define ROW_LEAST 0.02 /* of the width: rows with less of it are left out */
#define GLYPH     6.65 /* of the font in the style */

struct picture {
	const struct profile *p;
	const struct order *order;
	FILE *out;
	double *right;
	const bool *shown; /* by node; NULL: all */
	u32 top;           /* the node that is as wide as the picture, as those above it are; 0: the root */
	double scale;
	u32 first; /* depth of the first row */
	u32 rows;
	double filled[ROWS_MOST]; /* of each row */
};

/* The depth down to which all stacks are one. */
static u32 trunk_of(const struct profile *p)
{
	u32 node = 0, depth = 0;

	for (;;) {
		u32 child = p->nodes[node].child;

		if (!child || p->nodes[child].total < p->nodes[0].total || p->nodes[node].self)
			return depth;
		node = child;
		depth++;
	}
}

/* Of the site, where most stacks go through one of its frames; else 0. */
static u32 depth_of(const struct profile *p, const char *site)
{
	u32 node = 0, depth = 0;
	char name[TEXT_CLEAN];

	for (;;) {
		u32 next = p->nodes[node].child;

		while (next && 2 * p->nodes[next].total < p->nodes[0].total)
			next = p->nodes[next].sibling;
		if (!next)
			return 0;
		node = next;
		depth++;
		if (!strcmp(text_plain_name(&p->functions[p->nodes[node].function], name, sizeof(name)), site))
			return depth;
	}
}

/* The node of the site that most goes through, where there are several ways to it; 0: none has a tenth. */
static u32 heaviest_of(const struct profile *p, const char *site)
{
	u32 best = 0;
	char name[TEXT_CLEAN];

	for (u32 i = 1; *site && i < p->nnodes; i++)
		if (10 * p->nodes[i].total > p->nodes[0].total && (!best || p->nodes[i].total > p->nodes[best].total) &&
		        !strcmp(text_plain_name(&p->functions[p->nodes[i].function], name, sizeof(name)), site))
			best = i;
	return best;
}

/* What is below a node, and the way to it. A parent's index is below its child's. */
static bool *around(const struct profile *p, u32 node)
{
	bool *ret = calloc(p->nnodes, sizeof(*ret));

	if (!ret)
		return NULL;
	ret[node] = true;
	for (u32 i = node + 1; i < p->nnodes; i++)
		ret[i] = ret[p->nodes[i].parent];
	for (u32 at = p->nodes[node].parent; at; at = p->nodes[at].parent)
		ret[at] = true;
	ret[0] = true;
	return ret;
}

/* Rows of the container and the process, if there is one of each: all of it is theirs. */
static u32 above(const struct profile *p)
{
	u32 node = p->nodes[0].child, depth = 0;

	for (; node && p->nodes[node].total == p->nodes[0].total; node = p->nodes[node].child) {
		enum profile_kind kind = p->functions[p->nodes[node].function].kind;

		if (kind != KIND_CONTAINER && kind != KIND_PROCESS)
			break;
		depth++;
	}
	return depth;
}

/* "c++" is no name of a class. */
static const char *class_of(enum profile_kind kind)
{
	return kind == KIND_CXX ? "cxx" : text_kind(kind);
}

static void put_label(const struct picture *w, const char *name, double x, u32 y, double width)
{
	char text[TEXT_CLEAN];
	int columns = (int)((width - 6) / GLYPH), used = 0;
	const char *at = text, *fits = text;

	if (columns < 3)
		return;
	text_clean(name, text);
	while (*at && used < columns) {
		used += text_next(&at) >= 0x1100 ? 2 : 1;
		if (used < columns)
			fits = at;
	}
	fprintf(w->out, "<text x=\"%.1f\" y=\"%u\">", x + 3, y + ROW - 5);
	if (*at)
		text[fits - text] = '\0';
	text_xml(w->out, text);
	fputs(*at ? "\xe2\x80\xa6</text>" : "</text>", w->out);
}

static void draw(struct picture *w, u32 node, double x, double width, u32 row)
{
	const struct profile_function *f = &w->p->functions[w->p->nodes[node].function];
	double share = 100.0 * (double)w->p->nodes[node].total / (double)w->p->nodes[0].total;
	char amount[TEXT_AMOUNT];

	fprintf(w->out, "<g><title>%s", text_marks(f->flags));
	text_xml(w->out, text_name(f));
	if (*f->file) {
		fputs("\n", w->out);
		text_xml(w->out, f->file);
		if (f->line)
			fprintf(w->out, ":%u", f->line);
	}
	fprintf(w->out,
	        "\n%s, %.1f %% of these</title><rect class=\"%s\" x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"%d\"/>",
	        text_amount(&w->p->meta, w->p->nodes[node].total, amount), share, class_of(f->kind), x, row * ROW,
	        width, ROW);
	put_label(w, text_name(f), x, row * ROW, width);
	fputs("</g>\n", w->out);
}

static void each(struct picture *w, bool drawing)
{
	memset(w->right, 0, (w->order->deepest + 2) * sizeof(*w->right));
	for (u32 i = 0; i < w->p->nnodes; i++) {
		u32 node = w->order->nodes[i], depth = w->order->depth[node];
		bool wide = w->shown && node < w->top; /* on the way to it */
		double x = w->right[depth], width = (double)w->p->nodes[wide ? w->top : node].total * w->scale;

		if (w->shown && !w->shown[node])
			continue;
		w->right[depth] += width;
		w->right[depth + 1] = x;
		if (width < NARROWEST || depth < w->first || depth - w->first >= w->rows)
			continue;
		if (drawing)
			draw(w, node, x, width, depth - w->first);
		else
			w->filled[depth - w->first] += width;
	}
}

struct error *picture_write(const struct profile *p, const char *site, FILE *out)
{
	cleanup(order) struct order *order = NULL;
	cleanup(free) double *right = NULL;
	cleanup(free) bool *shown = NULL;
	struct error *err = order_create(p, &order);
	struct picture w = {.p = p, .order = order, .out = out};
	u32 trunk = trunk_of(p), at = depth_of(p, site);

	if (err)
		return err;
	right = calloc(order->deepest + 2, sizeof(*right));
	if (!right)
		return &error_no_memory;
	w.right = right;
	w.scale = p->nodes[0].total ? WIDTH / (double)p->nodes[0].total : 0;
	w.top = at ? 0 : heaviest_of(p, site);
	if (w.top) {
		w.shown = shown = around(p, w.top);
		if (!shown)
			return &error_no_memory;
		w.scale = WIDTH / (double)p->nodes[w.top].total;
		at = order->depth[w.top];
	}
	trunk = at ? at : trunk;
	w.first = trunk > TRUNK ? trunk - TRUNK : 1;
	w.first = w.first > above(p) ? w.first : above(p) + 1;
	w.rows = ROWS_MOST;
	each(&w, false);
	while (w.rows && w.filled[w.rows - 1] < ROW_LEAST * WIDTH)
		w.rows--;
	fprintf(out,
	        "<svg class=\"g\" viewBox=\"0 0 %.0f %u\" role=\"img\" aria-label=\"Flame graph of these stacks\">\n",
	        WIDTH, w.rows * ROW);
	each(&w, true);
	fputs("</svg>\n", out);
	return NULL;
}
