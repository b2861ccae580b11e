/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime's structures as `yrt y` names them where its file has no debug information: runtime_ops.types. */
#ifndef YRT_RUNTIME_TYPES_H
#define YRT_RUNTIME_TYPES_H

#include <types.h>

struct layout;
struct layout_type;
struct runtime_process;

#define RUNTIME_ROOTS_MAX 256

struct runtime_types_ops {
	/* layout/layout_types.h: the structures, and the places in their texts, which may be NULL. */
	const struct layout_type *types;
	s64 (*place)(const void *values, const char *name);
	/* The layout of the file, which lives as long as the instance (runtime.h: attach). */
	const struct layout *(*layout)(const void *instance);
	/*
	 * What all else is found from, as programs name it: "_luajit", a pointer to a "lua_State" for each VM. roots()
	 * looks for them, and writes at most RUNTIME_ROOTS_MAX addresses, ascending; returns their number.
	 */
	const char *root, *root_type;
	u32 (*roots)(const void *instance, const struct runtime_process *p, u64 ret[RUNTIME_ROOTS_MAX]);
};

#endif
