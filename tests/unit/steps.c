/* SPDX-License-Identifier: Apache-2.0 */
#include "steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "look.h"
#include "steps_program.h"
#include "profile/expand.h"
#include "symbols/symbols.h"

#define GONE      64
#define PLACES    256
#define BURSTS    16 /* if the language does not say how many */
#define MET_DULL  8  /* what begins without a change is left so much earlier */
#define KNOWN_MAX 10 /* at most one step in ten may hit a known limit: a signal handler alone takes thousands */

struct place { /* where faults were seen: a function and the fault */
	char name[96];
	enum steps_fault fault;
	u32 n;
};

struct steps_run {
	const struct steps_language *language;
	struct program program;
	struct arena *arena;
	struct modules *modules;
	struct frame walked[STEPS_FRAMES];
	struct steps_stack stacks[2];
	struct {
		u64 identity, outer;
		u32 step;
	} gone[GONE];
	u32 ngone, started, shown, show;
	u32 faults[STEPS_FAULTS], known;
	struct place places[PLACES];
	u32 nplaces;
	u32 deepest; /* frames of scripts at most */
	u32 scripts; /* stacks with some */
	u32 changes; /* stacks that differ from the last */
	u32 changed; /* the step of the last of them, or of a beginning */
	u64 root;    /* the first stack's outermost script's frame */
};

static u32 number(const char *variable, u32 otherwise)
{
	const char *text = getenv(variable);

	return text && *text ? (u32)strtoul(text, NULL, 10) : otherwise;
}

static struct steps *start(const struct steps_language *language, const char *const *argv)
{
	struct steps *s = calloc(1, sizeof(*s));
	struct steps_run *run = calloc(1, sizeof(*run));

	assert_non_null(s);
	assert_non_null(run);
	s->run = run;
	s->now = &run->stacks[0];
	s->before = &run->stacks[1];
	run->language = language;
	run->show = number("YRT_SHOW", 4);
	run->program = program_start(argv, language->thread);
	look_begin(&run->arena, &run->modules);
	return s;
}

static void end(struct steps *s)
{
	program_end(&s->run->program);
	look_end(s->run->arena, s->run->modules, s->process);
	free(s->run);
	free(s);
}

/* What was seen so far says nothing of what comes. */
static void forget(struct steps *s)
{
	s->run->started = s->run->changed = s->step;
	s->before->nitems = s->before->nframes = 0;
	s->run->ngone = 0;
}

static void run_for(struct steps *s, u32 us)
{
	program_run(&s->run->program, us);
	look_at(s->run->modules, s->run->program.pid, &s->process);
	forget(s);
}

u64 steps_mix(u64 a, u64 b)
{
	a = (a ^ b) * 0x9e3779b97f4a7c15ull;
	return a ^ a >> 29;
}

static void walk(struct steps *s)
{
	struct unwind_registers regs;
	struct steps_stack *stack = s->now;
	u64 outer = 1;
	u32 n, last = 0, scripts = 0;

	program_registers(&s->run->program, &regs);
	s->stop = unwind_stack(s->process, &regs, s->run->walked, STEPS_FRAMES, &n);
	stack->nframes = expand_stack(s->process, s->run->walked, n, 0, stack->frames, STEPS_FRAMES);
	stack->nitems = 0;
	for (u32 i = stack->nframes; i-- > 0;) {
		const struct frame *f = &stack->frames[i];
		bool script = frame_kind(f) == FRAME_SCRIPT;
		u64 identity = script ? s->run->language->identity(s, f) : frame_addr(f);

		if (!identity || (!script && frame_flags(f) & FRAME_VM))
			continue;
		stack->items[stack->nitems++] = (struct steps_item){.identity = identity,
		        .place = script && s->run->language->place ? s->run->language->place(s, f) : 0,
		        .outer = outer,
		        .born = s->step,
		        .script = script};
		outer = steps_mix(outer, identity);
		last = script ? stack->nitems : last;
		scripts += script;
	}
	stack->nitems = last;
	s->run->deepest = scripts > s->run->deepest ? scripts : s->run->deepest;
	s->run->scripts += scripts > 0;
}

