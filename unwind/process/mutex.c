/* SPDX-License-Identifier: Apache-2.0 */
#include "mutex.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include "binary/memory.h"

#define LOCK_WAITERS 2     /* of __lock: held, and somebody waits */
#define KIND_MASK    0x3ff /* enum in nptl/pthreadP.h: type, robust, inherit, protect, shared, elision */
#define LOCK_PI2     13    /* FUTEX_LOCK_PI2 of Linux 5.14 */
#define NUSERS_MAX   (1u << 24)

struct glibc_mutex {
	s32 lock;
	u32 count;
	u32 owner;
	u32 nusers;
	u32 kind;
};

bool mutex_owner(const struct syscall *call, u64 *addr, u32 *tid)
{
	u64 command = call->arguments[1] & FUTEX_CMD_MASK;
	struct glibc_mutex m;
	u32 value;

	*addr = call->arguments[0];
	if (!call->memory || !memory_read(call->memory, &m, sizeof(m), *addr))
		return false;
	if (call->number == SYS_futex && (command == FUTEX_LOCK_PI || command == LOCK_PI2)) {
		*tid = (u32)m.lock & FUTEX_TID_MASK;
		return *tid;
	}
	if (!syscall_waits_for_futex(call, addr, &value) || value != LOCK_WAITERS || m.lock != LOCK_WAITERS)
		return false;
	*tid = m.owner;
	return m.owner && m.nusers && m.nusers < NUSERS_MAX && !(m.kind & ~KIND_MASK);
}
