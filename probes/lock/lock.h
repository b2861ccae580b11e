/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time that threads wait for locks, by the stack that waits: the waits of wait.h that are in futex(2), whose first
 * argument names the lock. Which of them are for a lock is known from the stack (unwind/profile/locks.h). Such a wait
 * lasts from when the thread leaves the CPU until it is back; what a thread spins before that, and a lock that is free,
 * cost nothing here and are not seen.
 */
#ifndef YRT_LOCK_H
#define YRT_LOCK_H

#include "probes/event.h" /* lock_event */

#endif
