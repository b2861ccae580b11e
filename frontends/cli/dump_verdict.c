/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process died of, in one sentence, for `dump --core` and `report --core`; and of each thread the frame that is
 * the program's own. As hostile as its names are: whoever prints it cleans it.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "dump_view.h"
#include "frontends/format/repeats.h"
#include "frontends/format/text.h"
#include "frontends/report/own.h"
#include "probes/threads/crash.h"
#include "unwind/binary/core_file.h"
#include "unwind/cleanup.h"
#include "unwind/ends_with.h"
#include "unwind/process/process.h"

#define CYCLE_NAMED 4

static const struct profile_function *function_at(const struct dump_view *v, u32 node)
{
	return &v->profile->functions[v->profile->nodes[node].function];
}

/* Of a stack: the innermost frame of the program's own code, and of any code; NULL if it has none. */
struct places {
	const struct profile_function *own, *leaf;
};

static bool is_machine(const struct profile_function *f)
{
	return f->kind == KIND_NATIVE || f->kind == KIND_CXX || f->kind == KIND_RUST;
}

/* Frames of a language come before those of the machine code that implements it. */
static struct places find_places(const struct dump_view *v, const struct libraries *l, const u32 *frames, u32 n)
{
	const struct profile_function *native = NULL;
	struct places p = {0};

	for (u32 i = 0; i < n && !p.own; i++) {
		const struct profile_function *f = function_at(v, frames[i]);

		if (!is_code(f))
			continue;
		p.leaf = p.leaf ? p.leaf : f;
		if (!is_own(l, f))
			continue;
		if (is_machine(f))
			native = native ? native : f;
		else
			p.own = f;
	}
	p.own = p.own ? p.own : native;
	return p;
}

static void put_place(const struct profile_function *f, FILE *out)
{
	char name[VIEW_NAME];

	view_name(f, name);
	text_put_short(out, *name ? name : text_name(f), f->kind);
	if (*f->file && f->line)
		fprintf(out, " (%s:%u)", view_file(f), f->line);
}

static void put_places(const struct places *p, FILE *out)
{
	const struct profile_function *first = p->leaf ? p->leaf : p->own;

	if (!first) {
		fputs("code that could not be read", out);
		return;
	}
	if (p->own && p->own != first && !strcmp(p->own->module, first->module)) { /* a library's inlined code */
		put_place(p->own, out);
		fputs(", in ", out);
		put_place(first, out);
		fputc(',', out);
		return;
	}
	put_place(first, out);
	if (p->own && p->own != first) {
		fputs(", called below ", out);
		put_place(p->own, out);
		fputc(',', out);
	}
}

/* How much a function of a cycle says: a language's more than machine code, the program's own more than a library's. */
static u32 weight(const struct libraries *l, const struct profile_function *f)
{
	bool script = f->kind == KIND_SCRIPT || f->kind == KIND_SCRIPT_BASELINE || f->kind == KIND_SCRIPT_JIT;

	return 2 * script + is_own(l, f);
}

/* Of one name at one place: the other one is inlined. */
static bool is_same(const struct profile_function *a, const struct profile_function *b)
{
	return a == b || (a->line == b->line && !strcmp(a->name, b->name) && !strcmp(a->file, b->file));
}

/* Of the n functions of a cycle, those that say most, each once. Returns how many are left. */
static u32 pick(const struct dump_view *v, const struct libraries *l, u32 *functions, u32 n)
{
	u32 most = 0, kept = 0, k;

	for (u32 i = 0; i < n; i++) {
		u32 w = weight(l, &v->profile->functions[functions[i]]);

		most = w > most ? w : most;
	}
	for (u32 i = 0; i < n; i++) {
		if (weight(l, &v->profile->functions[functions[i]]) < most)
			continue;
		for (k = 0; k < kept; k++)
			if (is_same(&v->profile->functions[functions[k]], &v->profile->functions[functions[i]]))
				break;
		if (k == kept)
			functions[kept++] = functions[i];
	}
	return kept;
}

