/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the assembly of Go's runtime shows: where it changes stacks, the offsets in g and m that it uses, and which
 * registers it saves. This is the code that runs, so the facts hold in stripped programs and in later versions, as long
 * as the code's shape is known; any other shape is refused.
 */
#ifndef YRT_GO_CODE_H
#define YRT_GO_CODE_H

#include <arch.h>
#include <types.h>

#include "go_table.h"

struct go_code;

struct go_code *go_code_create(void); /* NULL: no memory */
void go_code_destroy(struct go_code *code);

struct go_stretch {
	u64 start, end;
};

#define GO_STRETCHES 4

/* A function that keeps the stack pointer in a register while it runs on another stack. */
struct go_keeping {
	u8 reg;
	s32 size; /* of its frame */
	u32 n;
	struct go_stretch stretch[GO_STRETCHES];
};
bool go_code_keeping(struct go_code *code, struct go_table *t, const struct go_function *fn, struct go_keeping *ret);

/* Addresses of data that a function's code names, in its order; each once. */
#define GO_REFERENCES 64
struct go_references {
	u32 n;
	u64 at[GO_REFERENCES];
};
void go_code_references(
        struct go_code *code, struct go_table *t, const struct go_function *fn, struct go_references *ret);

/* Where C's registers are saved, as slots of a cfi_rule, from `after` on. False: nowhere. */
struct go_kept {
	u64 after;
	s16 slot[ARCH_NSAVED];
};
bool go_code_saved(struct go_code *code, struct go_table *t, const struct go_function *fn, struct go_kept *ret);

/* Where a thread's g is: at the thread pointer + tls, or + the word at tls_at of the file (0: none). */
struct go_switches {
	s64 tls;
	u64 tls_at;
	u32 g_m, g_sched, m_g0, m_curg;
	u32 asm_g, asm_depth; /* in asmcgocall's frame on g0's stack */
	u64 resume;           /* in systemstack_switch: a pc with the frame of those that are suspended in its name */
	/* code that runs on g0's stack, or (callback) on the goroutine's */
	struct go_stretch systemstack, mcall, morestack, asmcgocall, asmcgocall_g0, gogo, callback;
	/* whole functions */
	struct go_stretch dummy, asmcgocall_all, callback_all, schedule, goexit;
};
/* NULL, or the function of which this is not known; "": the file has no runtime of its own, as a plugin. */
const char *go_code_switches(struct go_code *code, struct go_table *t, struct go_switches *ret);

#endif
