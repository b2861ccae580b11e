/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who keeps most: the way down a profile of references (heap_draw.h) that most of the bytes are below, and on it the
 * collection whose elements they are in.
 */
#ifndef YRT_KEEPER_H
#define YRT_KEEPER_H

#include "unwind/profile/profile.h"

#define KEEPER_FRAMES 96 /* those of a server lie some 40 boxes below what a thread holds */
#define KEEPER_SIGN   " > "

struct keeper {
	u32 node[KEEPER_FRAMES]; /* of the profile */
	u32 n;                   /* all of them */
	u32 collection;          /* of the first node[] that is elements of a collection; n if none is */
	double bytes;            /* below it */
	bool sure;               /* its elements passed the test; else it is the first one on the way */
};

/* Is this node, which are elements of a collection, what is looked for? */
typedef bool keeper_test(const struct profile *p, const double *bytes, u32 node);

/* bytes: of each node, with all below it; NULL: its total. The way goes on as long as half of all is below it. */
void keeper_find(const struct profile *p, const double *bytes, keeper_test *test, struct keeper *ret);
/*
 * "sessions > by_user: dict", of the first n; boxes of what is shared are left out, and of a long way those between the
 * root and the last ones before the collection ("..."). NULL: no memory. The caller frees.
 */
char *keeper_text(const struct profile *p, const struct keeper *k, u32 n);
/*
 * "failures > by_kind: dict keeps 115 MiB, 69 % of all, in 375 tuple: 314 KiB each". NULL: no collection does. The
 * caller frees.
 */
char *keeper_describe(const struct profile *p);
/* "dict" of "by_user: dict". */
const char *keeper_type(const char *name);
/* Is this box one of what is shared (heap_draw.h), perhaps without its number? */
bool keeper_is_shared(const char *name);

#endif
