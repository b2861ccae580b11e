/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The only API that a walker sees.
 *
 * A walker is a step function. It is compiled twice: to BPF, as a global function that the verifier checks by itself,
 * and natively, where memory is a live process, a core file or a test's. It looks at w->reg and w->region, pushes the
 * frames that it finds, moves the registers to the caller (native_step() does that for native frames), and returns
 * STOP_NONE to go on or the reason why the walk ends.
 *
 *	int luajit_step(struct walk *w);
 *
 * Rules for walkers, because of the verifier and because a target may lie:
 * - bound every loop by a constant; no allocation, maps, or tail calls; no pointers stored in memory.
 * - check the result of every read; a failed read leaves the destination undefined.
 * - all reads of the target go through walk_read(), walk_stack() or walk_vm().
 * - static helpers are `static inline`; mark what the verifier should check alone as WALK_GLOBAL. Such a function takes
 *   w, scalars, and pointers to structs that the caller has checked, at most 5 parameters; it must test each pointer
 *   first (WALK_CHECK).
 *
 * Each walk begins anew, though 58 to 91 % of a thread's return addresses are as they were at its last sample. To take
 * them over, every word that led to them has to be read and compared again, so only the search for rules would be
 * saved: an estimated 40 ns of a native frame (from the slope over depths; not built), and of a Python frame next to
 * nothing, as its time is reads. Within one walk what was read last is kept where a frame holds it: a code object, the
 * header of an nmethod, the instruction of a call.
 *
 * The target's header (target/bpf/target.h or target/native/target.h, chosen by include path) supplies:
 *
 *	bool walk_read(struct walk *w, void *dst, u32 size, u64 addr);
 *		size bytes of the target at addr. False: unreadable (an absent page anywhere fails all of it).
 *	bool walk_fill(struct walk *w, u64 *dst, u32 size, u64 addr);
 *		the same into a window, size <= WALK_WINDOW.
 *	const u8 *walk_slab(struct walk *w, u32 offset);
 *		the slab of the arena that holds this offset, NULL if there is none; see slab_at().
 *	struct walk_cache *walk_cache(struct walk *w, u32 index);
 *		an entry of the cache across walks, index modulo WALK_CACHES; NULL if there is none.
 *	bool walk_put(struct walk *w, u32 index, u64 where, u64 detail);
 *		stores a frame; false if there is no room.
 *	walk_target			a struct of the target's own, in struct walk
 *	WALK_STEP, WALK_GLOBAL		linkage of a step function, and of one that the verifier checks alone
 *	WALK_CALLED			of a static function that stays one
 *	WALK_CHECK(w), WALK_BARRIER(x)	for the verifier
 *	WALK_HAS_RUNTIME(id)		is the walker of this runtime loaded?
 */
#ifndef YRT_WALK_H
#define YRT_WALK_H

#include <arch.h>
#include <types.h>

#include "shared/cfi.h"
#include "shared/frame.h"
#include "shared/region.h"

#define WALK_WINDOW        4096u
#define WALK_WINDOW_WORDS  (WALK_WINDOW / 8)
#define WALK_WINDOW_FIRST  1024u /* of a walk up: most stacks end in it, and its copy leaves the cache to the target */
#define WALK_CURSORS       8     /* power of two */
#define WALK_PAGE          4096u
#define WALK_SCRATCH_WORDS 16 /* power of two */

/* A copy of a piece of the target's memory, 8-byte aligned; len bytes from start are there. */
struct window {
	u64 start;
	u64 len;
	u64 word[WALK_WINDOW_WORDS];
};

/*
 * The position in a VM instance's own stack. It is kept for the whole walk, because several language frames come from
 * one native frame. key names the instance or stack (a lua_State, say; never 0); at and more are the runtime's.
 */
struct walk_cursor {
	u64 key;
	u64 at;
	u64 more[7];
};

/*
 * The cache: what a walk found, for later walks in any process. Walks write it at the same time and without a lock: an
 * entry may be another walk's by the next look, and its words of two different writers. Check what it says before use.
 */
#define WALK_CACHES 16384u /* power of two */
struct walk_cache {
	u64 key;
	u64 value;
};

/*
 * The state before a guess: the walk took a word of the stack for a return address because it could be one. Until a
 * runtime finds its own frames from there, nothing confirms that: if the walk fails, the frames since then are dropped.
 */
struct walk_proof {
	u64 hash;
	u64 sp;
	u32 nframes;
	u32 guessed; /* 0: no such guess since */
};

#define WALK_RESUMES 3 /* of one walk */

#include <walk_target.h>

