/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_HASH_TEXT_H
#define YRT_HASH_TEXT_H

#include <string.h>
#include <types.h>
#include <xxhash.h>

/* The hash of what hash is of, followed by text. */
static inline u64 hash_add_text(u64 hash, const char *text)
{
	return XXH3_64bits_withSeed(text, strlen(text), hash);
}

#endif
