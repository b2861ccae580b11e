/* SPDX-License-Identifier: Apache-2.0 */
/* The uprobe of an allocator's own counter (alloc_counter.h), among those of a file's functions. */
#ifndef YRT_ALLOC_COUNTER_PLACE_H
#define YRT_ALLOC_COUNTER_PLACE_H

#include "alloc_counter.h"
#include "alloc_windows.h"
#include "probes/event.h"

struct alloc_counter_file { /* of the file whose functions are placed next */
	struct alloc_counter counter;
	u32 quantum; /* 0: it has none */
};

/* As alloc_places_options.allocator: finds the counter, if the file has one, and adds its place. */
struct error *alloc_counter_place(struct alloc_counter_file *c, const struct event_host *host, struct alloc_windows *w,
        const struct process *p, struct image *img, const char *path, u64 bias, const struct alloc_functions *f);
/* The bits for ALLOC_COOKIE_QUANTUM of a function of that file. */
u64 alloc_counter_cookie(const struct alloc_counter_file *c, const struct alloc_function *f);

#endif