struct walk {
	u64 reg[ARCH_NREGS]; /* DWARF numbers */
	u32 valid;           /* bit n: reg[n] holds */
	u32 leaf;            /* 1: reg[REG_PC] is where execution is; 0: it is a return address */
	u64 thread_pointer;  /* fs base; 0 if unknown */
	u64 hash;            /* of all frames so far */
	u32 nframes;
	u32 max_frames;
	u32 regions; /* of this process: arena offset and number */
	u32 nregions;
	u64 changed_start; /* code that the process made itself: another one by now (struct code_change); 0: none */
	u64 changed_end;
	u32 ncursors;
	u32 vm_state; /* a word that a runtime may keep between its steps; 0 at first */
	u32 flags;    /* frame flags of the next native frame: FRAME_GUESS after a guessed step */
	u32 vm_mark;  /* the same, to be set once and kept for the whole walk */
	u32 lost;     /* why a runtime could not give all of its frames, though the walk went on; 0: it could */
	u32 laundry;  /* of walk_launder() */
	u32 resumes;  /* how often a runtime has said where to go on */
	u32 single;   /* 1: whoever walks looks at each frame, so that a step is one; never in BPF */
	u32 others;   /* not 0: a runtime has stepped, which may have used the windows of VMs */
	u64 jumped;   /* the first word of a scan that may be a return address after a jump; 0: none (native_guess.h) */
	struct walk_proof proof;
	struct region_resume resume[PROCESS_RESUMES];
	struct walk_target target;
	struct region region; /* where reg[REG_PC] lies, found by the driver before a step */
	struct window stack;  /* over the native stack; start is 0 before the first */
	struct walk_cursor cursor[WALK_CURSORS];
	struct window vm;                /* over a VM's own stack */
	struct window calls;             /* over its calls, where these lie elsewhere */
	u64 scratch[WALK_SCRATCH_WORDS]; /* of one function: BPF has 512 bytes of stack for all functions of a chain */
};

#include <target.h>

/*
 * yrt's own tables (regions, CFI, a runtime's configuration), written by user space. A slab has ARENA_SLAB_PAD bytes
 * behind its end, so an offset that is masked needs no further check for anything up to that size; 8-byte aligned.
 */
static inline const void *slab_at(const u8 *slab, u64 offset)
{
	return slab + (offset & (ARENA_SLAB_SIZE - 8));
}

/*
 * A piece of up to ARENA_SLAB_PAD bytes at an arena offset; NULL if there is no such slab. For functions at the end of
 * a chain of eight calls, or of one with 512 bytes of stack: the kernel allows no more.
 */
static inline const void *walk_arena_here(struct walk *w, u32 offset)
{
	const u8 *slab = walk_slab(w, offset);

	return slab ? slab_at(slab, offset) : NULL;
}

/* The same, as a call: the kernel writes each look-up in a map into the program, which makes loading slow. */
WALK_CALLED const void *walk_arena(struct walk *w, u32 offset)
{
	return walk_arena_here(w, offset);
}

static inline bool walk_has(const struct walk *w, u32 reg)
{
	return w->valid >> (reg & 31) & 1;
}

/* The address to look up: a return address may be the first byte of the next function. */
static inline u64 walk_pc(const struct walk *w)
{
	return w->leaf ? w->reg[REG_PC] : w->reg[REG_PC] - ARCH_CALL_BACK;
}

/* Is the word at addr in the window? Then *ret is its index. */
static inline bool window_has(const struct window *win, u64 addr, u64 *ret)
{
	u64 off = addr - win->start;

	if (addr & 7 || off + 8 > win->len || off >= WALK_WINDOW)
		return false;
	*ret = off / 8;
	return true;
}

/*
 * How much of the stack is read at addr: twice as much as the last time, but little of the next page. Behind a thread's
 * stack there may be none, and a read that fails costs as much as half a walk.
 */
static inline u32 stack_window(const struct window *win, u64 addr)
{
	u64 size = win->len * 2, page = WALK_PAGE - (addr & (WALK_PAGE - 1));

	if (size > page)
		size = page;
	WALK_BARRIER(size);
	return size < WALK_WINDOW_FIRST ? WALK_WINDOW_FIRST : (u32)size & (2 * WALK_WINDOW - 1);
}

/*
 * Fills a window that starts at addr and reaches up, or (down) ends right behind the word at addr. A read that touches
 * an absent page fails whole, so a failed one is tried again clipped at addr's own page.
 */
static inline bool window_load(struct walk *w, struct window *win, u64 addr, bool down)
{
	u32 whole = down ? WALK_WINDOW : stack_window(win, addr), len;
	u64 clip = addr & ~(u64)(WALK_PAGE - 1);

	win->len = 0;
	if (addr & 7)
		return false;
	win->start = down ? addr + 8 - whole : addr;
	if (walk_fill(w, win->word, whole, win->start)) {
		win->len = whole;
		return true;
	}
	win->start = down ? clip : addr;
	len = (u32)(down ? addr + 8 - clip : clip + WALK_PAGE - addr) & (2 * WALK_WINDOW - 1);
	if (!walk_fill(w, win->word, len, win->start))
		return false;
	win->len = len;
	return true;
}

