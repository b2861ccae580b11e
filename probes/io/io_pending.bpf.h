/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* I/O that was submitted and has not ended: its time and bytes are added to its stack when it does. */
#ifndef YRT_IO_PENDING_BPF_H
#define YRT_IO_PENDING_BPF_H

#include "io/io_count.bpf.h"

enum io_pending_state { IO_WALKED = 1, IO_ENDED = 2 };

struct io_pending {
	u64 since_ns;
	u64 hash;  /* of its stack; 0: none was taken */
	u32 times; /* how many the stack stands for, in IO_ONE; 0: it is not chosen */
	u32 stop;
	u8 verb, ways, bytes;
	u8 run; /* io_batch.run */
	/* Of what io_submit() submits: it may end before its stack is known. Who is the second to say so counts it. */
	u32 state; /* enum io_pending_state */
	u32 fd, reason;
	u64 file;
	u64 ended_ns, moved;
};

struct { /* by io_aio_key(), or the address of a request of io_uring. Both are used again; some end without a word */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* IO_PENDING where it is wanted */
	__type(key, u64);
	__type(value, struct io_pending);
} io_pending SEC(".maps");

/* A request has ended, or has a result and goes on. */
static __attribute__((noinline)) int io_ended(struct io_pending *pending, u64 now, u64 bytes)
{
	u64 ns = now - pending->since_ns, value = ns * pending->times / IO_ONE;
	struct probe_stats *st = my_stats();
	u32 zero = 0;
	struct io_stats *s = bpf_map_lookup_elem(&io_counters, &zero);

	if (!st || !s || ticks != TICKS_TAKEN)
		return 0;
	io_count(s, pending->verb, pending->ways, ns, bytes);
	s->later++;
	if (!pending->times)
		return 0;
	if (io_count_calls)
		bytes = 1;
	st->weights += value;
	if (!pending->hash) {
		st->lost[LOST_SCRATCH] += value;
		return 0;
	}
	count_stop(st, pending->stop, value);
	if (!event_add(pending->hash, value, bytes * pending->times / IO_ONE))
		st->lost[LOST_TABLE] += value;
	return 0;
}

#endif
