/* SPDX-License-Identifier: Apache-2.0 */
/* A dump as text: equal stacks once, leaf first, below the threads that have them. */
#include <stdlib.h>
#include <string.h>

#include "colour.h"
#include "dump_view.h"
#include "frontends/format/repeats.h"
#include "frontends/format/text.h"
#include "unwind/binary/core_file.h"
#include "unwind/cleanup.h"

#define THREADS_SHOWN 8 /* of those with one stack, with all that is known of them */
#define NAME_COLUMNS  200

static void put_duration(FILE *out, u64 ns)
{
	double s = (double)ns / 1e9;

	if (s < 1)
		fprintf(out, "%.3g ms", s * 1e3);
	else if (s < 120)
		fprintf(out, "%.1f s", s);
	else if (s < 7200)
		fprintf(out, "%lu min %lu s", (u64)s / 60, (u64)s % 60);
	else
		fprintf(out, "%lu h %lu min", (u64)s / 3600, (u64)s / 60 % 60);
}

static void put_stuck(const struct dump_view *v, const struct view_thread *t, FILE *out)
{
	if (v->dumps < 2)
		return;
	if (t->still + 1 == v->dumps)
		fprintf(out, ", has not run in %u dumps", v->dumps);
	else if (t->same)
		fprintf(out, ", the same stack in %u of %u dumps", t->same + 1, v->dumps);
}

static void put_reference(const struct view_thread *t, FILE *out)
{
	fprintf(out, "thread %u ", t->t->at.tid);
	text_put_clean(out, t->name, NAME_COLUMNS);
}

static void put_wait(const struct dump_view *v, const struct view_thread *t, FILE *out)
{
	const char *name = t->t->wait.holder_name;
	char what[VIEW_WAIT];

	if (!t->waits)
		return;
	view_wait(t, what);
	fputs("\n    waits for ", out);
	text_put_clean(out, what, VIEW_WAIT);
	if (!t->owned && !*name)
		return;
	fputs(" held by ", out);
	text_put_clean(out, name, NAME_COLUMNS);
	if (t->owned) {
		fputs(*name ? " on " : "", out);
		put_reference(&v->threads[t->owner], out);
	}
}

static void put_signal_name(u32 number, FILE *out)
{
	const char *name = sigabbrev_np((int)number);

	if (name)
		fprintf(out, "SIG%s", name);
	else
		fprintf(out, "signal %u", number);
}

static void put_signal(const struct core_file *core, const struct crash *c, FILE *out)
{
	const char *access = c ? crash_access_word(c->access) : NULL;

	fputs(" by ", out);
	put_signal_name(core->signal, out);
	if (c && c->first) {
		fputs(" after ", out);
		put_signal_name(c->first, out);
	}
	if (c ? c->has_address : core->has_address)
		fprintf(out, " at address 0x%lx", c ? c->address : core->address);
	if (access)
		fprintf(out, " (%s)", access);
	if (core->sent && core->sender && core->sender != core->pid)
		fprintf(out, ", sent by process %u", core->sender);
	if (!c || !*c->message)
		return;
	fputs(" (", out);
	text_put_clean(out, c->message, CRASH_TEXT);
	if (c->speaker)
		fprintf(out, ", in thread %u", c->speaker);
	fputc(')', out);
}

/* Registers by their DWARF numbers (System V psABI for AMD64, figure 3.36). */
static void put_registers(const u64 *reg, FILE *out)
{
	static const struct {
		const char *name;
		u32 number;
	} all[] = {{"rip", 16}, {"rsp", 7}, {"rbp", 6}, {"rax", 0}, {"rbx", 3}, {"rcx", 2}, {"rdx", 1}, {"rsi", 4},
	        {"rdi", 5}, {"r8", 8}, {"r9", 9}, {"r10", 10}, {"r11", 11}, {"r12", 12}, {"r13", 13}, {"r14", 14},
	        {"r15", 15}};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		fprintf(out, "%s%-3s 0x%016lx%s", i % 4 ? "  " : "    ", all[i].name, reg[all[i].number],
		        i % 4 == 3 || i + 1 == sizeof(all) / sizeof(*all) ? "\n" : "");
}

