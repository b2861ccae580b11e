/* SPDX-License-Identifier: Apache-2.0 */
#include "tlab_leaves.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tlab_threads.h"
#include "grow.h"
#include "unwind/runtime_alloc.h"
#include "unwind/table.h"

#define LEAF_FRAMES 4

struct leaf {
	struct frame frame[LEAF_FRAMES];
};

struct tlab_leaves {
	const struct targets *targets;
	struct leaf *list; /* placed exactly */
	u32 n;
	struct table by_frames; /* hash of what they were before: index in list */
};

struct error *tlab_leaves_create(const struct targets *targets, struct tlab_leaves **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return &error_no_memory;
	(*ret)->targets = targets;
	return NULL;
}

void tlab_leaves_destroy(struct tlab_leaves *l)
{
	if (!l)
		return;
	free(l->list);
	table_free(&l->by_frames);
	free(l);
}

struct error *tlab_leaves_place(struct tlab_leaves *l, u32 process, struct frame *frames, u32 n)
{
	const struct process *p = targets_find(l->targets, process);
	const struct instance *in = tlab_runtime(p);
	u64 size = (n < LEAF_FRAMES ? n : LEAF_FRAMES) * sizeof(*frames),
	    key = XXH3_64bits_withSeed(frames, size, process) | 1;
	u64 *known = table_get(&l->by_frames, key);
	struct runtime_process view;
	struct error *err;

	if (!in || !in->ops->alloc->place)
		return NULL;
	if (known) {
		memcpy(frames, l->list[*known].frame, size);
		return NULL;
	}
	view = process_view(p);
	in->ops->alloc->place(in->data, &view, frames, (u32)(size / sizeof(*frames)));
	err = grow((void **)&l->list, l->n, sizeof(*l->list));
	if (!err)
		err = table_put(&l->by_frames, key, l->n);
	if (!err)
		memcpy(l->list[l->n++].frame, frames, size);
	return err;
}

static bool is_in_file(const struct process *p, const struct instance *in, u64 addr)
{
	const struct mapping *m = process_mapping(p, addr);

	return m && m->image && m->image == in->loaded->image;
}

u32 tlab_leaves_filling(const struct tlab_leaves *l, u32 process, const struct frame *frames, u32 n)
{
	const struct process *p = targets_find(l->targets, process);
	const struct instance *in = tlab_runtime(p);

	for (u32 i = 0; in && i < n && i < LEAF_FRAMES && frame_kind(&frames[i]) == FRAME_NATIVE; i++)
		if (is_in_file(p, in, frame_addr(&frames[i])))
			return i;
	return 0;
}
