/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_CAPSTONE_GROUP_H
#define YRT_CAPSTONE_GROUP_H

#include <capstone/capstone.h>
#include <types.h>

/* Is a disassembled instruction of a cs_group_type? It needs its details (CS_OPT_DETAIL). */
static inline bool capstone_in_group(const cs_insn *insn, u8 group)
{
	for (u8 i = 0; i < insn->detail->groups_count; i++)
		if (insn->detail->groups[i] == group)
			return true;
	return false;
}

#endif
