/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Threads that wait, as an iterator over tasks finds them (wait.h). */
#ifndef YRT_WAIT_VISIT_BPF_H
#define YRT_WAIT_VISIT_BPF_H

#include "wait/wait_bulk.bpf.h"
#include "wait/wait_state.bpf.h"

/* Its switches were not timed: the wait that it may be in now begins, as far as that can be told. */
static __attribute__((always_inline)) inline void wait_visit_bulk(
        struct task_struct *task, struct wait_state *w, u64 now)
{
	bool runs = task_is_on_cpu(task);

	if (runs && !wait_end_ns && !wait_pauses)
		return;
	if (runs)
		wait_bulk_end(w, now, WAIT_ON);
	else
		wait_bulk_back(task, w, now);
	if (!runs && !wait_pauses && task_is_on_cpu(task)) /* it came meanwhile */
		w->since_ns = 0;
}

/* A pause begins, or goes on. The thread may have switched since the probe at switches saw it last. */
static inline void wait_visit_pause(struct task_struct *task, struct wait_state *w, u64 now)
{
	struct wait_stats *ws = wait_stats();

	if (!ws || w->exited || w->bulk_ns)
		return;
	if (w->since_ns && (task_is_on_cpu(task) || wait_switches(task) != w->switches))
		wait_over_unseen(task, w, ws, now);
	wait_bulk_pause(task, w, now);
}

/* A thread that waits: settles its known wait, or hands over what is needed to walk its stack. */
static inline void wait_visit(struct task_struct *task, struct wait_state *w, struct wait_thread *t, u64 now)
{
	u64 since = !w          ? t->begin_ns
	            : w->exited ? 0
	                        : w->since_ns,
	    hash = w ? w->hash : 0, ns = since && now > since ? now - since : 0, queued;

	if (!ns) {
		t->flags = WAIT_RUNS;
		if (since) /* it has just begun */
			wait_sampled = 1;
		return;
	}
	queued = wait_queued(task, w, wait_behind_ns, now);
	queued = wait_span(wait_span(now, wait_arrival(task, 0)), queued); /* it came after the end of the run */
	t->ns = ns;
	t->runnable = w ? w->runnable : wait_is_for_cpu(task, queued, ns);
	t->queued = t->runnable ? 0 : queued < ns ? queued : ns;
	if (!w || !wait_has_stack(w)) {
		t->flags = ns >= wait_due_ns || (wait_end_ns && !w) ? WAIT_DUE : wait_end_ns ? WAIT_OTHERS : 0;
		if (w && t->flags && wait_settling && wait_counts_alone(w, ns))
			w->settled = 1;
		t->settled = w ? w->settled : 1;
		if (!t->flags)
			wait_sampled = 1; /* user space looks once more */
		return;
	}
	t->flags = 0;
	if (!wait_settling || (!wait_counts_alone(w, ns) && !wait_end_ns))
		return;
	if ((ns < wait_min_ns || ns > wait_max_ns) && !w->settled && wait_end_ns)
		return;
	t->stop = w->stop;
	t->hash = hash;
	t->stands = wait_counts_alone(w, ns) ? 1 : w->stands | !w->stands;
	if (__sync_val_compare_and_swap(&w->since_ns, since, now) != since)
		return;
	w->settled = 1;
	t->flags = WAIT_KNOWN;
}

/* User space counts for how long it has lived: its end does not. */
static inline void wait_settled(struct task_struct *task)
{
	struct wait_state *w = wait_new(task);

	if (w)
		w->exited = 1;
}

