/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live program walked at every machine instruction. What must hold of any language: a stack only ever changes at its
 * inner end. A frame further out that goes, comes or changes while one inside it stays is wrong, and so is the place in
 * a caller that changes; and whatever is called, or has returned, is so for some instructions at least.
 *
 * YRT_STEPS: instructions, YRT_SEED: varies where it begins, YRT_SHOW: so many faults are shown with their stacks.
 */
#ifndef YRT_STEPS_H
#define YRT_STEPS_H

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena.h"
#include "runtime.h"
#include "unwind.h"
#include "process/process.h"
#include "profile/expand.h"
#include "symbols/symbols.h"

#define STEPS_FRAMES 4096
#define STEPS_GONE   64
#define STEPS_PLACES 256
#define STEPS_BURSTS 4

enum steps_fault {
	STEPS_CUT,    /* the walk did not come to a root */
	STEPS_MIDDLE, /* a frame inside of what changed stayed */
	STEPS_PLACE,  /* the place in a caller changed */
	STEPS_SHORT,  /* a frame was there for too few instructions */
	STEPS_BACK,   /* the same frame was away for too few */
	STEPS_FAULTS,
};

struct steps;

struct steps_language {
	u64 (*identity)(struct steps *s, const struct frame *f); /* of a script's frame; 0: not to be looked at */
	u64 (*place)(const struct frame *f);                     /* in it; NULL: not checked */
	u32 shortest;                                            /* instructions that a call takes */
	bool (*known)(struct steps *s, enum steps_fault fault);  /* a limit that is documented; NULL: there is none */
};

struct steps_item {
	u64 identity, place, outer; /* outer: a hash of all that is outside of it */
	u32 born;
	bool script;
};

struct steps_stack {
	struct frame frames[STEPS_FRAMES];
	struct steps_item items[STEPS_FRAMES]; /* root first, up to the innermost script's frame */
	u32 nframes, nitems;
};

struct steps_place { /* where faults were seen: a function and the fault */
	char name[96];
	enum steps_fault fault;
	u32 n;
};

struct steps {
	const struct steps_language *language;
	pid_t pid;
	struct arena *arena;
	struct modules *modules;
	struct process *process;
	struct frame walked[STEPS_FRAMES];
	struct steps_stack stacks[2], *now, *before;
	struct {
		u64 identity, outer;
		u32 step;
	} gone[STEPS_GONE];
	u32 ngone, step, started, cut, shown, show; /* cut: the last step that was cut */
	u32 faults[STEPS_FAULTS], known;
	struct steps_place places[STEPS_PLACES];
	u32 nplaces;
	u32 deepest; /* of all stacks, in frames of scripts */
};

static void steps_must(struct error *err)
{
	if (err)
		fail_msg("%s", err->message);
}

static void steps_complain(void *ctx, struct error *err)
{
	(void)ctx;
	print_error("%s\n", err->message);
	error_free(err);
}

static u32 steps_number(const char *variable, u32 otherwise)
{
	const char *text = getenv(variable);

	return text && *text ? (u32)strtoul(text, NULL, 10) : otherwise;
}

/* Starts a program of fixtures/ or, without a slash in front, found as a shell would. */
static struct steps *steps_start(const struct steps_language *language, char *const *argv)
{
	struct steps *s = calloc(1, sizeof(*s));
	int status;

	assert_non_null(s);
	s->language = language;
	s->now = &s->stacks[0];
	s->before = &s->stacks[1];
	s->show = steps_number("YRT_SHOW", 4);
	s->pid = fork();
	if (!s->pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execvp(argv[0], argv);
		_exit(127);
	}
	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	if (!WIFSTOPPED(status))
		fail_msg("%s did not start: status 0x%x", argv[0], status);
	ptrace(PTRACE_SETOPTIONS, s->pid, 0, PTRACE_O_EXITKILL);
	steps_must(arena_create(NULL, &s->arena));
	steps_must(modules_create(s->arena, NULL, &s->modules));
	s->modules->complain = steps_complain;
	return s;
}

static void steps_end(struct steps *s)
{
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	process_destroy(s->process);
	modules_destroy(s->modules);
	arena_destroy(s->arena);
	free(s);
}

/* The signal that the program has stopped by; 0: it runs. */
static int steps_wait(struct steps *s, int flags)
{
	int status;
	pid_t pid = waitpid(s->pid, &status, flags);

	if (!pid)
		return 0;
	assert_int_equal(pid, s->pid);
	if (!WIFSTOPPED(status))
		fail_msg("the program ended with status 0x%x", status);
	return WSTOPSIG(status);
}

static void steps_resume(struct steps *s, int request, int sig)
{
	assert_int_equal(ptrace((enum __ptrace_request)request, s->pid, 0, sig == SIGTRAP ? 0 : sig), 0);
}

