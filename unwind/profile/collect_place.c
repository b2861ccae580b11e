/* SPDX-License-Identifier: Apache-2.0 */
#include "collect_internal.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "cleanup.h"
#include "containers.h"
#include "expand.h"
#include "locks.h"
#include "idle.h"
#include "process_names.h"
#include "prove.h"
#include "symbols/translated.h"
#include "thread_names.h"

#define STARTERS_MAX                                                                                                   \
	4 /* frames from a thread's root that may lead to its beginning: clone3(), start_thread(), ThreadJavaMain() */
#define LEADS_MAX 12 /* kernel frames from a leaf that may lead to a program */

static const char *const stop_words[] = {
#define X(id, word, text) [id] = word,
        STOP_REASONS(X)
#undef X
};

const char *stop_word(u32 stop)
{
	return stop < STOP_MAX ? stop_words[stop] : "?";
}

/* The outermost node of a truncated stack says that it is one, and why. */
static struct error *child_marker(struct collector *c, u32 node, u32 stop, u32 *ret)
{
	char text[64];
	struct profile_function fn = {.name = text, .module = "", .file = "", .kind = KIND_UNKNOWN};
	struct error *err;
	u32 function;

	snprintf(text, sizeof(text), "[truncated: %s]", stop_word(stop));
	err = profile_function(c->profile, 0, &fn, false, &function);
	return err ? err : profile_child(c->profile, node, function, ret);
}

static struct error *child_container(struct collector *c, u32 node, const char *text, u32 *ret)
{
	u64 key = XXH3_64bits(text, strlen(text)) | 1, *known = table_get(&c->containers, key);
	u32 levels[CONTAINER_LEVELS] = {known ? (u32)*known : 0, known ? (u32)(*known >> 32) : 0}, n = 0;
	struct error *err = NULL;

	if (!known) {
		err = container_functions(c->profile, text, levels, &n);
		if (!err)
			err = table_put(&c->containers, key, levels[0] | (u64)levels[1] << 32);
	}
	*ret = node;
	for (u32 i = 0; !err && i < CONTAINER_LEVELS && levels[i]; i++)
		err = profile_child(c->profile, *ret, levels[i], ret);
	return err;
}

static struct error *child_process(
        struct collector *c, const struct process *p, u32 node, const struct stack_record *record, u32 *ret)
{
	u32 function;
	struct error *err = process_function(&c->processes, c->profile, p, record, &function);

	if (!err)
		err = child_container(c, node, c->profile->functions[function].file, &node);
	return err ? err : profile_child(c->profile, node, function, ret);
}

static struct error *child_thread(
        struct collector *c, const struct process *p, u32 node, const struct stack_record *record, u32 *ret)
{
	u32 function;
	struct error *err = c->task ? task_function(c->profile, c->task, c->task_number, &function)
	                            : thread_function(&c->threads, c->profile, p, record, &function);

	return err ? err : profile_child(c->profile, node, function, ret);
}

static bool wanted(const struct collector *c, const struct frame *f)
{
	if (frame_kind(f) == FRAME_KERNEL)
		return !c->options.no_kernel;
	if (frame_kind(f) == FRAME_NATIVE && c->options.scripts_only)
		return view_has(c->options.names.view, frame_runtime(f)) && !(frame_flags(f) & FRAME_VM);
	return frame_kind(f) != FRAME_SCRIPT || (!c->options.native_only && !(frame_flags(f) & FRAME_AWAITED));
}

/* "sort" is also called "table.sort". */
static bool is_same_name(const char *name, const char *other)
{
	const char *dot = strrchr(name, '.'), *of_other = strrchr(other, '.');

	return !strcmp(dot && !of_other ? dot + 1 : name, of_other && !dot ? of_other + 1 : other);
}

/* Is frames[i] native code of this name, which is shown? */
static bool repeats(
        struct collector *c, const struct process *p, const struct frame *frames, u32 i, u32 n, const char *name)
{
	struct named named;
	struct error *err;

	if (frame_kind(&frames[i]) != FRAME_NATIVE || !wanted(c, &frames[i]))
		return false;
	err = names_frame(c->names, p, frames, i, n, &named);
	error_free(err);
	return !err && !named.hidden && is_same_name(c->profile->functions[named.function].name, name);
}