static void put_crash(const struct crash *c, FILE *out)
{
	if (*c->about) {
		fputs("    the address: ", out);
		text_put_clean(out, c->about, CRASH_TEXT);
		fputc('\n', out);
	}
	if (*c->instruction)
		fprintf(out, "    at the instruction: %s\n", c->instruction);
	if (c->first)
		fputs("    registers of that moment, before the signal was handled:\n", out);
	put_registers(c->reg, out);
}

static void put_thread(const struct dump_view *v, const struct view_thread *t, FILE *out)
{
	const struct dump_thread *d = t->t;

	fprintf(out, "%sthread %u ", colour(out, COLOUR_BOLD), d->at.tid);
	text_put_clean(out, t->name, NAME_COLUMNS);
	fputs(colour(out, COLOUR_NONE), out);
	if (strcmp(t->name, d->at.comm)) {
		fputs(" (", out);
		text_put_clean(out, d->at.comm, THREAD_COMM_LEN);
		fputs(")", out);
	}
	fprintf(out, ": %s", view_state(d));
	if (d->at.flags & THREAD_KILLED)
		put_signal(v->core, v->crash, out);
	if (d->at.off_ns && d->how == DUMP_WALKED) {
		fputs(" for ", out);
		put_duration(out, d->at.off_ns);
	}
	if (d->syscall) {
		fputs(" in ", out);
		text_put_clean(out, d->syscall, 2 * NAME_COLUMNS);
	}
	put_stuck(v, t, out);
	if (d->how == DUMP_TORN)
		fputs(", ran whenever its stack was read: its frames may be of several moments", out);
	if (d->how == DUMP_SAMPLED)
		fputs(", its most frequent stack in some samples", out);
	if (d->how == DUMP_UNSEEN)
		fputs(", but not when samples were taken", out);
	if (d->left_out)
		fprintf(out, ", too deep: %u frames in the middle are left out", d->left_out);
	put_wait(v, t, out);
	fputc('\n', out);
	if (d->at.flags & THREAD_KILLED && v->crash)
		put_crash(v->crash, out);
}

static void put_others(const struct dump_view *v, u32 i, u32 end, FILE *out)
{
	fprintf(out, "and %u more:", end - i);
	for (u32 k = i; k < end; k++) {
		u32 first = v->threads[k].t->at.tid;

		while (k + 1 < end && v->threads[k + 1].t->at.tid == v->threads[k].t->at.tid + 1)
			k++;
		if (v->threads[k].t->at.tid > first)
			fprintf(out, " %u-%u", first, v->threads[k].t->at.tid);
		else
			fprintf(out, " %u", first);
	}
	fputc('\n', out);
}

static void put_frame(const struct profile_function *f, FILE *out)
{
	char name[VIEW_NAME];

	view_name(f, name);
	fputs("    ", out);
	fputs(text_marks(f->flags), out);
	text_put_clean(out, *name ? name : text_name(f), NAME_COLUMNS);
	if (*f->file && f->line) {
		fputs("  ", out);
		text_put_clean(out, view_file(f), NAME_COLUMNS);
		fprintf(out, ":%u", f->line);
	}
	if (f->kind == KIND_KERNEL) {
		fprintf(out, "  %s[kernel]%s", colour(out, COLOUR_FAINT), colour(out, COLOUR_NONE));
	} else if (*f->module) {
		fprintf(out, "  %s[", colour(out, COLOUR_FAINT));
		text_put_clean(out, f->module, NAME_COLUMNS);
		fprintf(out, "]%s", colour(out, COLOUR_NONE));
	}
	fputc('\n', out);
}