static inline bool window_word(const struct window *win, u64 i, u64 *ret)
{
	WALK_BARRIER(i);
	if (i >= WALK_WINDOW_WORDS)
		return false;
	*ret = win->word[i];
	return true;
}

/* out of line: the verifier checks it once, and the fast path stays small */
WALK_GLOBAL int walk_stack_load(struct walk *w, u64 addr)
{
	WALK_CHECK(w);
	return window_load(w, &w->stack, addr, false);
}

WALK_GLOBAL int walk_vm_load(struct walk *w, u64 addr)
{
	WALK_CHECK(w);
	return window_load(w, &w->vm, addr, true);
}

/* The 8-byte word at addr of the native stack; the window moves up. */
static inline bool walk_stack(struct walk *w, u64 addr, u64 *ret)
{
	u64 i;

	if (window_has(&w->stack, addr, &i))
		return window_word(&w->stack, i, ret);
	return walk_stack_load(w, addr) && window_word(&w->stack, 0, ret);
}

/* The 8-byte word at addr of a VM's own stack, read downwards: the window ends right behind addr. */
static inline bool walk_vm(struct walk *w, u64 addr, u64 *ret)
{
	u64 i;

	if (window_has(&w->vm, addr, &i))
		return window_word(&w->vm, i, ret);
	return walk_vm_load(w, addr) && window_has(&w->vm, addr, &i) && window_word(&w->vm, i, ret);
}

static inline u64 walk_mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

/*
 * Adds a frame to the stack. False: --depth is reached; return STOP_DEPTH then. walk_push() is this as a call: the
 * kernel writes each look-up in a map into the program, which makes loading slow.
 */
static inline bool walk_push_here(struct walk *w, u64 where, u64 detail)
{
	u32 i = w->nframes;

	if (i >= w->max_frames || !walk_put(w, i, where, detail))
		return false;
	w->nframes = i + 1;
	w->hash = walk_mix(walk_mix(w->hash, where), detail);
	return true;
}

WALK_GLOBAL int walk_push(struct walk *w, u64 where, u64 detail)
{
	WALK_CHECK(w);
	return walk_push_here(w, where, detail);
}

/*
 * The same number, but the verifier no longer knows its value, as if it came from memory. The verifier checks the code
 * behind a loop once for each possible number of rounds, unless that number is unknown to it. Old kernels do so for
 * each possible sum that a loop makes, too: a loop took 44,230 instructions on 6.1 that takes 4,455 with sums
 * laundered.
 */
static inline u32 walk_launder(struct walk *w, u32 number)
{
	*(volatile u32 *)&w->laundry = number;
	return *(volatile u32 *)&w->laundry;
}

/* The next step is a guess. */
static inline void walk_guesses(struct walk *w)
{
	if (w->proof.guessed)
		return;
	w->proof.guessed = 1;
	w->proof.nframes = w->nframes;
	w->proof.hash = w->hash;
	w->proof.sp = w->reg[REG_SP];
}

/* Throws away what was only guessed. */
static inline void walk_take_back(struct walk *w)
{
	if (!w->proof.guessed)
		return;
	w->proof.guessed = 0;
	w->nframes = w->proof.nframes;
	w->hash = w->proof.hash;
	w->reg[REG_SP] = w->proof.sp;
}

/* The index of the cursor of key, made (with at = 0) if there was none; WALK_CURSORS: no room. */
WALK_GLOBAL u32 walk_cursor(struct walk *w, u64 key)
{
	u32 i;

	WALK_CHECK(w);
	for (i = 0; i < WALK_CURSORS && i < w->ncursors; i++)
		if (w->cursor[i].key == key)
			return i;
	if (i < WALK_CURSORS) {
		w->cursor[i].key = key;
		w->cursor[i].at = 0;
		w->cursor[i].more[0] = w->cursor[i].more[1] = w->cursor[i].more[2] = 0;
		w->cursor[i].more[3] = w->cursor[i].more[4] = w->cursor[i].more[5] = 0;
		w->cursor[i].more[6] = 0;
		w->ncursors = i + 1;
	}
	return i;
}

/*
 * Pushes the native frame at reg[REG_PC] with these extra frame flags (0, FRAME_VM) and moves to its caller by the rows
 * of w->region. NATIVE_NO_FRAME: pushes nothing, for code that a runtime has rows for and shows as a frame of its own.
 * In native_walk.c.
 */
#define NATIVE_NO_FRAME 0x100
WALK_STEP int native_step(struct walk *w, u32 frame_flags);

/* Is addr in known code, behind a call instruction? True where the code can not be read. In native_walk.c. */
WALK_STEP int native_called(struct walk *w, u64 addr);

/*
 * Puts the CFA of the native frame at reg[REG_PC], which is in w->region, into scratch[0], and changes nothing else:
 * memory below the CFA belongs to that frame. STOP_NO_CFI: the CFA is not given by a register and an offset.
 */
WALK_STEP int native_cfa(struct walk *w);

#endif
