/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which processes are targets, under the pids that yrt knows: for all BPF objects of a run. */
#ifndef YRT_TARGETS_BPF_H
#define YRT_TARGETS_BPF_H

__u32 pid_level = 0;     /* of yrt's own pid namespace: the pids that it knows are of this level ... */
__u64 pid_namespace = 0; /* ... and this namespace: others of the level have the same pids */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32); /* tgid */
	__type(value, struct process_entry);
} processes SEC(".maps");

struct { /* the least recently used go: without an entry, rows of code count until the maps are read again */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u32); /* tgid */
	__type(value, struct code_change);
} code_changes SEC(".maps");

/*
 * The number of a pid at a level of its namespaces. The kernel's element is larger than our flavour of it, so the
 * compiler must not compute a variable index.
 */
static inline struct upid *pid_at(struct pid *pid, u32 level)
{
	return (void *)__builtin_preserve_access_index(&pid->numbers[0]) + level * bpf_core_type_size(struct upid);
}

/* In yrt's own pid namespace; 0: it is not there. */
static inline u32 pid_of(struct task_struct *task, u32 kernel_pid)
{
	struct upid *upid;
	struct pid *pid;

	if (!pid_level)
		return kernel_pid;
	pid = BPF_CORE_READ(task, thread_pid);
	if (BPF_CORE_READ(pid, level) < pid_level)
		return 0;
	upid = pid_at(pid, pid_level);
	return (u64)BPF_CORE_READ(upid, ns) == pid_namespace ? (u32)BPF_CORE_READ(upid, nr) : 0;
}

static __attribute__((noinline, unused)) u32 tgid_of(struct task_struct *task)
{
	return pid_of(pid_level ? BPF_CORE_READ(task, group_leader) : task, BPF_CORE_READ(task, tgid));
}

/*
 * The same for a task whose type the verifier knows, for hot paths: its fields are loaded without a call. Pointers are
 * not: for each that a program loads, Linux 6.18 searches all of the kernel's types by name, which took an eighth of
 * the time to verify a program.
 */
static inline __attribute__((always_inline)) u32 tgid_of_typed(struct task_struct *task)
{
	return pid_level ? tgid_of(task) : (u32)task->tgid;
}

#endif