/* "walk_left and walk_right call each other": the first functions that repeat on the stack. False: none does. */
static bool put_cycle(const struct dump_view *v, const struct libraries *l, u32 *functions, u32 n, FILE *out)
{
	u32 turns = 1, period = 1, i = 0, named = 0;

	for (; i < n; i += period * turns) {
		period = repeats(functions, n, i, &turns);
		if (turns > 1)
			break;
	}
	if (i >= n)
		return false;
	period = pick(v, l, functions + i, period);
	for (u32 k = i; k < i + period && named < CYCLE_NAMED; k++, named++) {
		fputs(!named ? "" : k + 1 == i + period ? " and " : ", ", out);
		put_place(&v->profile->functions[functions[k]], out);
	}
	fputs(period == 1 ? " calls itself" : period > named ? ", ... call each other" : " call each other", out);
	return true;
}

static const char *verb(const struct crash *c)
{
	switch (c->access) {
	case CRASH_READ:
		return "reads";
	case CRASH_WRITE:
		return "writes";
	case CRASH_RUN:
		return "jumps to";
	default:
		return "uses";
	}
}

/* What the processor refused, by the name of the signal. */
static const char *refused(const struct crash *c, const char *signal)
{
	return *c->refused               ? c->refused
	       : !strcmp(signal, "FPE")  ? "divided by zero, or by -1 the least number"
	       : !strcmp(signal, "ILL")  ? "ran an instruction that the processor does not have"
	       : !strcmp(signal, "TRAP") ? "ran into a breakpoint"
	                                 : "did what the processor does not permit";
}

static void put_fault(const struct crash *c, const struct places *p, const char *signal, FILE *out)
{
	put_places(p, out);
	if (!c->has_address || !*c->about)
		fprintf(out, " %s", refused(c, signal));
	else if (!strncmp(c->about, "a null pointer", 14))
		fprintf(out, " %s %s%s", verb(c), c->access == CRASH_READ || c->access == CRASH_WRITE ? "through " : "",
		        c->about);
	else
		fprintf(out, " %s 0x%lx: %s", verb(c), c->address, c->about);
}

static bool is_fault(const char *signal)
{
	return signal && (!strcmp(signal, "SEGV") || !strcmp(signal, "BUS") || !strcmp(signal, "ILL") ||
	                         !strcmp(signal, "FPE") || !strcmp(signal, "TRAP"));
}

/* Who called abort(), if that is not the program's own code: a library of it, a function behind JNI. */
static const struct profile_function *caller_of_abort(const struct dump_view *v, const u32 *functions, u32 n)
{
	static const char *const names[] = {"abort", "raise", "gsignal", "pthread_kill", "kill", "tgkill"};

	for (u32 i = 0; i < n; i++) {
		const struct profile_function *f = &v->profile->functions[functions[i]];
		const char *name = f->name + strspn(f->name, "_");
		bool part = !is_code(f) || !strncmp(f->module, "libc.so", 7) || !strncmp(f->module, "libc-", 5);

		name += !strncmp(name, "GI_", 3) ? 3 : 0;
		for (size_t k = 0; k < sizeof(names) / sizeof(*names) && !part; k++)
			part = !strncmp(name, names[k], strlen(names[k]));
		if (!part)
			return f;
	}
	return NULL;
}

static void put_abort(const struct dump_view *v, const struct places *p, const u32 *functions, u32 n, FILE *out)
{
	struct places by = {.own = p->own, .leaf = caller_of_abort(v, functions, n)};

	if (by.leaf && by.own && !strcmp(by.leaf->module, by.own->module)) /* what is linked into it: Rust's std */
		by.leaf = by.own;
	if (by.own || by.leaf)
		put_places(&by, out);
	fputs(by.own || by.leaf ? " ended the program by abort()"
	                        : "abort() was called; the stack does not say by whom",
	        out);
}

/* Not by the kernel for what the thread did, nor by the program itself as abort() does. */
static bool is_from_outside(const struct dump_view *v)
{
	return !v->crash->first && v->core->sent && v->core->sender != v->core->pid;
}

static void put_sent(const struct dump_view *v, const struct places *p, FILE *out)
{
	put_places(p, out);
	if (!v->core->sent)
		fputs(" got a signal that ends a program", out);
	else if (v->core->sender == v->core->pid)
		fputs(" sent the program a signal that ends it, by kill() or raise()", out);
	else if (v->core->sender)
		fprintf(out, " was running when process %u sent a signal that ends the program", v->core->sender);
	else
		fputs(" was running when a signal that ends the program was sent to it", out);
}

