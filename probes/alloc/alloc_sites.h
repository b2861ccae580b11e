/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The uprobes where a runtime allocates: placed all the time, or in shifts.
 *
 * A program that takes several GB a second from the heap has ten thousand refills a second. A uprobe that is hit with
 * cold caches costs microseconds, whether it becomes a sample or not. So if the hits alone would take too much, uprobes
 * are placed for 0.2 s at a random moment of each period. A buffer is then sampled only if it was taken within a shift,
 * each with the same chance, whatever the program does. Shares stay unbiased; a program with few and long phases gets a
 * larger error.
 *
 * Removing a uprobe waits for the kernel's grace period, a tenth of a second, so a separate thread does it.
 */
#ifndef YRT_ALLOC_SITES_H
#define YRT_ALLOC_SITES_H

#include <types.h>

#include "alloc_object.h"
#include "unwind/error.h"

struct alloc_sites;

struct error *alloc_sites_create(struct object *o, struct alloc_sites **ret);
void alloc_sites_destroy(struct alloc_sites *s); /* takes all away; NULL is fine */
/* Places the program on_alloc of a process's file; cookie is its probe. always: it is no matter of shifts. */
struct error *alloc_sites_add(
        struct alloc_sites *s, u32 process, pid_t pid, const char *path, u64 offset, u32 cookie, bool always);
bool alloc_sites_has(struct alloc_sites *s, u32 process);
/* The part of time that sites are to be placed from now on; 1: always. */
void alloc_sites_set_duty(struct alloc_sites *s, double duty);
/* For how long they have been placed since the first was. */
u64 alloc_sites_placed_ns(struct alloc_sites *s);
/* Takes all away for good. */
void alloc_sites_clear(struct alloc_sites *s);
/*
 * The cost of a hit on this machine with cold caches; 0: unknown. Call once. The uprobe that measures it stays, at a
 * place where nothing runs, until others are removed: waiting for its removal would delay the first sample.
 */
u64 alloc_sites_measure(struct alloc_sites *s);

#endif
