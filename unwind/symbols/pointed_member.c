/* SPDX-License-Identifier: Apache-2.0 */
/* The debug information is untrusted: how many entries are looked at, and how deep, is bounded. */
#include "pointed_member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "debug_type.h"
#include "symbols.h"

#define ENTRIES_MAX 4096
#define DEEP        4 /* structures within structures */

struct search {
	u64 addr, offset;
	int reg;
	u32 entries;
	char name[128]; /* "field `x` of `struct y`" */
	bool in_register, several;
};

static const char *kind_of(Dwarf_Die *type)
{
	return dwarf_tag(type) == DW_TAG_class_type   ? "class "
	       : dwarf_tag(type) == DW_TAG_union_type ? "union "
	                                              : "struct ";
}

static bool is_structure(Dwarf_Die *type)
{
	int tag = dwarf_tag(type);

	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

/* "a.b" of the member that begins at offset, also within members that are structures. */
static bool name_member(struct search *s, Dwarf_Die *type, u64 offset, u32 depth, char *path, size_t size)
{
	Dwarf_Die member, of;

	for (int e = dwarf_child(type, &member); !e && s->entries++ < ENTRIES_MAX;
	        e = dwarf_siblingof(&member, &member)) {
		u64 at = debug_number(&member, DW_AT_data_member_location, 0);
		const char *name = dwarf_diename(&member);
		size_t n = strlen(path);

		if ((dwarf_tag(&member) != DW_TAG_member && dwarf_tag(&member) != DW_TAG_inheritance) || at > offset ||
		        !debug_type(&member, &of) || dwarf_hasattr(&member, DW_AT_external))
			continue;
		if (name)
			snprintf(path + n, size - n, "%s%s", n ? "." : "", name);
		if (is_structure(&of) && depth < DEEP && offset - at < debug_type_size(&of) &&
		        name_member(s, &of, offset - at, depth + 1, path, size))
			return true;
		if (name && at == offset && !is_structure(&of))
			return true;
		path[n] = '\0';
	}
	return false;
}

/* The first one; another one makes it uncertain. */
static void note(struct search *s, Dwarf_Die *structure)
{
	char path[64] = "", text[sizeof(s->name)];
	const char *name = dwarf_diename(structure);

	if (!name || !name_member(s, structure, s->offset, 0, path, sizeof(path)))
		return;
	snprintf(text, sizeof(text), "field `%.40s` of `%s%.48s`", path, kind_of(structure), name);
	s->several |= *s->name && strcmp(s->name, text) != 0;
	if (!*s->name)
		snprintf(s->name, sizeof(s->name), "%s", text);
}

static bool points_to(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Die pointer;
	int tag;

	if (!debug_type(die, &pointer))
		return false;
	tag = dwarf_tag(&pointer);
	return (tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type) &&
	       debug_type(&pointer, ret) && is_structure(ret);
}

/* What pointers of a structure lead to: the one that is null may be one of them. */
static void note_next(struct search *s, Dwarf_Die *structure)
{
	Dwarf_Die member, to;

	for (int e = dwarf_child(structure, &member); !e && s->entries++ < ENTRIES_MAX;
	        e = dwarf_siblingof(&member, &member))
		if (dwarf_tag(&member) == DW_TAG_member && points_to(&member, &to))
			note(s, &to);
}

static bool is_in(Dwarf_Die *variable, u64 addr, int reg)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	if (reg < 0 || !dwarf_attr_integrate(variable, DW_AT_location, &attr) ||
	        dwarf_getlocation_addr(&attr, addr, &ops, &n, 1) != 1 || !n)
		return false;
	if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
		return ops[0].atom - DW_OP_reg0 == reg;
	return ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31 && ops[0].atom - DW_OP_breg0 == reg && n > 1 &&
	       !ops[0].number && ops[1].atom == DW_OP_stack_value;
}

static void look_at(struct search *s, Dwarf_Die *scope, bool registers)
{
	Dwarf_Die child, to;

	for (int e = dwarf_child(scope, &child); !e && s->entries++ < ENTRIES_MAX;
	        e = dwarf_siblingof(&child, &child)) {
		if ((dwarf_tag(&child) != DW_TAG_variable && dwarf_tag(&child) != DW_TAG_formal_parameter) ||
		        !points_to(&child, &to))
			continue;
		if (!registers) {
			note(s, &to);
			note_next(s, &to);
		} else if (is_in(&child, s->addr, s->reg)) {
			s->in_register = true;
			note(s, &to);
		}
	}
}

/* Up to the function that it is in, and what that is inlined into. */
static void look_in(struct search *s, Dwarf_Die *scopes, int n, bool registers)
{
	for (int i = 0; i < n && !s->several; i++) {
		look_at(s, &scopes[i], registers);
		if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram)
			break;
	}
}

static bool find_in(struct image *img, struct search *s)
{
	Elf *elf = image_open_elf(img);
	Dwarf *dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	Dwarf_Die unit, *scopes = NULL;
	int n = dwarf && debug_unit(dwarf, s->addr, &unit) ? dwarf_getscopes(&unit, s->addr, &scopes) : 0;

	if (n > 0) {
		look_in(s, scopes, n, true);
		if (!s->in_register)
			look_in(s, scopes, n, false);
	}
	free(scopes);
	dwarf_end(dwarf);
	elf_end(elf);
	return n > 0;
}

bool pointed_member(struct image *img, const char *root, u64 addr, int reg, u64 offset, char *text, size_t size)
{
	struct search s = {.addr = addr, .offset = offset, .reg = reg};
	struct image *debug = NULL;

	if (!find_in(img, &s)) {
		error_free(symbols_debug_file(img, root, &debug));
		if (debug)
			find_in(debug, &s);
		image_put(debug);
	}
	/* Without a pointer that is in the register a first member is no better a guess than what is no structure. */
	if (!*s.name || s.several || (!s.in_register && !offset))
		return false;
	snprintf(text, size, "%s%s", s.in_register ? "" : "perhaps ", s.name);
	return true;
}