static void symbol(struct steps *s, const struct frame *f, char *name, size_t size)
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

bool steps_in(struct steps *s, const struct steps_stack *stack, u32 n, const char *part)
{
	char name[96];

	for (u32 i = 0; i < stack->nframes && i < n; i++) {
		symbol(s, &stack->frames[i], name, sizeof(name));
		if (strstr(name, part))
			return true;
	}
	return false;
}

static void put_name(struct steps *s, const struct steps_stack *stack, u32 i, char *name, size_t size)
{
	struct runtime_process view = process_view(s->process);
	const struct frame *f = &stack->frames[i];
	struct frame_name n = {.name = ""};

	if (frame_kind(f) != FRAME_SCRIPT) {
		symbol(s, f, name, size);
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

bool steps_named(struct steps *s, const struct steps_stack *stack, u32 i, const char *part)
{
	char name[NAME_MAX_BYTES + 16];

	if (i >= stack->nframes)
		return false;
	put_name(s, stack, i, name, sizeof(name));
	return strstr(name, part);
}

static void show(struct steps *s, const char *title, const struct steps_stack *stack)
{
	char name[NAME_MAX_BYTES + 16];

	print_message("  %s:\n", title);
	for (u32 i = 0; i < stack->nframes; i++) {
		const struct frame *f = &stack->frames[i];

		put_name(s, stack, i, name, sizeof(name));
		print_message("    %s%s %s 0x%lx 0x%lx\n", frame_kind(f) == FRAME_SCRIPT ? "* " : "  ",
		        frame_flags(f) & FRAME_VM ? "(vm)" : "", name, f->where, f->detail);
	}
}

static void found(struct steps *s, enum steps_fault fault, const char *what)
{
	static const char *const words[] = {"cut", "middle", "place", "short", "back", "root"};
	struct place *p = s->run->places;
	char name[sizeof(p->name)];

	if (s->run->language->known && s->run->language->known(s, fault)) {
		s->run->known++;
		return;
	}
	s->run->faults[fault]++;
	put_name(s, s->now, 0, name, sizeof(name));
	while (p < s->run->places + s->run->nplaces && (p->fault != fault || strcmp(p->name, name) != 0))
		p++;
	if (p == s->run->places + PLACES)
		return;
	if (p == s->run->places + s->run->nplaces) {
		s->run->nplaces++;
		p->fault = fault;
		memcpy(p->name, name, sizeof(name));
		if (s->run->shown < s->run->show) {
			s->run->shown++;
			print_message("step %u: %s in %s: %s\n", s->step, words[fault], name, what);
			show(s, "before", s->before);
			show(s, "now", s->now);
		}
	}
	p->n++;
}

/* The innermost frames of `before` from number `from` on have gone. */
static void pop(struct steps *s, u32 from)
{
	for (u32 i = from; i < s->before->nitems; i++) {
		struct steps_item *item = &s->before->items[i];

		if (!item->script)
			continue;
		if (s->step - item->born < s->run->language->shortest && item->born > s->run->started)
			found(s, STEPS_SHORT, "went again");
		s->run->gone[s->run->ngone % GONE].identity = item->identity;
		s->run->gone[s->run->ngone % GONE].outer = item->outer;
		s->run->gone[s->run->ngone++ % GONE].step = s->step;
	}
}

static void push(struct steps *s, u32 from)
{
	for (u32 i = from; i < s->now->nitems; i++) {
		const struct steps_item *item = &s->now->items[i];

		for (u32 k = 0; k < s->run->ngone && k < GONE; k++)
			if (item->script && s->run->gone[k].identity == item->identity &&
			        s->run->gone[k].outer == item->outer &&
			        s->step - s->run->gone[k].step < s->run->language->shortest) {
				found(s, STEPS_BACK, "came back");
				s->run->gone[k].identity = 0;
			}
	}
}

static bool has(const struct steps_stack *stack, u32 from, u64 identity)
{
	while (from < stack->nitems && stack->items[from].identity != identity)
		from++;
	return from < stack->nitems;
}

/* What only compares a stack with the last one takes a loss of the outermost frame for a return from it. */
static void check_root(struct steps *s)
{
	u64 root = 0;

	if (!s->run->language->root)
		return;
	for (u32 i = 0; i < s->now->nitems && !root; i++)
		root = s->now->items[i].script ? s->now->items[i].identity : 0;
	if (!s->run->root && (!s->run->language->known || !s->run->language->known(s, STEPS_ROOT)))
		s->run->root = root;
	else if (s->run->root && root != s->run->root)
		found(s, STEPS_ROOT, "the outermost frame");
}

static const char *const stop_words[] = {
#define X(name, word, text) word,
        STOP_REASONS(X)
#undef X
};

static void check(struct steps *s)
{
	struct steps_stack *now = s->now, *before = s->before;
	u32 same = 0;
	bool middle = false;

	walk(s);
	if (!stop_is_complete((u32)s->stop)) {
		found(s, STEPS_CUT, stop_words[s->stop]);
		s->cut = s->step;
		s->cuts++;
		forget(s);
		return;
	}
	check_root(s);
	if (before->nframes) {
		while (same < now->nitems && same < before->nitems &&
		        now->items[same].identity == before->items[same].identity) {
			now->items[same].born = before->items[same].born;
			same++;
		}
		for (u32 i = same; i < before->nitems && !middle; i++)
			middle = before->items[i].script && has(now, same, before->items[i].identity);
		if (middle)
			found(s, STEPS_MIDDLE, "not at the end");
		for (u32 i = 0; i + 1 < same; i++)
			if (now->items[i].place != before->items[i].place &&
			        s->step - now->items[i + 1].born >= s->run->language->shortest) {
				found(s, STEPS_PLACE, "a caller's place");
				break;
			}
		if (same < now->nitems || same < before->nitems) {
			s->run->changes++;
			s->run->changed = s->step;
		}
		pop(s, same);
		push(s, same);
	}
	s->now = before;
	s->before = now;
}

static void report(const struct steps *s, u32 seed)
{
	const struct steps_run *run = s->run;
	const u32 *f = run->faults;

	print_message("%u steps from seed %u: %u known limits, %u cut, %u in the middle, %u places, %u short, %u back, "
	              "%u roots; %u changes\n",
	        s->step, seed, run->known, f[STEPS_CUT], f[STEPS_MIDDLE], f[STEPS_PLACE], f[STEPS_SHORT], f[STEPS_BACK],
	        f[STEPS_ROOT], run->changes);
	for (const struct place *p = run->places; p < run->places + run->nplaces; p++)
		print_message("  %u of kind %d in %s\n", p->n, p->fault, p->name);
}

static u32 faults(const struct steps_run *run)
{
	u32 n = 0;

	for (u32 i = 0; i < STEPS_FAULTS; i++)
		n += run->faults[i];
	return n;
}

/* Has nothing changed for too long, in the VM's own code? It was perhaps met there. */
static bool is_dull(const struct steps *s)
{
	const struct steps_run *run = s->run;
	u32 most = run->language->dull / (run->changed == run->started ? MET_DULL : 1);

	return most && s->step - run->changed > most;
}

void steps_test(const struct steps_language *language, const char *const *argv, u32 otherwise)
{
	struct steps *s = start(language, argv);
	u32 bursts = language->bursts ? language->bursts : BURSTS, steps = number("YRT_STEPS", otherwise);
	u32 seed = number("YRT_SEED", (u32)s->run->program.pid), random = seed;

	run_for(s, 0);
	while (s->step + bursts <= steps) {
		random = random * 1103515245 + 12345;
		run_for(s, 1 + (random >> 12) % 10000);
		for (u32 k = 0; k < steps / bursts && !is_dull(s); k++, s->step++) {
			check(s);
			program_step(&s->run->program);
		}
	}
	report(s, seed);
	assert_true(faults(s->run) <= (language->rare ? s->step / language->rare : 0));
	assert_true(s->run->known <= s->step / KNOWN_MAX);
	assert_true(s->run->scripts > s->step / 2 && s->run->deepest >= 4 && s->run->changes > s->step / 10000);
	end(s);
}
