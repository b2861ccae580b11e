/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JVM's description of itself: the tables gHotSpotVMStructs, VMTypes, VMIntConstants and VMLongConstants, which every
 * libjvm exports (vmStructs.hpp, JDK 8 to 28). They are read from the process, because strides and most offsets are 0
 * in the file.
 */
#ifndef YRT_HOTSPOT_VMSTRUCTS_H
#define YRT_HOTSPOT_VMSTRUCTS_H

#include <types.h>

#include "error.h"
#include "binary/image.h"
#include "binary/memory.h"

struct vmstructs;

#define VMSTRUCTS_TABLES  4
#define VMSTRUCTS_COLUMNS 6

/*
 * Where the tables of a file are described: addresses of its exported variables. Tables: structs, types, int and long
 * constants. Columns of structs: type, field, type in words, is static, offset, address; of the others name and value.
 */
struct vmstructs_symbols {
	u64 table[VMSTRUCTS_TABLES], stride[VMSTRUCTS_TABLES], column[VMSTRUCTS_TABLES][VMSTRUCTS_COLUMNS];
};

/* *ret is NULL if the file exports no such tables (it is no libjvm). Freed by free(). */
struct error *vmstructs_symbols_find(struct image *img, struct vmstructs_symbols **ret);

/*
 * All entries as they are in the process; untrusted, so their number and the length of names are bounded. A JVM that
 * has not initialised them yet (strides 0) is ERROR_AGAIN-like: *ret NULL and no error. jvm_bias: load bias of the
 * file.
 */
struct error *vmstructs_read(
        const struct vmstructs_symbols *symbols, struct memory *memory, u64 jvm_bias, struct vmstructs **ret);
void vmstructs_destroy(struct vmstructs *v); /* NULL is fine */

/* The offset of a field that is not static; false: no such field. type_string (may be NULL) is its type in words. */
bool vmstructs_field(
        const struct vmstructs *v, const char *type, const char *field, u64 *offset, const char **type_string);
/* The address of a static field. */
bool vmstructs_static(const struct vmstructs *v, const char *type, const char *field, u64 *address);
bool vmstructs_type_size(const struct vmstructs *v, const char *type, u64 *size);
/* An int or long constant. */
bool vmstructs_constant(const struct vmstructs *v, const char *name, s64 *value);

#endif
