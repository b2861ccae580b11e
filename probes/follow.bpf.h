/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Follows fork, exec and exit of targets, for all events. */
#ifndef YRT_FOLLOW_BPF_H
#define YRT_FOLLOW_BPF_H

u64 ended_faults = 0; /* page faults of processes that were targets and are gone */
u64 exec_faults = 0;  /* that a command had when it became the program to look into */

/* A thread is gone for good. With the last one of a process its CPU time is final. */
SEC("raw_tp/sched_process_free")
int BPF_PROG(on_free, struct task_struct *task)
{
	struct signal_struct *signal = BPF_CORE_READ(task, signal);
	u64 key = (u64)signal, ns = BPF_CORE_READ(signal, sum_sched_runtime);
	struct process_ending *ending;

	if (BPF_CORE_READ(signal, nr_threads))
		return 0;
	ending = bpf_map_lookup_elem(&endings, &key);
	if (!ending)
		return 0;
	if (keep_ended) {
		ending->cpu_ns = ns;
		ending->is_final = 1;
		return 0;
	}
	__sync_fetch_and_add(&ended_ns, ns);
	bpf_map_delete_elem(&endings, &key);
	return 0;
}

/* A child runs the parent's code at the same addresses: it has its entry before its first instruction. */
SEC("raw_tp/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 tgid = tgid_of(parent), child_tgid;
	struct process_entry *process, entry;

	if (BPF_CORE_READ(child, pid) != BPF_CORE_READ(child, tgid))
		return 0;
	process = bpf_map_lookup_elem(&processes, &tgid);
	if (!process || !(process->flags & PROCESS_FOLLOW))
		return 0;
	entry = *process;
	entry.instance = __sync_fetch_and_add(&last_instance, 1) + 1;
	entry.stack = BPF_CORE_READ(child, mm, start_stack);
	child_tgid = tgid_of(child);
	bpf_map_update_elem(&processes, &child_tgid, &entry, BPF_ANY);
	send_process_record(RECORD_FORK, child_tgid, entry.instance, process->instance, entry.stack);
	return 0;
}

SEC("raw_tp/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	u32 tgid = tgid_of(task);
	struct process_entry *process = bpf_map_lookup_elem(&processes, &tgid);
	struct process_entry entry = {};

	if (!process)
		return 0;
	entry.flags = process->flags;
	entry.since_ns = process->since_ns;
	entry.deferred = DEFERRED_MOST;
	entry.stack = BPF_CORE_READ(task, mm, start_stack);
	entry.instance = __sync_fetch_and_add(&last_instance, 1) + 1;
	send_process_record(RECORD_EXEC, tgid, entry.instance, process->instance, entry.stack);
	bpf_map_update_elem(&processes, &tgid, &entry, BPF_ANY);
	if (ticks == TICKS_AT_EXEC) {
		exec_faults = BPF_CORE_READ(task, min_flt) + BPF_CORE_READ(task, maj_flt);
		taken_ns = bpf_ktime_get_ns();
		ticks = TICKS_TAKEN;
	}
	return 0;
}

/* Of the last thread's process. A leader that has ended before it is not released yet. */
static inline u64 faults_of(struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	u64 sum = BPF_CORE_READ(task, signal, min_flt) + BPF_CORE_READ(task, signal, maj_flt);

	sum += BPF_CORE_READ(task, min_flt) + BPF_CORE_READ(task, maj_flt);
	return leader == task ? sum : sum + BPF_CORE_READ(leader, min_flt) + BPF_CORE_READ(leader, maj_flt);
}

/* The CPU time of the last thread's process, likewise. */
static inline u64 cpu_of(struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	u64 sum = BPF_CORE_READ(task, signal, sum_sched_runtime) + BPF_CORE_READ(task, se.sum_exec_runtime);

	return leader == task ? sum : sum + BPF_CORE_READ(leader, se.sum_exec_runtime);
}

SEC("raw_tp/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	u32 tgid = tgid_of(task), tid = BPF_CORE_READ(task, pid);
	struct process_entry *process = bpf_map_lookup_elem(&processes, &tgid);
	struct process_ending ending = {.tgid = tgid};
	u64 key = (u64)BPF_CORE_READ(task, signal);

	bpf_map_delete_elem(&watches, &tid);
	if (!process || BPF_CORE_READ(task, signal, live.counter))
		return 0;
	ending.instance = process->instance;
	ending.since_ns = process->since_ns;
	ending.cpu_ns = cpu_of(task);
	any_ending = 1;
	bpf_map_update_elem(&endings, &key, &ending, BPF_ANY);
	__sync_fetch_and_add(&ended_faults, faults_of(task));
	send_process_record(RECORD_EXIT, tgid, process->instance, 0, 0);
	bpf_map_delete_elem(&processes, &tgid);
	return 0;
}

/* Run once by user space, which cannot find out by itself which pid namespace it is in, and how deep. */
SEC("raw_tp")
int find_level(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	struct upid *upid;

	pid_level = BPF_CORE_READ(pid, level);
	upid = pid_at(pid, pid_level);
	pid_namespace = (u64)BPF_CORE_READ(upid, ns);
	return 0;
}

#endif
