/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What watch keeps in a folder: recordings named watch-….yrt and dumps named watch-….txt, oldest first by their names,
 * which are times.
 */
#ifndef YRT_RING_H
#define YRT_RING_H

#include <types.h>

#include "unwind/error.h"

/*
 * Makes the empty file of the next one: watch-TIME.yrt, or watch-TIME-N.yrt where one is there that is not older (of
 * the same second, or from before the clock was set back). *ret is malloc'd.
 */
struct error *ring_reserve(const char *dir, const char *kind, char **ret);
#define RING_RECORDING ".yrt"
#define RING_DUMP      ".txt"
/* Deletes the oldest until what is left is no more than limit bytes; *deleted: so many. The newest stays in any case.
 */
struct error *ring_trim(const char *dir, u64 limit, u32 *deleted);
/* The oldest one goes, unless it is the only one. */
struct error *ring_drop_oldest(const char *dir, u32 *deleted);
/* Calls found with the path of each, oldest first, until it returns an error, which is returned. */
struct error *ring_each(const char *dir, struct error *(*found)(void *ctx, const char *path), void *ctx);
/* A key for a table, of the time in the name of a recording. */
u64 ring_key(const char *path);

#endif
