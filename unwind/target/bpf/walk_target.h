/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The part of struct walk that only a walk inside the kernel has. */
#ifndef YRT_WALK_TARGET_H
#define YRT_WALK_TARGET_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* Whose walkers are loaded, by bit: a constant for the verifier, which from Linux 6.8 on never looks at the others. */
const volatile __u32 walkers = ~0u;

struct walk_target {
	u32 chunk; /* first of the chunks that hold the frames of this walk */
	u32 reserved;
};

#define WALK_STEP
#define WALK_GLOBAL __attribute__((noinline))
#define WALK_CALLED static __attribute__((noinline, unused))
#define WALK_CHECK(w)                                                                                                  \
	do {                                                                                                           \
		if (!(w))                                                                                              \
			return 0;                                                                                      \
	} while (0)
#define WALK_BARRIER(x)      __asm__ volatile("" : "+r"(x))
#define WALK_HAS_RUNTIME(id) (walkers & 1u << (id))

#endif
