/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample's stack and its object's class come on two ways (collect.h, tlab_classes.h); the class usually comes later.
 * Each waits here for the other, for some seconds at most.
 */
#ifndef YRT_TLAB_JOIN_H
#define YRT_TLAB_JOIN_H

#include <types.h>

#include "tlab_classes.h"
#include "unwind/error.h"
#include "unwind/shared/record.h"

struct tlab_join;

struct tlab_join_options {
	struct tlab_classes *classes;
	/* Both are here. frames may be changed; record is without any. */
	struct error *(*both)(void *ctx, const struct tlab_class *class, const struct stack_record *record,
	        struct frame *frames, u32 n);
	/* Objects of a kind, of a survey: they have no stack. */
	struct error *(*counted)(void *ctx, const struct tlab_class *class);
	void *ctx;
};

struct error *tlab_join_create(const struct tlab_join_options *options, struct tlab_join **ret);
void tlab_join_destroy(struct tlab_join *j);
/* A stack, whose hash is the id of its struct alloc_record. One that is too deep is left out. */
struct error *tlab_join_stack(
        struct tlab_join *j, const struct stack_record *record, const struct frame *frames, u32 n);
/* Hands over those that have both. last: no class comes any more. */
struct error *tlab_join_poll(struct tlab_join *j, bool last);

#endif
