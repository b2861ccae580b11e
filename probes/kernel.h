/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The few kernel structures that the probes look into, as CO-RE flavours: only the fields that are read, relocated to
 * the running kernel when loading.
 */
#ifndef YRT_KERNEL_H
#define YRT_KERNEL_H

#include <types.h>

#define PF_EXITING 0x00000004 /* task_struct.flags: the thread is in do_exit() */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pid_namespace;

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct thread_struct {
	unsigned long fsbase;
};

struct signal_struct {
	struct {
		int counter;
	} live;
	int nr_threads;
	unsigned long min_flt, maj_flt; /* this and all that follows: of threads that were released */
	unsigned long long sum_sched_runtime;
};

struct mm_struct {
	unsigned long end_code, start_stack, start_brk, brk;
	struct file *exe_file;
};

struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_flags;
	struct file *vm_file;
};

struct rq {
	u64 clock; /* the scheduler's, in ns, as of the latest look at it: at a switch that of this switch */
};

struct cfs_rq {
	struct rq *rq; /* if CONFIG_FAIR_GROUP_SCHED */
};

struct sched_entity {
	struct cfs_rq *cfs_rq; /* the same */
	u64 sum_exec_runtime;
	u64 prev_sum_exec_runtime; /* the same when it came to run, in the fair class */
	u64 exec_start;
	u64 nr_migrations;
};

struct sched_info {
	unsigned long long last_arrival; /* on a CPU, by the scheduler's clock */
	unsigned long long
	        run_delay; /* on run queues so far, in ns; counted as it comes to a CPU, or leaves one's queue */
	unsigned long long
	        last_queued; /* since then, by the clock of that CPU; 0: it runs, or waits for something else */
};

struct super_block {
	unsigned int s_dev;
};

struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
	struct super_block *i_sb;
};

struct qstr {
	unsigned long long hash_len; /* of the name and the directory */
	const unsigned char *name;
};

struct dentry {
	struct {
		void **pprev; /* NULL: it is in no directory any more */
	} d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct fs_struct {
	struct path root;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
	void *private_data;
};

/* io_uring, from Linux 6.0 on */
struct io_cqe {
	u64 user_data;
	int fd;
};

struct io_uring_cqe {
	u64 user_data;
	int res;
	unsigned int flags;
};

struct io_rsrc_node {
	unsigned long file_ptr;
};

struct io_rsrc_data {
	unsigned int nr;
	struct io_rsrc_node **nodes;
};

struct io_file_table {
	struct io_rsrc_data data;
};

struct io_ring_ctx {
	struct io_file_table file_table;
};

struct io_kiocb {
	u8 opcode;
	unsigned int flags;
	struct io_cqe cqe;
	struct io_ring_ctx *ctx;
};

struct in6_addr___kernel {
	unsigned char in6_u[16];
};

struct sock_common {
	unsigned int skc_daddr;
	unsigned short skc_dport; /* in the network's order */
	unsigned short skc_num;
	unsigned short skc_family;
	unsigned char skc_state;
	struct in6_addr___kernel skc_v6_daddr;
};

struct sock {
	struct sock_common __sk_common;
	unsigned int sk_max_ack_backlog;
	unsigned short sk_type;
	unsigned char sk_userlocks : 4;
};

struct socket {
	struct sock *sk;
};

struct rb_node {
	struct rb_node *rb_right, *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct rb_root_cached {
	struct rb_root rb_root;
};

/* All members of the structure come first: a union. */
struct epoll_event___kernel {
	u32 events;
};

struct epoll_filefd {
	struct file *file;
};

struct epitem {
	struct rb_node rbn;
	struct epoll_filefd ffd;
	struct epoll_event___kernel event;
};

struct eventpoll {
	struct rb_root_cached rbr;
};

struct unix_address {
	int len;
	struct {
		unsigned short sun_family;
	} name[0]; /* struct sockaddr_un */
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

/* What restart_syscall(2) goes on with, by what it is: a union. */
struct restart_block {
	struct {
		unsigned int *uaddr;
		unsigned int val;
	} futex;
	struct {
		int clockid;
		void *rmtp;
	} nanosleep;
	struct {
		void *ufds;
		int nfds, has_timeout;
	} poll;
};

/* A return probe that was hit (kernel/events/uprobes.c): where the return address was on the stack, and what it was. */
struct return_instance {
	unsigned long stack;
	unsigned long orig_ret_vaddr;
	struct return_instance *next;
};

struct uprobe_task {
	struct return_instance *return_instances; /* the innermost first */
	union {
		struct {
			unsigned long vaddr;
		};
	};
	unsigned long xol_vaddr; /* where the instruction at vaddr is stepped out of its place; 0: none is */
};

struct task_struct {
	struct sched_entity se;
	struct sched_info sched_info;
	unsigned int __state;
	int on_cpu;   /* task_is_on_cpu() reads it */
	int wake_cpu; /* where it runs, or ran last */
	int prio;     /* below PRIO_FAIR: not in the fair class */
	int exit_state;
	unsigned long jobctl;
	unsigned long nvcsw, nivcsw;
	u64 start_time; /* CLOCK_MONOTONIC */
	struct fs_struct *fs;
	struct files_struct *files;
	char comm[16];
	unsigned long min_flt, maj_flt;
	int pid;
	int tgid;
	unsigned int flags;
	struct task_struct *real_parent, *group_leader;
	struct pid *thread_pid;
	struct mm_struct *mm;
	struct signal_struct *signal;
	struct restart_block restart_block;
	struct uprobe_task *utask; /* NULL: hit no probe yet. CONFIG_UPROBES */
	struct thread_struct thread;
};

struct hrtimer {
	long long _softexpires;
};

struct hw_perf_event {
	u64 sample_period;
	struct hrtimer hrtimer;
	struct {
		struct {
			struct {
				long long counter;
			} a;
		} a;
	} prev_count; /* local64_t; of a cpu-clock event: the scheduler's clock at the tick (cpu_clock_event_update())
	               */
};

struct perf_event_attr {
	u64 config;
};

struct perf_event {
	struct perf_event_attr attr;
	struct hw_perf_event hw;
};

struct seq_file {
	unsigned long count;
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_perf_event_data_kern {
	struct perf_event *event;
};

struct pt_regs___kernel {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

#pragma clang attribute pop

#define PRIO_FAIR  100 /* MAX_RT_PRIO */
#define PF_KTHREAD 0x00200000

/* on_cpu is an int, and in 7.2 a byte beside others: it is read in the size that the running kernel gives it. */
#define task_is_on_cpu(task) (BPF_CORE_READ_BITFIELD_PROBED(task, on_cpu) != 0)

#define TASK_INTERRUPTIBLE 1
#define TASK_FROZEN        0x8000
#define JOBCTL_TRAP_FREEZE (1ul << 23)

/*
 * The state of a task that does not run, with TASK_FROZEN also where cgroup v2 holds it: do_freezer_trap() of
 * kernel/signal.c (the same in 5.15 to 6.18) sleeps like others do.
 */
static inline unsigned int state_with_freezer(unsigned int state, unsigned long jobctl)
{
	return state & TASK_INTERRUPTIBLE && jobctl & JOBCTL_TRAP_FREEZE ? state | TASK_FROZEN : state;
}

#endif
