/* SPDX-License-Identifier: Apache-2.0 */
/* Which files were looked at in which processes, so that their functions are probed once. */
#ifndef YRT_SEEN_FILES_H
#define YRT_SEEN_FILES_H

#include <stdbool.h>
#include <sys/types.h>
#include <types.h>

#include "unwind/error.h"

struct seen_files {
	struct seen_file {
		pid_t pid;
		const void *file; /* only compared */
	} * of;                   /* free() it */
	u32 n;
};

bool seen_files_has(const struct seen_files *s, pid_t pid, const void *file);
struct error *seen_files_add(struct seen_files *s, pid_t pid, const void *file);
/* Drops those of processes that have ended: another one may get their number. */
void seen_files_forget_ended(struct seen_files *s);

#endif
