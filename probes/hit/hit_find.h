/* SPDX-License-Identifier: Apache-2.0 */
/* Where in a file a function or a USDT probe is. */
#ifndef YRT_HIT_FIND_H
#define YRT_HIT_FIND_H

#include "hit_spec.h"
#include "unwind/binary/image.h"

#define HIT_PLACES_MAX 64

struct hit_place {
	u64 offset;            /* in the file */
	u64 counter;           /* of its semaphore; 0: it has none */
	const char *arguments; /* of a USDT probe: "-4@%edi 8@16(%rsp)"; of the image. NULL: none */
};

struct hit_found {
	struct hit_place place[HIT_PLACES_MAX];
	u64 addr[HIT_PLACES_MAX]; /* of functions, in the file */
	u32 n;
	bool usdt;
	char *others; /* the functions, if users would say that they differ; of a pattern, what is left out.
	               * malloc'd. NULL: there is one */
};

/*
 * root: as for symbols_load(). All functions of the name are found: versions of a symbol, the constructors and
 * destructors that a compiler makes of one, functions with other arguments, of several sources. An error says why it
 * cannot be probed: there are too many, or its code only chooses one. n is 0 if the file has no such place. All files
 * are searched for a USDT probe, because the spec may name the probe's provider instead of a file.
 */
struct error *hit_find(const struct hit_spec *s, struct image *img, const char *root, struct hit_found *ret);
/* Does a symbol match a pattern, by the name that `hit_find()` compares it with? */
bool hit_matches(const char *pattern, const char *symbol);
/* The USDT probes of a file: of each, "PROVIDER:NAME". */
void hit_each_usdt(struct image *img, void (*each)(void *ctx, const char *name), void *ctx);
/* Adds names of the file that are like the one that was not found. symbols_load() was called. */
void hit_find_near(const struct hit_spec *s, struct image *img, struct hit_near *near);

/* Is it yrt? Until it executes its program, a child that is to do so is a copy of yrt. */
bool hit_is_own(const struct image *img);

/* Does a kernel function of this name only lead from a hit to the program that sees it? */
bool hit_leads_to_program(const char *symbol);

/* Where in the file an address is, of code or of any data. */
bool hit_offset(const struct image *img, u64 addr, bool code, u64 *ret);

#endif
