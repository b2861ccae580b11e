/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coro's coroutines, each with a native stack of its own. libcoro (coro.c, coro_create() for x86-64; in Coro 6.57) puts
 * two words on a new stack: the entry, a static function of Coro's library, and above it the address of abort(), as the
 * return address of that function.
 */
#ifndef YRT_PERL_CORO_H
#define YRT_PERL_CORO_H

#include "runtime.h"

/* Coro's library in a process. */
struct perl_coro {
	u64 start, end; /* its code; 0: not loaded */
	u64 base;       /* abort() */
};

/* Finds it, if it is loaded. */
bool perl_coro_find(const struct runtime_process *p, struct perl_coro *ret);

#endif
