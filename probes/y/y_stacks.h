/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of a Y program's handlers: a run of the sampler, in a thread of its own, whose event is that a handler asks
 * for the stack (y.h). Stacks get their text as they arrive. The run also watches functions of languages: where one is
 * called or returns, the handler is in the place of the walk's end.
 */
#ifndef YRT_Y_STACKS_H
#define YRT_Y_STACKS_H

#include <stdbool.h>
#include <sys/types.h>

#include "unwind/error.h"
#include "y_object.h"

struct profile;
struct y_stacks;

/*
 * Returns once the object's handlers may ask; the object outlives it. pid: 0: all processes. warn() is called by the
 * run's thread, and owns the error. ERROR_USAGE: a function is not there, or cannot be watched.
 */
struct error *y_stacks_start(pid_t pid, const struct y_object *object, void (*warn)(void *ctx, struct error *err),
        void *ctx, struct y_stacks **ret);
/* Handlers of calls are there, and do what they do: from now on calls that begin are theirs. */
void y_stacks_open(struct y_stacks *s);
/* No handler asks any more: waits for what has been taken. */
void y_stacks_stop(struct y_stacks *s);
void y_stacks_free(struct y_stacks *s); /* NULL is fine */

/*
 * For the program's instructions: the map of struct y_pending; the table of on_y() and its like, of the kinds that have
 * stacks. handlers: where programs of calls are put, by their number in the object; -1: it has none.
 */
void y_stacks_maps(const struct y_stacks *s, int *pending, int tables[Y_KINDS], int *handlers, int *arguments);
/*
 * A stack, outermost first: "main;serve;write;do_syscall_64", in hostile characters; valid until y_stacks_free(). The
 * first `user` bytes are the thread's own frames, those from `kernel` on the kernel's. text NULL: it has not arrived.
 */
struct y_stack_text {
	const char *text;
	u32 user, kernel;
};
struct y_stack_text y_stacks_text(struct y_stacks *s, u64 hash);
/* What is counted. key: NULL: the first. False: there is no more. */
bool y_stacks_next(struct y_stacks *s, const struct y_stack_key *key, struct y_stack_key *ret);
bool y_stacks_get(struct y_stacks *s, const struct y_stack_key *key, struct y_stack_total *ret);
void y_stacks_delete(struct y_stacks *s, const struct y_stack_key *key);
u64 y_stacks_lost(struct y_stacks *s);
/* Behind y_stacks_stop(): weighs a stack, whole or without the kernel's frames, by its text, in the profile. */
void y_stacks_weigh(struct y_stacks *s, const char *text, size_t len, u64 weight);
/* Behind that, once: owned by s. NULL: nothing was gathered. */
struct profile *y_stacks_profile(struct y_stacks *s);

#endif
