/* SPDX-License-Identifier: Apache-2.0 */
#include "targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "unwind/binary/proc_path.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"
#include "unwind/process/children.h"
#include "unwind/process/process_refused.h"

void targets_free(struct targets *t)
{
	for (u32 i = 0; i < t->nprocesses; i++)
		process_destroy(t->processes[i]);
	free(t->processes);
	unread_free(&t->unread);
	table_free(&t->by_pid);
	table_free(&t->by_number);
	t->processes = NULL;
	t->nprocesses = 0;
}

static u32 runtimes_of(const struct process *p)
{
	u32 runtimes = 0;

	for (u32 i = 0; i < p->ninstances; i++)
		if (p->instances[i].data)
			runtimes |= 1u << p->instances[i].ops->id;
	return runtimes;
}

u32 targets_runtimes(const struct targets *t)
{
	u32 runtimes = t->runtimes;

	for (u32 i = 0; i < t->nprocesses; i++)
		runtimes |= runtimes_of(t->processes[i]);
	return runtimes;
}

static struct process **place_of(const struct targets *t, u32 number)
{
	const u64 *at = table_get(&t->by_number, (u64)number + 1);

	return at ? &t->processes[*at] : NULL;
}

struct process *targets_find(const struct targets *t, u32 number)
{
	struct process **place = place_of(t, number);

	return place ? *place : NULL;
}

/*
 * Stacks that end in unknown code are copied, to be walked again later. Code may stay unknown, so the number of copies
 * is limited. The limit is renewed after a new file, and after each look at a process that replaces its code.
 */
static void allow_deferred(struct process *p)
{
	u32 n = 0;

	for (u32 i = 0; i < p->maps.nlines; i++)
		n += p->mappings[i].module != 0;
	if (n > p->deferred_modules || p->jit.cfi)
		p->deferred_left = DEFERRED_MOST;
	p->deferred_modules = n;
	p->entry.deferred = p->deferred_left;
}

/* Where it has code of its own that has rows. */
static void watch_code(struct targets *t, const struct process *p)
{
	struct code_ranges code = {0};

	for (u32 i = 0; i < p->maps.nlines && code.n < CODE_RANGES_MAX; i++) {
		const struct mapping *m = &p->mappings[i];

		if (!cfi_has_any(p->jit.cfi, m->start, m->end))
			continue;
		code.range[code.n].start = m->start;
		code.range[code.n++].end = m->end;
	}
	if (code.n)
		object_watch_code(t->object, p->pid, &code);
}

static struct error *publish(struct targets *t, struct process *p, bool is_new)
{
	t->recognised |= process_runtimes(p);
	p->entry.flags = t->follow || t->selection ? PROCESS_FOLLOW : 0;
	allow_deferred(p);
	if (!t->announced)
		return NULL;
	watch_code(t, p);
	return object_set_process(t->object, p->pid, &p->entry, is_new);
}

/* Programs may start by the thousand a second: each is found without looking at all others. */
static struct error *remember(struct targets *t, u32 at)
{
	const struct process *p = t->processes[at];
	struct error *err = table_put(&t->by_number, (u64)p->number + 1, at);

	return err || p->dead ? err : table_put(&t->by_pid, (u64)p->pid, (uintptr_t)p);
}

/* Takes over p. */
static struct error *keep(struct targets *t, struct process *p)
{
	struct process **grown = realloc(t->processes, (t->nprocesses + 1) * sizeof(*grown));

	if (!grown) {
		process_destroy(p);
		return &error_no_memory;
	}
	t->processes = grown;
	t->processes[t->nprocesses++] = p;
	t->alive += !p->dead;
	t->seen++;
	return remember(t, t->nprocesses - 1);
}

static void bury(struct targets *t, struct process *p)
{
	if (p && !p->dead) {
		p->dead = true;
		t->alive--;
	}
}

static struct error *publish_new(struct targets *t, struct process *p)
{
	struct error *err = publish(t, p, true);

	if (err || living_thread(p->pid))
		return err;
	if (t->announced)
		object_forget_process(t->object, p->pid);
	bury(t, p);
	return error_new(ERROR_NO_PROCESS, "process %d has exited", p->pid);
}

struct error *targets_add(struct targets *t, pid_t pid, u32 number)
{
	struct process *p;
	struct error *err = process_create(t->modules, pid, number, &p);

	if (!err)
		err = keep(t, p);
	return err ? err : publish_new(t, p);
}

struct process *targets_alive(const struct targets *t, pid_t pid)
{
	const u64 *at = table_get(&t->by_pid, (u64)pid);
	struct process *p = at ? (struct process *)(uintptr_t)*at : NULL;

	return p && !p->dead ? p : NULL;
}

