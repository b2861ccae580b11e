/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph page: page/page.html with the style and the scripts beside it put in (page/embed.cmake), and the
 * profile as JSON in a script element that is data, not code. Only the text in that element comes from the target.
 *
 *	meta       title (headed: by the user), command, target, unit, more (a second one), loss, why (nothing was
 *	           seen); start (ms), duration (s), frequency
 *	kinds      names of enum profile_kind, as in the page's address
 *	labels     what people call each, of all functions of the kind
 *	words      what they call script, baseline and jit of a module that is a runtime: {module: [word, word, word]}
 *	strings    names, modules, files
 *	functions  six numbers each, in the order of siblings: name, module, file (strings), line, flags, kind
 *	tiers      of functions that were seen in several ways, in percent:
 *	           {number: [script, baseline, jit, inlined, approximate]}
 *	chance     of a difference's functions that were tested: {number: [p of self, p of total]}, adjusted
 *	fn, up, self     of each node in preorder; up: levels above a child of the node before it
 *	more       with meta.more, but of a difference: what else was counted at each node
 *	base, baseScale  of a difference: each node's self in the profile compared with, and its factor
 *	times      when samples were taken (--timeline): step (ms), and in order of time runs of samples:
 *	           after (steps since the run before), node (in preorder), count
 *	histograms of calls (latency): [[function, [from, to, calls], ...], ...] (histogram.h)
 *	requests   of a server, by route, and the slowest (requests.h)
 *	longest    of them, with arguments and waits: [[ns, at, thread, call, reason, ns, ...], ...] (histogram.h)
 *	source     lines of functions' files (source.h)
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "histogram.h"
#include "html.h"
#include "order.h"
#include "requests.h"
#include "source.h"
#include "text.h"
#include "unwind/cleanup.h"
#include "unwind/process/module.h"
#include "unwind/runtime.h"
#include "words.h"

extern const char page_html[], page_css[], page_js[];

#define TIMES_FINE 200000 /* samples: of more the times are to 10 ms */

enum page_flag { /* as in page/tree.js */
	PAGE_GUESS = 1,
	PAGE_APPROX = 2,
	PAGE_INLINED = 4,
};

static void put_member(FILE *out, const char *name, const char *value)
{
	fprintf(out, "\"%s\":", name);
	text_json(out, value ? value : "");
	putc(',', out);
}

static void put_meta(const struct profile *p, FILE *out)
{
	const struct profile_meta *m = &p->meta;

	fputs("{\"meta\":{", out);
	put_member(out, "title", text_title(m, ""));
	put_member(out, "command", m->command);
	put_member(out, "target", m->target);
	put_member(out, "unit", m->unit ? m->unit : "samples");
	put_member(out, "more", text_more(m, p->base != NULL) ? m->more : "");
	put_member(out, "loss", m->loss);
	if (m->why && *m->why)
		put_member(out, "why", m->why);
	if (m->heading)
		fputs("\"headed\":true,", out);
	if (m->before)
		put_member(out, "before", m->before);
	if (m->loss_before)
		put_member(out, "lossBefore", m->loss_before);
	if (m->chance)
		put_member(out, "chance", m->chance);
	fprintf(out, "\"start\":%" PRIu64 ",\"duration\":%" PRIu64 ".%03" PRIu64 ",\"frequency\":%g}",
	        m->start_unix_ns / 1000000, m->duration_ns / 1000000000, m->duration_ns / 1000000 % 1000,
	        isfinite(m->frequency) ? m->frequency : 0.0);
}

static void put_kinds(FILE *out)
{
	for (u32 i = 0; i < KIND_MAX; i++)
		fprintf(out, "%s\"%s\"", i ? "," : ",\n\"kinds\":[", text_kind(i));
	putc(']', out);
}

static void put_words(const struct profile *p, FILE *out)
{
	char words[WORDS_LEGEND];

	for (u32 i = 0; i < KIND_MAX; i++)
		fprintf(out, "%s\"%s\"", i ? "," : ",\n\"labels\":[", words_legend(p, i, words));
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		fprintf(out, "%s\"%s\":[\"%s\",\"%s\",\"%s\"]", r == runtimes ? "],\n\"words\":{" : ",", (*r)->name,
		        words_of_runtime(*r, KIND_SCRIPT), words_of_runtime(*r, KIND_SCRIPT_BASELINE),
		        words_of_runtime(*r, KIND_SCRIPT_JIT));
	putc('}', out);
}

static u32 page_flags(u32 flags)
{
	return (flags & FRAME_GUESS ? PAGE_GUESS : 0) | (flags & FRAME_APPROX ? PAGE_APPROX : 0) |
	       (flags & FRAME_INLINED ? PAGE_INLINED : 0);
}

