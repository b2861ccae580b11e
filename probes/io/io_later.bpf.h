/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * I/O that is submitted and ends later: requests of io_uring (io.h). The stack is taken when one is submitted, if it is
 * chosen; its time and bytes are added to that stack when the request ends, on whatever thread.
 */
#ifndef YRT_IO_LATER_BPF_H
#define YRT_IO_LATER_BPF_H

#include "io/io.bpf.h"

#define IO_RING_OPS   64
#define IO_FIXED_FILE 1    /* REQ_F_FIXED_FILE */
#define IO_CQE_MORE   2    /* IORING_CQE_F_MORE: the request goes on */
#define IO_FILE_FLAGS 3ull /* in io_rsrc_node.file_ptr */

struct io_ring_op { /* include/uapi/linux/io_uring.h: enum io_uring_op */
	u8 verb;
	u8 of;    /* enum io_of */
	u8 bytes; /* its result is how many */
	u8 on;    /* enum io_kind of its file if that is not known; IO_ANY: it has none */
};

#define IO_RING_DATA(verb)                                                                                             \
	{                                                                                                              \
		verb, IO_OF_BOTH, 1, IO_FILE                                                                           \
	}
#define IO_RING_NET(verb, bytes)                                                                                       \
	{                                                                                                              \
		verb, IO_OF_NET, bytes, IO_SOCKET                                                                      \
	}
#define IO_RING_META(verb, on)                                                                                         \
	{                                                                                                              \
		verb, IO_OF_FILES, 0, on                                                                               \
	}
static const volatile struct io_ring_op io_ring_ops[IO_RING_OPS] = {
        [1] = IO_RING_DATA(IO_READ), /* READV, READ_FIXED, READ, READ_MULTISHOT, READV_FIXED */
        [4] = IO_RING_DATA(IO_READ),
        [22] = IO_RING_DATA(IO_READ),
        [49] = IO_RING_DATA(IO_READ),
        [60] = IO_RING_DATA(IO_READ),
        [2] = IO_RING_DATA(IO_WRITE), /* WRITEV, WRITE_FIXED, WRITE, WRITEV_FIXED */
        [5] = IO_RING_DATA(IO_WRITE),
        [23] = IO_RING_DATA(IO_WRITE),
        [61] = IO_RING_DATA(IO_WRITE),
        [3] = IO_RING_META(IO_SYNC, IO_FILE), /* FSYNC, SYNC_FILE_RANGE */
        [8] = IO_RING_META(IO_SYNC, IO_FILE),
        [17] = IO_RING_META(IO_ALLOCATE, IO_FILE),
        [18] = IO_RING_META(IO_OPEN, IO_ANY), /* OPENAT, OPENAT2 */
        [28] = IO_RING_META(IO_OPEN, IO_ANY),
        [21] = IO_RING_META(IO_STAT, IO_ANY),
        [35] = IO_RING_META(IO_RENAME, IO_ANY),
        [36] = IO_RING_META(IO_UNLINK, IO_ANY),
        [37] = IO_RING_META(IO_MAKE, IO_ANY),
        [38] = IO_RING_META(IO_LINK, IO_ANY), /* SYMLINKAT, LINKAT */
        [39] = IO_RING_META(IO_LINK, IO_ANY),
        [55] = IO_RING_META(IO_TRUNCATE, IO_FILE),
        [9] = IO_RING_NET(IO_SEND, 1), /* SENDMSG, SEND, SEND_ZC, SENDMSG_ZC */
        [26] = IO_RING_NET(IO_SEND, 1),
        [47] = IO_RING_NET(IO_SEND, 1),
        [48] = IO_RING_NET(IO_SEND, 1),
        [10] = IO_RING_NET(IO_RECEIVE, 1), /* RECVMSG, RECV, RECV_ZC */
        [27] = IO_RING_NET(IO_RECEIVE, 1),
        [58] = IO_RING_NET(IO_RECEIVE, 1),
        [13] = IO_RING_NET(IO_ACCEPT, 0),
        [16] = IO_RING_NET(IO_CONNECT, 0),
};

/* NULL: not known. Before Linux 6.13 that is so of registered ones. */
static __attribute__((noinline)) struct file *io_ring_file(struct task_struct *task, struct io_kiocb *req)
{
	u32 fd = BPF_CORE_READ(req, cqe.fd);
	struct io_rsrc_node **nodes, *node = NULL;

	if (!(BPF_CORE_READ(req, flags) & IO_FIXED_FILE))
		return file_of(task, fd);
	if (!bpf_core_field_exists(struct io_rsrc_node, file_ptr) || !bpf_core_field_exists(struct io_rsrc_data, nodes))
		return NULL;
	nodes = BPF_CORE_READ(req, ctx, file_table.data.nodes);
	if (fd >= BPF_CORE_READ(req, ctx, file_table.data.nr) || bpf_probe_read_kernel(&node, sizeof(node), nodes + fd))
		return NULL;
	return (void *)(BPF_CORE_READ(node, file_ptr) & ~IO_FILE_FLAGS);
}

