/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The part of struct walk that only a walk in user space has: whose memory and tables it reads, and where frames go. */
#ifndef YRT_WALK_TARGET_H
#define YRT_WALK_TARGET_H

struct walk_target {
	struct memory *memory;
	struct arena *arena;
	struct frame *frames;      /* room for walk.max_frames */
	struct walk_cache *caches; /* WALK_CACHES of them, or NULL */
};

#define WALK_STEP
#define WALK_GLOBAL          static __attribute__((unused, noinline))
#define WALK_CALLED          static inline
#define WALK_CHECK(w)        ((void)(w))
#define WALK_BARRIER(x)      ((void)(x))
#define WALK_HAS_RUNTIME(id) true

#endif
