/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of pools in all targets: finds them, and places uprobes there (pools.h). */
#ifndef YRT_POOLS_PLACES_H
#define YRT_POOLS_PLACES_H

#include "alloc_windows.h"
#include "pools.h"
#include "pools_spec.h"

struct pool_places;

/* windows: for functions that take blocks; not owned. */
struct error *pool_places_create(
        const struct event_host *host, struct alloc_windows *windows, struct pool_places **ret);
void pool_places_destroy(struct pool_places *p); /* NULL is fine */
/* Looks at targets that are new, or have other mappings than before. */
struct error *pool_places_look(struct pool_places *p);
/* An error that says why, if no target has pools. */
struct error *pool_places_check(const struct pool_places *p);
/* "nginx: ngx_palloc": valid until the next look. */
const char *pool_places_text(const struct pool_places *p);

#endif
