/* SPDX-License-Identifier: Apache-2.0 */
#include "go_snapshots.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "go_draw.h"
#include "go_goroutines.h"
#include "go_heap.h"
#include "go_view.h"

/* Goroutines as a profile: for each stack how many goroutines have it, and outside of it what they wait for. */

static struct error *put_word(struct profile *p, u32 *node, const char *format, const char *what)
{
	char name[NAME_MAX_BYTES];
	struct profile_function fn = {.name = name, .module = "go", .kind = KIND_VM};
	struct error *err;
	u32 function;

	snprintf(name, sizeof(name), format, what);
	err = profile_function(p, 0, &fn, false, &function);
	return err ? err : profile_child(p, *node, function, node);
}

static struct error *put_creator(
        const struct go_goroutine_snapshot *s, const struct go_goroutine *g, struct profile *p, u32 *node)
{
	u32 n;
	const struct go_place *at = g->creator ? go_places_at(&s->places, g->creator, &n) : NULL;

	return at ? put_word(p, node, "created by %s", go_place_name(&s->places, at + n - 1)) : NULL;
}

static struct error *put_labels(
        const struct go_goroutine_snapshot *s, const struct go_goroutine *g, struct profile *p, u32 *node)
{
	const struct go_label_set *set = g->labels ? &s->goroutines.labels.sets[g->labels - 1] : NULL;
	char name[NAME_MAX_BYTES];
	struct profile_function fn = {.name = name, .module = "go", .kind = KIND_LABEL};
	struct error *err;
	u32 function;

	if (!set)
		return NULL;
	go_labels_name(set->n, set->packed, name, sizeof(name));
	err = profile_function(p, 0, &fn, false, &function);
	return err ? err : profile_child(p, *node, function, node);
}

static struct error *draw_one(
        const struct go_goroutine_snapshot *s, const struct go_goroutine *g, u32 flags, u64 count, struct profile *p)
{
	struct error *err = NULL;
	u32 node = 0;

	if (flags & GO_LABELLED)
		err = put_labels(s, g, p, &node);
	if (!err && flags & GO_CREATORS)
		err = put_creator(s, g, p, &node);
	if (!err && g->seen == GO_STANDS)
		err = go_draw_chain(&s->places, &s->stacks, &s->stacks.chains[g->chain], flags & GO_LINES, p, &node);
	if (!err)
		err = put_word(p, &node, "[%s]", g->seen == GO_UNWALKED ? "not walked" : go_goroutine_state(s, g));
	if (!err)
		profile_add(p, node, count);
	return err;
}

static bool alike(const struct go_goroutine *a, const struct go_goroutine *b)
{
	return a->status == b->status && a->reason == b->reason && a->creator == b->creator && a->seen == b->seen &&
	       a->labels == b->labels;
}

/* Runs of goroutines that are drawn alike; of a chain that grew at most as many as it grew by. */
static struct error *draw_chain(
        const struct go_goroutine_snapshot *s, u32 chain, u32 skip, u32 flags, struct profile *p)
{
	struct error *err = NULL;

	for (u32 i = s->first[chain] + skip; !err && i < s->first[chain + 1];) {
		const struct go_goroutine *g = &s->goroutines.all[s->order[i]];
		u32 n = 1;

		while (i + n < s->first[chain + 1] && alike(g, &s->goroutines.all[s->order[i + n]]))
			n++;
		err = draw_one(s, g, flags, n, p);
		i += n;
	}
	return err;
}

struct error *go_goroutines_draw(const void *before, void *after, u32 flags, struct profile *ret)
{
	struct go_goroutine_snapshot *s = after;
	cleanup(free) u32 *had = go_goroutines_before(before, s);
	struct error *err = had ? NULL : &error_no_memory;

	for (u32 i = 0; !err && i < s->nchains; i++)
		err = draw_chain(s, i, had[i], flags, ret);
	for (u32 i = 0; !err && !before && i < s->goroutines.n; i++)
		if (s->goroutines.all[i].seen != GO_STANDS)
			err = draw_one(s, &s->goroutines.all[i], flags, 1, ret);
	return err;
}

/* It may have ended at any moment: then what was read made no sense, and that is why. */
static struct error *why(const struct runtime_process *p, struct go_table *t, u64 bias, struct error *err)
{
	struct go_function fn;
	u8 byte;

	if (!err || !go_function_at(t, 0, &fn) || memory_read(p->memory, &byte, 1, fn.start + bias))
		return err;
	error_free(err);
	return error_new(ERROR_NO_PROCESS, "process %d ended while it was read", p->pid);
}

