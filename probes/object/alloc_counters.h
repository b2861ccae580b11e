/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threads' allocator has counted (alloc_counter.h), read from their memory: one system call for each process. BPF
 * says where a process has the counter, as soon as a thread has allocated 64 KiB, and an iterator finds its threads.
 *
 * A thread that began before the run counts from when its counter is read first, another one from its begin. What a
 * thread counts between the last reading and its end is not seen: where threads come and go, the sum is not sure.
 */
#ifndef YRT_ALLOC_COUNTERS_H
#define YRT_ALLOC_COUNTERS_H

#include <stdbool.h>
#include <types.h>

struct alloc_counters;
struct bpf_map;
struct bpf_program;

struct alloc_counted {
	double bytes; /* since the first reading, as the allocator rounds them up */
	double first; /* of that, by threads until they were read first */
	bool known;   /* a counter was read */
	bool sure;    /* no process's is in doubt, and hardly a thread has ended */
};

/* The maps alloc_counter_at and alloc_threads, and what finds threads for the latter. NULL: no memory. */
struct alloc_counters *alloc_counters_create(
        const struct bpf_map *at, const struct bpf_map *threads, const struct bpf_program *visit);
void alloc_counters_destroy(struct alloc_counters *c); /* NULL is fine */
void alloc_counters_read(struct alloc_counters *c, struct alloc_counted *ret);

#endif
