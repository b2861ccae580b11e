/* SPDX-License-Identifier: Apache-2.0 */
#include "expand.h"

#include "runtime.h"

static bool expands(const struct runtime_ops *ops, const struct frame *f)
{
	return ops->expand && (frame_kind(f) == FRAME_SCRIPT ? frame_runtime(f) == ops->id
	                                                     : frame_kind(f) == FRAME_NATIVE && ops->expands_native);
}

/* Has one of the runtimes expand frames[i]: which instance it belongs to is known to them only. */
static u32 expand_one(const struct process *p, struct runtime_process *view, const struct frame *frames, u32 i, u32 n,
        u32 flags, struct frame *ret, u32 max, u32 *eaten)
{
	u32 put = 0;

	*eaten = 0;
	if (!p || max < RUNTIME_EXPAND_MAX)
		return 0;
	for (u32 k = 0; k < p->ninstances && !*eaten; k++) {
		const struct runtime_ops *ops = p->instances[k].ops;

		if (!expands(ops, &frames[i]) || !p->instances[k].data)
			continue;
		if (!view->stack) {
			*view = process_view(p);
			view->stack = ++p->modules->nstacks;
		}
		put = ops->expand(p->instances[k].data, view, frames, i, n, flags, ret, max, eaten);
	}
	return put;
}

u32 expand_stack(const struct process *p, const struct frame *frames, u32 n, u32 flags, struct frame *ret, u32 max)
{
	struct runtime_process view = {0};
	u32 put = 0, eaten;

	for (u32 i = 0; i < n && put < max; i += eaten) {
		put += expand_one(p, &view, frames, i, n, flags, ret + put, max - put, &eaten);
		if (eaten)
			continue;
		ret[put++] = frames[i];
		eaten = 1;
	}
	return put;
}
