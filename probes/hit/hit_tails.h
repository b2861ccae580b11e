/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All places where calls of a function end. A function that is left by a jump to another one (a tail call) has its
 * returns there: that one returns to the same caller, with the stack pointer of the first one's entry. So jumps are
 * followed from function to function, 64 of them at most.
 *
 * Where a jump through a register or memory leads is not in the code. It asks (WAY_ASK) until hit_tails_add() is told.
 * A jump to code whose returns are not all known is lost (WAY_LOST).
 */
#ifndef YRT_HIT_TAILS_H
#define YRT_HIT_TAILS_H

#include "hit_exits.h"

#define HIT_TAILS_MAX 64

enum hit_way_kind {
	WAY_RETURN, /* the call is over */
	WAY_AGAIN,  /* it begins once more */
	WAY_TAIL,   /* it goes on in a function that is followed */
	WAY_ASK,
	WAY_LOST,
};

struct hit_way {
	struct image *img; /* owned */
	struct hit_exit exit;
	enum hit_way_kind kind;
	bool borrowed; /* of a function that was jumped to: only of calls that were */
};

struct hit_ways {         /* of one function; all zero at first */
	const char *what; /* for errors; not owned */
	struct hit_way *of;
	u32 n;
	struct {
		struct image *img;
		u64 start;
		bool lost;
	} visited[HIT_TAILS_MAX]; /* the function itself first */
	u32 nvisited;
	char lost[512]; /* why the first jump is lost; empty: none is */
};

/* symbols_load() was called for the image. Fails if the function itself has returns that are not known, or none. */
struct error *hit_tails_find(const char *what, struct image *img, u64 start, struct hit_ways *ret);
/* It was seen to jump to this function: adds its ways. False: lost, ret->lost may say why. */
bool hit_tails_add(struct hit_ways *ways, struct image *img, u64 start);
/* Is that the function itself? */
bool hit_tails_is_root(const struct hit_ways *ways, const struct image *img, u64 addr);
void hit_tails_free(struct hit_ways *ways);

#endif
