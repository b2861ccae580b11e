/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame graph as one static picture, without scripts or external parts. A frame's description is its title, which
 * viewers show as a tooltip. In a difference, a frame is as wide as the mean of before and after: so children fit into
 * their parents, and what vanished keeps half its width.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff.h"
#include "format.h"
#include "order.h"
#include "text.h"
#include "unwind/cleanup.h"
#include "words.h"

#define WIDTH       1200.0
#define MARGIN      10
#define ROW         17
#define HEAD        92
#define FOOT        22
#define NARROWEST   0.2  /* pixels; what is narrower is counted */
#define GLYPH       7.23 /* of the 12 pixel monospaced font */
#define SMALL       6.03 /* of the 10 pixel one */
#define LARGE       9.04 /* of the 15 pixel one */
#define PADDING     3
#define OUTLINED    4 /* pixels from which on what vanished has an outline */
#define LABEL_LEAST 3
#define DOT         3 /* columns of what stands before a number */
#define SHADES      5

struct svg {
	const struct profile *p;
	FILE *out;
	struct order *order;
	double *base;  /* of a difference: totals before; NULL */
	double *right; /* where the next node at a depth begins */
	double scale;  /* pixels a count */
	u32 deepest;   /* of what is drawn */
	u64 narrow;    /* frames that are not drawn */
	bool kinds[KIND_MAX];
};

static void cleanup_svg(struct svg *w)
{
	order_destroy(w->order);
	free(w->base);
	free(w->right);
}

static double count_of(const struct svg *w, u32 node)
{
	double after = (double)w->p->nodes[node].total;

	return w->base ? (after + w->base[node]) / 2 : after;
}

/* Calls draw for each node that is wide enough to be seen. */
static void each_visible(struct svg *w, void (*draw)(struct svg *w, u32 node, double x, double width))
{
	memset(w->right, 0, (w->order->deepest + 2) * sizeof(*w->right));
	w->narrow = 0;
	for (u32 i = 0; i < w->p->nnodes; i++) {
		u32 node = w->order->nodes[i], depth = w->order->depth[node];
		double x = w->right[depth], width = count_of(w, node) * w->scale;

		w->right[depth] += width;
		w->right[depth + 1] = x;
		if (width >= NARROWEST)
			draw(w, node, x + MARGIN, width);
		else
			w->narrow += width > 0;
	}
}

static void measure(struct svg *w, u32 node, double x, double width)
{
	w->kinds[w->p->functions[w->p->nodes[node].function].kind] = true;
	if (w->order->depth[node] > w->deepest)
		w->deepest = w->order->depth[node];
}

/* Chroma factor and hue of each kind, as in page/tree.js. */
static const double hues[KIND_MAX][2] = {
        [KIND_ROOT] = {0.1, 80},
        [KIND_KERNEL] = {1, 58},
        [KIND_NATIVE] = {0.8, 245},
        [KIND_CXX] = {0.9, 285},
        [KIND_RUST] = {1.1, 30},
        [KIND_VM] = {0.35, 310},
        [KIND_SCRIPT] = {1.15, 148},
        [KIND_SCRIPT_BASELINE] = {0.95, 168},
        [KIND_SCRIPT_JIT] = {1.05, 190},
        [KIND_SCRIPT_NATIVE] = {1.1, 98},
        [KIND_STUB] = {0.9, 225},
        [KIND_WORK] = {0.6, 325},
        [KIND_CLASS] = {0.7, 350},
        [KIND_MEMORY] = {0.3, 230},
        [KIND_USED] = {1, 30},
        [KIND_FREE] = {0.8, 150},
        [KIND_LABEL] = {0.2, 200},
        [KIND_CONTAINER] = {0.5, 210},
        [KIND_PROCESS] = {0.3, 250},
        [KIND_THREAD] = {0.2, 250},
        [KIND_RUNNING] = {1.5, 25},
        [KIND_RUNNABLE] = {1.4, 95},
        [KIND_WAITING] = {0.12, 265},
        [KIND_UNKNOWN] = {0.25, 20},
};

static u32 channel(double linear)
{
	double v = linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055;

	return v <= 0 ? 0 : v >= 1 ? 255 : (u32)lround(v * 255);
}

/* Oklch to sRGB, as CSS Color 4 has it; many programs that show SVG do not know oklch(). */
static u32 colour(double lightness, double chroma, double hue)
{
	double a = chroma * cos(hue * M_PI / 180), b = chroma * sin(hue * M_PI / 180);
	double l = pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
	double m = pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
	double s = pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);

	return channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s) << 16 |
	       channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s) << 8 |
	       channel(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s);
}