/* In the view of a language: is frames[i] the wrapper of the function of this name, which runs inside it? */
static bool wraps(struct collector *c, const struct process *p, const struct frame *frames, u32 i, u32 n,
        const struct named *outer)
{
	const struct profile_function *fns;
	struct named inner;
	struct error *err;
	size_t len;

	if (!c->options.names.view || outer->layer < TRANSLATED_BODY || !i ||
	        frame_kind(&frames[i - 1]) != FRAME_NATIVE)
		return false;
	err = names_frame(c->names, p, frames, i - 1, n, &inner);
	error_free(err);
	if (err || !inner.layer || inner.layer >= outer->layer)
		return false;
	fns = c->profile->functions; /* a clone's name has more behind a space */
	len = strcspn(fns[inner.function].name, " ");
	return len == strcspn(fns[outer->function].name, " ") &&
	       !strncmp(fns[inner.function].name, fns[outer->function].name, len);
}

/* Patterns cannot wait for the end of sampling: only they make inlined functions known before. */
static struct error *match_inlined(struct collector *c, u32 function, bool *included, bool *excluded)
{
	const char *const *inlined;
	struct error *err;
	u32 n = 0;

	if ((!c->include.set || *included) && !c->exclude.set)
		return NULL;
	err = names_inlined(c->names, function, &inlined, &n);
	for (u32 i = 0; i < n && !err; i++) {
		*included = *included || pattern_matches(&c->include, inlined[i]);
		*excluded = *excluded || pattern_matches(&c->exclude, inlined[i]);
	}
	return err;
}

/* How many frames a view may show of a stack: not those that start its thread, if this language's code began it. */
static struct error *without_start(struct collector *c, const struct process *p, const struct frame *frames, u32 *n)
{
	for (u32 i = *n;
	        c->options.names.view && i > 0 && *n - i < STARTERS_MAX && frame_kind(&frames[i - 1]) == FRAME_NATIVE;
	        i--) {
		struct named named;
		struct error *err = names_frame(c->names, p, frames, i - 1, *n, &named);

		if (err)
			return err;
		if (named.is_thread_entry) {
			*n = i - 1;
			break;
		}
	}
	return NULL;
}

/* How many frames there are inside the leaf that only lead from what happened to the program that saw it
 * (names_options.leads_to_program). unbroken: only those at the leaf; one that wakes others may be about to wait, too.
 */
static struct error *without_lead(
        struct collector *c, const struct process *p, const struct frame *frames, u32 n, bool unbroken, u32 *ret)
{
	u32 reasons = n && frame_kind(&frames[0]) == FRAME_REASON, i = reasons;

	*ret = 0;
	for (; c->options.names.leads_to_program && i < n && i < LEADS_MAX && frame_kind(&frames[i]) == FRAME_KERNEL;
	        i++) {
		struct named named;
		struct error *err = names_frame(c->names, p, frames, i, n, &named);

		if (err)
			return err;
		if (named.leads)
			*ret = i + 1 - reasons;
		else if (unbroken)
			break;
	}
	return NULL;
}

static struct error *name_shown(
        struct collector *c, const struct process *p, const struct frame *frames, u32 i, u32 n, struct named *ret)
{
	if (frame_kind(&frames[i]) != FRAME_REASON || c->reason == NODE_FILTERED)
		return names_frame(c->names, p, frames, i, n, ret);
	*ret = (struct named){.function = c->reason};
	return NULL;
}

/* Of a wait in futex(2): its frames say whether it is by design. */
static enum idle_chance depends(u32 reason)
{
	return IDLE_MAYBE;
}

static bool is_futex(const struct collector *c, const struct frame *leaf)
{
	return c->options.futex && leaf && frame_kind(leaf) == FRAME_REASON && frame_runtime(leaf) == RUNTIME_NATIVE &&
	       c->options.futex((u32)leaf->detail);
}

/* What the stack's thread waits for, as the frame that stands for it. */
static struct error *find_lock(
        struct collector *c, const struct process *p, const struct frame *frames, u32 n, struct lock_found *ret)
{
	char shown[LOCK_TEXT + 2];
	struct profile_function fn = {.name = shown, .module = "", .file = "", .kind = KIND_WAITING};
	struct error *err = locks_find(c->names, c->profile, p, frames, n, ret);

	if (err || !*ret->text)
		return err;
	snprintf(shown, sizeof(shown), "[%s]", ret->text);
	return profile_function(c->profile, 0, &fn, false, &c->reason);
}

