/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of threads that ended another thread's wait (STACK_OF_WAKER), kept until they are joined with it
 * (collector_join()).
 */
#ifndef YRT_WAKERS_H
#define YRT_WAKERS_H

#include <stdbool.h>
#include <types.h>

#include "profile.h"
#include "shared/record.h"
#include "table.h"

#define WAKERS_MOST 16384 /* others are not kept: waits that they end have none */

struct waker {
	u32 instance; /* of its process; 0: it is no target */
	u32 n;
	char comm[COMM_LEN];
	struct frame frames[]; /* leaf first */
};

struct wakers {             /* starts as zeroes */
	struct table index; /* of all, by hash */
	struct waker **all;
	u32 n;
};

/* Keeps a stack, once; frames are copied. */
struct error *wakers_keep(struct wakers *w, const struct stack_record *record, const struct frame *frames, u32 n);
/* NULL: there is none of this hash. */
const struct waker *wakers_find(const struct wakers *w, u64 hash);
void wakers_free(struct wakers *w);
/*
 * Does a kernel function of this name begin an interrupt? To ask of all, leaf first, with the name of its caller ("":
 * none) and the same *sends, which begins as false. Who sends to its own machine is the waker: the packet is received
 * in a soft interrupt of its system call.
 */
bool waker_is_interrupt(const char *symbol, const char *caller, bool *sends);
/* The frame between both stacks: "[woken by comm]", for a lock "[released by comm]"; comm NULL: an interrupt. */
struct error *waker_function(struct profile *p, const char *comm, bool lock, u32 *ret);

#endif
