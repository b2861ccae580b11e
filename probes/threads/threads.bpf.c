/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Writes the threads of the processes in `wanted`, one struct thread_record each, to the reader of the iterator. */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "kernel.h"
#include "kernel_name.bpf.h"
#include "return_probe.bpf.h"
#include "syscall_of.bpf.h"
#include "threads/thread.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sched_info___threads {
	unsigned long long last_arrival;
};

struct sched_entity___threads {
	u64 sum_exec_runtime;
	u64 prev_sum_exec_runtime;
};

struct task_struct___threads {
	struct sched_entity___threads se;
	struct sched_info___threads sched_info;
	int exit_state;
	unsigned int __state;
	unsigned long jobctl;
	unsigned int policy;
	unsigned long nvcsw, nivcsw;
	struct pid *thread_pid;
	char comm[THREAD_COMM_LEN];
};

#pragma clang attribute pop

const volatile bool with_kernel = true;
__u64 reader_arrival =
        0; /* when the thread that reads the iterator got its CPU: ties the scheduler's clock to user space's */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32); /* tgid */
	__type(value, u32);
} wanted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct thread_record);
} scratch SEC(".maps");

static inline u32 number_at(struct pid *pid, u32 level)
{
	u32 nr = 0;

	/* the kernel's element is larger than our flavour of it: a variable index must not be left to the compiler */
	bpf_probe_read_kernel(&nr, sizeof(nr),
	        (void *)__builtin_preserve_access_index(&pid->numbers[0]) + level * bpf_core_type_size(struct upid));
	return nr;
}

static inline void fill_registers(struct thread_record *r, struct task_struct *task)
{
	struct pt_regs___kernel *p = (void *)bpf_task_pt_regs(task);

	r->reg[DWREG_RAX] = p->ax;
	r->reg[DWREG_RDX] = p->dx;
	r->reg[DWREG_RCX] = p->cx;
	r->reg[DWREG_RBX] = p->bx;
	r->reg[DWREG_RSI] = p->si;
	r->reg[DWREG_RDI] = p->di;
	r->reg[DWREG_RBP] = p->bp;
	r->reg[DWREG_RSP] = p->sp;
	r->reg[DWREG_R8] = p->r8;
	r->reg[DWREG_R9] = p->r9;
	r->reg[DWREG_R10] = p->r10;
	r->reg[DWREG_R11] = p->r11;
	r->reg[DWREG_R12] = p->r12;
	r->reg[DWREG_R13] = p->r13;
	r->reg[DWREG_R14] = p->r14;
	r->reg[DWREG_R15] = p->r15;
	r->reg[DWREG_RIP] = p->ip;
	r->syscall = (s32)syscall_of(task);
	r->arguments[0] = p->di;
	r->arguments[1] = p->si;
	r->arguments[2] = p->dx;
	r->arguments[3] = p->r10;
	r->arguments[4] = p->r8;
	r->arguments[5] = p->r9;
	r->thread_pointer = BPF_CORE_READ(task, thread.fsbase);
}

static inline u64 arrival_of(struct task_struct___threads *t)
{
	return bpf_core_field_exists(t->sched_info.last_arrival) ? BPF_CORE_READ(t, sched_info.last_arrival) : 0;
}

/* SCHED_NORMAL, SCHED_BATCH, SCHED_IDLE */
static inline bool is_fair(u32 policy)
{
	return policy == 0 || policy == 3 || policy == 5;
}

/*
 * It got the CPU at last_arrival, and used what its CPU time has grown by since: of the fair scheduling class only.
 * off_ns is a moment here, of the scheduler's clock.
 */
static inline void fill_times(struct thread_record *r, struct task_struct___threads *t)
{
	u64 sum = BPF_CORE_READ(t, se.sum_exec_runtime), before = BPF_CORE_READ(t, se.prev_sum_exec_runtime);
	u64 arrival = arrival_of(t);

	r->run_ns = sum;
	r->off_ns = arrival && is_fair(BPF_CORE_READ(t, policy)) && sum >= before ? arrival + (sum - before) : 0;
	r->switches = BPF_CORE_READ(t, nvcsw) + BPF_CORE_READ(t, nivcsw);
}

static inline void fill_kernel(struct thread_record *r, struct task_struct *task)
{
	long bytes = 0;

	if (with_kernel && !(r->flags & (THREAD_ON_CPU | THREAD_EXITING)))
		bytes = bpf_get_task_stack(task, r->kernel, sizeof(r->kernel), 0);
	r->nkernel = bytes > 0 ? (u64)bytes / sizeof(u64) : 0;
}

static inline u32 flags_of(struct task_struct *task, struct task_struct___threads *t)
{
	u32 flags = BPF_CORE_READ(task, flags), ret = 0;

	if (task_is_on_cpu(task))
		ret |= THREAD_ON_CPU;
	if (flags & PF_EXITING || BPF_CORE_READ(t, exit_state) || !BPF_CORE_READ(task, mm))
		ret |= THREAD_EXITING;
	if (BPF_CORE_READ(task, pid) == BPF_CORE_READ(task, tgid))
		ret |= THREAD_LEADER;
	return ret;
}

SEC("iter/task")
int on_task(struct bpf_iter__task *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task, *self = (void *)bpf_get_current_task();
	struct task_struct___threads *t = (void *)task;
	u32 zero = 0, level, tgid;
	struct thread_record *r;
	struct pid *pid;

	if (!task)
		return 0;
	pid = BPF_CORE_READ(self, thread_pid);
	level = BPF_CORE_READ(pid, level);
	pid = BPF_CORE_READ(task, group_leader, thread_pid);
	if (!pid || BPF_CORE_READ(pid, level) < level)
		return 0;
	tgid = number_at(pid, level);
	if (!bpf_map_lookup_elem(&wanted, &tgid))
		return 0;
	r = bpf_map_lookup_elem(&scratch, &zero);
	pid = BPF_CORE_READ(task, thread_pid);
	if (!r || !pid)
		return 0;
	r->tgid = tgid;
	r->tid = number_at(pid, level);
	r->own_tid = number_at(pid, BPF_CORE_READ(pid, level));
	r->flags = flags_of(task, t);
	r->state = state_with_freezer(BPF_CORE_READ(t, __state), BPF_CORE_READ(t, jobctl));
	bpf_core_read_str(r->comm, sizeof(r->comm), &t->comm);
	fill_registers(r, task);
	fill_times(r, t);
	fill_kernel(r, task);
	fill_return_probes(&r->probes, task);
	reader_arrival = arrival_of((void *)self);
	bpf_seq_write(seq, r, sizeof(*r));
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
