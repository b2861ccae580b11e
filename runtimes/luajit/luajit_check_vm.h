/* SPDX-License-Identifier: Apache-2.0 */
/* What the checks of a VM share (luajit_check.c): the objects to check, and how they are read. */
#ifndef YRT_LUAJIT_CHECK_VM_H
#define YRT_LUAJIT_CHECK_VM_H

#include "luajit_check.h"

/* lj_obj.h: ~LJ_T*, the tags of objects */
enum { TAG_STRING = 4, TAG_THREAD = 6, TAG_PROTO = 7, TAG_FUNCTION = 8, TAG_TRACE = 9 };

#define PROTOS_MAX    16
#define TRACES_MAX    64 /* that are looked at */
#define SIZETRACE_MAX 65536u

struct vm {
	const struct luajit_layout *l;
	const struct runtime_process *p;
	u64 gg, g, j;
	u64 thread; /* the one that runs, or main */
	u64 protos[PROTOS_MAX];
	u32 nprotos;
	u32 nfunctions, nwrong; /* on stacks; those that are Lua functions but for their prototype, or the other way */
	u64 traces[TRACES_MAX];
	u16 numbers[TRACES_MAX];
	u32 ntraces;
};

static inline bool read_at(const struct vm *vm, u64 address, struct layout_member m, u64 *ret)
{
	*ret = 0;
	return m.size <= sizeof(*ret) && memory_read(vm->p->memory, ret, m.size, address + m.at);
}

/* 0 if it can not be read. */
static inline u64 get(const struct vm *vm, u64 address, struct layout_member m)
{
	u64 value;

	return read_at(vm, address, m, &value) ? value : 0;
}

/* The mappings that were read before do not show it: a VM that runs maps memory. */
static inline bool is_readable(const struct vm *vm, u64 addr)
{
	u8 byte;

	return memory_read(vm->p->memory, &byte, 1, addr);
}

static inline bool is_tagged(const struct vm *vm, u64 object, u8 tag)
{
	u64 value;

	return object && read_at(vm, object, vm->l->l_gct, &value) && value == tag;
}

static inline u32 sizetrace(const struct vm *vm)
{
	return get(vm, vm->j, vm->l->j_sizetrace);
}

static inline u64 trace_at(const struct vm *vm, u32 number)
{
	struct layout_member reference = {0, vm->l->l_glref.size};
	u64 array = get(vm, vm->j, vm->l->j_trace);

	return number < sizetrace(vm) ? get(vm, array + (u64)number * reference.size, reference) : 0;
}

/* Of each prototype, or each trace; silent if there is none. */
static inline enum luajit_check_result each(
        const struct vm *vm, const u64 *objects, u32 n, bool (*holds)(const struct vm *vm, u64 object, u32 i))
{
	for (u32 i = 0; i < n; i++)
		if (!holds(vm, objects[i], i))
			return LUAJIT_CHECK_FAILS;
	return n ? LUAJIT_CHECK_HOLDS : LUAJIT_CHECK_SILENT;
}

#endif
