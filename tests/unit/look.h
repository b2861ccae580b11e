/* SPDX-License-Identifier: Apache-2.0 */
/* A process as yrt sees it, for tests that look at another one, or at their own. */
#ifndef YRT_LOOK_H
#define YRT_LOOK_H

#include <sys/ptrace.h>
#include <sys/user.h>

#include "unit.h"

#include "arena.h"
#include "process/process.h"
#include "unwind.h"

static inline void must(struct error *err)
{
	if (err)
		fail_msg("%s", err->message);
}

static inline void look_complain(void *ctx, struct error *err)
{
	print_error("%s\n", err->message);
	error_free(err);
}

static inline void look_begin(struct arena **arena, struct modules **modules)
{
	must(arena_create(NULL, arena));
	must(modules_create(*arena, NULL, modules));
	(*modules)->complain = look_complain;
}

/* The first time, and after the process has run. */
static inline void look_at(struct modules *modules, pid_t pid, struct process **p)
{
	bool changed;

	if (*p)
		must(process_rescan(*p, &changed));
	else
		must(process_create(modules, pid, 1, p));
}

static inline void look_end(struct arena *arena, struct modules *modules, struct process *p)
{
	process_destroy(p);
	modules_destroy(modules);
	arena_destroy(arena);
}

/* Of a thread that is stopped. */
static inline void look_registers(pid_t tid, struct unwind_registers *ret)
{
	struct user_regs_struct r;

	assert_int_equal(ptrace(PTRACE_GETREGS, tid, 0, &r), 0);
	*ret = (struct unwind_registers){.reg = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9,
	                                         r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip},
	        .thread_pointer = r.fs_base};
}

/* What the runtimes call frame i. */
static inline bool look_name(struct process *p, const struct frame *frames, u32 i, u32 n, struct frame_name *ret)
{
	struct runtime_process view = process_view(p);

	for (u32 k = 0; k < p->ninstances; k++) {
		struct instance *instance = &p->instances[k];

		if (instance->data && instance->ops->name_frame(instance->data, &view, frames, i, n, ret))
			return true;
	}
	return false;
}

#endif
