/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time off the CPU by the stack that waits.
 *
 * A program at each context switch (tp_btf/sched_switch) walks the stack of a target's thread that leaves the CPU, and
 * counts the time for that stack when the thread is back: every wait is exact. Where there are too many switches it is
 * attached in shifts (wait_shifts.h).
 *
 * If threads wait so often that walks would take more than 1 % of a CPU, waits shorter than some 50 ms are chosen at
 * random. The longer a thread's waits are on average, the more likely they are chosen. How long a wait will last plays
 * no part in that, and what is chosen with the probability p counts 1/p times. So each sum is right on average,
 * whatever waits of different length follow each other in a thread. How far off it may be is said
 * (wait_summary.off_by).
 * sampler_options.cpu_percent 0 lifts that limit. It does not hold for threads whose waits are longer in one of 16
 * cases: to walk them later costs more.
 * Longer waits are always taken: user space looks for threads that wait without a stack (an iterator over tasks) and
 * walks them from outside, by the same walkers and the registers that the kernel saved. If a thread ran meanwhile (by
 * its count of switches), that stack is dropped. The same is done for threads that were asleep before the run began. A
 * wait that is not over at the end is counted until then.
 *
 * Why not a clock that visits sleeping threads, without a probe at switches? Tried, with visits every 20 ms: of the
 * threads that were visited, 67 % moved on before their stack was read where waits take 20 us, 38 % at 200 us, 7 % at
 * 2 ms and none at 20 ms, so short waits would count too little. 64 threads cost 12 % of a CPU; this way 4 %.
 *
 * The thread that ends a wait (wait_options.wakers) is walked when it does (tp_btf/sched_waking), for waits whose
 * stacks are taken.
 *
 * Time off the CPU is summed at each switch, whether a stack was taken or not. Together with the scheduler's CPU time
 * it must give the time that threads existed (struct wait_summary).
 *
 * Tasks that wait without a thread (wait_options.tasks) are counted separately: wait_tasks.h.
 *
 * lock_event takes those waits that are in futex(2), whose first argument identifies the lock. The stack shows which of
 * them are for a lock (unwind/profile/locks.h). Such a wait lasts from when the thread leaves the CPU until it is back.
 * Spinning before that, and locks that are free, cost nothing here and are not seen.
 */
#ifndef YRT_WAIT_H
#define YRT_WAIT_H

#include <stdbool.h>
#include <types.h>

struct error;

struct wait_options {       /* sampler_options.of_event */
	u64 min_ns, max_ns; /* of a wait; max_ns 0: any */
	bool wakers;        /* the stack of who ends a wait stands behind that of the wait */
	bool tasks;         /* also what waits without a thread (wait_tasks.h) */
};

struct wait_summary {       /* sampler_stats.of_event */
	double wall_s;      /* that threads of targets were there, summed */
	double on_s;        /* of it on a CPU, as the scheduler counted */
	double sampled_s;   /* of that by the samples of wall-flame; 0: it took none */
	double off_s;       /* of it off all CPUs, summed at switches */
	double run_queue_s; /* of that of threads that could run, by what stacks stand for */
	double left_out_s;  /* of waits shorter or longer than asked for */
	u64 waits;
	u64 skipped;    /* waits that others stand for */
	double off_by;  /* a share of half of the time may be off by so much (95 %); 0: nothing is estimated */
	double watched; /* the part of the time that switches were watched */
	u64 unseen;     /* waits whose end the kernel did not report: known when the next began */
	u64 visited;    /* stacks that were walked from outside */
	u64 moved;      /* of them dropped: the thread ran meanwhile */
	u64 looks;      /* at what waits without a thread */
	double tasks_s, unseen_tasks_s; /* that waited so; the same of those that could not be read */
};

/*
 * For wall_event, whose clock says when time begins to count. Before that: who sleeps has a stack then, however late
 * the first poll is, and however many they are.
 */
struct error *wait_look(void *event);
/* After it. */
void wait_begins(void *event);

#endif
