/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The uprobes of allocation functions in all targets: places them in each process that appears, and in each file that
 * one maps later. In a view of a language (collect_options.names.view) those are the functions of its runtimes.
 */
#ifndef YRT_ALLOC_PLACES_H
#define YRT_ALLOC_PLACES_H

#include "alloc_functions.h"
#include "probes/event.h"
#include "probes/hit/hit_shifts.h"

struct alloc_options;
struct alloc_places;
struct alloc_samples;
struct sample;

struct alloc_places_options {
	const struct event_host *host;
	/* Places what the event needs at a function, whose number is for ALLOC_COOKIE_NUMBER. */
	struct error *(*place)(void *ctx, const struct process *p, struct image *img, const char *path,
	        const struct alloc_function *f, u32 number);
	/* The same where one returns. NULL: that does not matter. */
	struct error *(*place_return)(
	        void *ctx, const struct process *p, struct image *img, const char *path, u64 offset, bool clearing);
	/* Before that: a file of a process has allocation functions; bias: of its addresses there. NULL: no matter. */
	struct error *(*allocator)(void *ctx, const struct process *p, struct image *img, const char *path, u64 bias,
	        const struct alloc_functions *f);
	/* Takes samples of a process's own: its functions are not probed then. NULL: they do not matter. */
	struct alloc_samples *samples;
	void *ctx;
};

/* Before the object is loaded: the sizes of the maps that all its programs share. */
void alloc_places_prepare(struct sample *skel, u32 threads);
struct error *alloc_places_create(const struct alloc_places_options *options, struct alloc_places **ret);
void alloc_places_destroy(struct alloc_places *a); /* NULL is fine */
/* The first look, and BPF's settings. A program that is only starting (at_exec) has mapped nothing yet. */
struct error *alloc_places_start(struct alloc_places *a, bool at_exec);
/* Looks at targets that are new, or have other mappings than before. */
struct error *alloc_places_look(struct alloc_places *a);
/* Now and then: where few stacks come, they are to come by smaller blocks, too. */
void alloc_places_steer(struct alloc_places *a, u64 now);
/* An error that says why, if no target has an allocation function that is known. */
struct error *alloc_places_check(const struct alloc_places *a);
/* Processes that ended before they were looked at: none of their calls was seen. */
u32 alloc_places_missed(const struct alloc_places *a);
/* Places of runtimes that allocate, too, and are not seen (runtime_allocator_ops.find). */
u32 alloc_places_unknown(const struct alloc_places *a);
/* "libc.so.6 (glibc), libjemalloc.so.2 (jemalloc)"; valid until the next look. */
const char *alloc_places_text(const struct alloc_places *a);

#endif
