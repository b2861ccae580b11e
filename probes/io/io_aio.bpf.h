/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * I/O that io_submit() submits (libaio). The kernel has no tracepoint for its end, but tells the program by a ring in
 * the program's memory, at the address that is the context's number. yrt reads there what has come since it looked
 * last: when a call that submits or awaits such I/O returns, and before more is submitted, as the same requests may
 * be used again. So what the program takes out of the ring itself is seen, too. Pages of the ring that the program has
 * not touched can not be read: what is in them can only have come out of io_getevents().
 *
 * Requests are noted as io_submit() begins: another thread may learn of their end before it returns. Stacks are taken
 * when it returns, one for each run (struct io_batch), and only then requests that have no stack yet get one.
 */
#ifndef YRT_IO_AIO_BPF_H
#define YRT_IO_AIO_BPF_H

#include "io/io_pending.bpf.h"

#define IO_GETEVENTS  208
#define IO_SUBMIT     209
#define IO_PGETEVENTS 333

#define IO_AIO_MOST  128 /* requests of a call, and events of IO_AIO_LOOKS each */
#define IO_AIO_LOOKS 8
#define IO_AIO_RUNS  32 /* of a call: as many as programs may call each other */
#define IO_AIO_MAGIC 0xa10a10a1
#define IO_AIO_NR    (1u << 24) /* events of a ring are fewer */

struct io_aio_ring { /* struct aio_ring of fs/aio.c */
	u32 id, nr, head, tail, magic, compatible, incompatible, header;
};

struct io_aio_request { /* the beginning of struct iocb of include/uapi/linux/aio_abi.h */
	u64 data;
	u32 key, flags;
	u16 opcode, priority;
	u32 fd;
};

struct io_aio_event { /* struct io_event of the same */
	u64 data, request;
	s64 result, result2;
};

struct { /* how far a ring was read, by io_aio_key() */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* IO_RINGS where it is wanted */
	__type(key, u64);
	__type(value, u32);
} io_aio_rings SEC(".maps");

/* Of something at this address of the target. */
static inline u64 io_aio_key(u64 address)
{
	return walk_mix(walk_mix(IO_SUBMIT, bpf_get_current_pid_tgid() >> 32), address);
}

static inline u32 io_aio_verb(u32 opcode)
{
	switch (opcode) { /* IOCB_CMD_ */
	case 0:           /* PREAD, PREADV */
	case 7:
		return IO_READ;
	case 1: /* PWRITE, PWRITEV */
	case 8:
		return IO_WRITE;
	case 2: /* FSYNC, FDSYNC */
	case 3:
		return IO_SYNC;
	default:
		return IO_NONE;
	}
}

/* A run begins: is it wanted, and is its stack taken? */
static inline void io_aio_run(struct io_thread *t, struct io_stats *s, const struct io_aio_request *of)
{
	u32 verb = io_aio_verb(of->opcode);
	struct io_batch *b = &t->batch;

	b->opcode = of->opcode;
	b->fd = of->fd;
	t->taken = (struct io_taken){.ways = io_ways(verb)};
	io_take_file(&t->taken, bpf_get_current_task_btf(), of->fd);
	t->taken.reason = io_reason_of(&t->taken, verb, 0) | IO_ASYNC;
	b->wanted = verb != IO_NONE && io_wants(t->taken.kind);
	b->times = 0;
	if (b->wanted && !io_chosen(t, s, 0, 0, &b->times))
		b->times = 0;
}

/* Notes a request of the batch. False: no more are noted. */
WALK_GLOBAL int io_aio_note(u32 i)
{
	struct io_thread *t = bpf_task_storage_get(&io_threads, bpf_get_current_task_btf(), NULL, 0);
	struct io_aio_request of = {0};
	struct io_pending pending = {0};
	u64 address = 0, key;
	struct io_stats *s;
	struct io_batch *b;
	u32 zero = 0;

	s = bpf_map_lookup_elem(&io_counters, &zero);
	if (!t || !s)
		return false;
	b = &t->batch;
	if (bpf_probe_read_user(&address, sizeof(address), (const void *)(b->list + i * sizeof(u64))) ||
	        bpf_probe_read_user(&of, sizeof(of), (const void *)address))
		return false;
	if (!i || of.opcode != b->opcode || of.fd != b->fd) {
		if (++b->run > IO_AIO_RUNS)
			return false;
		io_aio_run(t, s, &of);
	}
	if (!b->wanted)
		return true;
	pending.since_ns = t->since_ns;
	pending.times = b->times;
	pending.state = b->times ? 0 : IO_WALKED;
	pending.reason = t->taken.reason;
	pending.verb = t->taken.reason & 0xff;
	pending.ways = t->taken.ways;
	pending.bytes = io_aio_verb(of.opcode) != IO_SYNC;
	pending.run = b->run;
	pending.file = t->taken.file;
	pending.fd = of.fd;
	key = io_aio_key(address);
	s->skipped += !b->times;
	bpf_map_update_elem(&io_pending, &key, &pending, BPF_ANY);
	return true;
}

