/* SPDX-License-Identifier: Apache-2.0 */
/* The loaded BPF object of a run: settings, tables and counters that all events share. */
#ifndef YRT_OBJECT_H
#define YRT_OBJECT_H

#include <sys/types.h>
#include <types.h>

#include "event.h"
#include "unwind/arena.h"
#include "unwind/error.h"
#include "unwind/shared/record.h"
#include "unwind/shared/region.h"

struct object_options {
	u32 depth;
	bool no_kernel, no_user, by_thread;
	bool times;       /* RECORD_TIME for each sample */
	bool everyone;    /* whoever runs becomes a target: RECORD_FORK reports it; CPU time is that of the machine */
	bool measure;     /* have the kernel measure the run time of BPF programs */
	bool rarely_read; /* records wait for longer than processes may live: what is urgent has to report itself */
	const struct event_ops *event; /* whose programs are loaded */
	const void *of_event;          /* its own options */
	const char *cache_dir;         /* NULL: none */
};

struct bpf_map;
struct bpf_program;
struct object;

/* Nothing is loaded yet, but there may be slabs, and instances. */
struct error *object_create(const struct object_options *options, struct object **ret);
/*
 * Begins to load it with the walkers of these runtimes (bit n: id n; walker_loads.h), in a thread of its own: the
 * verifier takes most of the time until the first sample. There may be more slabs and instances meanwhile.
 */
struct error *object_begin(struct object *o, u32 walkers);
/* Waits until it is loaded, and starts following processes. */
struct error *object_load(struct object *o);
void object_destroy(struct object *o);

/* Slabs that BPF sees. */
struct arena_source *object_slabs(struct object *o);
/*
 * For events: marks a program for loading (event_ops.prepare); the descriptor of a loaded one; an event's own settings
 * and maps.
 */
void object_want(struct object *o, const char *program);
const void *object_of_event(const struct object *o);
const char *object_cache_dir(const struct object *o);
int object_program(const struct object *o, const char *name);
struct sample *object_skeleton(const struct object *o);
/* The table through which a stub calls this program; NULL: the program takes no stacks (WALKING() of event.bpf.h). */
struct bpf_map *object_table_of(const struct sample *skel, const struct bpf_program *program);
/* Puts all of them that are loaded in place of those before. 0, or -errno. */
int object_put_in_place(const struct sample *skel);
int object_ncpus(const struct object *o); /* possible ones: entries of maps per CPU */
int object_ring_fd(const struct object *o);
/* Hands out the records that wait, at most so many; 0: all, and those that come meanwhile. */
void object_consume(struct object *o, u32 most, void (*record)(void *ctx, const void *data, size_t size), void *ctx);

/*
 * is_new: BPF does not know it yet. Otherwise nothing happens if it has exited meanwhile, because its pid may be
 * another's. If it runs another program by now, the entry is for that one.
 */
struct error *object_set_process(struct object *o, pid_t tgid, const struct process_entry *entry, bool is_new);
/* How many are new so far. */
u32 object_added(const struct object *o);
/* A target has made this code, and may replace it: BPF is to notice, if the kernel permits it (code_watch.h). */
void object_watch_code(struct object *o, pid_t tgid, const struct code_ranges *code);
/* It is no target any more. */
void object_forget_process(struct object *o, pid_t tgid);
/* A number for a process, not used before. */
u32 object_new_instance(struct object *o);

/* What becomes of events; at first they are ignored. */
void object_take_ticks(struct object *o, enum ticks ticks);
/* Since when they are taken; 0: not yet. */
u64 object_taken_ns(const struct object *o);
/*
 * CPU time of all targets while they are targets (of those that targets started: since their start), by the scheduler,
 * also of those that are gone. Below zero, if a target ended before that was watched: only differences say something.
 */
s64 object_cpu_ns(const struct object *o);
/*
 * The same at the end of a run: waits, 0.3 s at most, for the time of threads that are just ending. A process that is
 * killed has most of its threads end at once, and the kernel adds up their time as it gets rid of them.
 */
s64 object_final_cpu_ns(struct object *o);

/* As kernel_name() does. */
bool object_name_kernel(struct object *o, u64 addr, char *text, size_t size);

/* Half of the events are taken from now on: each counts twice as much. */
void object_halve(struct object *o);

/* Reports each new stack at once, not now and then: costs an interrupt each. */
void object_eager(struct object *o, bool eager);

/*
 * To move counts out: flip switches the probes to the other table and returns the epoch that has ended (no program
 * counts in it any more; its last records may still be in the ring). drain empties its table and calls add for each
 * hash. In the new epoch stacks are sent again.
 */
u32 object_epoch(const struct object *o); /* the one that programs count in */
u32 object_flip(struct object *o);
struct error *object_drain(struct object *o, u32 epoch,
        void (*add)(void *ctx, u32 epoch, u64 hash, const struct stack_count *count), void *ctx);
u32 object_counts_capacity(const struct object *o);
/* What each possible CPU counted, to be freed; NULL, and errno. */
struct probe_stats *object_cpu_stats(const struct object *o);

struct error *object_stats(struct object *o, struct probe_stats *ret);
/* The sum over all CPUs of a per-CPU array's one element, which is words of 64 bits; all 0 if there is an error. */
struct error *object_sum(const struct object *o, const struct bpf_map *map, u64 *ret, size_t size);
/*
 * Run time in ns of the event's programs, as the kernel measured it, and, in *others, of those that follow processes; 0
 * if not measured.
 */
u64 object_run_time(const struct object *o, u64 *others);
/* Memory of all maps, spare ones too. */
u64 object_map_bytes(const struct object *o);

#endif
