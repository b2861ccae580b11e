/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Without debug registers two things are known: the contents of buffers that threads gave up (a survey of some of them,
 * chosen at random: bytes by class and size, whoever allocated them), and the stacks of those objects that needed a new
 * buffer. The larger an object, the more often it needs one. So among objects of one class and about one size, the
 * stacks of those that needed one stand for all. This fails where a program allocates in a cycle that resonates with
 * its buffers, and some stacks are never seen.
 *
 * Each class and size (about: a *kind*) gets the survey's bytes, spread over the stacks that were seen of that kind; if
 * there are none, over those of such objects outside all buffers; if there are none, over those of that class with
 * sizes within a factor of two. If there are none either, its bytes have no stack, and that is shown.
 */
#ifndef YRT_ALLOC_SURVEY_H
#define YRT_ALLOC_SURVEY_H

#include <types.h>

#include "unwind/error.h"
#include "unwind/shared/frame.h"

struct survey;

struct survey_result {
	u32 allocator, node;
	double bytes, objects;
	bool unseen; /* node is that of the kind, without a stack */
};

struct error *survey_create(struct survey **ret);
void survey_destroy(struct survey *c);
/* The number of a kind. apart: kinds with different numbers there are different (threads that are shown by themselves).
 */
struct error *survey_kind(struct survey *c, u32 process, const struct frame *class, u64 size, u64 apart, u32 *ret);
/*
 * A stack of this kind, which stands for so many bytes if there is no survey. outside: of an object outside all
 * buffers, which is counted elsewhere; it shows where such objects come from if none of them needed a buffer.
 */
struct error *survey_stack(
        struct survey *c, u32 kind, bool outside, u32 allocator, u32 node, double bytes, double objects);
/* Objects of this kind in a buffer; without a stack they are at node. */
struct error *survey_count(struct survey *c, u32 kind, u32 allocator, u32 node, double bytes, double objects);
/*
 * Was enough counted? If not, survey_spread() returns the stacks as they are, as it does in any case for allocators
 * without a survey.
 */
bool survey_usable(const struct survey *c);
struct error *survey_spread(
        struct survey *c, struct error *(*add)(void *ctx, const struct survey_result *r), void *ctx);

#endif
