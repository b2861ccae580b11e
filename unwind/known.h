/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache of what a runtime has read of a target's objects to name frames. Two words identify an entry: the object's
 * address, and what distinguishes the object from a later one at that address. When it is full, all of it is dropped.
 */
#ifndef YRT_KNOWN_H
#define YRT_KNOWN_H

#include <types.h>

#define KNOWN_BUCKETS 4096 /* power of two */
#define KNOWN_MAX     65536

/* The first member of what is kept. */
struct known {
	struct known *next;
	u64 object, owner;
};

/* Zeroed, but for destroy. */
struct known_objects {
	void (*destroy)(struct known *);
	u32 n;
	struct known *buckets[KNOWN_BUCKETS];
};

/* Valid until the next known_keep(); NULL: not known. */
struct known *known_find(const struct known_objects *all, u64 object, u64 owner);

/* Takes ownership of k, whose object and owner are set. */
void known_keep(struct known_objects *all, struct known *k);

void known_forget(struct known_objects *all);

#endif