static inline void wait_registers(struct task_struct *task, struct wait_thread *t)
{
	struct pt_regs___kernel *r = (void *)bpf_task_pt_regs(task);
	s64 call = syscall_of(task);
	u32 state = wait_state_bits(task);

	t->reg[DWREG_RAX] = BPF_CORE_READ(r, ax);
	t->reg[DWREG_RDX] = BPF_CORE_READ(r, dx);
	t->reg[DWREG_RCX] = BPF_CORE_READ(r, cx);
	t->reg[DWREG_RBX] = BPF_CORE_READ(r, bx);
	t->reg[DWREG_RSI] = BPF_CORE_READ(r, si);
	t->reg[DWREG_RDI] = BPF_CORE_READ(r, di);
	t->reg[DWREG_RBP] = BPF_CORE_READ(r, bp);
	t->reg[DWREG_RSP] = BPF_CORE_READ(r, sp);
	t->reg[DWREG_R8] = BPF_CORE_READ(r, r8);
	t->reg[DWREG_R9] = BPF_CORE_READ(r, r9);
	t->reg[DWREG_R10] = BPF_CORE_READ(r, r10);
	t->reg[DWREG_R11] = BPF_CORE_READ(r, r11);
	t->reg[DWREG_R12] = BPF_CORE_READ(r, r12);
	t->reg[DWREG_R13] = BPF_CORE_READ(r, r13);
	t->reg[DWREG_R14] = BPF_CORE_READ(r, r14);
	t->reg[DWREG_R15] = BPF_CORE_READ(r, r15);
	t->reg[DWREG_RIP] = BPF_CORE_READ(r, ip);
	t->thread_pointer = BPF_CORE_READ(task, thread.fsbase);
	t->reason = wait_reason(t->runnable             ? WAIT_RUNNABLE
	                        : state & TASK_FROZEN   ? WAIT_FROZEN
	                        : state & STATE_TRACED  ? WAIT_TRACED
	                        : state & STATE_STOPPED ? WAIT_STOPPED
	                                                : WAIT_BLOCKED,
	        t->runnable ? WAIT_NO_FILE : wait_file_by_call(task, call, BPF_CORE_READ(r, di)),
	        t->runnable ? -1 : (s32)call);
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wait_thread);
} wait_visited SEC(".maps");

static inline void wait_visit_begin(struct task_struct *task, struct wait_thread *t)
{
	t->tid = pid_of(task, task->pid);
	t->begin_ns = wait_begin(task);
	t->switches = wait_switches(task);
	t->ns = t->queued = t->hash = 0;
	t->settled = 0;
	t->stop = 0;
}

SEC("iter/task")
int visit_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	u64 now = wait_end_ns ? wait_end_ns : bpf_ktime_get_ns();
	struct process_entry *process;
	struct wait_thread *t;
	struct wait_state *w;
	u32 zero = 0, tgid;
	u64 object = 0;

	if (!task)
		return 0;
	tgid = tgid_of(task);
	process = bpf_map_lookup_elem(&processes, &tgid);
	t = bpf_map_lookup_elem(&wait_visited, &zero);
	if (!process || !t || task->exit_state)
		return 0;
	w = wait_known(task);
	if (!wait_for_futex(task, &object)) {
		if (wait_futexes && !(w && w->bulk_ns))
			return 0;
		object = 0;
	}
	if (!w && wait_futexes && wait_state_bits(task) & STATE_OF_OTHERS)
		return 0;
	if (w ? w->exited && wait_end_ns : wait_is_over(task)) /* its end has counted its life */
		return 0;
	t->object = object;
	t->tgid = tgid;
	t->instance = process->instance;
	wait_visit_begin(task, t);
	if (!w && wait_pauses)
		w = wait_paused(task, t->begin_ns);
	if (w && w->bulk_ns)
		wait_visit_bulk(task, w, now);
	if (!wait_end_ns && task_is_on_cpu(task))
		t->flags = WAIT_RUNS;
	else
		wait_visit(task, w, t, now);
	if (t->flags & WAIT_DUE) {
		wait_registers(task, t);
		fill_return_probes(&t->probes, task);
		__builtin_memset(t->kernel, 0, sizeof(t->kernel));
		if (with_kernel)
			bpf_get_task_stack(task, t->kernel, sizeof(t->kernel) - 8, 0);
		bpf_probe_read_kernel_str(t->comm, sizeof(t->comm), task->comm);
	}
	if (t->flags && bpf_seq_write(ctx->meta->seq, t, sizeof(*t))) { /* no space left: it is visited again */
		if (w && t->flags & WAIT_KNOWN)
			__sync_val_compare_and_swap(&w->since_ns, now, now - t->ns);
		return 1;
	}
	if (w && t->flags & WAIT_DUE && w->since_ns == now - t->ns)
		w->walked = 1;
	if (w && wait_pauses && !wait_end_ns)
		wait_visit_pause(task, w, now);
	if (wait_end_ns && wait_settling)
		wait_settled(task);
	return 0;
}

#endif
