/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view: what `yrt <name>-flame` shows. It belongs to all runtimes that name it (runtime_ops.view): several
 * implementations of one language share it, and a process with two of them shows both.
 */
#ifndef YRT_VIEW_H
#define YRT_VIEW_H

#include <stdbool.h>
#include <types.h>

#include "runtime.h"

struct view {
	const char *name;     /* "lua" */
	const char *language; /* "Lua" */
	u32 runtimes;         /* bit n: the runtime with id n */
	bool allocator;       /* the functions are known that make the objects of one of them: the same */
	bool alloc;           /* one of them reports its allocations: there is a <name>-alloc */
};

/* All, up to name NULL; in the order of runtimes/list.h. */
const struct view *views(void);
/* The view that a command such as "lua-flame" begins with; NULL: none. */
const struct view *view_of_command(const char *command);
/* NULL as view has no runtime. */
bool view_has(const struct view *v, enum runtime_id id);
/* Does native code of this symbol begin the work of a thread, for any runtime of the view? */
bool view_is_thread_entry(const struct view *v, const char *symbol);

#endif
