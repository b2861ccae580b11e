/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's types, of its BTF, as those of debug information are (unwind/dwarf/types.h): what a tracepoint's
 * arguments are and lead to. Names of the arguments are those of __traceiter_NAME(void *, …), which each tracepoint has
 * (include/linux/tracepoint.h). What the kernel marks as a user's address (the type tag "user") leads to the target.
 */
#ifndef YRT_Y_KERNEL_TYPES_H
#define YRT_Y_KERNEL_TYPES_H

#include "unwind/dwarf/types.h"

struct y_kernel_types;

/* ERROR_UNSUPPORTED: the kernel has no BTF. */
struct error *y_kernel_types_open(struct y_kernel_types **ret);
void y_kernel_types_close(struct y_kernel_types *k); /* NULL is fine. Its types are gone then */

/* A structure, union, enumeration or (TYPES_PLAIN) typedef; NULL: the kernel has none. */
const struct type *y_kernel_type(struct y_kernel_types *k, enum type_space space, const char *name);
bool y_kernel_enumerator(struct y_kernel_types *k, const char *name, s64 *value, const struct type **type);

/* How many arguments has a tracepoint? < 0: there is none of this name. */
int y_kernel_tracepoint(struct y_kernel_types *k, const char *name);
/* One of them; number: below y_kernel_tracepoint(). */
const struct type *y_kernel_argument(struct y_kernel_types *k, const char *tracepoint, u32 number, const char **name);
/* Calls each() with the names of all tracepoints. */
void y_kernel_tracepoints(struct y_kernel_types *k, void (*each)(void *ctx, const char *name), void *ctx);

#endif
