/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a thread that leaves the CPU waits for, by its state and its system call. */
#ifndef YRT_WAIT_WHY_BPF_H
#define YRT_WAIT_WHY_BPF_H

#include "syscall_of.bpf.h"
#include "wait/wait_record.h"

#define SYSCALL_FUTEX_WAITV 449
#define SYSCALL_FUTEX_WAIT  455

#define POLL_IN 1

#define STATE_STOPPED 4
#define STATE_TRACED  8
/* It does not wait for what its system call says. */
#define STATE_OF_OTHERS (STATE_STOPPED | STATE_TRACED | TASK_FROZEN)

/* User space may have settled a wait by a clock that is ahead of this CPU's. */
static inline u64 wait_span(u64 since, u64 now)
{
	return now > since ? now - since : 0;
}

/*
 * Time on the run queue is how a wait ends: what was woken up goes on as soon as it gets a CPU. For how long a thread
 * has been so, on queues that it has left. 0: the kernel does not say.
 */
static __attribute__((always_inline)) inline u64 wait_delay(struct task_struct *task)
{
	return bpf_core_field_exists(task->sched_info.run_delay) ? BPF_CORE_READ(task, sched_info.run_delay) : 0;
}

/* The same of the queue that it is on. clock: the scheduler's, of that CPU. */
static __attribute__((always_inline)) inline u64 wait_on_queue(struct task_struct *task, u64 clock)
{
	u64 since =
	        bpf_core_field_exists(task->sched_info.last_queued) ? BPF_CORE_READ(task, sched_info.last_queued) : 0;

	return since ? wait_span(since, clock) : 0;
}

static inline u32 wait_state_bits(struct task_struct *task)
{
	return state_with_freezer(BPF_CORE_READ(task, __state), BPF_CORE_READ(task, jobctl));
}

static inline enum wait_file wait_file_of(struct task_struct *task, u64 fd)
{
	struct file *file = file_of(task, fd);

	if (!file)
		return WAIT_NO_FILE;
	switch (file_mode(file)) {
	case MODE_PIPE:
		return WAIT_PIPE;
	case MODE_DEVICE:
		return WAIT_DEVICE;
	case MODE_DIRECTORY:
	case MODE_FILE:
		return WAIT_FILE;
	case MODE_SOCKET:
		return file_is_accepted(file) ? WAIT_CLIENT : file_is_open_to_all(file) ? WAIT_SERVER : WAIT_SOCKET;
	default:
		return WAIT_NO_FILE;
	}
}

/* Is the first argument of a system call a file that it may wait for? */
static inline bool wait_takes_file(s64 syscall)
{
	switch (syscall) {
	case 0: /* read, write */
	case 1:
	case 17 ... 20:   /* pread64, pwrite64, readv, writev */
	case 42 ... 47:   /* connect, accept, sendto, recvfrom, sendmsg, recvmsg */
	case 288:         /* accept4 */
	case 295 ... 296: /* preadv, pwritev */
	case 299:         /* recvmmsg */
	case 307:         /* sendmmsg */
	case 327 ... 328: /* preadv2, pwritev2 */
		return true;
	default:
		return false;
	}
}

/* One of several files that a thread waits for. */
WALK_GLOBAL u32 wait_one_of(u64 at)
{
	struct file *file = (void *)at;

	if (!file || file_mode(file) != MODE_SOCKET)
		return WAIT_NO_FILE;
	return file_is_accepted(file) ? WAIT_CLIENT : file_is_open_to_all(file) ? WAIT_SERVER : WAIT_NO_FILE;
}

WALK_GLOBAL u32 wait_one_of_mine(u32 fd)
{
	return wait_one_of((u64)file_of(bpf_get_current_task_btf(), fd));
}

WALK_GLOBAL u32 wait_polled(u64 files, u64 n)
{
	u32 found = WAIT_NO_FILE;

	for (u32 i = 0; i < WAIT_POLLED && i < n && !found; i++) {
		struct {
			s32 fd;
			u16 events, revents;
		} polled = {0};

		if (!bpf_probe_read_user(&polled, sizeof(polled), (const void *)(files + i * sizeof(polled))) &&
		        polled.events & POLL_IN)
			found = wait_one_of_mine((u32)polled.fd);
	}
	return found && n > 1 ? WAIT_SERVER : found;
}

