/* SPDX-License-Identifier: Apache-2.0 */
/* All of the debug information is untrusted: chains of types, and how many entries are looked at, are bounded. */
#include "parameters.h"

#include <arch.h>
#include <elfutils/libdw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "debug_type.h"
#include "symbols.h"

/* Where C's calling convention passes arguments, in their order (System V psABI for AMD64, 3.2.3). */

struct passing {
	bool known;            /* false: of no argument from here on */
	u32 general, floating; /* registers in use */
	u32 stack;             /* the next place there, from the stack pointer at the function's entry */
};

#define FLOATING_REGS      8
#define PASSED_MEMBERS_MAX 64 /* of a structure that is passed in registers */
#define DEPTH_MAX          8
#define WORDS              2 /* of 8 bytes, that such a structure has at most */

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
		if (c->looked++ == PASSED_MEMBERS_MAX || dwarf_hasattr(&member, DW_AT_data_bit_offset) ||
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

/* The next argument has this type: its registers or its place on the stack go to ret. */
static void passing_next(struct passing *passing, Dwarf_Die *type, struct parameter *ret)
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

/* Before the first: a large result is written to where a hidden argument says. */
static void passing_result(struct passing *passing, Dwarf_Die *type)
{
	struct parameter hidden = {0};
	struct classes c = classes_of(type);

	if (is_by_reference(type) || c.in_memory)
		take_general(passing, &hidden);
	else if (c.unknown)
		passing->known = false;
}

#define MEMBERS_MAX 256
#define STACK_MAX   4096

static u64 encoding_of(Dwarf_Die *type)
{
	return dwarf_tag(type) == DW_TAG_base_type ? debug_number(type, DW_AT_encoding, 0) : 0;
}

static bool points_to_bytes(Dwarf_Die *pointer)
{
	Dwarf_Die to;

	return dwarf_tag(pointer) == DW_TAG_pointer_type && debug_type(pointer, &to) &&
	       dwarf_tag(&to) == DW_TAG_base_type && debug_type_size(&to) == 1 && encoding_of(&to) != DW_ATE_boolean;
}

/* The first two members of a structure. Returns how many it has. */
static u32 members(Dwarf_Die *type, Dwarf_Die first[2])
{
	Dwarf_Die member, of;
	u32 n = 0, looked = 0;

	for (int e = dwarf_child(type, &member); !e && looked++ < MEMBERS_MAX; e = dwarf_siblingof(&member, &member)) {
		if (dwarf_tag(&member) != DW_TAG_member || !debug_type(&member, &of))
			continue;
		if (n < 2)
			first[n] = of;
		n++;
	}
	return n;
}

static bool is_length(Dwarf_Die *type)
{
	return debug_type_size(type) == 8 &&
	       (encoding_of(type) == DW_ATE_signed || encoding_of(type) == DW_ATE_unsigned);
}

static enum parameter_kind kind_of_base(Dwarf_Die *type)
{
	switch (encoding_of(type)) {
	case DW_ATE_boolean:
		return PARAMETER_BOOL;
	case DW_ATE_signed_char:
		return PARAMETER_CHAR;
	case DW_ATE_signed:
		return PARAMETER_SIGNED;
	case DW_ATE_unsigned_char:
	case DW_ATE_unsigned:
	case DW_ATE_UTF:
	case DW_ATE_address:
		return PARAMETER_UNSIGNED;
	default:
		return PARAMETER_OTHER;
	}
}

/* The pointer may be alone in a structure of its own, as std::string's is. */
static bool leads_to_bytes(Dwarf_Die *type)
{
	Dwarf_Die first[2];

	if (dwarf_tag(type) == DW_TAG_structure_type && debug_type_size(type) == sizeof(u64) &&
	        members(type, first) == 1)
		return points_to_bytes(&first[0]);
	return points_to_bytes(type);
}

static enum parameter_kind kind_of_structure(Dwarf_Die *type)
{
	int tag = dwarf_tag(type);
	Dwarf_Die first[2];

	if ((tag != DW_TAG_structure_type && tag != DW_TAG_class_type) || members(type, first) < 2)
		return PARAMETER_OTHER;
	if (leads_to_bytes(&first[0]) && is_length(&first[1]))
		return PARAMETER_TEXT;
	return is_length(&first[0]) && leads_to_bytes(&first[1]) ? PARAMETER_SIZED : PARAMETER_OTHER;
}

/* An interface of Go (runtime.iface, runtime.eface: runtime2.go). */
static bool is_interface(Dwarf_Die *type)
{
	const char *name = dwarf_diename(type);

	return name && (!strcmp(name, "runtime.iface") || !strcmp(name, "runtime.eface"));
}

static enum parameter_kind kind_of_pointer(Dwarf_Die *type)
{
	Dwarf_Die to;

	if (points_to_bytes(type))
		return PARAMETER_STRING;
	switch (debug_type(type, &to) ? kind_of_structure(&to) : PARAMETER_OTHER) {
	case PARAMETER_TEXT:
		return PARAMETER_TO_TEXT;
	case PARAMETER_SIZED:
		return PARAMETER_TO_SIZED;
	default:
		return PARAMETER_POINTER;
	}
}

static enum parameter_kind kind_of(Dwarf_Die *type)
{
	switch (dwarf_tag(type)) {
	case DW_TAG_base_type:
		return kind_of_base(type);
	case DW_TAG_enumeration_type:
		return PARAMETER_SIGNED;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		return kind_of_pointer(type);
	default:
		return kind_of_structure(type);
	}
}

/* Is what DW_OP_fbreg counts from the stack pointer before the call? */
static bool is_frame_of_call(Dwarf_Die *function)
{
	Dwarf_Attribute attr;
	Dwarf_Op *op;
	size_t n;

	return dwarf_attr_integrate(function, DW_AT_frame_base, &attr) && !dwarf_getlocation(&attr, &op, &n) &&
	       n == 1 && op->atom == DW_OP_call_frame_cfa;
}

/* Nowhere: an optimiser removed it. Later: in the frame, once it is stored there. */
enum located { LOCATED_NOWHERE, LOCATED_LATER, LOCATED };

static bool is_memory(const Dwarf_Op *op)
{
	return op->atom == DW_OP_fbreg || op->atom == DW_OP_bregx ||
	       (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31);
}

/* By its location at the function's entry. A constant is nowhere: it is not passed. */
static enum located locate(Dwarf_Die *function, Dwarf_Die *die, u64 entry, struct parameter *p)
{
	Dwarf_Attribute attr;
	Dwarf_Op *op;
	size_t n;

	if (!dwarf_attr_integrate(die, DW_AT_location, &attr) || dwarf_getlocation_addr(&attr, entry, &op, &n, 1) < 1 ||
	        !n)
		return LOCATED_NOWHERE;
	if (op->atom == DW_OP_fbreg && n == 1 && is_frame_of_call(function) && op->number < STACK_MAX) {
		p->stack = (u16)(op->number + 8);
		return LOCATED;
	}
	for (size_t i = 0; i < n; i++) {
		u64 reg = op[i].atom == DW_OP_regx ? op[i].number : (u64)op[i].atom - DW_OP_reg0;

		if (op[i].atom == DW_OP_piece)
			continue;
		if (op[i].atom != DW_OP_regx && (op[i].atom < DW_OP_reg0 || op[i].atom > DW_OP_reg31))
			return i ? LOCATED : n == 1 && is_memory(op) ? LOCATED_LATER : LOCATED_NOWHERE;
		if (reg < 0xff && p->nregs < PARAMETER_REGS)
			p->reg[p->nregs++] = (u8)reg;
	}
	return LOCATED;
}

#define LANG_C_PLUS_PLUS_17 0x2a /* DWARF's list of languages; <dwarf.h> of Debian 12 ends before */
#define LANG_C_PLUS_PLUS_20 0x2b
#define LANG_C17            0x2c

/* Languages whose functions take their arguments as C's do. */
static bool calls_as_c(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case DW_LANG_ObjC:
	case DW_LANG_ObjC_plus_plus:
	case LANG_C_PLUS_PLUS_17:
	case LANG_C_PLUS_PLUS_20:
	case LANG_C17:
		return true;
	default:
		return false;
	}
}