/* Inlined functions are paler, approximate ones nearly grey. */
static u32 kind_colour(const struct profile_function *f)
{
	bool approx = f->flags & FRAME_APPROX, inlined = !approx && f->flags & FRAME_INLINED;
	double lightness = approx ? 0.84 : inlined ? 0.865 : 0.82, chroma = approx ? 0.025 : inlined ? 0.08 : 0.1;
	u32 hash = 0;
	int shade;

	for (const char *name = f->name; *name; name++)
		hash = hash * 31 + (u8)*name;
	shade = (int)((hash >> 3) % SHADES) - SHADES / 2;
	return colour(lightness + shade * 0.013, chroma * hues[f->kind][0], hues[f->kind][1] + shade * 2.5);
}

/* Grey, more red the more a frame grew, more blue the more it shrank. */
static u32 change_colour(double change)
{
	return colour(0.88 - 0.16 * fabs(change), 0.005 + 0.155 * fabs(change), change > 0 ? 30 : 255);
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static void put_title(const struct svg *w, u32 node)
{
	const struct profile_function *f = &w->p->functions[w->p->nodes[node].function];
	double total = (double)w->p->nodes[0].total, after = percent((double)w->p->nodes[node].total, total);
	char amount[TEXT_AMOUNT], tiers[TEXT_TIERS];

	fprintf(w->out, "<title>%s", text_marks(f->flags));
	text_xml(w->out, text_name(f));
	fprintf(w->out, "\n%s", text_tiers(f, tiers));
	if (*f->module) {
		fputs(", ", w->out);
		text_xml(w->out, f->module);
	}
	if (*f->file) {
		fputs(", ", w->out);
		text_xml(w->out, f->file);
		if (f->line)
			fprintf(w->out, ":%u", f->line);
	}
	putc('\n', w->out);
	text_xml(w->out, text_amount(&w->p->meta, w->p->nodes[node].total, amount));
	if (w->base) {
		double before = percent(w->base[node], w->base[0]);

		fprintf(w->out, ", before %.2f %%, after %.2f %%, %+.2f %%</title>", before, after, after - before);
	} else {
		fprintf(w->out, ", %.2f %%, itself %.2f %%</title>", after,
		        percent((double)w->p->nodes[node].self, total));
	}
}

/*
 * As much of s as columns hold, with "…" if that is not all; wide scripts take two columns a character. Returns the
 * columns that it took.
 */
static int put_cut(FILE *out, const char *s, int columns)
{
	char text[TEXT_CLEAN];
	const char *at = text, *fits = text;
	int used = 0;

	text_clean(s, text);
	while (*at) {
		used += text_next(&at) >= 0x1100 ? 2 : 1;
		if (used > columns)
			break;
		if (used < columns)
			fits = at;
	}
	if (used > columns)
		text[fits - text] = 0;
	text_xml(out, text);
	if (used > columns)
		fputs("\xe2\x80\xa6", out);
	return used > columns ? columns : used;
}

/* Of bytes, how many there are, or how many more or less than before. As much of it as columns hold: all, or none. */
static void put_bytes(const struct svg *w, u32 node, int columns)
{
	double n = (double)w->p->nodes[node].total - (w->base ? w->base[node] / w->p->base_scale : 0);
	const char *sign = !w->base ? "" : n < 0 ? "-" : "+";
	char amount[TEXT_AMOUNT];

	if (strcmp(text_unit(&w->p->meta), "bytes"))
		return;
	text_amount(&w->p->meta, (u64)fabs(n), amount);
	if ((int)(strlen(sign) + strlen(amount)) + DOT <= columns)
		fprintf(w->out, " \xc2\xb7 %s%s", sign, amount);
}

static void draw_frame(struct svg *w, u32 node, double x, double width)
{
	const struct profile_function *f = &w->p->functions[w->p->nodes[node].function];
	double change = w->base ? diff_change(w->base[node], (double)w->p->nodes[node].total) : 0;
	u32 y = HEAD + (w->deepest - w->order->depth[node]) * ROW;
	u32 fill = w->base ? change_colour(change) : kind_colour(f);
	int columns = (int)((width - 2 * PADDING) / GLYPH);

	fputs("<g>", w->out);
	put_title(w, node);
	fprintf(w->out, "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%u\" fill=\"#%06x\"%s/>", x, y,
	        width > 1 ? width - 0.5 : width, ROW - 1, fill,
	        change == -1 && width > OUTLINED ? " class=\"gone\"" : "");
	if (columns >= LABEL_LEAST) {
		fprintf(w->out, "<text x=\"%.2f\" y=\"%u\">%s", x + PADDING, y + ROW - 5, text_marks(f->flags));
		columns -= (int)strlen(text_marks(f->flags));
		put_bytes(w, node, columns - put_cut(w->out, text_name(f), columns));
		fputs("</text>", w->out);
	}
	fputs("</g>\n", w->out);
}

static void put_line(const struct svg *w, u32 y, const char *class, double glyph, const char *text)
{
	if (!text || !*text)
		return;
	fprintf(w->out, "<text x=\"%d\" y=\"%u\" class=\"%s\">", MARGIN, y, class);
	put_cut(w->out, text, (int)(WIDTH / glyph));
	fputs("</text>\n", w->out);
}

static void put_swatch(const struct svg *w, double *x, u32 fill, const char *more, const char *word)
{
	fprintf(w->out,
	        "<rect x=\"%.1f\" y=\"%d\" width=\"10\" height=\"10\" fill=\"#%06x\"%s/><text x=\"%.1f\" y=\"%d\" "
	        "class=\"s\">%s</text>\n",
	        *x, HEAD - 22, fill, more, *x + 14, HEAD - 13, word);
	*x += 28 + (double)strlen(word) * SMALL;
}

static void put_legend(const struct svg *w)
{
	double x = MARGIN;
	char words[WORDS_LEGEND];

	if (w->base) {
		put_swatch(w, &x, change_colour(0.999), "", "more than before");
		put_swatch(w, &x, change_colour(0), "", "the same");
		put_swatch(w, &x, change_colour(-0.999), "", "less");
		put_swatch(w, &x, change_colour(-1), " class=\"gone\"", "gone");
		return;
	}
	for (u32 kind = KIND_KERNEL; kind < KIND_MAX; kind++)
		if (w->kinds[kind])
			put_swatch(w, &x, colour(0.82, 0.1 * hues[kind][0], hues[kind][1]), "",
			        words_legend(w->p, kind, words));
}

static void put_head(const struct svg *w)
{
	const struct profile_meta *m = &w->p->meta;
	u32 height = HEAD + (w->deepest + 1) * ROW + FOOT;
	char title[512];

	snprintf(title, sizeof(title), "%s%s%s", text_title(m, "flame"), m->target ? ": " : "",
	        m->target ? m->target : "");
	fprintf(w->out,
	        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%u\" viewBox=\"0 0 %.0f %u\">\n"
	        "<style>text{font:12px \"DejaVu Sans Mono\",Menlo,Consolas,monospace;fill:#1d1c1a;white-space:pre;"
	        "unicode-bidi:isolate}.h{font-size:15px;font-weight:bold}.s{font-size:10px;fill:#6d6a65}"
	        ".gone{stroke:#1f4fa8;stroke-dasharray:3 2}g:hover rect{stroke:#1d1c1a}</style>\n"
	        "<rect width=\"100%%\" height=\"100%%\" fill=\"#faf9f7\"/>\n",
	        WIDTH + 2 * MARGIN, height, WIDTH + 2 * MARGIN, height);
	put_line(w, 22, "h", LARGE, title);
	put_line(w, 38, "s", SMALL, m->command);
	put_line(w, 51, "s", SMALL, m->loss);
	snprintf(title, sizeof(title), "compared with %s", m->before ? m->before : "");
	put_line(w, 64, "s", SMALL, m->before ? title : NULL);
	put_legend(w);
}

static void put_foot(const struct svg *w)
{
	char text[128];

	snprintf(text, sizeof(text), "%" PRIu64 " frames are narrower than %.1f pixels and not drawn", w->narrow,
	        NARROWEST);
	put_line(w, HEAD + (w->deepest + 1) * ROW + 15, "s", SMALL, w->narrow ? text : NULL);
	fputs("</svg>\n", w->out);
}

static struct error *write_svg(const struct profile *p, FILE *out)
{
	cleanup(svg) struct svg w = {.p = p, .out = out};
	struct error *err = order_create(p, &w.order);
	double whole;

	if (!err)
		err = diff_totals(p, &w.base);
	if (err)
		return err;
	w.right = calloc(w.order->deepest + 2, sizeof(*w.right));
	if (!w.right)
		return &error_no_memory;
	whole = count_of(&w, 0);
	w.scale = whole > 0 ? WIDTH / whole : 0;
	each_visible(&w, measure);
	put_head(&w);
	each_visible(&w, draw_frame);
	put_foot(&w);
	return text_finish(out, "SVG picture");
}

const struct format format_svg = {
        .name = "svg",
        .extension = ".svg",
        .description = "a flame graph as one static picture",
        .compares = true,
        .write = write_svg,
};