/* A VM's loop has the functions that are inlined in it called by the frames that it runs: they come behind those. */
static struct error *add_inlined_part(struct collector *c, const struct process *p, const struct frame *loop, u32 *node,
        bool *included, bool *excluded)
{
	struct named named;
	struct error *err = names_inlined_part(c->names, p, loop, &named);

	if (err || named.hidden)
		return err;
	err = match_inlined(c, named.function, included, excluded);
	return err ? err : profile_child(c->profile, *node, named.function, node);
}

/* Names the frames of a stack, root first, and walks down the tree. inside: how many of them lie inside the leaf, and
 * are no code. */
static struct error *add_path(
        struct collector *c, const struct process *p, const struct frame *frames, u32 n, u32 inside, u32 node, u64 *ret)
{
	u32 unresolved = 0, shown = 0, leaf_flags = 0, all_flags = 0;
	bool included = !c->include.set, excluded = false;
	const struct frame *loop = NULL;
	struct error *err;

	for (u32 i = n; i-- > 0;) {
		struct named named;
		const struct profile_function *fn;

		if (loop && frame_kind(&frames[i]) != FRAME_SCRIPT) {
			err = add_inlined_part(c, p, TAKE(loop), &node, &included, &excluded);
			if (err)
				return err;
		}
		if (names_runs_script(frames, i) && !c->options.scripts_only)
			loop = &frames[i];
		if (!wanted(c, &frames[i]))
			continue;
		err = name_shown(c, p, frames, i, n, &named);
		if (err)
			return err;
		c->stats.gone += named.unresolved && frame_kind(&frames[i]) == FRAME_SCRIPT;
		if (named.hidden)
			continue;
		fn = &c->profile->functions[named.function];
		if ((named.by_code && i && repeats(c, p, frames, i - 1, n, fn->name)) ||
		        wraps(c, p, frames, i, n, &named))
			continue;
		included = included || pattern_matches(&c->include, fn->name) || pattern_matches(&c->include, fn->file);
		excluded = excluded || pattern_matches(&c->exclude, fn->name) || pattern_matches(&c->exclude, fn->file);
		err = match_inlined(c, named.function, &included, &excluded);
		if (err)
			return err;
		unresolved += named.unresolved;
		shown++;
		all_flags |= frame_flags(&frames[i]);
		if (i >= inside)
			leaf_flags = frame_flags(&frames[i]);
		err = profile_child(c->profile, node, named.function, &node);
		if (err)
			return err;
	}
	err = loop ? add_inlined_part(c, p, loop, &node, &included, &excluded) : NULL;
	if (err)
		return err;
	*ret = pack(included && !excluded ? node : NODE_FILTERED, shown, unresolved, leaf_flags, all_flags);
	return NULL;
}

/*
 * How many frames are left of a walk that ended so. If native code that a guess led to returns to where no code is, the
 * guess was wrong: a word that some earlier call had left on the stack.
 */
static u32 without_wrong_guess(const struct frame *frames, u32 n, u32 stop)
{
	if (stop != STOP_BAD_RETADDR && stop != STOP_NO_PROGRESS)
		return n;
	for (u32 i = n; i-- > 1 && frame_kind(&frames[i]) == FRAME_NATIVE;)
		if (frame_flags(&frames[i]) & FRAME_GUESS)
			return i;
	return n;
}

/* Where a rule, NULL: none has a name, counts what it hides. */
static u32 idle_number(struct collector *c, const char *rule)
{
	struct collect_stats *st = &c->stats;
	char name[COLLECT_IDLE_NAME];
	u32 i = 1;

	if (!rule)
		return 0;
	snprintf(name, sizeof(name), "%s", rule); /* it may be of a profile, which is made anew at the end */
	while (i <= st->nidle_by && strcmp(st->idle_by[i].rule, name))
		i++;
	if (i == COLLECT_IDLE_RULES)
		return 0;
	st->nidle_by = i > st->nidle_by ? i : st->nidle_by;
	memcpy(st->idle_by[i].rule, name, sizeof(name));
	return i;
}

