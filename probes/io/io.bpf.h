/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The programs of I/O (io.h). */
#ifndef YRT_IO_BPF_H
#define YRT_IO_BPF_H

#include "io/io_calls.bpf.h"
#include "io/io_object.bpf.h"

#define IO_SPENT_NS     200000ull                /* on walks of a CPU, in */
#define IO_WINDOW_NS    (IO_SPENT_NS * IO_SHARE) /* at most */
#define IO_SHARE        50
#define IO_CREDIT_NS    20000000ull
#define IO_EACH_MAX     (IO_ONE << 16)
#define IO_CLIP_NS      1000000ull /* of a call, in the mean */
#define IO_CLIP_BYTES   (1ull << 20)
#define IO_SIZE_NS      (1ull << 33) /* of a call, in its size */
#define IO_MESSAGES_MAX 64

#define IO_URING_ENTER 426

#define IO_MSG_PEEK    2
#define IO_EMPTY_PATH  0x1000 /* AT_EMPTY_PATH: fstat() of C libraries */
#define IO_STATX       332
#define IO_EINPROGRESS 115
#define IO_EALREADY    114
#define IO_EISCONN     106

const volatile u32 io_of = 0;               /* enum io_of: which calls are counted */
const volatile bool io_count_calls = false; /* in place of bytes */
const volatile bool io_with_objects = false;

u32 io_rings = 0; /* what io_uring does is seen: the probes of io_later.bpf.h are attached */