static void read_parameter(
        Dwarf_Die *function, Dwarf_Die *die, u64 entry, struct passing *passing, struct parameters *ret)
{
	struct parameter *p = &ret->of[ret->n];
	const char *name = dwarf_diename(die);
	struct parameter by_abi = {0};
	enum located located;
	Dwarf_Die type;
	u64 size;

	if (ret->n == PARAMETERS_MAX) {
		ret->more = true;
		return;
	}
	ret->n++;
	*p = (struct parameter){0};
	snprintf(p->name, sizeof(p->name), "%s", name ? name : "");
	located = locate(function, die, entry, p);
	if (!debug_type(die, &type)) {
		passing->known = false;
		return;
	}
	size = debug_type_size(&type);
	p->kind = kind_of(&type);
	p->size = size <= 8 ? (u8)size : 0;
	if (located != LOCATED_NOWHERE)
		passing_next(passing, &type, &by_abi);
	if (located == LOCATED_LATER) {
		p->nregs = by_abi.nregs;
		p->stack = by_abi.stack;
		memcpy(p->reg, by_abi.reg, sizeof(p->reg));
	}
	if (p->nregs && p->nregs != (p->kind == PARAMETER_TEXT || p->kind == PARAMETER_SIZED ? 2 : 1))
		p->kind = PARAMETER_OTHER;
}