/* Goes on to the program's own SIGSTOP, or about so many times 100 us. */
static void steps_run(struct steps *s, u32 ticks)
{
	bool endless = !ticks, changed;
	int sig = 0;

	steps_resume(s, PTRACE_CONT, 0);
	while (endless ? sig != SIGSTOP : ticks) {
		usleep(endless ? 0 : 100);
		ticks -= !endless;
		sig = steps_wait(s, endless ? 0 : WNOHANG);
		if (sig && sig != SIGSTOP)
			steps_resume(s, PTRACE_CONT, sig);
	}
	if (!endless)
		kill(s->pid, SIGSTOP);
	while (sig != SIGSTOP) {
		sig = steps_wait(s, 0);
		if (sig != SIGSTOP)
			steps_resume(s, PTRACE_CONT, sig);
	}
	if (s->process)
		steps_must(process_rescan(s->process, &changed));
	else
		steps_must(process_create(s->modules, s->pid, 1, &s->process));
	s->started = s->step;
	s->before->nitems = s->before->nframes = 0;
	s->ngone = 0;
}

static void steps_step(struct steps *s)
{
	int sig = 0;

	do {
		steps_resume(s, PTRACE_SINGLESTEP, sig);
		sig = steps_wait(s, 0);
	} while (sig != SIGTRAP);
}

static u64 steps_mix(u64 a, u64 b)
{
	a = (a ^ b) * 0x9e3779b97f4a7c15ull;
	return a ^ a >> 29;
}

static int steps_walk(struct steps *s)
{
	struct user_regs_struct r;
	struct unwind_registers regs;
	struct steps_stack *stack = s->now;
	u64 outer = 1;
	u32 n, last = 0, scripts = 0;
	int stop;

	assert_int_equal(ptrace(PTRACE_GETREGS, s->pid, 0, &r), 0);
	regs = (struct unwind_registers){.reg = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9,
	                                         r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip},
	        .thread_pointer = r.fs_base};
	stop = unwind_stack(s->process, &regs, s->walked, STEPS_FRAMES, &n);
	stack->nframes = expand_stack(s->process, s->walked, n, 0, stack->frames, STEPS_FRAMES);
	stack->nitems = 0;
	for (u32 i = stack->nframes; i-- > 0;) {
		const struct frame *f = &stack->frames[i];
		bool script = frame_kind(f) == FRAME_SCRIPT;
		u64 identity = script ? s->language->identity(s, f) : frame_addr(f);

		if (!identity || (!script && frame_flags(f) & FRAME_VM))
			continue;
		stack->items[stack->nitems++] = (struct steps_item){.identity = identity,
		        .place = script && s->language->place ? s->language->place(f) : 0,
		        .outer = outer,
		        .born = s->step,
		        .script = script};
		outer = steps_mix(outer, identity);
		last = script ? stack->nitems : last;
		scripts += script;
	}
	stack->nitems = last;
	s->deepest = scripts > s->deepest ? scripts : s->deepest;
	return stop;
}

static void steps_symbol(struct steps *s, const struct frame *f, char *name, size_t size)
{
	u64 pc = frame_addr(f) - (frame_flags(f) & FRAME_RETADDR ? ARCH_CALL_BACK : 0);
	const struct mapping *m = process_mapping(s->process, pc);
	struct symbol symbol;

	if (m && m->image) {
		error_free(symbols_load(m->image, ""));
		if (symbols_find(m->image, pc - m->bias, &symbol))
			snprintf(name, size, "%s", symbol.name);
		else
			snprintf(name, size, "%s+0x%lx", m->name, pc - m->bias);
	} else {
		snprintf(name, size, "0x%lx", pc);
	}
}

/* Does a frame in this function's machine code stand among the innermost n? part: of its symbol */
static inline bool steps_in(struct steps *s, const struct steps_stack *stack, u32 n, const char *part)
{
	char name[96];

	for (u32 i = 0; i < stack->nframes && i < n; i++) {
		steps_symbol(s, &stack->frames[i], name, sizeof(name));
		if (strstr(name, part))
			return true;
	}
	return false;
}

static void steps_name(struct steps *s, const struct steps_stack *stack, u32 i, char *name, size_t size)
{
	struct runtime_process view = process_view(s->process);
	const struct frame *f = &stack->frames[i];
	struct frame_name n = {.name = ""};

	if (frame_kind(f) != FRAME_SCRIPT) {
		steps_symbol(s, f, name, size);
		return;
	}
	snprintf(name, size, "?");
	for (u32 k = 0; k < s->process->ninstances; k++) {
		struct instance *instance = &s->process->instances[k];

		if (instance->data && instance->ops->id == frame_runtime(f) &&
		        instance->ops->name_frame(instance->data, &view, stack->frames, i, stack->nframes, &n))
			snprintf(name, size, "%s:%u", n.name, n.line);
	}
}

static void steps_show(struct steps *s, const char *title, const struct steps_stack *stack)
{
	char name[NAME_MAX_BYTES + 16];

	print_message("  %s:\n", title);
	for (u32 i = 0; i < stack->nframes; i++) {
		const struct frame *f = &stack->frames[i];

		steps_name(s, stack, i, name, sizeof(name));
		print_message("    %s%s %s 0x%lx 0x%lx\n", frame_kind(f) == FRAME_SCRIPT ? "* " : "  ",
		        frame_flags(f) & FRAME_VM ? "(vm)" : "", name, f->where, f->detail);
	}
}

