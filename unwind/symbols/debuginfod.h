/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Separate debug files from the servers of DEBUGINFOD_URLS, by build-id. libdebuginfod (elfutils 0.180 and later) does
 * the transfer and caches the files; it is loaded when the first file is requested. The network may be slow, so this is
 * never used while sampling.
 */
#ifndef YRT_DEBUGINFOD_H
#define YRT_DEBUGINFOD_H

#include <signal.h>
#include <types.h>

#include "error.h"
#include "binary/image.h"

struct debuginfod;

/* Does DEBUGINFOD_URLS name a server, and does img have a build-id? */
bool debuginfod_serves(const struct image *img);
struct error *debuginfod_create(struct debuginfod **ret);
void debuginfod_destroy(struct debuginfod *d);
/*
 * The debug file of img; *ret is NULL if there is none. After a failure no server is asked any more: nothing came for
 * DEBUGINFOD_TIMEOUT seconds (10 by default), *stop (may be NULL) was set, or the library is missing. An error reports
 * that once, or that a file is of another build; all but error_no_memory are notes. A file whose transfer was ended
 * counts as missing in libdebuginfod's cache (0.188: for 600 s, cache_miss_s there).
 */
struct error *debuginfod_find(
        struct debuginfod *d, const struct image *img, volatile sig_atomic_t *stop, struct image **ret);

#endif
