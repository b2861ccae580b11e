/* SPDX-License-Identifier: Apache-2.0 */
#include "crash_stack.h"

#include <stdlib.h>
#include <string.h>

#include "frontends/format/repeats.h"
#include "frontends/format/text.h"
#include "own.h"
#include "unwind/cleanup.h"

#define OTHERS    4 /* frames that are not the program's own, in a row, and are all shown */
#define OWN_SHOWN 48
#define NAME_MOST 160 /* characters */

struct writer {
	const struct profile *p;
	const struct libraries *libraries;
	FILE *out;
	u32 own; /* shown until now */
};

/* Leaf first, malloc'd; NULL: out of memory. */
static u32 *functions_of(const struct profile *p, u32 *n)
{
	u32 leaf = 0, depth = 0, *all;

	for (u32 i = 1; i < p->nnodes; i++)
		if (p->nodes[i].self)
			leaf = i;
	for (u32 i = leaf; i; i = p->nodes[i].parent)
		depth++;
	all = malloc((depth + 1) * sizeof(*all));
	*n = 0;
	for (u32 i = leaf; all && i; i = p->nodes[i].parent)
		all[(*n)++] = p->nodes[i].function;
	return all;
}

static void put_frame(struct writer *w, u32 function)
{
	const struct profile_function *f = &w->p->functions[function];
	const char *slash = strrchr(f->file, '/');
	char name[4096];

	fputs(is_own(w->libraries, f) ? "> " : "  ", w->out);
	fputs(text_marks(f->flags), w->out);
	text_put_clean(w->out, text_plain_name(f, name, sizeof(name)), NAME_MOST);
	if (*f->file && f->line) {
		fputs("  ", w->out);
		text_put_clean(w->out, slash ? slash + 1 : f->file, NAME_MOST);
		fprintf(w->out, ":%u", f->line);
	}
	if (*f->module) {
		fputs("  [", w->out);
		text_put_clean(w->out, f->module, NAME_MOST);
		fputs("]", w->out);
	}
	fputc('\n', w->out);
}

/* n frames of the program; a recursion once. */
static void put_own(struct writer *w, const u32 *functions, u32 n)
{
	for (u32 i = 0, turns, period; i < n && w->own < OWN_SHOWN; i += period * turns) {
		period = repeats(functions, n, i, &turns);
		for (u32 k = i; k < i + period; k++, w->own++)
			put_frame(w, functions[k]);
		if (turns > 1)
			fprintf(w->out, "  (%s %u more times)\n", period == 1 ? "this frame" : "these frames",
			        turns - 1);
		if (w->own >= OWN_SHOWN && i + period * turns < n)
			fprintf(w->out, "  (%u more)\n", n - i - period * turns);
	}
}

/* n frames of others between the program's; last: nothing of the program is outside of them. */
static void put_others(struct writer *w, const u32 *functions, u32 n, bool last)
{
	u32 first = n <= OTHERS ? n : last ? 0 : 2, behind = n <= OTHERS || last ? 0 : 1;

	for (u32 i = 0; i < first; i++)
		put_frame(w, functions[i]);
	if (n > first + behind)
		fprintf(w->out, "  (%u frames of libraries and the runtime)\n", n - first - behind);
	for (u32 i = n - behind; i < n; i++)
		put_frame(w, functions[i]);
}

struct error *crash_stack_write(const struct profile *p, const struct libraries *l, FILE *out)
{
	struct writer w = {.p = p, .libraries = l, .out = out};
	u32 n, end;
	cleanup(free) u32 *functions = functions_of(p, &n);

	if (!functions)
		return &error_no_memory;
	for (u32 i = 0; i < n && w.own < OWN_SHOWN; i = end) {
		bool own = is_own(l, &p->functions[functions[i]]);

		for (end = i + 1; end < n && is_own(l, &p->functions[functions[end]]) == own; end++)
			;
		if (own)
			put_own(&w, functions + i, end - i);
		else
			put_others(&w, functions + i, end - i, end == n && i);
	}
	return NULL;
}
