/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads protocol buffer messages: a message is a span of bytes, from which fields are taken one by one. Nothing is
 * copied; the bytes are untrusted. Wire types: protobuf.dev/programming-guides/encoding.
 */
#ifndef YRT_FORMAT_PROTOBUF_READ_H
#define YRT_FORMAT_PROTOBUF_READ_H

#include <types.h>

/* Bytes of a message, or of a text. */
struct pb_span {
	const u8 *at, *end;
};

struct pb_field {
	u32 number;
	u64 value;           /* of a number */
	struct pb_span span; /* of bytes; at is NULL: it is a number */
};

struct pb_reader {
	bool broken; /* what was read so far is not well-formed; stays set */
};

/* Reads the next field. False at the end of the message, or if it is malformed (r->broken). */
bool pb_next(struct pb_reader *r, struct pb_span *from, struct pb_field *ret);
/* The next number of packed ones. */
u64 pb_take(struct pb_reader *r, struct pb_span *from);

#endif
