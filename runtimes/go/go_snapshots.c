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
		err = read(v, flags, ret);
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
        {"creators", "what a goroutine was created by in front of its stack (in pictures; text tells it anyway)",
                GO_CREATORS},
        {"labels", "labels of runtime/pprof in front of stacks (in pictures; text has them anyway)", GO_LABELLED},
        {"lines", "split functions by the line being executed (in pictures; text tells it anyway)", GO_LINES},
        {"system", "the runtime's own goroutines, too", GO_SYSTEM},
        {0},
};

static const struct runtime_snapshot_ops goroutines = {
        .name = "goroutines",
        .summary = "every goroutine's stack now, what it waits for and who created it",
        .text = "Reads all goroutines of a Go program from outside while it goes on: nothing has to be imported, no "
                "port to be open, and stripped\n"
                "programs are as good. Those that run at this moment have no stack that could be read: they are "
                "counted as running. One that\n"
                "moved while it was read is read again, and counted as torn if that does not help. How long one waits "
                "is known once a garbage\n"
                "collection has seen it wait.",
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
        {"allocated",
                "all that was allocated since the program began, not what is in use (in pictures; text tells both)",
                GO_HEAP_ALLOCATED},
        {"lines", "split functions by the line being executed (in pictures; text tells it anyway)", GO_HEAP_LINES},
        {0},
};

static const struct runtime_snapshot_ops heap = {
        .name = "heap",
        .summary = "what a Go program has in use on its heap, by the stack that allocated it",
        .memory = true,
        .text = "Reads the heap profile that Go's runtime keeps from the program's start on, of one object in 512 KiB "
                "(MemProfileRate), from outside\n"
                "while the program goes on. What is in use is as of the last garbage collection but one, as "
                "runtime/pprof tells it. Numbers in front\n"
                "of stacks are what was recorded, as in net/http/pprof's debug=1; those in comments and pictures are "
                "what these stand for. A\n"
                "program that sets MemProfileRate to 0, or that never names runtime.MemProfile, keeps none; that is "
                "said. With --watch: what was\n"
                "allocated meanwhile.",
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
        .text = "The growth of the heap profile that Go's runtime keeps anyway, of one object in 512 KiB "
                "(MemProfileRate): nothing is sampled besides,\n"
                "the program is not slowed. A program that sets MemProfileRate to 0, or that never names "
                "runtime.MemProfile, keeps none; that is\n"
                "said. Numbers in front of stacks are what was recorded; those in comments and pictures are what these "
                "stand for.",
        .unit = "bytes",
        .more = "objects",
        .growth = true,
        .flags = heap_flags + 1,
        .take = take_heap,
        .free = go_heap_drop,
        .print = go_heap_print,
        .draw = go_heap_draw,
};

const struct runtime_snapshot_ops *const go_snapshots[] = {&goroutines, &heap, &alloc, NULL};
