/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of prototypes: bytecode, names and lines. */
#include "luajit_check_vm.h"

#include <string.h>

#include "cleanup.h"

#define BYTECODE_MAX    (1u << 24)
#define CHILDREN_WITHIN 65536u /* instructions that are searched for functions being made */
#define TEXT_MAX        (64u << 10)

static u32 op_number(const struct vm *vm, const char *name)
{
	u32 i;

	for (i = 0; i < vm->l->bytecode.n; i++)
		if (!strcmp(vm->l->bytecode.names[i], name))
			break;
	return i;
}

/* Bytecode begins with a function header, whose operand A is the frame size, and lies with its constants in the object.
 */
static bool bytecode_holds(const struct vm *vm, u64 proto, u32 i)
{
	const struct luajit_layout *l = vm->l;
	u64 code = proto + l->proto_size.at, n = get(vm, proto, l->proto_sizebc),
	    end = proto + get(vm, proto, l->proto_sizept), k = get(vm, proto, l->proto_k);
	u32 head, first = op_number(vm, "FUNCF");

	if (!n || n > BYTECODE_MAX || !memory_read(vm->p->memory, &head, sizeof(head), code))
		return false;
	return (u8)head >= first && (u8)head < l->bytecode.n && (u8)(head >> 8) == get(vm, proto, l->proto_framesize) &&
	       k >= code + 4 * n && k <= end && code + 4 * n <= end;
}

enum luajit_check_result luajit_check_bytecode(const struct vm *vm)
{
	return each(vm, vm->protos, vm->nprotos, bytecode_holds);
}

/* What proto->trace says began there, or was a part of it. */
static bool proto_trace_holds(const struct vm *vm, u64 proto, u32 i)
{
	u32 number = get(vm, proto, vm->l->proto_trace);
	u64 trace = number ? trace_at(vm, number) : 0;

	return !number || (trace && get(vm, trace, vm->l->trace_startpt) == proto);
}

enum luajit_check_result luajit_check_proto_traces(const struct vm *vm)
{
	return each(vm, vm->protos, vm->nprotos, proto_trace_holds);
}

static bool name_holds(const struct vm *vm, u64 proto, u32 i)
{
	u64 name = get(vm, proto, vm->l->proto_chunkname), len = get(vm, name, vm->l->str_len);
	cleanup(free) char *text = NULL;

	if (!is_tagged(vm, name, TAG_STRING) || len > TEXT_MAX)
		return false;
	text = malloc(len + 1);
	return text && memory_read(vm->p->memory, text, len + 1, name + vm->l->str_size.at) && !text[len] &&
	       (!len || (text[0] && text[len - 1]));
}

enum luajit_check_result luajit_check_names(const struct vm *vm)
{
	return each(vm, vm->protos, vm->nprotos, name_holds);
}

/* Numbers of 1, 2 or 4 bytes, by how many lines there are. */
static struct layout_member line_size(const struct vm *vm, u64 proto)
{
	u64 n = get(vm, proto, vm->l->proto_numline);

	return (struct layout_member){0, n < 256 ? 1 : n < 65536 ? 2 : 4};
}

static u64 skip_uleb(const u8 *text, u64 i, u64 size)
{
	while (i < size && text[i] & 0x80)
		i++;
	return i + 1;
}

/* n strings, to the end of text. */
static bool are_strings(const u8 *text, u64 size, u64 n)
{
	u64 i = 0;

	for (; n && i < size; n--)
		i += strnlen((const char *)text + i, size - i) + 1;
	return !n && i == size;
}

/* Variables: a name, or a byte below 7 for one of LuaJIT's own, and where it begins and ends; a 0 behind the last. */
static bool are_variables(const u8 *text, u64 size)
{
	u64 i = 0;

	while (i < size && text[i]) {
		i += text[i] < 7 ? 1 : strnlen((const char *)text + i, size - i) + 1;
		i = skip_uleb(text, skip_uleb(text, i, size), size);
	}
	return i + 1 == size;
}

/* Lines are followed by names of upvalues, then of variables, to the end; stripped bytecode has none. */
static bool debug_holds(const struct vm *vm, u64 proto, u32 i)
{
	const struct luajit_layout *l = vm->l;
	u64 lines = get(vm, proto, l->proto_lineinfo), uvinfo = get(vm, proto, l->proto_uvinfo),
	    varinfo = get(vm, proto, l->proto_varinfo), end = proto + get(vm, proto, l->proto_sizept);
	u64 n = (get(vm, proto, l->proto_sizebc) - 1) * line_size(vm, proto).size;
	cleanup(free) u8 *text = NULL;

	if (!lines)
		return !uvinfo && !varinfo;
	if (lines < get(vm, proto, l->proto_k) || uvinfo != lines + n || varinfo < uvinfo || varinfo >= end ||
	        end - uvinfo > TEXT_MAX)
		return false;
	text = malloc(end - uvinfo);
	return text && memory_read(vm->p->memory, text, end - uvinfo, uvinfo) &&
	       are_strings(text, varinfo - uvinfo, get(vm, proto, l->proto_sizeuv)) &&
	       are_variables(text + (varinfo - uvinfo), end - varinfo);
}

enum luajit_check_result luajit_check_debug(const struct vm *vm)
{
	return each(vm, vm->protos, vm->nprotos, debug_holds);
}

/* A function is made on the line that it ends on. at: the instruction that makes it. */
static bool child_holds(const struct vm *vm, u64 proto, u32 at, u32 instruction)
{
	const struct luajit_layout *l = vm->l;
	struct layout_member reference = {0, l->l_glref.size}, size = line_size(vm, proto);
	u64 child = get(vm, get(vm, proto, l->proto_k) - ((instruction >> 16) + 1ull) * reference.size, reference);
	u64 line = get(vm, get(vm, proto, l->proto_lineinfo) + (at - 1ull) * size.size, size);

	return is_tagged(vm, child, TAG_PROTO) &&
	       get(vm, proto, l->proto_firstline) + line ==
	               get(vm, child, l->proto_firstline) + get(vm, child, l->proto_numline);
}

static enum luajit_check_result children_hold(const struct vm *vm, u64 proto, u32 fnew)
{
	const struct luajit_layout *l = vm->l;
	enum luajit_check_result all = LUAJIT_CHECK_SILENT;
	u64 n = get(vm, proto, l->proto_sizebc);
	u32 instruction;

	if (!get(vm, proto, l->proto_lineinfo))
		return all;
	for (u32 i = 1; i < n && i < CHILDREN_WITHIN; i++) {
		if (!memory_read(vm->p->memory, &instruction, 4, proto + l->proto_size.at + 4ull * i))
			return LUAJIT_CHECK_FAILS;
		if ((u8)instruction != fnew)
			continue;
		if (!child_holds(vm, proto, i, instruction))
			return LUAJIT_CHECK_FAILS;
		all = LUAJIT_CHECK_HOLDS;
	}
	return all;
}

enum luajit_check_result luajit_check_lines(const struct vm *vm)
{
	enum luajit_check_result all = LUAJIT_CHECK_SILENT, one;
	u32 fnew = op_number(vm, "FNEW");

	for (u32 i = 0; i < vm->nprotos; i++) {
		one = children_hold(vm, vm->protos[i], fnew);
		if (one > all)
			all = one;
	}
	return all;
}
