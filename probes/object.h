/* SPDX-License-Identifier: Apache-2.0 */
/* The loaded BPF object of the clock: its knobs, tables and counters. */
#ifndef YRT_OBJECT_H
#define YRT_OBJECT_H

#include <sys/types.h>
#include <types.h>

#include "unwind/arena.h"
#include "unwind/error.h"
#include "unwind/shared/alloc.h"
#include "unwind/shared/record.h"
#include "unwind/shared/region.h"

struct object_options {
	u32 depth;
	u64 period_ns; /* CPU time that a sample stands for */
	bool no_kernel, no_user, by_thread;
	bool measure; /* have the kernel measure the run time of BPF programs */
	bool alloc;   /* the programs of alloc.h in place of the clock's */
};

struct object;
struct uprobe;

struct error *object_create(const struct object_options *options, struct object **ret);
void object_destroy(struct object *o);

/* Slabs that BPF sees. */
struct arena_source *object_slabs(struct object *o);
int object_clock_program(const struct object *o);
int object_ring_fd(const struct object *o);
/* Hands out the records that wait, at most so many; 0: all, and those that come meanwhile. */
void object_consume(struct object *o, u32 most, void (*record)(void *ctx, const void *data, size_t size), void *ctx);

struct error *object_set_process(struct object *o, pid_t tgid, const struct process_entry *entry);
/* A number for a process, not used before. */
u32 object_new_instance(struct object *o);

/*
 * Which threads have a clock, while clocks are being opened: one that a clocked thread makes inherits its clock, and must not
 * get a second one. set notes a thread, has asks; attaching false ends and forgets it.
 */
void object_set_attaching(struct object *o, bool attaching);
void object_set_clocked(struct object *o, pid_t tid);
bool object_has_clock(const struct object *o, pid_t tid);

/* Time from which on threads are seen from their start. */
void object_mark_start(struct object *o);
/* CPU time of threads that lived too short to be seen, as far as no other thread stood in for them. */
u64 object_debt_ns(const struct object *o);

/* Threads so far that ended before they had run for two periods. */
u32 object_short_lives(const struct object *o);
/* Switches a second of CPU time, summed over n looks at a thread that was sampled. */
u64 object_switch_rates(const struct object *o, u32 *n);
/* Ticks are those of CPUs: a thread's end leaves no debt. */
void object_set_by_cpu(struct object *o, bool by_cpu);
/* Clocks that start from here on tick so often. by_cycles: so do all, on average. */
void object_set_tick(struct object *o, u64 tick_ns, bool by_cycles);

/* Halves the rate: each sample counts twice as much. */
void object_halve(struct object *o);

/* Tells of each new stack at once, not now and then: costs an interrupt each. */
void object_eager(struct object *o, bool eager);

/*
 * To move counts out: flip turns the probes to the other map and returns the epoch that has ended (no program counts in it
 * any more; its last records may still wait in the ring), drain empties its map, calling add for every (hash, count).
 * Stacks are sent anew in the new epoch.
 */
u32 object_flip(struct object *o);
struct error *object_drain(struct object *o, u32 epoch, void (*add)(void *ctx, u32 epoch, u64 hash, u64 count), void *ctx);
u32 object_counts_capacity(const struct object *o);

/* Of alloc.h: the ring of struct alloc_record, in a thread of its own; record is called for each that waits. */
int object_alloc_fd(const struct object *o);
void object_consume_alloc(struct object *o, void (*record)(void *ctx, const void *data, size_t size), void *ctx);
/* Of alloc.h: its programs, and the perf event array through which they wake the keepers of watchpoints. */
int object_watch_program(const struct object *o);
int object_keepers_fd(const struct object *o);
/* A uprobe of alloc.h (uprobe.h). */
struct error *object_attach_site(struct object *o, pid_t pid, const char *path, u64 offset, u64 cookie, struct uprobe **ret);
struct error *object_set_probe(struct object *o, u32 number, const struct alloc_probe *probe);
/* What a thread is watched for was passed before the watchpoint was there: it is watched for something else. */
void object_set_watch(struct object *o, u32 key, const struct alloc_watch *watch);
bool object_watch(const struct object *o, u32 key, struct alloc_watch *ret);
/* false: there are no debug registers; the stack of a refill stands for its whole buffer. */
void object_set_watching(struct object *o, bool watching);
/* Mean distance between samples, 0: take none; and how many samples a burst of 10 ms may have. */
void object_set_interval(struct object *o, u64 interval, u32 burst);
void object_set_duty(struct object *o, u32 duty);
/* Mean bytes between buffers that are looked into, 0: none. */
void object_set_census(struct object *o, u64 interval);
/* False: what hits a site is let go, so that all sites begin and end a shift together. */
void object_set_open(struct object *o, bool open);
struct error *object_alloc_stats(struct object *o, struct alloc_stats *ret);
/* Bytes that were handed out to a process, all of them; size_class: of objects outside buffers, or ALLOC_BUFFERS. */
double object_handed_out(struct object *o, pid_t pid, u32 size_class);

struct error *object_stats(struct object *o, struct probe_stats *ret);
/* Nanoseconds that the clock's program ran, as the kernel measured; 0 if not measured. */
u64 object_run_time(const struct object *o);
/* Memory of all maps. */
u64 object_map_bytes(const struct object *o);

#endif