/* False: it is nothing that is wanted. */
static inline bool io_ring_take(
        struct io_taken *t, struct task_struct *task, struct io_kiocb *req, const struct io_ring_op *op)
{
	struct file *file = op->on == IO_ANY ? NULL : io_ring_file(task, req);

	*t = (struct io_taken){.file = (u64)file, .kind = file ? io_kind_of(file) : op->on, .ways = io_ways(op->verb)};
	t->reason = io_reason_of(t, op->verb, 0) | IO_ASYNC;
	return op->on == IO_ANY || io_wants(t->kind);
}

WALKING_TABLE(io_ring_submit);

SEC("raw_tp/io_uring_submit_req")
int io_ring_submit(struct bpf_raw_tracepoint_args *ctx)
{
	struct io_kiocb *req = (void *)ctx->args[0];
	struct io_pending pending = {.since_ns = bpf_ktime_get_ns()};
	struct task_struct *task = bpf_get_current_task_btf();
	u32 zero = 0, opcode;
	u64 times, key = (u64)req;
	struct io_thread *t;
	struct io_ring_op op;
	struct io_stats *s;

	if (ticks != TICKS_TAKEN || !bpf_core_field_exists(struct io_kiocb, cqe) || !find_target())
		return 0;
	opcode = BPF_CORE_READ(req, opcode);
	WALK_BARRIER(opcode);
	if (opcode >= IO_RING_OPS)
		return 0;
	op = io_ring_ops[opcode];
	t = op.of & io_of ? bpf_task_storage_get(&io_threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE) : NULL;
	s = bpf_map_lookup_elem(&io_counters, &zero);
	if (!t || !s || !io_ring_take(&t->taken, task, req, &op))
		return 0;
	pending.verb = t->taken.reason & 0xff;
	pending.ways = t->taken.ways;
	pending.bytes = op.bytes;
	if (io_chosen(t, s, 0, 0, &times))
		pending.times = times;
	else
		s->skipped++;
	bpf_map_update_elem(&io_pending, &key, &pending, BPF_ANY);
	t->pending = key;
	if (pending.times)
		bpf_tail_call(ctx, &io_ring_submit_now, 0);
	return 0;
}

static __attribute__((noinline)) int io_walked(struct io_thread *t, struct slot *slot)
{
	u64 key = t->pending;
	struct io_pending *pending = bpf_map_lookup_elem(&io_pending, &key);

	if (pending) {
		pending->stop = event_stop(slot);
		pending->hash = slot->head.hash;
	}
	return 0;
}

SEC("raw_tp/io_uring_submit_req")
int io_ring_submit_walk(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct io_thread *t = bpf_task_storage_get(&io_threads, task, NULL, 0);
	struct probe_stats *st = my_stats();
	struct slot *slot;

	if (!t || !st)
		return 0;
	t->taken.begin_ns = bpf_ktime_get_ns();
	slot = io_walk(t, st, task);
	if (!slot)
		return 0;
	io_walked(t, slot);
	io_budget(t);
	return 0;
}

static inline void io_ring_ended(u64 key, s32 res, u32 flags)
{
	struct io_pending *pending = bpf_map_lookup_elem(&io_pending, &key);
	u64 now = bpf_ktime_get_ns();

	if (!pending)
		return;
	io_ended(pending, now, pending->bytes && res > 0 ? (u64)res : 0);
	if (flags & IO_CQE_MORE)
		pending->since_ns = now;
	else
		bpf_map_delete_elem(&io_pending, &key);
}

SEC("raw_tp/io_uring_complete") /* ctx, req, cqe */
int io_ring_complete(struct bpf_raw_tracepoint_args *ctx)
{
	struct io_uring_cqe *cqe = (void *)ctx->args[2];

	if (bpf_core_field_exists(struct io_kiocb, cqe))
		io_ring_ended(ctx->args[1], BPF_CORE_READ(cqe, res), BPF_CORE_READ(cqe, flags));
	return 0;
}

SEC("raw_tp/io_uring_complete") /* of older kernels: ctx, req, user_data, res, flags, … */
int io_ring_complete_old(struct bpf_raw_tracepoint_args *ctx)
{
	if (bpf_core_field_exists(struct io_kiocb, cqe))
		io_ring_ended(ctx->args[1], (s32)ctx->args[3], (u32)ctx->args[4]);
	return 0;
}

#endif
