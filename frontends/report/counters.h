/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's counters of processes, of their cgroup and of the machine, twice, and what happened in between as facts.
 * Costs some microseconds a thread. Sources: proc(5); Documentation/accounting/psi.rst, Documentation/scheduler/
 * sched-stats.rst and admin-guide/cgroup-v2.rst of the kernel.
 */
#ifndef YRT_REPORT_COUNTERS_H
#define YRT_REPORT_COUNTERS_H

#include <sys/types.h>

#include "facts.h"

#define COUNTERS_PROCESSES 2048
#define COUNTERS_THREADS   65536

struct thread_counters {
	pid_t tid, pid;
	u64 run_ns, queued_ns, voluntary, involuntary;
	char comm[32];
};

struct process_counters {
	pid_t pid;
	u64 user, system; /* ticks */
	u64 minor, major;
	u64 rss, anon, file, shmem, swap, locked; /* bytes */
	u64 read, written, read_calls, write_calls, read_bytes, written_bytes;
	bool has_fds;  /* they may be read */
	u64 collected; /* runtime_ops.used_after_collection; 0: unknown */
	u64 threads, fds, fd_limit, thread_limit, memory_limit, sockets;
};

struct machine_counters {
	u64 busy, iowait, steal, idle;                  /* ticks of all CPUs */
	u64 pressure_cpu, pressure_io, pressure_memory; /* microseconds in which some task waited */
	u64 retransmits, sent_segments, overflows, swapped_in, swapped_out;
	u64 memory, memory_free;
	u64 allowed_busy; /* ticks of the CPUs that the first process may run on */
};

struct cgroup_counters {
	bool known;
	double cpus; /* its limit; 0: none */
	u64 periods, throttled, throttled_us;
	u64 memory, memory_limit, memory_high; /* bytes; a limit of 0: none */
	u64 oom_kills, memory_max_events, pids, pids_limit;
	u64 pressure_cpu, pressure_io, pressure_memory;
	bool pressure;
};

struct counters { /* zeroed at first */
	u64 at_ns;
	struct process_counters *processes;
	u32 nprocesses;
	struct thread_counters *threads; /* by tid */
	u32 nthreads;
	struct machine_counters machine;
	struct cgroup_counters cgroup; /* of the first process */
	bool cut;                      /* there were more */
};

struct error *counters_take(const pid_t *pids, u32 n, struct counters *ret);
/* NULL: there was no such thread. */
const struct thread_counters *counters_thread(const struct counters *c, pid_t tid);
void counters_free(struct counters *c);
/* What happened between two of them. */
void counters_facts(const struct counters *before, const struct counters *after, struct facts *ret);
/* Bytes of all processes: resident and swapped. */
double counters_memory(const struct counters *c);
/* What collections left in use in all of them. */
double counters_collected(const struct counters *c);
/* Open files of all of them. */
double counters_fds(const struct counters *c);
/* The process whose memory grew most, and what it had before; 0: that of none did. */
pid_t counters_growing(const struct counters *before, const struct counters *after, double *had);
/* Bytes of its own of one process; 0: it is gone. */
double counters_memory_of(const struct counters *c, pid_t pid);
/* What grew between two of them that lie further apart. */
void counters_growth(const struct counters *before, const struct counters *after, struct facts *ret);

#endif