static __attribute__((noinline)) int io_aio_ended(u64 key, struct io_pending *pending)
{
	io_ended(pending, pending->ended_ns, pending->moved);
	bpf_map_delete_elem(&io_pending, &key);
	return 0;
}

WALK_GLOBAL int io_aio_event(u64 at)
{
	struct io_aio_event event = {0};
	struct io_pending *pending;
	u64 key;

	if (bpf_probe_read_user(&event, sizeof(event), (const void *)at))
		return 0;
	key = io_aio_key(event.request);
	pending = bpf_map_lookup_elem(&io_pending, &key);
	if (!pending)
		return 0;
	pending->ended_ns = bpf_ktime_get_ns();
	pending->moved = pending->bytes && event.result > 0 ? event.result : 0;
	if (__sync_fetch_and_or(&pending->state, IO_ENDED) == IO_WALKED)
		io_aio_ended(key, pending);
	return 0;
}

/* Reads n events at this address, IO_AIO_MOST at most. */
WALK_GLOBAL int io_aio_events(u64 at, u32 n)
{
	for (u32 i = 0; i < IO_AIO_MOST && i < n; i++)
		io_aio_event(at + i * sizeof(struct io_aio_event));
	return 0;
}

/*
 * Reads some of what has come. False: that was all. What can not be read the program has not touched: as long as that
 * is so of the ring's beginning, nothing was submitted.
 */
WALK_GLOBAL int io_aio_look_once(u64 address)
{
	struct io_aio_ring ring = {0};
	u64 key = io_aio_key(address);
	u32 *known, seen = 0, next, n;

	if (bpf_probe_read_user(&ring, sizeof(ring), (const void *)address)) {
		bpf_map_update_elem(&io_aio_rings, &key, &seen, BPF_NOEXIST);
		return false;
	}
	if (ring.magic != IO_AIO_MAGIC || ring.nr > IO_AIO_NR || ring.tail >= ring.nr)
		return false;
	known = bpf_map_lookup_elem(&io_aio_rings, &key);
	if (!known || *known >= ring.nr) {
		bpf_map_update_elem(&io_aio_rings, &key, &ring.tail, BPF_ANY);
		return false;
	}
	seen = *known;
	n = ring.tail >= seen ? ring.tail - seen : ring.nr - seen;
	if (n > IO_AIO_MOST)
		n = IO_AIO_MOST;
	next = seen + n == ring.nr ? 0 : seen + n;
	if (!n || __sync_val_compare_and_swap(known, seen, next) != seen)
		return false; /* another thread reads them */
	io_aio_events(address + sizeof(ring) + seen * sizeof(struct io_aio_event), n);
	return next != ring.tail;
}

static __attribute__((noinline)) int io_aio_look(u64 address)
{
	int more = true;

	for (u32 i = 0; i < IO_AIO_LOOKS && more; i++)
		more = io_aio_look_once(address);
	return 0;
}

/* io_submit() begins. */
static __attribute__((noinline)) int io_aio_enter(struct io_thread *t, u64 ring, s64 n, u64 list)
{
	u32 zero = 0, i = 0;
	struct io_stats *s = bpf_map_lookup_elem(&io_counters, &zero);
	int more = true;

	if (!s)
		return 0;
	io_aio_look(ring);
	t->batch.list = list;
	t->batch.run = t->batch.at = 0;
	t->batch.n = n < 0 ? 0 : n < IO_AIO_MOST ? n : IO_AIO_MOST;
	for (i = 0; i < IO_AIO_MOST && i < t->batch.n && more; i++)
		more = io_aio_note(i);
	s->async += !more || n > IO_AIO_MOST;
	return 0;
}

