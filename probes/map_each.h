/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a hash map of BPF, many elements at a time. */
#ifndef YRT_MAP_EACH_H
#define YRT_MAP_EACH_H

#include <types.h>

#include "error.h"

struct bpf_map;

/* An element; an error ends the reading. */
typedef struct error *map_take(void *ctx, const void *key, const void *value);

/*
 * Calls take for each element. remove: it is deleted as it is read. what: for the error if the kernel does not let the
 * map be read; take has seen what came before.
 */
struct error *map_each(const struct bpf_map *map, bool remove, map_take *take, void *ctx, const char *what);

#endif
