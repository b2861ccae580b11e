/* SPDX-License-Identifier: Apache-2.0 */
#include "python_locks.h"

#define WITHIN 9 /* native frames: some of libc's and inlined ones lie inside */

#define GIL(name)                                                                                                      \
	{                                                                                                              \
		.at = {.frame = name, .within = WITHIN}, .kind = LOCK_VM, .word = "GIL", .each = true                  \
	}
#define OBJECT(name, what, parked)                                                                                     \
	{                                                                                                              \
		.at = {.frame = name, .within = WITHIN}, .kind = LOCK_OBJECT, .word = what, .each = parked             \
	}
#define LIBRARY(name, of)                                                                                              \
	{                                                                                                              \
		.at = {.frame = name, .within = 1, .file = "threading.py"}, .kind = of                                 \
	}

/*
 * CPython 2.7 to 3.14 (Python/ceval_gil.c or .h, Modules/_threadmodule.c, Python/thread_pthread.h, Python/lock.c). The
 * GIL's futexes are those of its mutex and condition; PyMutex parks each thread on a semaphore of its own (3.13).
 * Without symbols of static functions the exported ones that take the GIL identify it. A Condition and an Event of
 * threading wait by taking a lock that only their own thread knows.
 */
const struct lock_rule python_locks[] = {
        GIL("take_gil"),
        GIL("drop_gil"),
        GIL("drop_gil_impl"),
        GIL("PyEval_RestoreThread"),
        GIL("PyEval_SaveThread"),
        GIL("PyEval_AcquireThread"),
        GIL("PyEval_ReleaseThread"),
        GIL("_PyThreadState_Attach"),
        GIL("eval_frame_handle_pending"),
        GIL("_Py_HandlePending"),
        LIBRARY("wait", LOCK_CONDITION),
        LIBRARY("_wait_for_tstate_lock", LOCK_JOIN),
        LIBRARY("_join_os_thread", LOCK_JOIN),
        LIBRARY("_shutdown", LOCK_JOIN),
        LIBRARY("join", LOCK_JOIN),
        {.at = {.frame = "_queue_SimpleQueue_get_impl", .within = WITHIN}, .kind = LOCK_PARK},
        {.at = {.frame = "_queue_SimpleQueue_get", .within = WITHIN}, .kind = LOCK_PARK},
        {.at = {.frame = "PyEvent_WaitTimed", .within = WITHIN}, .kind = LOCK_CONDITION},
        {.at = {.frame = "_multiprocessing_SemLock_acquire_impl", .within = WITHIN}, .kind = LOCK_SEMAPHORE},
        {.at = {.frame = "_multiprocessing_SemLock_acquire", .within = WITHIN}, .kind = LOCK_SEMAPHORE},
        OBJECT("_PyMutex_LockTimed", "Lock", true),
        OBJECT("rlock_acquire", "RLock", false),
        OBJECT("PyThread_acquire_lock_timed", "Lock", false),
        OBJECT("PyThread_acquire_lock", "Lock", false),
        {.at = {0}},
};
