/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the arguments of a USDT probe are, as its note says: "-4@%edi 8@16(%rsp) 1@$5", a size@operand for each, in the
 * assembler's syntax (<sys/sdt.h>; stap's UserSpaceProbeImplementation). Untrusted: it is in the target's file.
 */
#ifndef YRT_HIT_USDT_H
#define YRT_HIT_USDT_H

#include <stdbool.h>
#include <types.h>

#define HIT_USDT_ARGUMENTS 12
#define HIT_USDT_NONE      255 /* no register */

enum hit_usdt_kind { HIT_USDT_CONSTANT, HIT_USDT_REGISTER, HIT_USDT_MEMORY, HIT_USDT_UNKNOWN };

struct hit_usdt_argument {
	enum hit_usdt_kind kind;
	u8 base, index, scale; /* registers by DWARF's numbers; of MEMORY index may be none */
	u8 size;               /* in bytes: 1, 2, 4, 8 */
	bool is_signed;
	s64 value; /* of CONSTANT; of MEMORY the offset */
};

/* How many arguments there are, at most HIT_USDT_ARGUMENTS. One that is not understood is UNKNOWN. */
u32 hit_usdt_parse(const char *text, struct hit_usdt_argument ret[HIT_USDT_ARGUMENTS]);

#endif