/* Children that it made while nobody watched. */
static struct error *add_children(struct targets *t, pid_t pid)
{
	cleanup(free) pid_t *children = NULL;
	u32 n;
	struct error *err = children_list(pid, &children, &n);

	for (u32 i = 0; !err && i < n; i++) {
		err = targets_alive(t, children[i]) ? NULL
		                                    : targets_add(t, children[i], object_new_instance(t->object));
		if (err && err->kind == ERROR_NO_PROCESS)
			error_free(TAKE(err));
	}
	return err;
}

struct error *targets_announce(struct targets *t)
{
	u32 listed = t->nprocesses; /* children that are added here are published then */
	struct error *err = NULL;

	t->announced = true;
	for (u32 i = 0; !err && i < t->nprocesses; i++) {
		struct process *p = t->processes[i];

		err = p->dead || i >= listed ? NULL : publish_new(t, p);
		if (err && err->kind == ERROR_NO_PROCESS)
			error_free(TAKE(err));
		if (!err && !p->dead && t->follow)
			err = add_children(t, p->pid);
	}
	return err;
}

/* What it had mapped since it was last looked at. */
static struct error *recall(struct targets *t, struct process *p)
{
	u64 at_ns = p->at_ns ? p->at_ns : ~0ULL;
	struct maps files;
	struct error *err = t->watch ? mmap_watch_recall(t->watch, p->pid, at_ns, p->parent, &files) : NULL;

	if (err || !t->watch)
		return err;
	err = process_recall(p, &files);
	maps_free(&files);
	return err;
}

static struct error *rescan(struct targets *t, struct process *p)
{
	bool changed = false, was_dead = p->dead;
	struct error *err = p->dead || !p->memory ? NULL : process_explain(p->pid, process_rescan(p, &changed));

	if (err && err != &error_no_memory && (err->kind == ERROR_NO_PROCESS || t->everyone)) {
		p->dead = err->kind == ERROR_NO_PROCESS; /* it exited while its maps were read */
		if (p->dead)
			error_free(err);
		else
			unread_add(&t->unread, p, err, now_ns());
		err = NULL;
		changed = false;
	}
	if (err || was_dead)
		return err;
	if (p->dead) {
		t->alive--;
		return recall(t, p);
	}
	return changed ? publish(t, p, false) : NULL;
}

/* What BPF says of it. */
static void describe(struct process *p, const struct process_record *record)
{
	p->stack = record->stack;
	p->at_ns = record->ns;
	p->parent = record->type == RECORD_FORK ? record->parent : 0;
}

static bool selected(const struct targets *t, pid_t pid)
{
	return selection_matches_pid(t->selection, "/proc", pid);
}

struct error *targets_offer(struct targets *t, pid_t pid)
{
	struct error *err;

	if (pid == getpid() || targets_alive(t, pid) || !selected(t, pid))
		return NULL;
	err = targets_add(t, pid, object_new_instance(t->object));
	if (!err || err == &error_no_memory)
		return err;
	if (err->kind == ERROR_NO_PROCESS)
		error_free(err);
	else
		t->warn(t->ctx, err);
	return NULL;
}

/* What is known of one that is gone: what its parent has, and what it has mapped itself. */
static struct error *know_gone(struct targets *t, struct process *p)
{
	struct process *parent = p->parent ? targets_find(t, p->parent) : NULL;
	struct error *err = parent && parent->stack ? rescan(t, parent) : NULL;

	*p->comm = '\0';
	if (!err && parent)
		err = process_inherit(p, parent);
	return err ? err : recall(t, p);
}

/*
 * One that can not be looked into. Of the whole machine that is a kernel thread, or somebody else's: it stays a target,
 * its kernel frames are seen.
 */
static struct error *keep_unread(struct targets *t, const struct process_record *record, struct error *why)
{
	struct process *p;
	struct error *err;
	/* asked before whether it has ended: of a kernel thread that has, nothing tells what it was */
	bool in_kernel = t->everyone && process_in_kernel((pid_t)record->tgid), gone;

	why = process_explain((pid_t)record->tgid, why);
	gone = why->kind == ERROR_NO_PROCESS;
	if (gone && living_thread((pid_t)record->tgid))
		t->between = (pid_t)record->tgid;
	err = process_create_gone(t->modules, (pid_t)record->tgid, record->instance, &p);
	if (err) {
		error_free(why);
		return err;
	}
	if (gone || in_kernel)
		error_free(why);
	else if (t->everyone)
		unread_add(&t->unread, p, why, now_ns());
	else
		t->warn(t->ctx, why);
	p->dead = gone || !t->everyone;
	describe(p, record);
	err = keep(t, p);
	return err || !p->dead ? err : know_gone(t, p);
}

