/* SPDX-License-Identifier: Apache-2.0 */
/* What only java-alloc has in the loaded BPF object (tlab.bpf.h). */
#ifndef YRT_TLAB_OBJECT_H
#define YRT_TLAB_OBJECT_H

#include "probes/object.h"
#include "unwind/shared/alloc.h"

struct ring_buffer;
struct bpf_program;

void tlab_object_prepare(struct object *o);
/* The ring of struct alloc_record; record is called for each that waits when it is consumed. NULL: errno says why. */
struct ring_buffer *tlab_object_ring(struct object *o, int (*record)(void *ctx, void *data, size_t size), void *ctx);
/*
 * Descriptors of the program that a watchpoint runs, and of the perf event array through which programs wake watchpoint
 * threads.
 */
int tlab_object_watch_program(const struct object *o);
int tlab_object_watchpoint_threads_fd(const struct object *o);
/* What runs where a runtime allocates; its cookie is the number of a probe. */
const struct bpf_program *tlab_object_site_program(const struct object *o);
struct error *tlab_object_set_probe(struct object *o, u32 number, const struct alloc_probe *probe);
/* The thread had passed its watched address before the watchpoint was set: chooses another address. */
void tlab_object_set_watch(struct object *o, u32 key, const struct alloc_watch *watch);
bool tlab_object_watch(const struct object *o, u32 key, struct alloc_watch *ret);
/* false: there are no debug registers; the stack of a refill stands for its whole buffer. */
void tlab_object_set_watching(struct object *o, bool watching);
/* Mean distance between samples, 0: take none; and how many samples a burst of 10 ms may have. */
void tlab_object_set_interval(struct object *o, u64 interval, u32 burst);
void tlab_object_set_duty(struct object *o, u32 duty);
/* Mean bytes between buffers that are looked into, 0: none. */
void tlab_object_set_survey(struct object *o, u64 interval);
/* False: what hits a site is let go, so that all sites begin and end a shift together. */
void tlab_object_set_open(struct object *o, bool open);
struct error *tlab_object_stats(struct object *o, struct alloc_stats *ret);
/* Bytes that were handed out to a process, all of them; size_class: of objects outside buffers, or ALLOC_BUFFERS. */
double tlab_object_handed_out(struct object *o, pid_t pid, u32 size_class);

#endif