static void put_verdict(const struct dump_view *v, const struct libraries *l, const struct places *p,
        const struct view_thread *t, u32 *frames, u32 n, FILE *out)
{
	const struct crash *c = v->crash;
	const char *name = sigabbrev_np((int)(c->first ? c->first : v->core->signal));

	for (u32 i = 0; i < n; i++)
		frames[i] = v->profile->nodes[frames[i]].function;
	if (*c->message) {
		fputs(c->message, out);
		if (p->own) { /* else the runtime's own threads, which only noticed it */
			fputs(": ended in ", out);
			put_place(p->own, out);
		}
	} else if (!strncmp(c->about, "stack overflow", 14)) {
		fprintf(out, "the stack of thread %u is full: ", t->t->at.tid);
		if (!put_cycle(v, l, frames, n, out))
			put_fault(c, p, name, out);
	} else if (is_fault(name) && (c->first || !v->core->sent)) {
		put_fault(c, p, name, out);
	} else if (v->core->signal == SIGABRT && !is_from_outside(v)) {
		put_abort(v, p, frames, n, out);
	} else {
		put_sent(v, p, out);
	}
	if (t->t->left_out)
		fprintf(out, ", %u frames deep", n + t->t->left_out);
	if (name)
		fprintf(out, " (SIG%s)", name);
	else
		fprintf(out, " (signal %u)", v->core->signal);
}

/* "sum_of (dies.c:18)" of a thread's own frame; NULL: it has none, or there is no memory. */
static char *own_text(const struct places *p)
{
	char *text = NULL;
	size_t size;
	FILE *out = p->own ? open_memstream(&text, &size) : NULL;

	if (!out)
		return NULL;
	put_place(p->own, out);
	fclose(out);
	return text;
}

/*
 * The frames of a signal handler in which the process died: those inside the fault that it handled, up to and including
 * the trampoline (__restore_rt), which has no name in a stripped libc. 0: it died in no handler.
 */
static u32 handler_frames(const struct dump_view *v, const struct dump_thread *t, const u32 *frames, u32 n)
{
	const struct mapping *m;
	char offset[32];
	u32 at = 0;

	if (!v->crash || !v->crash->first || !(t->at.flags & THREAD_KILLED))
		return 0;
	while (at < t->nframes &&
	        (frame_flags(&t->frames[at]) & FRAME_RETADDR || frame_addr(&t->frames[at]) != v->crash->reg[REG_PC]))
		at++;
	m = at && at < t->nframes ? process_mapping(t->process, frame_addr(&t->frames[at - 1])) : NULL;
	if (!m)
		return 0;
	snprintf(offset, sizeof(offset), "+0x%lx", frame_addr(&t->frames[at - 1]) - 1 - m->bias);
	for (u32 i = 0; i + 1 < n; i++) {
		const char *name = function_at(v, frames[i])->name;

		if (!strcmp(name, "__restore_rt") || ends_with(name, offset))
			return i + 1;
	}
	return 0;
}

static struct error *thread_verdict(struct dump_view *v, const struct libraries *l, struct view_thread *t)
{
	u32 n = 0, first;
	cleanup(free) u32 *frames = view_frames(v, t->top, &n);
	struct places p;
	size_t size;
	FILE *out;

	if (!frames)
		return &error_no_memory;
	first = handler_frames(v, t->t, frames, n);
	p = find_places(v, l, frames + first, n - first);
	t->own = own_text(&p);
	if (!v->crash || v->verdict || !(t->t->at.flags & THREAD_KILLED))
		return NULL;
	out = open_memstream(&v->verdict, &size);
	if (!out)
		return &error_no_memory;
	put_verdict(v, l, &p, t, frames, n, out);
	fclose(out);
	return NULL;
}

struct error *view_verdict(struct dump_view *v)
{
	struct rules rules = {0};
	struct error *err = rules_builtin(&rules);

	for (u32 i = 0; !err && i < v->nthreads; i++)
		err = thread_verdict(v, rules.libraries, &v->threads[i]);
	rules_free(&rules);
	return err;
}
