/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a profile of a file's stacks: those that pass the filters, without hidden frames. Nodes come in preorder and
 * are made when one below them counts, so memory is that of the result.
 */
#ifndef YRT_FORMAT_SIFT_H
#define YRT_FORMAT_SIFT_H

#include "unwind/profile/pattern.h"
#include "unwind/profile/profile.h"

#define FILTER_DEEPEST (1u << 20)

struct filter_options {
	bool threads;        /* keep the threads' nodes */
	bool no_kernel;      /* without frames of the kernel */
	bool no_user;        /* without all others */
	const char *include; /* only stacks with a frame or thread that matches; NULL: all */
	const char *exclude; /* no stack with such a one */
};

struct filter {
	struct profile *profile;
	struct filter_options options;
	struct pattern include, exclude;
	u8 *verdict; /* of each function of the profile: enum verdict in filter.c */
	u32 nverdicts;
	struct filter_level *path;
	u32 capacity;
};

/* Makes an empty profile too; take it out before filter_free(), or it goes as well. */
struct error *filter_create(const struct filter_options *options, struct filter *ret);
void filter_free(struct filter *s);
/* The number of a function in the profile. key: as in profile_function(). */
struct error *filter_function(struct filter *s, u64 key, const struct profile_function *f, u32 *ret);
/* What else was counted of the node that came last, at this depth; the node itself may have no count. */
struct error *filter_more(struct filter *s, u32 depth, u64 count);
/* The profile's node of the node that came last and counts, at this depth; UINT32_MAX: it was left out. */
u32 filter_place(const struct filter *s, u32 depth);
/* The nodes above a process of this text (containers.h), each one depth more. */
struct error *filter_container(struct filter *s, const char *text, u32 *depth);
/* A node of a function at a depth (from 1), at most one more than that of the last; and so many counts in it. */
struct error *filter_node(struct filter *s, u32 depth, u32 function, u64 count);

#endif