static inline struct io_pending *io_aio_pending(const struct io_batch *b, u32 i, u64 *key)
{
	u64 address = 0;

	if (bpf_probe_read_user(&address, sizeof(address), (const void *)(b->list + i * sizeof(u64))))
		return NULL;
	*key = io_aio_key(address);
	return bpf_map_lookup_elem(&io_pending, key);
}

/* A request that the kernel did not take. */
WALK_GLOBAL int io_aio_drop(u32 i)
{
	struct io_thread *t = bpf_task_storage_get(&io_threads, bpf_get_current_task_btf(), NULL, 0);
	u64 key = 0;

	if (t && io_aio_pending(&t->batch, i, &key))
		bpf_map_delete_elem(&io_pending, &key);
	return 0;
}

/* Does this one begin a run whose stack is to be taken? Then it becomes what is taken. */
WALK_GLOBAL int io_aio_begins(u32 i)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct io_thread *t = bpf_task_storage_get(&io_threads, task, NULL, 0);
	struct io_pending *pending;
	u64 key = 0;

	if (!t)
		return false;
	pending = io_aio_pending(&t->batch, i, &key);
	if (!pending || pending->state & IO_WALKED)
		return false;
	t->batch.run = pending->run;
	t->taken = (struct io_taken){
	        .reason = pending->reason, .kind = pending->reason >> 8 & 0xff, .ways = pending->ways};
	if (file_of(task, pending->fd) == (struct file *)pending->file)
		t->taken.file = pending->file; /* else another thread has closed it meanwhile */
	return true;
}

/* Finds the next run whose stack is wanted. False: none is left. */
static __attribute__((noinline)) int io_aio_next(struct io_thread *t)
{
	u32 i = t->batch.at;

	for (u32 k = 0; k < IO_AIO_MOST; k++, i++) {
		if (i >= t->batch.n)
			return false;
		if (io_aio_begins(i)) {
			t->batch.at = i;
			return true;
		}
	}
	return false;
}

/* Gives one the stack of its run. False: the run is over. */
WALK_GLOBAL int io_aio_give(u32 i, u64 hash, u32 stop)
{
	struct io_thread *t = bpf_task_storage_get(&io_threads, bpf_get_current_task_btf(), NULL, 0);
	struct io_pending *pending;
	u64 key = 0;

	if (!t)
		return false;
	pending = io_aio_pending(&t->batch, i, &key);
	if (!pending || pending->run != t->batch.run || pending->state & IO_WALKED)
		return false;
	pending->hash = hash;
	pending->stop = stop;
	if (__sync_fetch_and_or(&pending->state, IO_WALKED) & IO_ENDED)
		io_aio_ended(key, pending);
	return true;
}

/* The stack of a run was taken; 0: it was lost. True: there is another run to take one of. */
static __attribute__((noinline)) int io_aio_walked(struct io_thread *t, u64 hash, u32 stop)
{
	int same = true;

	for (u32 k = 0; k < IO_AIO_MOST && same && t->batch.at < t->batch.n; k++) {
		same = io_aio_give(t->batch.at, hash, stop);
		t->batch.at += same;
	}
	return io_aio_next(t);
}

/* io_submit() has returned. True: there is a stack to take. */
static __attribute__((noinline)) int io_aio_submitted(struct io_thread *t, u64 ring, s64 taken)
{
	u32 i = taken < 0 ? 0 : taken;

	for (u32 k = 0; k < IO_AIO_MOST && i < t->batch.n; k++, i++)
		io_aio_drop(i);
	io_aio_look(ring);
	return io_aio_next(t);
}

/* io_getevents() has returned n events. The ring has them, too, but its pages may not be readable. */
static __attribute__((noinline)) int io_aio_got(u64 ring, u64 events, s64 n)
{
	io_aio_look(ring);
	for (u32 i = 0; i < IO_AIO_LOOKS && n > 0; i++, n -= IO_AIO_MOST)
		io_aio_events(
		        events + i * IO_AIO_MOST * sizeof(struct io_aio_event), n < IO_AIO_MOST ? n : IO_AIO_MOST);
	return 0;
}

#endif