/* Frames of a recursion are shown once. */
static struct error *put_stack(const struct dump_view *v, u32 top, FILE *out)
{
	u32 n;
	cleanup(free) u32 *frames = view_frames(v, top, &n);

	if (!frames)
		return &error_no_memory;
	for (u32 i = 0; i < n; i++)
		frames[i] = v->profile->nodes[frames[i]].function;
	for (u32 i = 0, turns, period; i < n; i += period * turns) {
		period = repeats(frames, n, i, &turns);
		for (u32 k = i; k < i + period; k++)
			put_frame(&v->profile->functions[frames[k]], out);
		if (turns > 1 && period == 1)
			fprintf(out, "    %s(%u more of this frame)%s\n", colour(out, COLOUR_FAINT), turns - 1,
			        colour(out, COLOUR_NONE));
		else if (turns > 1)
			fprintf(out, "    %s(these %u frames %u more times)%s\n", colour(out, COLOUR_FAINT), period,
			        turns - 1, colour(out, COLOUR_NONE));
	}
	if (!n)
		fprintf(out, "    (no frames%s%s)\n", v->language ? " of " : "", v->language ? v->language : "");
	return NULL;
}

static void put_cycle(const struct dump_view *v, u32 first, FILE *out)
{
	char what[VIEW_WAIT];
	u32 at = first;

	fprintf(out, "%sDEADLOCK:%s ", colour(out, COLOUR_RED), colour(out, COLOUR_NONE));
	put_reference(&v->threads[first], out);
	do {
		view_wait(&v->threads[at], what);
		fputs(at == first ? " waits for " : ", which waits for ", out);
		text_put_clean(out, what, VIEW_WAIT);
		fputs(" held by ", out);
		at = v->threads[at].owner;
		put_reference(&v->threads[at], out);
	} while (at != first);
	fputc('\n', out);
}

/* Each cycle once, from its thread with the lowest index. */
static void put_deadlocks(const struct dump_view *v, FILE *out)
{
	for (u32 i = 0; i < v->nthreads; i++) {
		u32 at = i, lowest = i;

		while (v->threads[i].deadlocked && (at = v->threads[at].owner) != i)
			lowest = at < lowest ? at : lowest;
		if (v->threads[i].deadlocked && lowest == i)
			put_cycle(v, i, out);
	}
}

static u32 count_running(const struct dump_view *v)
{
	u32 n = 0;

	for (u32 i = 0; i < v->nthreads; i++)
		n += !strcmp(view_state(v->threads[i].t), "running");
	return n;
}

static void put_head(const struct dump_view *v, FILE *out)
{
	text_put_clean(out, v->target, NAME_COLUMNS);
	fprintf(out, ": %u thread%s, %u different stack%s", v->nthreads, v->nthreads == 1 ? "" : "s", v->nstacks,
	        v->nstacks == 1 ? "" : "s");
	if (!v->core)
		fprintf(out, ", %u on a CPU", count_running(v));
	fputc('\n', out);
}

struct error *dump_write_text(const struct dump_view *v, FILE *out)
{
	struct error *err = NULL;

	if (v->verdict) {
		text_put_clean(out, v->verdict, VIEW_NAME);
		fputc('\n', out);
	}
	put_deadlocks(v, out);
	put_head(v, out);
	for (u32 i = 0, end; !err && i < v->nthreads; i = end) {
		end = view_group_end(v, i);
		fputc('\n', out);
		for (u32 k = i; k < end && k < i + THREADS_SHOWN; k++)
			put_thread(v, &v->threads[k], out);
		if (end - i > THREADS_SHOWN)
			put_others(v, i + THREADS_SHOWN, end, out);
		err = put_stack(v, v->threads[i].top, out);
	}
	if (!err)
		err = dump_tasks_text(v, put_stack, out);
	return err ? err : text_finish(out, "dump");
}