WALK_GLOBAL u32 wait_selected(u64 n, u64 set)
{
	u32 wanted = 0;

	if (bpf_probe_read_user(&wanted, sizeof(wanted), (const void *)set))
		return WAIT_NO_FILE;
	for (u32 fd = 0; fd < WAIT_SELECTED && fd < n; fd++)
		if (wanted >> fd & 1 && wait_one_of_mine(fd))
			return WAIT_SERVER;
	return WAIT_NO_FILE;
}

/* The upper nodes of the tree, in which files lie by their addresses: any seven, or all if there are fewer. */
WALK_GLOBAL u32 wait_of_epoll(u64 at)
{
	struct file *file = (void *)at;
	struct eventpoll *set = file ? BPF_CORE_READ(file, private_data) : NULL;
	struct rb_node *nodes[7] = {set ? BPF_CORE_READ(set, rbr.rb_root.rb_node) : NULL};

#pragma unroll
	for (u32 i = 0; i < 7; i++) {
		struct epitem *item = (void *)nodes[i] - bpf_core_field_offset(struct epitem, rbn);

		if (!nodes[i])
			continue;
		if (BPF_CORE_READ(item, event.events) & POLL_IN && wait_one_of((u64)BPF_CORE_READ(item, ffd.file)))
			return WAIT_SERVER;
		if (i < 3) {
			nodes[2 * i + 1] = BPF_CORE_READ(nodes[i], rb_left);
			nodes[2 * i + 2] = BPF_CORE_READ(nodes[i], rb_right);
		}
	}
	return WAIT_NO_FILE;
}

/* By the first argument of the system call that a thread is in. */
static inline u32 wait_file_by_call(struct task_struct *task, s64 call, u64 fd)
{
	if (wait_takes_file(call))
		return wait_file_of(task, fd);
	return wait_is_epoll(call) ? wait_of_epoll((u64)file_of(task, fd)) : WAIT_NO_FILE;
}

/* Does the thread wait, or did it until now, in a system call for one futex or several? *ret: which; 0: several. */
static __attribute__((noinline)) bool wait_for_futex(struct task_struct *task, u64 *ret)
{
	struct pt_regs___kernel *r = (void *)bpf_task_pt_regs(task);
	u64 command = BPF_CORE_READ(r, si) & 127;
	s64 call = syscall_of(task);

	*ret = call == SYSCALL_FUTEX_WAITV ? 0 : BPF_CORE_READ(r, di);
	if (call == SYSCALL_FUTEX) /* WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2 */
		return command == 0 || command == 6 || command == 9 || command == 11 || command == 13;
	return call == SYSCALL_FUTEX_WAITV || call == SYSCALL_FUTEX_WAIT;
}

/* state: 0: it could go on. */
WALK_GLOBAL u32 wait_why(u64 state)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs___kernel *r = (void *)bpf_task_pt_regs(task);
	s64 call = syscall_of(task);
	u32 file = WAIT_NO_FILE;

	if (state & TASK_FROZEN)
		return wait_reason(WAIT_FROZEN, WAIT_NO_FILE, -1);
	if (state & STATE_TRACED)
		return wait_reason(WAIT_TRACED, WAIT_NO_FILE, -1);
	if (state & STATE_STOPPED)
		return wait_reason(WAIT_STOPPED, WAIT_NO_FILE, -1);
	if (!state)
		return wait_reason(WAIT_RUNNABLE, WAIT_NO_FILE, -1);
	if (wait_is_poll(call))
		file = wait_polled(BPF_CORE_READ(r, di), BPF_CORE_READ(r, si));
	else if (wait_is_select(call))
		file = wait_selected(BPF_CORE_READ(r, di), BPF_CORE_READ(r, si));
	else
		file = wait_file_by_call(task, call, BPF_CORE_READ(r, di));
	return wait_reason(WAIT_BLOCKED, file, (s32)call);
}

#endif