/* A new process or program under a number that BPF chose. */
static struct error *follow(struct targets *t, const struct process_record *record)
{
	struct process *p;
	struct error *err =
	        process_create_program(t->modules, (pid_t)record->tgid, record->instance, record->stack, &p);

	if (err)
		return err == &error_no_memory ? err : keep_unread(t, record, err);
	describe(p, record);
	err = keep(t, p);
	return err ? err : publish(t, p, false);
}

/* Of a selection: what a process was made from was selected, but it may have become something else. */
static struct error *follow_selected(struct targets *t, const struct process_record *record)
{
	pid_t pid = (pid_t)record->tgid;
	struct process *gone;
	struct error *err;

	bury(t, targets_alive(t, pid)); /* it was offered before BPF's word of it was read */
	if (t->follow || !t->selection || selected(t, pid))
		return follow(t, record);
	object_forget_process(t->object, pid);
	err = process_create_gone(t->modules, pid, record->instance, &gone);
	return err ? err : keep(t, gone);
}

/* It runs another program by now. */
static struct error *leave_program(struct targets *t, struct process *p)
{
	bury(t, p);
	return p && p->at_ns ? recall(t, p) : NULL;
}

struct error *targets_record(struct targets *t, const struct process_record *record)
{
	struct process *p = targets_find(t, record->instance);
	struct error *err;

	switch (record->type) {
	case RECORD_FORK:
		return follow_selected(t, record);
	case RECORD_EXEC:
		err = leave_program(t, targets_find(t, record->parent));
		return err ? err : follow_selected(t, record);
	case RECORD_EXIT:
		bury(t, p);
		bury(t, targets_alive(
		                t, (pid_t)record->tgid)); /* it was added twice: by fork's record and by looking */
		return p ? recall(t, p) : NULL;
	case RECORD_UNKNOWN:
		return p ? rescan(t, p) : NULL;
	default:
		return NULL;
	}
}

struct error *targets_mapped(struct targets *t, pid_t pid)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < t->nprocesses; i++)
		if (!pid || t->processes[i]->pid == pid)
			err = rescan(t, t->processes[i]);
	return err;
}

struct error *targets_starting(struct targets *t)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < t->nprocesses; i++)
		if (process_starting(t->processes[i]))
			err = t->processes[i]->dead ? process_finish(t->processes[i]) : rescan(t, t->processes[i]);
	return err;
}

bool targets_are_over(const struct targets *t)
{
	return !t->alive && !(t->between && living_thread(t->between));
}

struct error *targets_reap(struct targets *t)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < t->nprocesses; i++)
		if (!t->processes[i]->dead && process_is_gone(t->processes[i]->pid))
			err = rescan(t, t->processes[i]);
	return err;
}

/* From the beginning: what failed may have left it half made. */
static struct error *retry(struct targets *t, struct unread *u)
{
	struct process **place = place_of(t, u->number), *fresh;
	struct error *err;

	if (!place || (*place)->dead)
		return NULL;
	err = process_create_program(t->modules, u->pid, u->number, (*place)->stack, &fresh);
	if (err == &error_no_memory)
		return err;
	if (err) {
		error_free(err); /* RECORD_EXIT or RECORD_EXEC says what became of it */
		return NULL;
	}
	fresh->at_ns = (*place)->at_ns;
	fresh->parent = (*place)->parent;
	process_destroy(*place);
	*place = fresh;
	unread_drop(&t->unread, u);
	err = remember(t, (u32)(place - t->processes));
	return err ? err : publish(t, fresh, false);
}

struct error *targets_retry(struct targets *t)
{
	u64 now = now_ns();
	struct error *err = NULL;
	struct unread *u;

	while (!err && (u = unread_due(&t->unread, now)))
		err = retry(t, u);
	return err;
}

static void sweep(struct targets *t, bool (*goes)(struct process *p))
{
	u32 kept = 0;

	for (u32 i = 0; i < t->nprocesses; i++)
		if (i && t->processes[i]->dead && goes(t->processes[i])) {
			t->runtimes |= runtimes_of(t->processes[i]);
			process_destroy(t->processes[i]);
		} else {
			t->processes[kept++] = t->processes[i];
		}
	t->nprocesses = kept;
	table_clear(&t->by_pid);
	table_clear(&t->by_number);
	for (u32 i = 0; i < kept; i++)
		error_free(remember(t, i)); /* there was room for more */
}

static bool always(struct process *p)
{
	return true;
}

void targets_sweep(struct targets *t)
{
	sweep(t, always);
}

static bool was_buried(struct process *p)
{
	bool before = p->buried;

	p->buried = true;
	return before;
}

void targets_sweep_old(struct targets *t)
{
	sweep(t, was_buried);
}
