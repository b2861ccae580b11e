/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The programs of I/O (io.h). */
#ifndef YRT_IO_BPF_H
#define YRT_IO_BPF_H

#include "io/io_aio.bpf.h"
#include "io/io_calls.bpf.h"

#define IO_MESSAGES_MAX 64

#define IO_URING_ENTER 426

#define IO_MSG_PEEK   2
#define IO_EMPTY_PATH 0x1000 /* AT_EMPTY_PATH: fstat() of C libraries */
#define IO_STATX      332

/* From Linux 6.0 on the tracepoints of io_uring say which request they are about. */
static inline bool io_sees(u64 number)
{
	return number != IO_URING_ENTER || (io_rings && bpf_core_field_exists(struct io_kiocb, cqe));
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
	if (!t)
		return 0;
	t->since_ns = bpf_ktime_get_ns();
	if (number == IO_SUBMIT)
		io_aio_enter(t, regs->di, regs->si, regs->dx);
	return 0;
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
		if (number == IO_GETEVENTS || number == IO_PGETEVENTS)
			io_aio_got(regs->di, regs->r10, ret);
		if (number == IO_SUBMIT && io_aio_submitted(t, regs->di, ret))
			bpf_tail_call(ctx, &io_exit_now, 0);
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
	if (slot)
		io_budget(t);
	if (regs->orig_ax != IO_SUBMIT)
		return 0;
	if (io_aio_walked(t, slot ? slot->head.hash : 0, slot ? event_stop(slot) : 0))
		bpf_tail_call(ctx, &io_exit_now, 0);
	return 0;
}

#endif
