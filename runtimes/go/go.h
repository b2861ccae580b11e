/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Plain data that the walker of Go and user space share.
 *
 * Go's frames are native frames, walked by rows of the image (go_rows.h). The walker handles only the places where Go's
 * runtime changes stacks. In user space a native frame in Go's code becomes one frame for each function there, inlined
 * or not: FRAME_SCRIPT, addr the pc, detail go_detail().
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
	u32 details;          /* of a goroutine, to be read besides its stack: enum go_detail */
	u32 g_gopc, g_labels, g_goid;
	u32 labels_map; /* labels are a map, as up to Go 1.23 */
};

enum go_detail { GO_DETAIL_CREATOR = 1, GO_DETAIL_LABELS = 2, GO_DETAIL_NUMBER = 4 };

enum go_part {
	GO_PLAIN = 1,     /* of a function that is hidden where another stack went on in its name */
	GO_SYSTEMSTACK,   /* on g0's stack: goes on where curg was suspended */
	GO_SUSPENDED,     /* the same, entered for good: mcall, morestack */
	GO_ASMCGOCALL,    /* on g0's stack, called from a goroutine */
	GO_ASMCGOCALL_G0, /* on g0's stack, called there */
	GO_GOGO,          /* on the goroutine's stack, about to jump to where it was suspended */
	GO_CALLBACK,      /* on the goroutine's stack, entered from C on g0's */
	GO_SCHEDULE,      /* curg is not who called any more */
	GO_ROOT,          /* goexit, only if something of the goroutine is wanted besides */
	GO_KEPT,          /* + the number of the register that holds the stack pointer: on g0's stack for a moment */
};

/* Of struct walk. */
#define GO_HIDE_NEXT 1u /* vm_state: the next frame only stands for the one before */
#define GO_SCHEDULED 1u /* vm_mark: schedule() was seen */

/*
 * Of the cursor of a runtime's callbacks: at is the stack pointer on its g0's stack of the last one. A thread has a g0
 * of each library of Go that it has called.
 */
static inline u64 go_callback_key(u32 config)
{
	return 0x676f6362ull << 32 | config;
}

/* Frames that stand for no function, in place of the number of an inlined call. */
enum go_stands_for {
	GO_FOLDED = 0xffffff00u,  /* + what the runtime does of its own: go_fold.c */
	GO_CREATED = 0xffffff80u, /* addr: behind the call of newproc() that made the goroutine */
	GO_LABELS,                /* addr: of its labels; where the module is otherwise: go_label_mix() of them */
	GO_GOROUTINE,             /* addr: its number */
};

/* A frame of a language: which module, and which inlined call (0: the function itself). */
static inline u64 go_detail(u32 module, u32 inlined)
{
	return (u64)module << 32 | inlined;
}

/*
 * Labels: a list of keys and values, each a pointer and a length (runtime/pprof/label.go, 1.24 on), or a map with one
 * bucket (runtime/map.go: hmap, bmap, up to 1.23). They are read when a stack arrives in user space, and may belong to
 * another goroutine by then: a hash of what the walk has seen shows that.
 */
#define GO_LABELS_MAX  8
#define GO_LABEL_BYTES 64                       /* of a value, that are part of the mix */
#define GO_LABEL_WORDS (4 + GO_LABEL_BYTES / 8) /* key, its length, value, its length, bytes of the value */

static inline u64 go_label_key(u64 base, u32 map, u32 i)
{
	return base + (map ? 8 + 16 * i : 32 * i);
}

static inline u64 go_label_value(u64 base, u32 map, u32 i)
{
	return map ? base + 8 + 16 * GO_LABELS_MAX + 16 * i : base + 32 * i + 16;
}

static inline u64 go_label_mix(u64 hash, const u64 *words)
{
	for (u32 i = 0; i < GO_LABEL_WORDS; i++) {
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return hash;
}

#endif