struct io_thread {
	u64 since_ns;   /* of the call it is in; 0: none that is wanted */
	u64 size, next; /* of calls since the last stack, and of which on one is taken */
	struct io_taken taken;
	u64 pending; /* the request whose stack is taken: a key of io_pending */
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

/* From Linux 6.0 on its tracepoints say which request they are about. */
static inline bool io_sees(u64 number)
{
	return number == IO_URING_ENTER && io_rings && bpf_core_field_exists(struct io_kiocb, cqe);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(io_enter, struct pt_regs___kernel *regs, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct io_thread *t;

	if (ticks != TICKS_TAKEN || (u64)number >= IO_CALLS || !(io_calls[number].of & io_of))
		return 0;
	t = bpf_task_storage_get(&io_threads, task, NULL, 0);
	if (!t && find_target())
		t = bpf_task_storage_get(&io_threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (t)
		t->since_ns = bpf_ktime_get_ns();
	return 0;
}

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

/* Clients wait so for an answer, with a timeout. What polls more is an event loop, and a server waits for clients. */
static inline bool io_take_polled(struct io_taken *t, struct task_struct *task, u64 polled, u64 n)
{
	struct {
		s32 fd;
		s16 events, revents;
	} of[2] = {{.fd = -1}, {.fd = -1}};

	if (!n || n > 2 || bpf_probe_read_user(of, n == 1 ? sizeof(*of) : sizeof(of), (const void *)polled))
		return false;
	io_take_file(t, task, (u32)of[0].fd);
	if (t->kind != IO_SOCKET)
		io_take_file(t, task, (u32)of[1].fd);
	return t->kind == IO_SOCKET && !io_listens(t->file);
}

/* Of two ends the one that is wanted, and rather a file than a pipe. */
static inline bool io_take_spliced(struct io_taken *t, struct task_struct *task, u64 from, u64 to)
{
	bool from_pipe;

	io_take_file(t, task, from);
	t->ways = IO_IN;
	if (t->kind != IO_PIPE && io_wants(t->kind))
		return true;
	from_pipe = t->kind == IO_PIPE && io_wants(IO_PIPE);
	io_take_file(t, task, to);
	if (io_wants(t->kind)) {
		t->ways = from_pipe && t->kind == IO_PIPE ? IO_IN | IO_OUT : IO_OUT;
		return true;
	}
	io_take_file(t, task, from);
	return io_wants(t->kind);
}

/* F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW */
static inline bool io_locks(u64 command)
{
	return command == 6 || command == 7 || command == 37 || command == 38;
}

/* Finds what the call was made on. False: nothing that is wanted. */
static inline bool io_find(
        struct io_taken *t, struct task_struct *task, struct pt_regs___kernel *regs, u32 argument, s64 ret)
{
	t->path = 0;
	t->file = 0;
	t->kind = IO_ANY;
	t->ways = 0;
	switch (argument) {
	case IO_FD:
		io_take_file(t, task, regs->di);
		return io_wants(t->kind);
	case IO_FD_SECOND:
		io_take_file(t, task, regs->di);
		if (io_of == IO_OF_NET)
			return io_wants(t->kind);
		t->ways = io_wants(t->kind) ? IO_IN | IO_OUT : IO_IN;
		io_take_file(t, task, regs->si);
		return io_wants(t->kind);
	case IO_FD_EITHER:
		return io_take_spliced(t, task, regs->di, regs->dx);
	case IO_POLLED:
		return io_take_polled(t, task, regs->di, regs->si);
	case IO_ACCEPTS:
		io_take_file(t, task, ret >= 0 ? (u64)ret : regs->di);
		return io_wants(t->kind);
	case IO_FD_RESULT:
	case IO_FD_RESULT_FIRST:
		if (ret >= 0)
			io_take_file(t, task, ret);
		t->path = argument == IO_FD_RESULT ? regs->si : regs->di;
		return true;
	case IO_PATH_FIRST:
		t->path = regs->di;
		return true;
	case IO_PATH_THIRD:
		t->path = regs->dx;
		return true;
	case IO_NOWHERE:
		return true;
	case IO_LOCKED:
		io_take_file(t, task, regs->di);
		return io_locks(regs->si) && io_wants(t->kind);
	case IO_PATH_IF_ANY:
		t->path = regs->si;
		if (!t->path)
			io_take_file(t, task, regs->di);
		return t->path || io_wants(t->kind);
	case IO_PATH_OR_FD:
		if ((regs->orig_ax == IO_STATX ? regs->dx : regs->r10) & IO_EMPTY_PATH) {
			io_take_file(t, task, regs->di);
			return io_wants(t->kind);
		}
		t->path = regs->si;
		return true;
	default:
		t->path = regs->si;
		return true;
	}
}

/* Of several messages: struct mmsghdr has 64 bytes, its msg_len is at 56. */
static __attribute__((noinline)) u64 io_message_bytes(u64 messages, u64 n)
{
	u64 sum = 0, i;

	for (i = 0; i < IO_MESSAGES_MAX && i < n; i++) {
		u32 len = 0;

		bpf_probe_read_user(&len, sizeof(len), (const void *)(messages + i * 64 + 56));
		sum += len;
	}
	return n > IO_MESSAGES_MAX ? sum / IO_MESSAGES_MAX * n : sum;
}

static inline u64 io_bytes(struct pt_regs___kernel *regs, u32 result, u64 number, s64 ret)
{
	if (ret <= 0 || result == IO_NOTHING)
		return 0;
	if (result == IO_MESSAGES)
		return io_message_bytes(regs->si, ret);
	/* what recvfrom() and recvmsg() only peek at is received later */
	if ((number == 45 && regs->r10 & IO_MSG_PEEK) || (number == 47 && regs->dx & IO_MSG_PEEK))
		return 0;
	return ret;
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

WALKING_TABLE(io_exit);

/* Most calls end here: only what is chosen goes on to io_exit_walk() (WALKING()). */
SEC("tp_btf/sys_exit")
int BPF_PROG(io_exit, struct pt_regs___kernel *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 number = regs->orig_ax, ns, bytes, times;
	struct io_thread *t;
	struct io_stats *s;
	struct io_call call;
	u32 zero = 0, verb;

	if (ticks != TICKS_TAKEN || number >= IO_CALLS)
		return 0;
	call = io_calls[number];
	if (!(call.of & io_of))
		return 0;
	t = bpf_task_storage_get(&io_threads, task, NULL, 0);
	s = bpf_map_lookup_elem(&io_counters, &zero);
	if (!t || !s || !t->since_ns)
		return 0;
	ns = bpf_ktime_get_ns() - t->since_ns;
	t->since_ns = 0;
	if (call.argument == IO_LATER) {
		s->async += !io_sees(number);
		return 0;
	}
	if (!io_find(&t->taken, task, regs, call.argument, ret))
		return 0;
	bytes = io_bytes(regs, call.result, number, ret);
	t->taken.ways = t->taken.ways ?: io_ways(call.verb);
	t->taken.reason = io_reason_of(&t->taken, call.verb, ret);
	verb = t->taken.reason & 0xff;
	io_count(s, verb, t->taken.ways, ns, bytes);
	if (!io_chosen(t, s, ns, bytes, &times)) {
		s->skipped++;
		return 0;
	}
	if (io_count_calls)
		bytes = 1;
	t->taken.value = times == IO_ONE ? ns : ns * times / IO_ONE;
	t->taken.more = times == IO_ONE ? bytes : bytes * times / IO_ONE;
	bpf_tail_call(ctx, &io_exit_now, 0);
	return 0;
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

/* The address that a call on a socket was given, or has written. */
static inline void io_take_name(struct io_taken *t, struct pt_regs___kernel *regs, s64 ret)
{
	struct {
		u64 name;
		u32 size;
	} message = {0};

	switch (regs->orig_ax) {
	case 42: /* connect */
		message.name = regs->si;
		message.size = regs->dx;
		break;
	case 44: /* sendto */
		message.name = regs->r8;
		message.size = regs->r9;
		break;
	case 45: /* recvfrom */
		if (ret >= 0 && !bpf_probe_read_user(&message.size, sizeof(message.size), (const void *)regs->r9))
			message.name = regs->r8;
		break;
	case 47: /* recvmsg, recvmmsg */
	case 299:
		if (ret < 0)
			break; /* nothing was written */
	case 46:               /* sendmsg, sendmmsg */
	case 307:
		bpf_probe_read_user(&message, 12, (const void *)regs->si);
	}
	t->name = message.name;
	t->name_size = message.size;
}

/* NULL: lost, or its process is no target any more. */
static __attribute__((noinline)) struct slot *io_begin(struct io_thread *t, struct probe_stats *st, u32 tgid)
{
	int instance = find_target();
	struct slot *slot;
	u32 number;

	slot = instance ? event_begin(st, instance, tgid, t->taken.value, &number) : NULL;
	if (!slot)
		return NULL;
	slot->head.more = t->taken.more;
	slot->head.reason = t->taken.reason;
	if (io_with_objects)
		io_object_frame(slot, &t->taken);
	event_reason(slot);
	return slot;
}

/* Walks and sends the stack of what t has taken. NULL: there is no room. A frame of its own would be one too many. */
static __attribute__((always_inline)) inline struct slot *io_walk(
        struct io_thread *t, struct probe_stats *st, struct task_struct *task)
{
	u32 tgid = tgid_of(task);
	struct slot *slot = io_begin(t, st, tgid);

	if (!slot)
		return NULL;
	event_user(slot, NULL, task, bpf_map_lookup_elem(&processes, &tgid), true);
	event_end(slot, st, event_emit(slot, st));
	return slot;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(io_exit_walk, struct pt_regs___kernel *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct io_thread *t = bpf_task_storage_get(&io_threads, task, NULL, 0);
	struct probe_stats *st = my_stats();
	struct slot *slot;

	if (!t || !st)
		return 0;
	t->taken.begin_ns = bpf_ktime_get_ns();
	if (io_with_objects && t->taken.kind == IO_SOCKET)
		io_take_name(&t->taken, regs, ret);
	slot = io_walk(t, st, task);
	if (!slot)
		return 0;
	io_budget(t);
	return 0;
}

#endif
