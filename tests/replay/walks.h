/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded walks: registers, what each walk read of its target, what it read of yrt's tables, and the frames that it
 * found. They are walked again without the target, by the same walkers (README.md here).
 */
#ifndef YRT_WALKS_H
#define YRT_WALKS_H

#include <types.h>

#include "arena.h"
#include "process/process.h"
#include "unwind.h"

#define WALKS_MAX        256
#define WALKS_FRAMES_MAX 512
#define WALKS_PIECES_MAX 4096
#define WALKS_PAGES_MAX  4096
#define WALKS_PAGE       4096u

struct walks_piece {
	u64 addr;
	u32 size, readable; /* 0: the read failed */
	u8 *bytes;
};

struct walk_record {
	struct unwind_registers registers;
	u32 stop, nframes, npieces;
	struct frame *frames;
	struct walks_piece *pieces;
};

struct walks {
	struct process_entry entry;
	u32 npages, nwalks;
	struct {
		u32 offset; /* in the arena */
		u8 *bytes;  /* WALKS_PAGE of them */
	} pages[WALKS_PAGES_MAX];
	struct walk_record walk[WALKS_MAX];
	struct arena *arena; /* with the pages in it, once walks_place() was called */
};

/* What a walk gave this time. unknown: reads of what was not recorded. */
struct walks_result {
	u32 stop, nframes, reads, unknown;
	struct frame frames[WALKS_FRAMES_MAX];
};

#define WALKS_NONE UINT32_MAX

/* Errors end the program: what is read here was written by us. */
struct walks *walks_load(const char *path);
void walks_save(const struct walks *w, const char *path);
/* Makes the arena; its bytes are then those of pages[].bytes, which move into it. */
void walks_place(struct walks *w);
void walks_free(struct walks *w);
/* Walks again; the read with number `failing` fails (WALKS_NONE: none). */
void walks_again(const struct walks *w, u32 i, u32 failing, struct walks_result *ret);
/* Are these the frames, and is this the end, that was recorded? */
bool walks_same(const struct walk_record *r, const struct walks_result *now);

#endif
