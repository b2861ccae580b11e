/* SPDX-License-Identifier: Apache-2.0 */
#include "go_text.h"

#include <string.h>

/* The pc that a frame of a chain has in memory, where at is the function that it is in. */
static u64 frame_pc(const struct go_places *p, const struct go_stacks *s, const struct go_chain *c, u32 i,
        const struct go_place *at)
{
	u64 pc = s->pcs[c->first + i];
	bool not_run_yet = !i && pc == at->entry + 1 && strcmp(go_place_name(p, at), "runtime.goexit") != 0;

	return pc - (not_run_yet || go_stacks_exact(s, c, i));
}

/* Calls do for each function of a chain; ends when it says so. made: also those that the compiler made. */
static void each(const struct go_places *p, const struct go_stacks *s, const struct go_chain *c, bool made,
        bool (*do_)(const struct go_places *p, const struct go_place *at, u64 pc, void *ctx), void *ctx)
{
	for (u32 i = 0; i < c->n; i++) {
		u32 n;
		const struct go_place *at = go_places_at(p, s->pcs[c->first + i], &n);

		n = go_stacks_functions(s, c, i, n);
		for (u32 k = 0; at && k < n; k++)
			if ((made || !at[k].wrapper) && !do_(p, at + k, frame_pc(p, s, c, i, at), ctx))
				return;
	}
}

static bool print_pc(const struct go_places *p, const struct go_place *at, u64 pc, void *out)
{
	fprintf(out, " 0x%lx", at->pc);
	return true;
}

void go_print_pcs(const struct go_places *p, const struct go_stacks *s, const struct go_chain *c, FILE *out)
{
	each(p, s, c, false, print_pc, out);
}

struct lines {
	FILE *out;
	bool show; /* also functions of the runtime, from here on */
	u32 n;
};

static bool print_line(const struct go_places *p, const struct go_place *at, u64 pc, void *ctx)
{
	struct lines *l = ctx;
	const char *name = go_place_name(p, at);
	u64 addr = at->pc - (at->pc != at->entry);

	if (!strcmp(name, "runtime.goexit") || (!l->show && go_is_runtime(name)))
		return true;
	l->show = true;
	l->n++;
	fprintf(l->out, "#\t0x%lx\t%s+0x%lx\t%s:%u\n", addr, name, addr - at->entry, go_place_file(p, at), at->line);
	return true;
}

void go_print_lines(const struct go_places *p, const struct go_stacks *s, const struct go_chain *c, FILE *out)
{
	struct lines l = {.out = out};

	each(p, s, c, false, print_line, &l);
	if (l.n)
		return;
	l.show = true;
	each(p, s, c, false, print_line, &l);
}

/* Functions that programs may call: runtime.Gosched, runtime.(*Func).Name. */
static bool is_exported(const char *name)
{
	const char *rest = name + 8, *dot = strrchr(rest, '.'), *last = dot ? dot + 1 : rest;

	if (*last < 'A' || *last > 'Z')
		return false;
	rest += dot && rest[0] == '(' && rest[1] == '*' ? 2 : 0;
	return !dot || (*rest >= 'A' && *rest <= 'Z');
}

bool go_is_traced(const char *name, bool innermost)
{
	static const char *const always[] = {"runtime.runfinq", "runtime.runFinalizers", "runtime.runCleanups"};

	for (u32 i = 0; i < sizeof(always) / sizeof(*always); i++)
		if (!strcmp(name, always[i]))
			return true;
	if (!strchr(name, '.')) /* cgo's */
		return false;
	return strncmp(name, "runtime.", 8) || is_exported(name) || (!strcmp(name, "runtime.gopanic") && !innermost);
}

static bool print_call(const struct go_places *p, const struct go_place *at, u64 pc, void *ctx)
{
	struct lines *l = ctx;
	const char *name = go_place_name(p, at);

	if (!l->show && !go_is_traced(name, !l->n))
		return true;
	l->n++;
	fprintf(l->out, "%s(...)\n\t%s:%u", strcmp(name, "runtime.gopanic") ? name : "panic", go_place_file(p, at),
	        at->line);
	if (!at->inlined && pc > at->entry)
		fprintf(l->out, " +0x%lx", pc - at->entry);
	fputc('\n', l->out);
	return true;
}

void go_print_trace(const struct go_places *p, const struct go_stacks *s, const struct go_chain *c, FILE *out)
{
	struct lines l = {.out = out};

	each(p, s, c, false, print_call, &l);
	if (!l.n) {
		l.show = true;
		each(p, s, c, true, print_call, &l);
	}
	if (c->cut)
		fputs("...additional frames elided...\n", out);
}
