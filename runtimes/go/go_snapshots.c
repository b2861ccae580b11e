/* SPDX-License-Identifier: Apache-2.0 */
#include "go_snapshots.h"

#include "go_goroutines.h"
#include "go_heap.h"
#include "go_view.h"

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
