/* SPDX-License-Identifier: Apache-2.0 */
/* Current values of a JVM's flags, by the table JVMFlag::flags (8: Flag::flags), which vmStructs describe. */
#ifndef YRT_HOTSPOT_FLAGS_H
#define YRT_HOTSPOT_FLAGS_H

#include "hotspot_vmstructs.h"
#include "binary/memory.h"

struct hotspot_flag {
	const char *name; /* "UseCompressedOops" */
	u32 size;         /* of its value: 1 for a bool, 4 for int and uint, 8 for what else is a number or a pointer */
	u64 value;
	bool found; /* false: this JVM has no such flag */
};

/* Fills value and found of each. False: the table, or one of them, can not be read (then all are not found). */
bool hotspot_flags_read(const struct vmstructs *v, struct memory *m, struct hotspot_flag *flags, u32 n);

#endif