/* The one result of C's convention. */
static void read_result(Dwarf_Die *type, struct parameters *ret)
{
	static const u8 regs[WORDS] = {DWREG_RAX, DWREG_RDX};
	struct parameter *r = &ret->result[ret->nresults++];
	struct classes c = classes_of(type);
	u64 size = debug_type_size(type);

	*r = (struct parameter){.kind = kind_of(type), .size = size <= 8 ? (u8)size : 0};
	if (c.unknown || c.in_memory || is_by_reference(type) || c.word[0] == WORD_FLOATING ||
	        c.word[1] == WORD_FLOATING) {
		r->kind = PARAMETER_OTHER;
		return;
	}
	for (u32 i = 0; i < WORDS && c.word[i] == WORD_GENERAL; i++)
		r->reg[r->nregs++] = regs[i];
}

/* Registers that a value of Go takes; GO_REGS: it is not known, or they are not these. */
#define GO_REGS 9
static u32 go_words(Dwarf_Die *type, enum parameter_kind kind)
{
	switch (kind) {
	case PARAMETER_TEXT:
	case PARAMETER_BOXED:
		return 2;
	case PARAMETER_OTHER:
		return encoding_of(type) == DW_ATE_float ? 0 : GO_REGS;
	default:
		return 1;
	}
}

/* The next result of a function of Go: integers and pointers are in registers, one after the other. */
static void read_go_result(Dwarf_Die *die, u32 *used, struct parameters *ret)
{
	static const u8 regs[GO_REGS] = {
	        DWREG_RAX, DWREG_RBX, DWREG_RCX, DWREG_RDI, DWREG_RSI, DWREG_R8, DWREG_R9, DWREG_R10, DWREG_R11};
	struct parameter *r = &ret->result[ret->nresults];
	const char *name = dwarf_diename(die);
	Dwarf_Die type;
	u32 words;

	if (ret->nresults == RESULTS_MAX) {
		ret->more_results = true;
		return;
	}
	ret->nresults++;
	*r = (struct parameter){.kind = PARAMETER_OTHER};
	if (name && *name != '~')
		snprintf(r->name, sizeof(r->name), "%s", name);
	if (!debug_type(die, &type)) {
		*used = GO_REGS;
		return;
	}
	r->kind = is_interface(&type) ? PARAMETER_BOXED : kind_of(&type);
	r->size = debug_type_size(&type) <= 8 ? (u8)debug_type_size(&type) : 0;
	words = go_words(&type, r->kind);
	if (words > GO_REGS - *used) {
		*used = GO_REGS;
		return;
	}
	for (u32 i = 0; i < words; i++)
		r->reg[r->nregs++] = regs[(*used)++];
}

/* Go passes them in registers from 1.17 on, and says so ("Go cmd/compile go1.22; regabi"). */
static bool returns_as_go(Dwarf_Die *unit)
{
	Dwarf_Attribute attr;
	const char *producer = dwarf_formstring(dwarf_attr_integrate(unit, DW_AT_producer, &attr));

	return dwarf_srclang(unit) == DW_LANG_Go && producer && strstr(producer, "regabi");
}

static bool read_function(Dwarf_Die *unit, Dwarf_Die *function, u64 entry, struct parameters *ret)
{
	struct passing passing = {.known = calls_as_c(unit), .stack = 8};
	Dwarf_Die child, result;
	u32 looked = 0, used = 0;
	bool go = returns_as_go(unit);

	*ret = (struct parameters){0};
	if (debug_type(function, &result))
		passing_result(&passing, &result);
	if (calls_as_c(unit) && debug_type(function, &result))
		read_result(&result, ret);
	for (int e = dwarf_child(function, &child); !e && looked++ < MEMBERS_MAX; e = dwarf_siblingof(&child, &child)) {
		Dwarf_Attribute attr;
		bool is_result = false;

		if (dwarf_tag(&child) != DW_TAG_formal_parameter)
			continue;
		if (!dwarf_formflag(dwarf_attr_integrate(&child, DW_AT_variable_parameter, &attr), &is_result) &&
		        is_result) {
			if (go)
				read_go_result(&child, &used, ret);
			continue;
		}
		read_parameter(function, &child, entry, &passing, ret);
	}
	return true;
}

static bool find_in(struct image *img, u64 addr, struct parameters *ret)
{
	Elf *elf = image_open_elf(img);
	Dwarf *dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	Dwarf_Die unit, *scopes = NULL;
	bool found = false;
	int n = dwarf && debug_unit(dwarf, addr, &unit) ? dwarf_getscopes(&unit, addr, &scopes) : 0;

	for (int i = 0; i < n && !found; i++) {
		Dwarf_Addr entry;

		if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram && !dwarf_entrypc(&scopes[i], &entry) && entry == addr)
			found = read_function(&unit, &scopes[i], addr, ret);
	}
	free(scopes);
	dwarf_end(dwarf);
	elf_end(elf);
	return found;
}

bool parameters_find(struct image *img, const char *root, u64 addr, struct parameters *ret)
{
	struct image *debug = NULL;
	bool found = find_in(img, addr, ret);

	if (found)
		return true;
	error_free(symbols_debug_file(img, root, &debug));
	found = debug && find_in(debug, addr, ret);
	image_put(debug);
	return found;
}
