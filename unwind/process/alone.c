/* SPDX-License-Identifier: Apache-2.0 */
#include "alone.h"

#include "unwind/arena.h"
#include "unwind/cfi/cfi.h"

struct error *process_alone_open(struct process_alone *a, pid_t pid, struct core_file *core,
        void (*complain)(void *ctx, struct error *err), void *ctx)
{
	struct error *err = arena_create(NULL, &a->arena);

	if (!err)
		err = modules_create(a->arena, cfi_default_cache(), &a->modules);
	if (err)
		return err;
	a->modules->complain = complain;
	a->modules->complain_ctx = ctx;
	return core ? process_create_core(a->modules, core, 1, &a->p) : process_create(a->modules, pid, 1, &a->p);
}

void process_alone_close(struct process_alone *a)
{
	process_destroy(a->p);
	modules_destroy(a->modules);
	if (a->arena)
		arena_destroy(a->arena);
}