struct strings {
	const char **s; /* sorted, each once */
	u32 n;
};

static void cleanup_strings(struct strings *strings)
{
	free(strings->s);
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct error *collect_strings(const struct profile *p, struct strings *ret)
{
	const char **s = calloc(p->nfunctions, 3 * sizeof(*s));
	u32 n = 0;

	if (!s)
		return &error_no_memory;
	for (u32 i = 0; i < p->nfunctions; i++) {
		s[i * 3] = text_name(&p->functions[i]);
		s[i * 3 + 1] = p->functions[i].module;
		s[i * 3 + 2] = p->functions[i].file;
	}
	qsort(s, p->nfunctions * 3ul, sizeof(*s), compare_strings);
	for (u32 i = 0; i < p->nfunctions * 3; i++)
		if (!n || strcmp(s[n - 1], s[i]))
			s[n++] = s[i];
	*ret = (struct strings){s, n};
	return NULL;
}

static u32 string_index(const struct strings *strings, const char *s)
{
	return (u32)((const char **)bsearch(&s, strings->s, strings->n, sizeof(s), compare_strings) - strings->s);
}

static void put_tiers(const struct profile *p, const struct order *o, FILE *out)
{
	bool any = false;

	fputs(",\n\"tiers\":{", out);
	for (u32 i = 0; i < p->nfunctions; i++) {
		const struct profile_tiers *t = &p->functions[o->functions[i]].tiers;

		if (!t->script && !t->baseline && !t->jit)
			continue;
		fprintf(out, "%s\"%u\":[%u,%u,%u,%u,%u]", any ? "," : "", i, t->script, t->baseline, t->jit, t->inlined,
		        t->approx);
		any = true;
	}
	putc('}', out);
}

static void put_chances(const struct profile *p, const struct order *o, FILE *out)
{
	bool any = false;

	if (!p->meta.chance)
		return;
	fputs(",\n\"chance\":{", out);
	for (u32 i = 0; i < p->nfunctions; i++) {
		const struct profile_function *f = &p->functions[o->functions[i]];

		if (!f->chance_self && !f->chance_total)
			continue;
		fprintf(out, "%s\"%u\":[%.3g,%.3g]", any ? "," : "", i, f->chance_self, f->chance_total);
		any = true;
	}
	putc('}', out);
}

static struct error *put_functions(const struct profile *p, const struct order *o, FILE *out)
{
	cleanup(strings) struct strings strings = {0};
	struct error *err = collect_strings(p, &strings);

	if (err)
		return err;
	for (u32 i = 0; i < strings.n; i++) {
		fputs(i ? ",\n" : ",\n\"strings\":[", out);
		text_json(out, strings.s[i]);
	}
	for (u32 i = 0; i < p->nfunctions; i++) {
		const struct profile_function *f = &p->functions[o->functions[i]];

		fprintf(out, "%s%u,%u,%u,%u,%u,%u", i ? "," : "],\n\"functions\":[",
		        string_index(&strings, text_name(f)), string_index(&strings, f->module),
		        string_index(&strings, f->file), f->kind == KIND_PROCESS ? 0 : f->line, page_flags(f->flags),
		        f->kind);
	}
	putc(']', out);
	put_tiers(p, o, out);
	put_chances(p, o, out);
	return NULL;
}

static void put_each(const struct profile *p, const struct order *o, FILE *out, const char *name,
        u64 (*value)(const struct profile *p, const struct order *o, u32 i))
{
	fprintf(out, ",\n\"%s\":[", name);
	for (u32 i = 0; i < p->nnodes; i++) {
		if (i)
			putc_unlocked(',', out);
		text_number(out, value(p, o, i));
	}
	putc(']', out);
}

static u64 node_function(const struct profile *p, const struct order *o, u32 i)
{
	return o->rank[p->nodes[o->nodes[i]].function];
}

static u64 node_up(const struct profile *p, const struct order *o, u32 i)
{
	return i ? o->depth[o->nodes[i - 1]] + 1 - o->depth[o->nodes[i]] : 0;
}

static u64 node_self(const struct profile *p, const struct order *o, u32 i)
{
	return p->nodes[o->nodes[i]].self;
}

static u64 node_base(const struct profile *p, const struct order *o, u32 i)
{
	return p->base[o->nodes[i]];
}

static u64 node_more(const struct profile *p, const struct order *o, u32 i)
{
	return p->nodes[o->nodes[i]].more;
}

static void put_nodes(const struct profile *p, const struct order *o, FILE *out)
{
	put_each(p, o, out, "fn", node_function);
	put_each(p, o, out, "up", node_up);
	put_each(p, o, out, "self", node_self);
	if (p->base) {
		put_each(p, o, out, "base", node_base);
		fprintf(out, ",\n\"baseScale\":%.9g", p->base_scale);
	} else if (text_more(&p->meta, false)) {
		put_each(p, o, out, "more", node_more);
	}
}

/* The next run of samples that are of one step and node; *count: how many. */
static u32 next_run(const struct profile *p, u32 i, u32 step, u32 *count)
{
	u32 begin = i;

	while (i < p->ntimes && p->times[i].when / step == p->times[begin].when / step &&
	        p->times[i].node == p->times[begin].node)
		i++;
	*count = i - begin;
	return i;
}

/* Of many samples the times are coarse: what is equal then is one. */
static u32 step_of(const struct profile *p)
{
	return p->ntimes > TIMES_FINE ? 10 : 1;
}

static void put_runs(const struct profile *p, FILE *out, const char *name, const u32 *place)
{
	u32 step = step_of(p), before = 0, count;

	fprintf(out, ",\"%s\":[", name);
	for (u32 i = 0, next; i < p->ntimes; i = next) {
		next = next_run(p, i, step, &count);
		if (i)
			putc_unlocked(',', out);
		text_number(out, !strcmp(name, "node")    ? place[p->times[i].node]
		                 : !strcmp(name, "count") ? count
		                                          : p->times[i].when / step - before);
		before = p->times[i].when / step;
	}
	putc(']', out);
}

static struct error *put_times(const struct profile *p, const struct order *o, FILE *out)
{
	cleanup(free) u32 *place = p->ntimes && !p->base ? calloc(p->nnodes, sizeof(*place)) : NULL;

	if (!p->ntimes || p->base)
		return NULL;
	if (!place)
		return &error_no_memory;
	for (u32 i = 0; i < p->nnodes; i++)
		place[o->nodes[i]] = i;
	fprintf(out, ",\n\"times\":{\"step\":%.9g", (double)step_of(p) * PROFILE_TIME_STEP_NS / 1e6);
	put_runs(p, out, "after", place);
	put_runs(p, out, "node", place);
	put_runs(p, out, "count", place);
	putc('}', out);
	return NULL;
}

static struct error *put_data(const struct profile *p, FILE *out)
{
	cleanup(order) struct order *order = NULL;
	struct error *err = order_create(p, &order);

	if (err)
		return err;
	put_meta(p, out);
	put_kinds(out);
	put_words(p, out);
	err = put_functions(p, order, out);
	if (err)
		return err;
	put_nodes(p, order, out);
	if (!p->base) {
		histogram_put(p->meta.stats, out);
		requests_put(p->meta.stats, out);
	}
	err = put_times(p, order, out);
	if (!err && p->meta.source) {
		fputs(",\n\"source\":", out);
		err = source_put(p, out);
	}
	putc('}', out);
	return err;
}

void html_put_digest(FILE *out, const char *hex)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	/* 6 digits are 4 of base64. Of the 64 digits of a SHA-256 4 are left, which are 3 of base64 and a filler. */
	for (size_t i = 0; i < 64; i += 6) {
		char group[7] = "000000";
		unsigned long v;

		memcpy(group, hex + i, i < 60 ? 6 : 4);
		v = strtoul(group, NULL, 16);
		for (int shift = 18; shift >= (i < 60 ? 0 : 6); shift -= 6)
			putc(digits[v >> shift & 63], out);
	}
	putc('=', out);
}

static struct error *put_part(const struct profile *p, FILE *out, const char *part, size_t length)
{
#define IS(name) (length == sizeof(name) - 1 && !memcmp(part, name, length))
	if (IS("style"))
		fputs(page_css, out);
	else if (IS("script"))
		fputs(page_js, out);
	else if (IS("style-hash"))
		html_put_digest(out, page_css_sha256);
	else if (IS("script-hash"))
		html_put_digest(out, page_js_sha256);
	else if (IS("data"))
		return put_data(p, out);
#undef IS
	return NULL;
}

static struct error *write_html(const struct profile *p, FILE *out)
{
	const char *at = page_html, *open, *close;
	struct error *err = NULL;

	while (!err && (open = strstr(at, "{{")) && (close = strstr(open, "}}"))) {
		fwrite(at, 1, open - at, out);
		err = put_part(p, out, open + 2, close - open - 2);
		at = close + 2;
	}
	if (err)
		return err;
	fputs(at, out);
	return text_finish(out, "flame graph page");
}

const struct format format_html = {
        .name = "html",
        .extension = ".html",
        .description = "a flame graph as one page that needs nothing else",
        .compares = true,
        .processes = PROCESSES_SEVERAL,
        .write = write_html,
};