static void steps_fault(struct steps *s, enum steps_fault fault, const char *what)
{
	static const char *const words[] = {"cut", "middle", "place", "short", "back"};
	struct steps_place *p = s->places;
	char name[sizeof(p->name)];

	if (s->language->known && s->language->known(s, fault)) {
		s->known++;
		return;
	}
	s->faults[fault]++;
	steps_symbol(s, &s->now->frames[0], name, sizeof(name));
	while (p < s->places + s->nplaces && (p->fault != fault || strcmp(p->name, name) != 0))
		p++;
	if (p == s->places + STEPS_PLACES)
		return;
	if (p == s->places + s->nplaces) {
		s->nplaces++;
		p->fault = fault;
		memcpy(p->name, name, sizeof(name));
		if (s->shown < s->show) {
			s->shown++;
			print_message("step %u: %s in %s: %s\n", s->step, words[fault], name, what);
			steps_show(s, "before", s->before);
			steps_show(s, "now", s->now);
		}
	}
	p->n++;
}

/* The innermost frames of `before` from number `from` on have gone. */
static void steps_pop(struct steps *s, u32 from)
{
	for (u32 i = from; i < s->before->nitems; i++) {
		struct steps_item *item = &s->before->items[i];

		if (!item->script)
			continue;
		if (s->step - item->born < s->language->shortest && item->born > s->started)
			steps_fault(s, STEPS_SHORT, "went again");
		s->gone[s->ngone % STEPS_GONE].identity = item->identity;
		s->gone[s->ngone % STEPS_GONE].outer = item->outer;
		s->gone[s->ngone++ % STEPS_GONE].step = s->step;
	}
}

static void steps_push(struct steps *s, u32 from)
{
	for (u32 i = from; i < s->now->nitems; i++) {
		const struct steps_item *item = &s->now->items[i];

		for (u32 k = 0; k < s->ngone && k < STEPS_GONE; k++)
			if (item->script && s->gone[k].identity == item->identity && s->gone[k].outer == item->outer &&
			        s->step - s->gone[k].step < s->language->shortest) {
				steps_fault(s, STEPS_BACK, "came back");
				s->gone[k].identity = 0;
			}
	}
}

static bool steps_has(const struct steps_stack *stack, u32 from, u64 identity)
{
	while (from < stack->nitems && stack->items[from].identity != identity)
		from++;
	return from < stack->nitems;
}

static void steps_check(struct steps *s)
{
	struct steps_stack *now = s->now, *before = s->before;
	int stop = steps_walk(s);
	u32 same = 0;
	bool middle = false;

	if (!stop_is_complete((u32)stop)) {
		steps_fault(s, STEPS_CUT, "");
		s->cut = s->step;
		before->nframes = 0;
		return;
	}
	if (before->nframes) {
		while (same < now->nitems && same < before->nitems &&
		        now->items[same].identity == before->items[same].identity) {
			now->items[same].born = before->items[same].born;
			same++;
		}
		for (u32 i = same; i < before->nitems && !middle; i++)
			middle = before->items[i].script && steps_has(now, same, before->items[i].identity);
		if (middle)
			steps_fault(s, STEPS_MIDDLE, "not at the end");
		for (u32 i = 0; i + 1 < same; i++)
			if (now->items[i].place != before->items[i].place &&
			        s->step - now->items[i + 1].born >= s->language->shortest) {
				steps_fault(s, STEPS_PLACE, "a caller's place");
				break;
			}
		steps_pop(s, same);
		steps_push(s, same);
	}
	s->now = before;
	s->before = now;
}

/* Steps through a program that runs already, in some bursts. */
static void steps_through(struct steps *s, u32 otherwise)
{
	u32 steps = steps_number("YRT_STEPS", otherwise), seed = steps_number("YRT_SEED", (u32)s->pid);

	for (u32 i = 0; i < STEPS_BURSTS; i++) {
		seed = seed * 1103515245 + 12345;
		steps_run(s, 1 + (seed >> 16) % 100);
		for (u32 k = 0; k < steps / STEPS_BURSTS; k++, s->step++) {
			steps_check(s);
			steps_step(s);
		}
	}
	print_message("%u steps: %u known limits, %u cut, %u in the middle, %u places, %u short, %u back\n", s->step,
	        s->known, s->faults[STEPS_CUT], s->faults[STEPS_MIDDLE], s->faults[STEPS_PLACE], s->faults[STEPS_SHORT],
	        s->faults[STEPS_BACK]);
	for (const struct steps_place *p = s->places; p < s->places + s->nplaces; p++)
		print_message("  %u of kind %d in %s\n", p->n, p->fault, p->name);
	assert_int_equal(s->nplaces, 0);
	assert_true(s->deepest >= 4);
}

#endif
