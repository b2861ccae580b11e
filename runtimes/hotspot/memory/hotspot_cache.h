/* SPDX-License-Identifier: Apache-2.0 */
/* A cache of what was read from a JVM, by hashed key. If it grows too large, all of it is dropped. */
#ifndef YRT_HOTSPOT_CACHE_H
#define YRT_HOTSPOT_CACHE_H

#include <stddef.h>

#include "table.h"

struct hotspot_cache {
	struct table table;
	size_t bytes, max;
};

u64 hotspot_cache_key(u64 a, u64 b);
/* NULL: it is not there. Valid until the next hotspot_cache_put(). */
void *hotspot_cache_get(const struct hotspot_cache *c, u64 key);
/* Takes entry, which is freed by free(), in place of what had this key. False: no memory; entry is gone then. */
bool hotspot_cache_put(struct hotspot_cache *c, u64 key, void *entry, size_t bytes);
void hotspot_cache_clear(struct hotspot_cache *c);

#endif
