/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that came out of the ring and wait, in order, until there is time to name them. Records of processes overtake
 * stacks.
 */
#ifndef YRT_BACKLOG_H
#define YRT_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <types.h>

struct backlog { /* all 0: empty */
	u8 *bytes;
	size_t first, end, room; /* records lie from first to end */
};

/* Copies a record. False: out of memory. */
bool backlog_put(struct backlog *b, const void *data, size_t size);
/* The oldest record, aligned to 8 bytes and valid until the next one is put; NULL: none. */
const void *backlog_first(const struct backlog *b, size_t *size);
void backlog_drop(struct backlog *b);
size_t backlog_bytes(const struct backlog *b);
void backlog_free(struct backlog *b);

#endif
