/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a thread finds its thread state: CPython up to 3.14 keeps a pointer to it under a key of the C library's
 * (autoTSSkey). Which word that is, from the thread pointer, is seen in the process itself: the interpreter lists its
 * thread states with the thread's pthread_self(), which is the thread pointer, and the words near that are searched for the
 * state's address. No C library's layout and no version's key is needed.
 */
#ifndef YRT_PYTHON_THREADS_H
#define YRT_PYTHON_THREADS_H

#include "memory.h"
#include "python_layout.h"

struct python_thread {
	u64 state;   /* PyThreadState */
	u64 pointer; /* thread pointer: fs base */
};

/* Lists up to max thread states of all interpreters, of _PyRuntime at this address. */
u32 python_threads(
        struct memory *mem, const struct python_layout *l, u64 runtime, struct python_thread *ret, u32 max);

/* Where from the thread pointer the state's address lies, the same in each of n threads; 0: not found. */
u32 python_threads_slot(struct memory *mem, const struct python_thread *threads, u32 n);

#endif
