/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* How I/O is counted, and of what stacks are taken (io.h). */
#ifndef YRT_IO_COUNT_BPF_H
#define YRT_IO_COUNT_BPF_H

#include "io/io_object.bpf.h"

#define IO_SPENT_NS    200000ull                /* on walks of a CPU, in */
#define IO_WINDOW_NS   (IO_SPENT_NS * IO_SHARE) /* at most */
#define IO_SHARE       50
#define IO_CREDIT_NS   20000000ull
#define IO_EACH_MAX    (IO_ONE << 16)
#define IO_CLIP_NS     1000000ull /* of a call, in the mean */
#define IO_CLIP_BYTES  (1ull << 20)
#define IO_SIZE_NS     (1ull << 33) /* of a call, in its size */
#define IO_EINPROGRESS 115
#define IO_EALREADY    114
#define IO_EISCONN     106

const volatile u32 io_of = 0;               /* enum io_of: which calls are counted */
const volatile bool io_count_calls = false; /* in place of bytes */
const volatile bool io_with_objects = false;

u32 io_rings = 0; /* what io_uring does is seen: the probes of io_later.bpf.h are attached */

struct io_batch {  /* requests that one io_submit() submits (io_aio.bpf.h) */
	u64 list;  /* their addresses, in the target */
	u64 times; /* of the run: as in struct io_pending */
	u32 n, at;
	u32 run; /* how many runs there were: requests in a row of the same kind on the same file */
	u32 fd;
	u16 opcode;
	u16 wanted; /* the run is */
};

struct io_thread {
	u64 since_ns;   /* of the call it is in; 0: none that is wanted */
	u64 size, next; /* of calls since the last stack, and of which on one is taken */
	struct io_taken taken;
	u64 pending; /* the request of io_uring whose stack is taken: a key of io_pending */
	struct io_batch batch;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct io_thread);
} io_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct io_stats);
} io_counters SEC(".maps");

static inline u32 io_kind_of(struct file *file)
{
	switch (file_mode(file)) {
	case MODE_FILE:
		return IO_FILE;
	case MODE_DIRECTORY:
		return IO_DIRECTORY;
	case MODE_BLOCK:
		return IO_BLOCK_DEVICE;
	case MODE_DEVICE:
		return IO_DEVICE;
	case MODE_PIPE:
		return IO_PIPE;
	case MODE_SOCKET:
		return IO_SOCKET;
	default:
		return IO_OTHER;
	}
}

static inline bool io_wants(u32 kind)
{
	return kind == IO_SOCKET ? io_of & IO_OF_NET : kind != IO_OTHER && io_of & IO_OF_FILES;
}

static inline void io_take_file(struct io_taken *t, struct task_struct *task, u64 fd)
{
	struct file *file = file_of(task, (u32)fd);

	t->file = (u64)file;
	t->kind = file ? io_kind_of(file) : IO_OTHER;
}

static inline u32 io_ways(u32 verb)
{
	return verb == IO_COPY ? IO_IN | IO_OUT : verb == IO_READ || verb == IO_RECEIVE ? IO_IN : IO_OUT;
}

static inline u32 io_reason_of(const struct io_taken *t, u32 verb, s64 ret)
{
	if (t->kind == IO_SOCKET && (verb == IO_READ || verb == IO_WRITE || verb == IO_SENDFILE || verb == IO_SPLICE))
		verb = t->ways == IO_IN ? IO_RECEIVE : IO_SEND;
	if (verb == IO_CONNECT && ret < 0 && ret != -IO_EALREADY && ret != -IO_EISCONN)
		verb = ret == -IO_EINPROGRESS ? IO_CONNECT_BEGUN : IO_CONNECT_FAILED;
	return io_reason(verb, verb == IO_OPEN ? IO_ANY : t->kind);
}

/* How large calls are on average, for io_size(). */
static __attribute__((noinline)) int io_mean(struct io_stats *s)
{
	s->per_ns = ((u64)IO_ONE << IO_SIZE_SHIFT) * s->window_calls / (s->window_call_ns | 1);
	s->per_byte = ((u64)IO_ONE << IO_SIZE_SHIFT) * s->window_calls / (s->window_bytes | 1);
	s->window_calls = s->window_call_ns = s->window_bytes = 0;
	return 0;
}

/* In parts of a mean call, of time, bytes and number each. */
static inline u64 io_size(const struct io_stats *s, u64 ns, u64 bytes)
{
	u64 size = IO_ONE / 2;

	if (ns > IO_SIZE_NS)
		ns = IO_SIZE_NS;
	if (bytes > IO_SIZE_NS)
		bytes = IO_SIZE_NS;
	size += ns * (s->per_ns & 0x3fffffff) >> IO_SIZE_SHIFT;
	return size + (bytes * (s->per_byte & 0x3fffffff) >> IO_SIZE_SHIFT);
}

static inline void io_count(struct io_stats *s, u32 verb, u32 ways, u64 ns, u64 bytes)
{
	s->calls++;
	s->ns += ns;
	s->in_bytes += ways & IO_IN ? bytes : 0;
	s->out_bytes += ways & IO_OUT ? bytes : 0;
	s->begun += verb == IO_CONNECT_BEGUN;
	s->window_calls++;
	s->window_call_ns += ns < IO_CLIP_NS ? ns : IO_CLIP_NS;
	s->window_bytes += bytes < IO_CLIP_BYTES ? bytes : IO_CLIP_BYTES;
}

/*
 * Is the stack of this call taken? Always if the call is as large as what a walk stands for. Smaller ones are chosen by
 * chance, the larger the likelier, and then stand for several. *times: in IO_ONE.
 */
static inline bool io_chosen(struct io_thread *t, const struct io_stats *s, u64 ns, u64 bytes, u64 *times)
{
	u64 each = s->each, size;

	*times = IO_ONE;
	if (!each)
		return true;
	size = io_size(s, ns, bytes);
	if (size >= each)
		return true;
	t->size += size;
	if (t->size < t->next)
		return false;
	t->size -= t->next;
	t->next = each / 2 + (bpf_get_prandom_u32() % (u32)(each | 1)); /* each, on average */
	*times = each * IO_ONE / (size | 1);
	return true;
}

/* Walks take at most 2 % of a CPU, with bursts of IO_CREDIT_NS: short or rare activity is taken completely. */
static __attribute__((noinline)) int io_budget(const struct io_thread *t)
{
	u64 now = bpf_ktime_get_ns(), elapsed, used;
	u32 zero = 0;
	struct io_stats *s = bpf_map_lookup_elem(&io_counters, &zero);

	if (!s)
		return 0;
	elapsed = now - s->window_ns;
	s->spent_ns += now - t->taken.begin_ns;
	if (s->spent_ns < IO_SPENT_NS)
		return 0;
	used = s->used_ns + s->spent_ns;
	s->used_ns = used > elapsed / IO_SHARE ? used - elapsed / IO_SHARE : 0;
	if (elapsed < IO_WINDOW_NS && s->each < IO_EACH_MAX && s->used_ns > IO_CREDIT_NS)
		s->each = s->each ? s->each * 2 : IO_ONE;
	else if (elapsed > 2 * IO_WINDOW_NS)
		s->each = s->each > IO_ONE ? s->each / 2 : 0;
	io_mean(s);
	s->window_ns = now;
	s->spent_ns = 0;
	return 0;
}

#endif
