/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who keeps processes waiting, as far as /proc tells: holders of file locks (flock, fcntl) that a target waits for, and
 * sessions of PostgreSQL whose title says that they are idle within a transaction. Sources: proc(5) on /proc/locks;
 * PostgreSQL's "Monitoring Database Activity" on process titles.
 */
#ifndef YRT_REPORT_BLOCKERS_H
#define YRT_REPORT_BLOCKERS_H

#include <sys/types.h>

#include "facts.h"

/*
 * Of what is seen now: facts "lock.file.pid", "lock.file.holder" ("pid 42 (python3 backup.py) holds /var/lib/x"),
 * "sessions.idle" (a number), "sessions.idle.text". What was seen at an earlier call stays.
 */
void blockers_facts(const pid_t *pids, u32 n, struct facts *ret);
/* What texts of rules say where nothing was seen. */
void blockers_unseen(struct facts *f);
/* The same of text as /proc/locks has it: the holder of a lock that one of the pids waits for; 0: none. */
struct file_lock {
	pid_t holder;
	u64 inode;
	u32 major, minor;
};
bool blockers_find_lock(const char *locks, const pid_t *pids, u32 n, struct file_lock *ret);

#endif
