/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_flow_known.h"

#include <string.h>
#include <xxhash.h>

#define KNOWN_BITS 13
#define BYTES_MAX  15 /* of an instruction */

struct known {
	u8 bytes[BYTES_MAX];
	struct flow_ins ins; /* as if it were at 0; without a size: unused */
};

/* By a hash of all bytes; sizes: which are kept, by a hash of the first two. */
static struct known known[1u << KNOWN_BITS];
static u16 sizes[1u << KNOWN_BITS];

static u32 hash(const u8 *bytes, size_t size)
{
	return XXH3_64bits(bytes, size) >> (64 - KNOWN_BITS);
}

static u16 *sizes_of(const u8 *bytes, size_t size)
{
	return &sizes[hash(bytes, size < 2 ? 1 : 2)];
}

/* A prefix without its instruction is one only because of what follows. */
static bool is_prefix(u8 byte)
{
	return (byte & 0xf0) == 0x40 || (byte & 0xe7) == 0x26 || (byte & 0xfc) == 0x64 || byte == 0xf0 ||
	       byte == 0xf2 || byte == 0xf3;
}

bool flow_known_find(const u8 *bytes, size_t size, u64 addr, struct flow_ins *ret)
{
	u32 left = size ? *sizes_of(bytes, size) | *sizes_of(bytes, 1) : 0;

	for (; left; left &= left - 1) {
		u32 n = (u32)__builtin_ctz(left);
		const struct known *k = n <= size ? &known[hash(bytes, n)] : NULL;

		if (!k || k->ins.size != n || memcmp(k->bytes, bytes, n))
			continue;
		*ret = k->ins;
		ret->addr = addr;
		if (ret->target)
			ret->target += addr;
		return true;
	}
	return false;
}

void flow_known_keep(const u8 *bytes, const struct flow_ins *ins)
{
	struct known *k = &known[hash(bytes, ins->size)];

	if (ins->size > BYTES_MAX || (ins->size == 1 && is_prefix(bytes[0])))
		return;
	memcpy(k->bytes, bytes, ins->size);
	k->ins = *ins;
	k->ins.addr = 0;
	if (ins->target)
		k->ins.target -= ins->addr;
	*sizes_of(bytes, ins->size) |= 1u << ins->size;
}
