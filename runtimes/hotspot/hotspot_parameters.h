/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of a method's parameters, of classes compiled with -g or -parameters.
 *
 * Behind its bytecode a ConstMethod has tables, read from its end (constMethod.hpp, constMethod.cpp; JDK 8 to 25 have
 * the same order and bits): a pointer for each kind of annotations, the index of the generic signature, then each with
 * its length behind it: parameters, checked exceptions, handlers of exceptions, local variables.
 */
#ifndef YRT_HOTSPOT_PARAMETERS_H
#define YRT_HOTSPOT_PARAMETERS_H

#include "hotspot_instance.h"

#define HOTSPOT_PARAMETERS 16 /* local variables whose names are looked for */

struct hotspot_parameters {
	u64 pool;
	u16 name[HOTSPOT_PARAMETERS];     /* by number of the local variable: an index into the pool; 0: none */
	u16 in_order[HOTSPOT_PARAMETERS]; /* by number of the parameter, without `this` */
};

void hotspot_parameters_read(
        const struct hotspot_layout *l, struct memory *mem, u64 constants, struct hotspot_parameters *ret);
/* Of an argument in a local variable. "" if it has none. */
void hotspot_parameter_name(const struct hotspot_instance *instance, struct memory *mem,
        const struct hotspot_parameters *p, u32 local, u32 number, char *ret, size_t size);

#endif
