/* SPDX-License-Identifier: Apache-2.0 */
/* What parameters.c and pointed_member.c ask libdw for: types, units. */
#ifndef YRT_DEBUG_TYPE_H
#define YRT_DEBUG_TYPE_H

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <types.h>

#define DEBUG_UNITS_MAX 1000000

/* The type of a parameter, a member or what a pointer leads to, behind typedefs and qualifiers. */
static inline bool debug_type(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Die type;

	return dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &attr), &type) && !dwarf_peel_type(&type, ret);
}

/* 0: unknown. */
static inline u64 debug_type_size(Dwarf_Die *type)
{
	Dwarf_Word size;

	return dwarf_aggregate_size(type, &size) ? 0 : size;
}

static inline u64 debug_number(Dwarf_Die *die, u32 attribute, u64 or_else)
{
	Dwarf_Attribute attr;
	Dwarf_Word ret;

	return dwarf_formudata(dwarf_attr(die, attribute, &attr), &ret) ? or_else : ret;
}

/* The unit whose code addr is, also where .debug_aranges lacks it. */
static inline bool debug_unit(Dwarf *dwarf, u64 addr, Dwarf_Die *ret)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die split;
	u8 type;

	if (dwarf_addrdie(dwarf, addr, ret))
		return true;
	for (u32 i = 0; i < DEBUG_UNITS_MAX && !dwarf_get_units(dwarf, cu, &cu, NULL, &type, ret, &split); i++)
		if (type != DW_UT_type && type != DW_UT_split_type && dwarf_haspc(ret, addr) == 1)
			return true;
	return false;
}

#endif
