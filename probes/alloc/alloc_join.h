/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample's stack and its object's class come on two ways (collect.h, alloc_classes.h); the class usually comes later.
 * Each waits here for the other, for some seconds at most.
 */
#ifndef YRT_ALLOC_JOIN_H
#define YRT_ALLOC_JOIN_H

#include <types.h>

#include "alloc_classes.h"
#include "unwind/error.h"
#include "unwind/shared/record.h"

struct alloc_join;

struct alloc_join_options {
	struct alloc_classes *classes;
	/* Both are here. frames may be changed; record is without any. */
	struct error *(*both)(void *ctx, const struct alloc_class *class, const struct stack_record *record,
	        struct frame *frames, u32 n);
	/* Objects of a kind, of a survey: they have no stack. */
	struct error *(*counted)(void *ctx, const struct alloc_class *class);
	void *ctx;
};

struct error *alloc_join_create(const struct alloc_join_options *options, struct alloc_join **ret);
void alloc_join_destroy(struct alloc_join *j);
/* A stack, whose hash is the id of its struct alloc_record. One that is too deep is left out. */
struct error *alloc_join_stack(
        struct alloc_join *j, const struct stack_record *record, const struct frame *frames, u32 n);
/* Hands over those that have both. last: no class comes any more. */
struct error *alloc_join_poll(struct alloc_join *j, bool last);

#endif
