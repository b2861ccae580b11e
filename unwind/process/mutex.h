/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds the lock that a thread waits for in futex(2). A glibc mutex keeps its owner beside the futex word (struct
 * __pthread_mutex_s in sysdeps/nptl/bits/struct_mutex.h of x86: __lock, __count, __owner, __nusers, __kind; since 2.3
 * of 2003); one that inherits priority keeps it in that word.
 */
#ifndef YRT_MUTEX_H
#define YRT_MUTEX_H

#include "syscall.h"

/*
 * The thread that holds the lock that this call waits for, by its number in the target's own pid namespace, if the
 * words around the futex are those of a mutex. The caller checks whether there is such a thread.
 */
bool mutex_owner(const struct syscall *call, u64 *addr, u32 *tid);

#endif
