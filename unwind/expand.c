/* SPDX-License-Identifier: Apache-2.0 */
#include "expand.h"

#include "runtime.h"

/* Has one of the runtimes expand frames[i]: which instance it belongs to is known to them only. */
static u32 expand_one(const struct process *p, struct runtime_process *view, const struct frame *frames, u32 i, u32 n,
        u32 flags, struct frame *ret, u32 max, u32 *eaten)
{
	const struct runtime_ops *ops = runtime_by_id(frame_runtime(&frames[i]));
	u32 put = 0;

	*eaten = 0;
	if (!p || frame_kind(&frames[i]) != FRAME_SCRIPT || !ops || !ops->expand || max < RUNTIME_EXPAND_MAX)
		return 0;
	for (u32 k = 0; k < p->ninstances && !*eaten; k++) {
		if (p->instances[k].ops != ops || !p->instances[k].data)
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
