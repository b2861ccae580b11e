/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the walker of Go and user space share. Plain data.
 *
 * Go's frames are native frames, walked by rows of the image (go_rows.h). The walker has only the places where Go's
 * runtime changes stacks. In user space a native frame in Go's code becomes one for each function that is there,
 * inlined or not: FRAME_SCRIPT, addr the pc, detail go_detail().
 */
#ifndef YRT_GO_H
#define YRT_GO_H

#include <types.h>

/* Where the frames of a goroutine or of g0 go on, by runtime/asm_amd64.s. Offsets are of struct g, m and of stack
 * frames. */
struct go_config {
	s64 tls;          /* of the pointer to the running g, from the thread pointer */
	u64 resume;       /* pc that a suspended goroutine is shown at: in systemstack_switch */
	u32 g_m, g_sched; /* sched.sp; sched.pc lies behind it */
	u32 m_g0, m_curg;
	u32 asm_g, asm_depth; /* in asmcgocall's frame */
};

enum go_part {
	GO_PLAIN = 1,     /* of a function that is hidden where another stack went on in its name */
	GO_SYSTEMSTACK,   /* on g0's stack: goes on where curg was suspended */
	GO_SUSPENDED,     /* the same, entered for good: mcall, morestack */
	GO_ASMCGOCALL,    /* on g0's stack, called from a goroutine */
	GO_ASMCGOCALL_G0, /* on g0's stack, called there */
	GO_GOGO,          /* on the goroutine's stack, about to jump to where it was suspended */
	GO_CALLBACK,      /* on the goroutine's stack, entered from C on g0's */
	GO_SCHEDULE,      /* curg is not who called any more */
	GO_KEPT,          /* + the number of the register that holds the stack pointer: on g0's stack for a moment */
};

/* Of struct walk. */
#define GO_HIDE_NEXT 1u /* vm_state: the next frame only stands for the one before */
#define GO_SCHEDULED 1u /* vm_mark: schedule() was seen */

#define GO_CALLBACK_KEY                                                                                                \
	0x676f6362u /* of the cursor of callbacks: at is the stack pointer on g0's stack of the last one */

/* A frame of a language: which module, and which inlined call (0: the function itself). */
static inline u64 go_detail(u32 module, u32 inlined)
{
	return (u64)module << 32 | inlined;
}

#endif
