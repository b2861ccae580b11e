/* SPDX-License-Identifier: Apache-2.0 */
#include "passing.h"

#include <arch.h>

#include "debug_type.h"

#define FLOATING_REGS 8
#define MEMBERS_MAX   64 /* of a structure that is passed in registers */
#define DEPTH_MAX     8
#define WORDS         2 /* of 8 bytes, that such a structure has at most */

const u8 parameter_regs[6] = {DWREG_RDI, DWREG_RSI, DWREG_RDX, DWREG_RCX, DWREG_R8, DWREG_R9};

enum word { WORD_NONE, WORD_FLOATING, WORD_GENERAL };

struct classes {
	enum word word[WORDS];
	u32 looked;
	bool unknown, in_memory;
};

static void set(struct classes *c, u64 offset, u64 size, enum word word)
{
	if (offset + size > sizeof(u64) * WORDS || !size || offset % size) {
		c->in_memory = true; /* unaligned, too */
		return;
	}
	for (u64 i = offset / 8; i <= (offset + size - 1) / 8; i++)
		if (c->word[i] < word)
			c->word[i] = word;
}

static void classify(struct classes *c, Dwarf_Die *type, u64 offset, u32 depth);

static void classify_members(struct classes *c, Dwarf_Die *type, u64 offset, u32 depth)
{
	Dwarf_Die member, of;

	for (int e = dwarf_child(type, &member); !e; e = dwarf_siblingof(&member, &member)) {
		int tag = dwarf_tag(&member);

		if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) || dwarf_hasattr(&member, DW_AT_external))
			continue;
		if (c->looked++ == MEMBERS_MAX || dwarf_hasattr(&member, DW_AT_data_bit_offset) ||
		        !debug_type(&member, &of))
			c->unknown = true;
		if (c->unknown)
			return;
		classify(c, &of, offset + debug_number(&member, DW_AT_data_member_location, 0), depth + 1);
	}
}

static void classify_array(struct classes *c, Dwarf_Die *type, u64 offset, u32 depth)
{
	u64 size = debug_type_size(type), each;
	Dwarf_Die of;

	each = debug_type(type, &of) ? debug_type_size(&of) : 0;
	if (!each || size > sizeof(u64) * WORDS)
		c->unknown = true;
	for (u64 at = 0; !c->unknown && at < size; at += each)
		classify(c, &of, offset + at, depth + 1);
}

static void classify_base(struct classes *c, Dwarf_Die *type, u64 offset)
{
	u64 encoding = debug_number(type, DW_AT_encoding, 0), size = debug_type_size(type);

	if (encoding == DW_ATE_complex_float || (encoding == DW_ATE_float && size != 4 && size != 8))
		c->unknown = true;
	else
		set(c, offset, size, encoding == DW_ATE_float ? WORD_FLOATING : WORD_GENERAL);
}

static void classify(struct classes *c, Dwarf_Die *type, u64 offset, u32 depth)
{
	if (depth == DEPTH_MAX)
		c->unknown = true;
	if (c->unknown)
		return;
	switch (dwarf_tag(type)) {
	case DW_TAG_base_type:
		classify_base(c, type, offset);
		break;
	case DW_TAG_enumeration_type:
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		set(c, offset, debug_type_size(type) ? debug_type_size(type) : sizeof(u64), WORD_GENERAL);
		break;
	case DW_TAG_ptr_to_member_type:
		set(c, offset, sizeof(u64), WORD_GENERAL);
		c->unknown = debug_type_size(type) != sizeof(u64);
		break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		classify_members(c, type, offset, depth);
		break;
	case DW_TAG_array_type:
		classify_array(c, type, offset, depth);
		break;
	default:
		c->unknown = true;
	}
}

static bool is_by_reference(Dwarf_Die *type)
{
	return debug_number(type, DW_AT_calling_convention, 0) == DW_CC_pass_by_reference;
}

static struct classes classes_of(Dwarf_Die *type)
{
	struct classes c = {0};

	if (debug_type_size(type) > sizeof(u64) * WORDS)
		c.in_memory = true;
	else
		classify(&c, type, 0, 0);
	return c;
}

static void take_stack(struct passing *passing, u64 size, struct parameter *ret)
{
	if (size > UINT16_MAX - passing->stack - 8) {
		passing->known = false;
		return;
	}
	ret->stack = (u16)passing->stack;
	passing->stack += (u32)((size + 7) & ~7ull);
}

static void take_general(struct passing *passing, struct parameter *ret)
{
	ret->reg[ret->nregs++] = parameter_regs[passing->general++];
}

/* All of it in registers, or none. */
static void take(struct passing *passing, const struct classes *c, u64 size, struct parameter *ret)
{
	u32 general = (c->word[0] == WORD_GENERAL) + (c->word[1] == WORD_GENERAL);
	u32 floating = (c->word[0] == WORD_FLOATING) + (c->word[1] == WORD_FLOATING);

	if (passing->general + general > sizeof(parameter_regs) || passing->floating + floating > FLOATING_REGS) {
		take_stack(passing, size, ret);
		return;
	}
	passing->floating += floating;
	for (u32 i = 0; i < general; i++)
		take_general(passing, ret);
}

void passing_next(struct passing *passing, Dwarf_Die *type, struct parameter *ret)
{
	static const struct classes pointer = {.word = {WORD_GENERAL}};
	struct classes c;

	if (!passing->known)
		return;
	c = is_by_reference(type) ? pointer : classes_of(type);
	if (c.unknown)
		passing->known = false;
	else if (c.in_memory)
		take_stack(passing, debug_type_size(type), ret);
	else
		take(passing, &c, debug_type_size(type), ret);
}

void passing_result(struct passing *passing, Dwarf_Die *type)
{
	struct parameter hidden = {0};
	struct classes c = classes_of(type);

	if (is_by_reference(type) || c.in_memory)
		take_general(passing, &hidden);
	else if (c.unknown)
		passing->known = false;
}