struct error *collect_place(struct collector *c, const struct stack_record *record, const struct frame *frames, u32 n,
        const struct frame *inside, u64 *packed)
{
	struct process *p = c->find(c->ctx, record->instance);
	u32 node = 0, before = inside ? 1 : 0, lead = 0;
	struct lock_found lock = {.kind = LOCK_FUTEX};
	struct frame reason;
	struct error *err = NULL;
	const char *by = NULL; /* a rule */
	bool idle;

	if (inside)
		c->expanded[0] = *inside;
	n = without_wrong_guess(frames, n, record->stop);
	n = before + expand_stack(p, frames, n, c->options.names.expand | (c->options.names.lines ? EXPAND_LINES : 0),
	                     c->expanded + before, EXPANDED_MAX - before);
	if (c->queued)
		c->expanded[before] = (struct frame){
		        .where = frame_where(FRAME_REASON, RUNTIME_NATIVE, 0, 0), .detail = c->options.queued};
	err = prove_frames(&c->proofs, p, c->expanded + before, n - before);
	if (!err && c->options.processes)
		err = child_process(c, p, node, record, &node);
	if (!err && c->options.threads && !(n && frame_flags(&c->expanded[n - 1]) & FRAME_THREAD))
		err = child_thread(c, p, node, record, &node);
	if (!err && !stop_has_root(record->stop))
		err = child_marker(c, node, record->stop, &node);
	if (!err && !c->options.scripts_only)
		err = without_start(c, p, c->expanded, &n);
	if (!err)
		err = without_lead(c, p, c->expanded, n, false, &lead);
	if (!err && lead) {
		reason = c->expanded[0];
		c->expanded[lead] = frame_kind(&reason) == FRAME_REASON ? reason : c->expanded[lead];
	}
	c->reason = NODE_FILTERED;
	if (!err && (c->options.locks || is_futex(c, n > lead ? &c->expanded[lead] : NULL)))
		err = find_lock(c, p, c->expanded + lead, n - lead, &lock);
	lock.begun &= c->options.locks;
	if (!err)
		err = add_path(c, p, c->expanded + lead, n - lead, before, node, packed);
	if (!err && (c->options.idle || lock.begun))
		err = idle_find(c->names, c->profile, p, c->expanded + lead, n - lead, record->comm,
		        stop_has_root(record->stop), lock.begun ? depends : c->options.idle, &by);
	idle = by || (c->options.locks && lock.kind >= LOCK_OTHERS && !lock.begun);
	idle &= !c->options.all_waits;
	if (idle && (u32)*packed != NODE_FILTERED)
		*packed = pack(NODE_IDLE, idle_number(c, by), 0, 0, 0);
	*packed |= pack_lock(lock.kind);
	return err;
}

/* The name of a kernel frame, "" for any other frame. */
static struct error *kernel_name(struct collector *c, struct process *p, u32 i, u32 n, const char **ret)
{
	struct named named;
	struct error *err;

	*ret = "";
	if (i >= n || frame_kind(&c->expanded[i]) != FRAME_KERNEL)
		return NULL;
	err = names_frame(c->names, p, c->expanded, i, n, &named);
	*ret = err ? "" : c->profile->functions[named.function].name;
	return err;
}

/* How many frames of a waker are its own, with that of the interrupt if there is one. */
static struct error *own_frames(struct collector *c, struct process *p, u32 lead, u32 *n, bool *interrupt)
{
	const char *name, *caller;
	struct error *err = kernel_name(c, p, lead, *n, &name);
	bool sends = false;

	for (u32 i = lead; !err && *name; i++) {
		err = kernel_name(c, p, i + 1, *n, &caller);
		*interrupt = !err && waker_is_interrupt(name, caller, &sends);
		if (*interrupt) {
			*n = i + 1;
			break;
		}
		name = caller;
	}
	return err;
}

struct error *collect_waker(struct collector *c, const struct waker *waker, u32 *node)
{
	struct process *p = c->find(c->ctx, waker->instance);
	u32 n = expand_stack(p, waker->frames, waker->n, c->options.names.expand, c->expanded, EXPANDED_MAX), lead;
	bool interrupt = false;
	struct error *err = without_lead(c, p, c->expanded, n, true, &lead);
	u32 function;

	if (!err)
		err = own_frames(c, p, lead, &n, &interrupt);
	if (!err)
		err = waker_function(c->profile, interrupt ? NULL : waker->comm, c->options.locks, &function);
	if (!err)
		err = profile_child(c->profile, *node, function, node);
	for (u32 i = lead; !err && i < n; i++) {
		struct named named = {.hidden = true};

		if (wanted(c, &c->expanded[i]))
			err = names_frame(c->names, p, c->expanded, i, n, &named);
		if (!err && !named.hidden)
			err = profile_child(c->profile, *node, named.function, node);
	}
	return err;
}
