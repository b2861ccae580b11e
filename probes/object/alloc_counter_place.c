/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_counter_place.h"

#include <bpf/libbpf.h>

#include "probes/object.h"
#include "probes/sampler.h"
#include "sample.skel.h"

struct error *alloc_counter_place(struct alloc_counter_file *c, const struct event_host *host, struct alloc_windows *w,
        const struct process *p, struct image *img, const char *path, u64 bias, const struct alloc_functions *f)
{
	struct alloc_window_place at = {.program = object_skeleton(host->object)->progs.on_alloc_counter};

	c->quantum = 0;
	if (host->options->collect.names.view || !alloc_counter_find(img, f, &c->counter))
		return NULL;
	c->quantum = alloc_counter_quantum(&c->counter, p, bias);
	at.offset = c->counter.offset;
	at.cookie = (u64)c->counter.stepped << 18;
	return alloc_windows_add(w, p, path, &at);
}

u64 alloc_counter_cookie(const struct alloc_counter_file *c, const struct alloc_function *f)
{
	return (u64)(alloc_counter_counts(&c->counter, f) ? c->quantum / 8 : 0) << 19;
}
