/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a thread's state is found. CPython up to 3.14 keeps a pointer to it under a key of the C library (autoTSSkey;
 * autoTLSkey in 3.6). The process itself shows which word that is, relative to the thread pointer. The interpreter
 * lists its thread states with the thread's pthread_self(), which is the thread pointer. The words near that, and the
 * words that they point to (musl: those that pthread_getspecific() reads), are searched for the state's address. So no
 * C library's layout and no version's key is needed. From 3.15 on the state is in a thread-local variable
 * (python_tls.h).
 */
#ifndef YRT_PYTHON_THREADS_H
#define YRT_PYTHON_THREADS_H

#include "binary/memory.h"
#include "python_layout.h"
#include "python_tls.h"

struct python_thread {
	u64 state;   /* PyThreadState */
	u64 pointer; /* thread pointer: fs base */
};

/* Lists up to max thread states of all interpreters; runtime: struct python_image's, in the process. */
u32 python_threads(struct memory *mem, const struct python_layout *l, u64 runtime, struct python_thread *ret, u32 max);

/* How vm gets from a thread pointer to the state's address. values: of tsd_values(). False: not found, vm has none
 * then. */
bool python_threads_find(struct memory *mem, const struct python_tls *tls, u64 bias, u16 values,
        const struct python_thread *threads, u32 n, struct python_vm *vm);

/* The state of the thread with this thread pointer, as the walker finds it. */
bool python_threads_state(struct memory *mem, const struct python_vm *vm, u64 pointer, u64 *ret);

#endif
