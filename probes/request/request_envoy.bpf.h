/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a request of Envoy is, from its lists of headers (request.h). */
#ifndef YRT_REQUEST_ENVOY_BPF_H
#define YRT_REQUEST_ENVOY_BPF_H

#include "event.bpf.h"
#include "request/request.h"

#define ENVOY_MAPS_FROM 11u /* words of an ActiveStream that may point to headers */
#define ENVOY_MAPS_TO   22u
#define ENVOY_PSEUDO    5u                    /* headers that are looked at, which are the first */
#define ENVOY_METHOD    0x00646f6874656d3aull /* ":method" */
#define ENVOY_STATUS    0x007375746174733aull /* ":status" */
#define ENVOY_PATH      0x000000687461703aull /* ":path" */

static inline u32 request_digit(u64 text, u32 i)
{
	u32 digit = (u32)(text >> 8 * i & 0xff) - '0';

	return digit < 10 ? digit : 0;
}

static inline u32 request_cut(u64 len, u32 room)
{
	return len < room ? (u32)len : room - 1;
}

/* A header of Envoy: its list's node. */
WALK_GLOBAL int request_envoy_header(struct request_record *record, u64 node)
{
	u64 key[2], value[2], name = 0, at, len;

	if (!record || bpf_probe_read_user(key, sizeof(key), (const void *)(node + 24)) ||
	        (key[1] != 5 && key[1] != 7) || bpf_probe_read_user(&name, key[1] == 5 ? 5 : 7, (const void *)key[0]) ||
	        bpf_probe_read_user(value, sizeof(value), (const void *)(node + 168)))
		return 0;
	at = value[0];
	len = value[1];
	if (user_word(node + 304)) {
		len = value[0] >> 1;
		at = value[0] & 1 ? value[1] : node + 176;
	}
	if (name == ENVOY_METHOD) {
		len = request_cut(len, REQUEST_METHOD);
		WALK_BARRIER(len);
		if (len < REQUEST_METHOD)
			bpf_probe_read_user(record->method, (u32)len, (const void *)at);
	} else if (name == ENVOY_PATH) {
		len = request_cut(len, REQUEST_PATH);
		WALK_BARRIER(len);
		if (len < REQUEST_PATH)
			bpf_probe_read_user(record->path, (u32)len, (const void *)at);
	} else if (name == ENVOY_STATUS && len == 3) {
		name = 0;
		bpf_probe_read_user(&name, 3, (const void *)at);
		record->status = 100 * request_digit(name, 0) + 10 * request_digit(name, 1) + request_digit(name, 2);
	}
	return 0;
}

/* Maybe headers. offset: of the base class that this points to. */
WALK_GLOBAL int request_envoy_map(struct request_record *record, u64 map, u64 offset)
{
	u64 end = map - offset + 8, before = end, node;

	if (!record || !(map >> 16) || map >> 47)
		return 0;
	node = user_word(end + 8);
	for (u32 i = 0; i < ENVOY_PSEUDO && node >> 16 && node != end && user_word(node) == before; i++) {
		request_envoy_header(record, node);
		before = node;
		node = user_word(node + 8);
	}
	return 0;
}

/* What Envoy knows of it. */
WALK_GLOBAL int request_read_envoy(struct request_record *record, u64 key, u64 cookie)
{
	if (!record)
		return 0;
	for (u32 i = ENVOY_MAPS_FROM; i < ENVOY_MAPS_TO; i++)
		request_envoy_map(record, user_word(key + 8 * i), cookie >> REQUEST_OFFSET & REQUEST_OFFSET_MAX);
	return 0;
}

#endif
