/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the unwind tables of files in a thread. The tables of a large file that is not in the cache take up to some
 * seconds. With -a, hundreds of other processes would not be looked at meanwhile; where there is one process, its files
 * take half as long if a second CPU helps.
 */
#ifndef YRT_TABLE_MAKER_H
#define YRT_TABLE_MAKER_H

#include <types.h>

#include "binary/image.h"
#include "cfi/cfi.h"
#include "error.h"

struct table_maker;

enum table_order {
	TABLES_SMALLEST_FIRST, /* as most processes are to be known soon */
	TABLES_OLDEST_FIRST,   /* of a few that load files: what was loaded first has run for longest */
	TABLES_LARGEST_FIRST,  /* it helps: the caller waits for files, and makes some too */
};

/* NULL: no thread, or no memory. options are copied, but not what they point to. */
struct table_maker *table_maker_create(const struct cfi_options *options, enum table_order order);
/*
 * Does not wait for the file that the thread is at, which may take some seconds: the thread ends behind it, or with the
 * program; then that file is begun anew by the next run. What options point to must last. Other files are dropped.
 */
void table_maker_destroy(struct table_maker *m);
/*
 * Takes over an image. dev, ino: of its mapping, by which it is asked for. root: as of symbols_debug_file(). False: no
 * memory, the image stays the caller's.
 */
bool table_maker_put(struct table_maker *m, struct image *img, dev_t dev, ino_t ino, const char *root);
/*
 * Was this file put here, and not taken yet? *ret: its image with tables, the caller's; NULL: they are being made. If
 * it helps, there is always an image: without tables if it was not its turn yet.
 */
bool table_maker_take(struct table_maker *m, dev_t dev, ino_t ino, struct image **ret);
/* Are its tables being made? */
bool table_maker_has(struct table_maker *m, dev_t dev, ino_t ino);
/* How many are made so far. */
u32 table_maker_made(struct table_maker *m);

/*
 * Unwind tables of an image, also by the .debug_frame of its separate debug file if it has few itself. Only fails for
 * memory.
 */
struct error *tables_load(struct image *img, const struct cfi_options *options, const char *root);

#endif
