/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread that runs Python waits for, and who holds it (runtime_ops.waits_for).
 *
 * The GIL: the futex lies in its mutex or condition (struct _gil_runtime_state of pycore_gil.h, the same from 3.7 to
 * 3.14), the holder is the thread state that took it last. threading.RLock: the object (rlockobject of _threadmodule.c)
 * is found on the thread's stack, near the call that waits, by its type and by the futex, which is that of its lock; up
 * to 3.13 its members are rlock_lock, rlock_owner, rlock_count, from 3.14 on those of _PyRecursiveMutex: mutex, thread,
 * level. There a thread waits on a semaphore of its own stack (parking_lot.c), and the mutex has its bits "locked" and
 * "has parked": so may one that the thread itself holds while it waits for something else, which is not the one. Each
 * interpreter has a type RLock of its own (3.12). threading.Lock has no owner.
 */
#ifndef YRT_PYTHON_WAITS_H
#define YRT_PYTHON_WAITS_H

#include "python_image.h"

struct runtime_process;
struct runtime_thread;
struct runtime_wait;

/* *rlock_type: the type that was found last, 0 at first. */
bool python_waits_for(const struct python_image *image, u64 bias, u64 *rlock_type, const struct runtime_process *p,
        const struct runtime_thread *t, struct runtime_wait *ret);

#endif
