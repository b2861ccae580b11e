/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes protocol buffer messages: a message grows in memory and is then put into another one or into a file. Wire
 * types and the packing of repeated numbers: protobuf.dev/programming-guides/encoding.
 */
#ifndef YRT_FORMAT_PROTOBUF_H
#define YRT_FORMAT_PROTOBUF_H

#include <stddef.h>
#include <types.h>

struct pb { /* starts as zero; free bytes at the end. Out of memory is remembered, and makes all that follows do nothing
	     */
	u8 *bytes;
	size_t size, capacity;
	bool failed;
};

/* A field with a number; none if it is 0, which is what a reader takes an absent one for. */
void pb_number(struct pb *m, u32 field, u64 value);
/* A field with bytes: a string, a message, packed numbers. */
void pb_bytes(struct pb *m, u32 field, const void *bytes, size_t size);
/* Bytes as they are: fields of another message. */
void pb_raw(struct pb *m, const void *bytes, size_t size);
/* A number without a field, for packing. */
void pb_packed(struct pb *m, u64 value);

#endif
