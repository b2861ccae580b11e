/* SPDX-License-Identifier: Apache-2.0 */
/* When a file was last changed, in nanoseconds. */
#ifndef YRT_MTIME_H
#define YRT_MTIME_H

#include <sys/stat.h>
#include <types.h>

static inline u64 mtime_ns(const struct stat *st)
{
	return (u64)st->st_mtim.tv_sec * 1000000000u + (u64)st->st_mtim.tv_nsec;
}

#endif
