/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for what and whom. */
#include <xxhash.h>

#include "dump_view.h"
#include "unwind/cleanup.h"
#include "unwind/profile/locks.h"
#include "unwind/table.h"

static u64 key(u32 tgid, u64 thread, bool pointer)
{
	const u64 words[3] = {tgid, thread, pointer};

	return XXH3_64bits(words, sizeof(words)) | 1;
}

static struct error *index_threads(const struct dump_view *v, struct table *index)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < v->nthreads; i++) {
		const struct thread_record *at = &v->threads[i].t->at;

		err = table_put(index, key(at->tgid, at->own_tid, false), i);
		if (!err && at->thread_pointer)
			err = table_put(index, key(at->tgid, at->thread_pointer, true), i);
	}
	return err;
}

static const u64 *holder_of(const struct dump_thread *t, const struct table *index)
{
	if (t->wait.holder)
		return table_get(index, key(t->at.tgid, (u32)t->wait.holder, false));
	return t->wait.holder_pointer ? table_get(index, key(t->at.tgid, t->wait.holder_pointer, true)) : NULL;
}

/* The words of a mutex that nobody holds, so it seems, may be no mutex. */
static bool is_certain(const struct dump_thread *t, bool owned)
{
	return t->how == DUMP_WALKED && t->waits && (owned || t->wait.kind != LOCK_MUTEX);
}

/* Of threads that were seen standing still only. */
static struct error *find_holders(struct dump_view *v)
{
	struct table index = {0};
	struct error *err = index_threads(v, &index);

	for (u32 i = 0; !err && i < v->nthreads; i++) {
		const struct dump_thread *t = v->threads[i].t;
		const u64 *holder = t->waits ? holder_of(t, &index) : NULL;

		v->threads[i].waits = is_certain(t, holder);
		v->threads[i].owned = v->threads[i].waits && holder;
		v->threads[i].owner = holder ? (u32)*holder : i;
	}
	table_free(&index);
	return err;
}

/*
 * Threads were read one after the other, and may have handed a lock on meanwhile. A lock has one holder, so in a cycle
 * no two wait for the same one: where they do, it never was.
 */
static bool is_consistent(const struct dump_view *v, u32 first)
{
	u32 i = first;

	do {
		for (u32 k = v->threads[i].owner; k != first; k = v->threads[k].owner)
			if (k != i && v->threads[k].t->wait.at == v->threads[i].t->wait.at)
				return false;
		i = v->threads[i].owner;
	} while (i != first);
	return true;
}

/* The cycle that begins at first: its threads. */
static u32 cycle_of(const struct dump_view *v, u32 first, const struct dump_thread **ret)
{
	u32 i = first, n = 0;

	do {
		ret[n++] = v->threads[i].t;
		i = v->threads[i].owner;
	} while (i != first);
	return n;
}

/* Those on a cycle; what is no deadlock after all is cleared for all of its threads at the first of them. */
static struct error *settle(struct dump *d, struct dump_view *v)
{
	cleanup(free) const struct dump_thread **cycle = calloc(v->nthreads + 1, sizeof(*cycle));
	cleanup(free) bool *done = calloc(v->nthreads + 1, sizeof(*done));
	struct error *err = cycle && done ? NULL : &error_no_memory;

	for (u32 i = 0; !err && i < v->nthreads; i++) {
		u32 at = i;
		bool still = false;

		if (!v->threads[i].deadlocked || done[i])
			continue;
		if (is_consistent(v, i))
			err = dump_waits_still(d, cycle, cycle_of(v, i, cycle), &still);
		do {
			done[at] = true;
			v->threads[at].deadlocked = still;
			at = v->threads[at].owner;
		} while (at != i);
	}
	return err;
}

struct error *view_waits(struct dump *d, struct dump_view *v)
{
	struct error *err = find_holders(v);

	for (u32 i = 0; !err && i < v->nthreads; i++) {
		u32 at = i, steps = 0;

		while (v->threads[at].owned && steps++ < v->nthreads) {
			at = v->threads[at].owner;
			if (at == i)
				break;
		}
		v->threads[i].deadlocked = v->threads[i].owned && at == i;
	}
	return err ? err : settle(d, v);
}

void view_wait(const struct view_thread *t, char ret[VIEW_WAIT])
{
	const struct runtime_wait *w = &t->t->wait;
	int n;

	if (w->kind == LOCK_VM && *w->type)
		n = snprintf(ret, VIEW_WAIT, "the %s", w->type);
	else if (w->kind == LOCK_CONDITION)
		n = snprintf(ret, VIEW_WAIT, "notification of 0x%lx", w->at);
	else if (w->kind == LOCK_PARK)
		n = snprintf(ret, VIEW_WAIT, "0x%lx", w->at);
	else if (t->t->lock)
		n = snprintf(ret, VIEW_WAIT, "%s %.200s", lock_kind_awaited(w->kind), t->t->lock);
	else
		n = snprintf(ret, VIEW_WAIT, "%s 0x%lx", lock_kind_awaited(w->kind), w->at);
	if (w->kind != LOCK_VM && *w->type)
		snprintf(ret + n, VIEW_WAIT - (size_t)n, " (a %s)", w->type);
}
