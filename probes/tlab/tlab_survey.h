/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Without debug registers two things are known: the contents of buffers that threads gave up (a survey of some of them,
 * chosen at random: bytes by class and size, whoever allocated them), and the stacks of those objects that needed a new
 * buffer. The larger an object, the more often it needs one. So among objects of one class and about one size, the
 * stacks of those that needed one stand for all. This fails where a program allocates in a cycle that resonates with
 * its buffers, and some stacks are never seen.
 *
 * A class and an approximate size are a *kind*. The survey's bytes of a kind are spread over the first of these sets of
 * stacks that is not empty:
 * 1. stacks of objects of that kind that needed a new buffer;
 * 2. stacks of objects of that kind outside all buffers;
 * 3. stacks of objects of that class whose size differs by less than a factor of two.
 * If all are empty, the bytes are shown without a stack.
 */
#ifndef YRT_TLAB_SURVEY_H
#define YRT_TLAB_SURVEY_H

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
 * Adds a stack of this kind. bytes: what it counts if no buffer was surveyed. outside: the object is outside all
 * buffers and counted elsewhere; its stack is used only if no object of this kind needed a buffer.
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
