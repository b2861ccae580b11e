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
#define GLYPH     6.65 /* of the font in the style */

struct picture {
	const struct profile *p;
	const struct order *order;
	FILE *out;
	double *right;
	double scale;
	u32 first; /* depth of the first row */
	u32 rows;
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
		double x = w->right[depth], width = (double)w->p->nodes[node].total * w->scale;

		w->right[depth] += width;
		w->right[depth + 1] = x;
		if (width < NARROWEST || depth < w->first || depth - w->first >= ROWS_MOST)
			continue;
		if (drawing)
			draw(w, node, x, width, depth - w->first);
		else if (depth - w->first + 1 > w->rows)
			w->rows = depth - w->first + 1;
	}
}

struct error *picture_write(const struct profile *p, const char *site, FILE *out)
{
	cleanup(order) struct order *order = NULL;
	cleanup(free) double *right = NULL;
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
	trunk = at ? at : trunk;
	w.first = trunk > TRUNK ? trunk - TRUNK : 1;
	w.first = w.first > above(p) ? w.first : above(p) + 1;
	each(&w, false);
	fprintf(out,
	        "<svg class=\"g\" viewBox=\"0 0 %.0f %u\" role=\"img\" aria-label=\"Flame graph of these stacks\">\n",
	        WIDTH, w.rows * ROW);
	each(&w, true);
	fputs("</svg>\n", out);
	return NULL;
}
