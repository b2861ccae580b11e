/* SPDX-License-Identifier: Apache-2.0 */
/* The state and the flags of a process in the text of its /proc/PID/stat. */
#ifndef YRT_PROC_STAT_H
#define YRT_PROC_STAT_H

#include <stdio.h>
#include <string.h>
#include <types.h>

#include "cleanup.h"

/* Of the flags: include/linux/sched.h, unchanged since 2.6.27. */
#define PF_EXITING 0x4
#define PF_KTHREAD 0x200000

/* The process's name may hold anything, also line ends and brackets. False: the text is not that of such a file. */
static inline bool proc_stat_flags(const char *stat, char *state, u32 *flags)
{
	const char *name_end = strrchr(stat, ')');

	return name_end && sscanf(name_end + 1, " %c %*d %*d %*d %*d %*d %u", state, flags) == 2;
}

/* The same of the process or thread whose file this is. False: it is gone. */
static inline bool proc_stat_read(const char *path, char *state, u32 *flags)
{
	cleanup(fclose) FILE *file = fopen(path, "re");
	char stat[512];

	stat[file ? fread(stat, 1, sizeof(stat) - 1, file) : 0] = '\0';
	return proc_stat_flags(stat, state, flags);
}

#endif
