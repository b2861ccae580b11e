/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of UNSIGNED5 as HotSpot writes them, and an nmethod of hotspot_tables_fake.h with inlined code: main (the
 * first method) at 20 is in work (the second), called from bytecode 7; at 64 in main itself.
 */
#ifndef YRT_HOTSPOT_SCOPES_FAKE_H
#define YRT_HOTSPOT_SCOPES_FAKE_H

#include "hotspot_tables_fake.h"
#include "runtimes/hotspot/names/hotspot_unsigned5.h"

static inline u32 put_uint(u8 *at, bool no_zero, u32 value)
{
	u32 x = no_zero, low = 192 - x, n = 0;

	for (; value >= low && n < 4; n++) {
		value -= low;
		at[n] = (u8)(x + low + value % 64);
		value /= 64;
	}
	at[n] = (u8)(x + value);
	return n + 1;
}

static inline u32 put_int(u8 *at, bool no_zero, s32 value)
{
	return put_uint(at, no_zero, (u32)value << 1 ^ (u32)(value >> 31));
}

static inline u32 put_scope(u8 *at, bool no_zero, u32 sender, u32 method, s32 bci)
{
	u32 n = put_uint(at, no_zero, sender);

	n += put_uint(at + n, no_zero, method);
	return n + put_uint(at + n, no_zero, (u32)(bci + 1));
}

#define FAKE_INLINED_PC 20
#define FAKE_ROOT_PC    64

static inline void fake_inlining(struct hotspot_fake *f, const struct hotspot_layout *l, const struct hotspot_code *c)
{
	bool no_zero = f->shape == FAKE_25;
	struct hotspot_nmethod nm;
	u32 at = 1, call, inlined, plain, scopes[FAKE_PCS];
	u8 *bytes;

	if (!hotspot_nmethod_read(c, &f->memory, f->nmethod[0], 100, &nm))
		abort();
	bytes = f->bytes + (nm.scopes - FAKE_BASE);
	call = at;
	at += put_scope(bytes + at, no_zero, 0, 1, 7);
	inlined = at;
	at += put_scope(bytes + at, no_zero, call, 2, 3);
	plain = at;
	put_scope(bytes + at, no_zero, 0, 1, 12);
	fake_poke(f, nm.metadata + 8, f->method[1], 8);
	memcpy(scopes, (u32[]){0, inlined, plain, 0}, sizeof(scopes));
	for (u32 i = 0; i < FAKE_PCS; i++)
		fake_poke(f, nm.pcs + i * l->pc_desc_size.at + l->pc_desc_scope.at, scopes[i], 4);
}

#endif