static struct error *take(void *instance, const struct runtime_process *p, u32 flags,
        struct error *(*read)(const struct go_view *v, u32 flags, void **ret), void **ret)
{
	struct go_view *v;
	u64 bias;
	struct go_table *t = go_instance_table(instance, &bias);
	struct error *err = go_view_open(p, t, bias, &v);

	*ret = NULL;
	if (!err && v)
		err = v->allgs ? read(v, flags, ret)
		               : error_new(ERROR_UNSUPPORTED, "process %d has no goroutine yet: it is only starting",
		                         p->pid);
	go_view_close(v);
	return why(p, t, bias, err);
}

struct error *go_take_goroutines(void *instance, const struct runtime_process *p, u32 flags, void **ret)
{
	return take(instance, p, flags, go_goroutines_take, ret);
}

static const struct snapshot_flag goroutine_flags[] = {
        {"each",
                "each goroutine by itself, as net/http/pprof's debug=2; without it those with the same stack together, "
                "as debug=1",
                GO_EACH},
        {"creators", "show the creator of a goroutine below its stack (in pictures; text always has it)", GO_CREATORS},
        {"labels", "show labels of runtime/pprof below stacks (in pictures; text always has them)", GO_LABELLED},
        {"lines", "split functions by the line being executed (in pictures; text always has it)", GO_LINES},
        {"system", "also the runtime's own goroutines", GO_SYSTEM},
        {0},
};

static const struct runtime_snapshot_ops goroutines = {
        .name = "goroutines",
        .summary = "the stacks of all goroutines now, what they wait for and who created them",
        .text = "Reads all goroutines of a running Go program from outside: the program needs neither an import nor an "
                "open port, and may be stripped. Goroutines that run at this moment have no readable stack and are "
                "counted as running. One that moved while it was read is read again, and counted as torn if it moves "
                "each time. Waiting times are known from the first garbage collection during the wait.",
        .unit = "goroutines",
        .flags = goroutine_flags,
        .take = go_take_goroutines,
        .free = go_goroutines_drop,
        .print = go_goroutines_print,
        .draw = go_goroutines_draw,
};

static struct error *take_heap(void *instance, const struct runtime_process *p, u32 flags, void **ret)
{
	return take(instance, p, flags, go_heap_take, ret);
}

static const struct snapshot_flag heap_flags[] = {
        {"types",
                "all objects by type and size class, in place of the profile: also those that wait for a collection "
                "(Go 1.22 to 1.26; without DWARF only objects of more than 512 bytes with pointers have a type)",
                GO_HEAP_TYPES},
        {"allocated",
                "everything allocated since the program began, not only what is in use (in pictures; text has both)",
                GO_HEAP_ALLOCATED},
        {"lines", "split functions by the line being executed (in pictures; text always has it)", GO_HEAP_LINES},
        {0},
};

static const struct runtime_snapshot_ops heap = {
        .name = "heap",
        .summary = "the heap of a Go program in use, by the stack that allocated it",
        .memory = true,
        .text = "Reads the heap profile that Go's runtime always keeps, of one object in 512 KiB (MemProfileRate), "
                "while the program runs. As in runtime/pprof, what is in use is as of the last but one garbage "
                "collection. Numbers in front of stacks are the recorded samples, as in net/http/pprof's debug=1; "
                "comments and pictures have the estimates made from them. A program that sets MemProfileRate to 0, or "
                "never refers to runtime.MemProfile, keeps no profile; yrt says so. With --watch: what was allocated "
                "in between.",
        .unit = "bytes",
        .more = "objects",
        .flags = heap_flags,
        .take = take_heap,
        .free = go_heap_drop,
        .print = go_heap_print,
        .draw = go_heap_draw,
};

static const struct runtime_snapshot_ops alloc = {
        .name = "alloc",
        .summary = "what a Go program allocates during the run, by stack",
        .memory = true,
        .text = "Shows the growth of the heap profile that Go's runtime always keeps, of one object in 512 KiB "
                "(MemProfileRate). Nothing else is sampled, so the program is not slowed. A program that sets "
                "MemProfileRate to 0, or never refers to runtime.MemProfile, keeps no profile; yrt says so. Numbers in "
                "front of stacks are the recorded samples; comments and pictures have the estimates made from them.",
        .unit = "bytes",
        .more = "objects",
        .growth = true,
        .flags = heap_flags + 2, /* lines */
        .take = take_heap,
        .free = go_heap_drop,
        .print = go_heap_print,
        .draw = go_heap_draw,
};

const struct runtime_snapshot_ops *const go_snapshots[] = {&goroutines, &heap, &alloc, NULL};
