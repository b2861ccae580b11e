/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cleanup.h"
#include "luajit_check_vm.h"

/* Checks of prototypes: bytecode, names and lines. */

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

static enum luajit_check_result luajit_check_bytecode(const struct vm *vm)
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

static enum luajit_check_result luajit_check_proto_traces(const struct vm *vm)
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

static enum luajit_check_result luajit_check_names(const struct vm *vm)
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

static enum luajit_check_result luajit_check_debug(const struct vm *vm)
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

static enum luajit_check_result luajit_check_lines(const struct vm *vm)
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

/* Checks of traces: links, code, snapshots. */

/* lj_jit.h: LJ_TRLINK_* */
enum { LINK_ROOT = 1, LINK_LOOP, LINK_TAILREC, LINK_UPREC, LINK_DOWNREC, LINK_INTERP, LINK_RETURN, LINK_STITCH };

#define REF_BIAS       0x8000u
#define SLOTS_OF_FRAME 250 /* LJ_MAX_SLOTS */
#define TAIL_MAX       16  /* bytes that are cut off the end of the code when its last jump is known */

/* Which links a finished trace may have. A stitched one is linked later. */
static bool link_holds(const struct vm *vm, u64 trace, u32 i)
{
	u64 link = get(vm, trace, vm->l->trace_link), type = get(vm, trace, vm->l->trace_linktype);
	switch (type) {
	case LINK_ROOT:
		return link != vm->numbers[i] && trace_at(vm, link);
	case LINK_LOOP:
	case LINK_TAILREC:
	case LINK_UPREC:
		return link == vm->numbers[i];
	case LINK_INTERP:
	case LINK_RETURN:
		return !link;
	}
	return type == LINK_DOWNREC || type == LINK_STITCH;
}

static enum luajit_check_result luajit_check_links(const struct vm *vm)
{
	return each(vm, vm->traces, vm->ntraces, link_holds);
}

static bool trace_holds(const struct vm *vm, u64 trace, u32 i)
{
	const struct luajit_layout *l = vm->l;
	u64 proto = get(vm, trace, l->trace_startpt), root = get(vm, trace, l->trace_root);

	return is_tagged(vm, trace, TAG_TRACE) && get(vm, trace, l->trace_traceno) == vm->numbers[i] &&
	       is_tagged(vm, proto, TAG_PROTO) &&
	       (!root || (trace_at(vm, root) && !get(vm, trace_at(vm, root), l->trace_root)));
}

static enum luajit_check_result luajit_check_traces(const struct vm *vm)
{
	return each(vm, vm->traces, vm->ntraces, trace_holds);
}

/* A trace begins where its prototype's bytecode is; a side trace at any position, of inlined functions too. */
static bool start_holds(const struct vm *vm, u64 trace, u32 i)
{
	const struct luajit_layout *l = vm->l;
	u64 proto = get(vm, trace, l->trace_startpt), at = get(vm, trace, l->trace_startpc) - proto - l->proto_size.at;

	return at % 4 == 0 && at / 4 < get(vm, proto, l->proto_sizebc);
}

static enum luajit_check_result luajit_check_starts(const struct vm *vm)
{
	return each(vm, vm->traces, vm->ntraces, start_holds);
}

/* While code is being written its area is not executable, but anonymous in any case; it may be newer than the mappings.
 */
static bool code_holds(const struct vm *vm, u64 trace, u32 i)
{
	const struct luajit_layout *l = vm->l;
	u64 code = get(vm, trace, l->trace_mcode), size = get(vm, trace, l->trace_szmcode),
	    loop = get(vm, trace, l->trace_mcloop);
	const struct mapping *m = mapping_find(vm->p->mappings, vm->p->nmappings, code);

	if ((m && (!m->anonymous || size > m->end - code)) || !size || !is_readable(vm, code) ||
	        !is_readable(vm, code + size - 1))
		return false;
	return loop < size && (!loop || get(vm, trace, l->trace_link) == vm->numbers[i]);
}

static enum luajit_check_result luajit_check_code(const struct vm *vm)
{
	return each(vm, vm->traces, vm->ntraces, code_holds);
}

/* A root trace begins with rsp -= spadjust, if it is not 0. */
static bool adjust_holds(const struct vm *vm, u64 trace, u32 i)
{
	const struct luajit_layout *l = vm->l;
	u64 wanted = get(vm, trace, l->trace_spadjust);
	s64 adjust = 0;
	u8 code[7];
	s32 wide;

	if (get(vm, trace, l->trace_root))
		return wanted % 8 == 0;
	if (!memory_read(vm->p->memory, code, sizeof(code), get(vm, trace, l->trace_mcode)))
		return false;
	memcpy(&wide, code + 3, sizeof(wide));
	if (code[0] == 0x48 && code[1] == 0x83 && code[2] == 0xc4)
		adjust = (s8)code[3];
	else if (code[0] == 0x48 && code[1] == 0x81 && code[2] == 0xc4)
		adjust = wide;
	return adjust == -(s64)wanted;
}

static enum luajit_check_result luajit_check_adjust(const struct vm *vm)
{
	return each(vm, vm->traces, vm->ntraces, adjust_holds);
}

/* trace_save() puts a trace's IR, snapshots and their map right behind it, in one object. */
static bool parts_hold(const struct vm *vm, u64 trace, u32 i)
{
	const struct luajit_layout *l = vm->l;
	u64 nins = get(vm, trace, l->trace_nins), nk = get(vm, trace, l->trace_nk), ir = get(vm, trace, l->trace_ir),
	    snap = get(vm, trace, l->trace_snap), behind = trace + ((l->trace_size.at + 7) & ~7ull);

	return nk <= REF_BIAS && nins > REF_BIAS && nins < 2 * REF_BIAS && ir + nk * 8 == behind &&
	       snap == behind + (nins - nk) * 8 &&
	       get(vm, trace, l->trace_snapmap) == snap + get(vm, trace, l->trace_nsnap) * l->snap_size.at;
}

static enum luajit_check_result luajit_check_parts(const struct vm *vm)
{
	return each(vm, vm->traces, vm->ntraces, parts_hold);
}

/* Snapshots lie in order: in the map, in the IR, and in the code. */
static bool snapshots_hold(const struct vm *vm, u64 trace, u32 number)
{
	const struct luajit_layout *l = vm->l;
	u64 snap = get(vm, trace, l->trace_snap), n = get(vm, trace, l->trace_nsnap),
	    nmap = get(vm, trace, l->trace_nsnapmap), nins = get(vm, trace, l->trace_nins),
	    size = get(vm, trace, l->trace_szmcode), map = 0, ref = 0, place = 0;

	if (!n)
		return false;
	for (u64 i = 0; i < n; i++, snap += l->snap_size.at) {
		u64 at = get(vm, snap, l->snap_mapofs), nent = get(vm, snap, l->snap_nent),
		    nslots = get(vm, snap, l->snap_nslots), to = get(vm, snap, l->snap_ref),
		    mcofs = get(vm, snap, l->snap_mcofs);

		if (at != map && (at < map || !i))
			return false;
		if (!nslots || nslots > SLOTS_OF_FRAME || nent > nslots || to < ref || to <= REF_BIAS || to > nins ||
		        mcofs < place || mcofs > size + TAIL_MAX)
			return false;
		map = at + nent + (luajit_gc64(l) ? 2 : 1);
		ref = to;
		place = mcofs;
	}
	return map <= nmap && nmap <= map + SLOTS_OF_FRAME;
}

static enum luajit_check_result luajit_check_snapshots(const struct vm *vm)
{
	return each(vm, vm->traces, vm->ntraces, snapshots_hold);
}

#define VMSTATE_C   (~1)
#define STATUS_MAX  6 /* LUA_ERRERR + 1 */
#define STACK_MAX   (1u << 20)
#define STACK_SLACK (4096u) /* bytes that the top may be above maxstack: errors are handled there */
#define SLOTS_MAX   4096u   /* that are searched for functions */
#define AREAS_MAX   4096
#define STALE_PART  4 /* up to a quarter of what stacks hold may have been freed */
#define ATTEMPTS    4
#define FRAME_MASK  (~3ull)

static u64 slot_reference(const struct vm *vm, u64 slot)
{
	return luajit_gc64(vm->l) ? slot & ((1ull << 47) - 1) : (u32)slot;
}

/* --- what there is to check --- */

static void add_proto(struct vm *vm, u64 proto)
{
	for (u32 i = 0; i < vm->nprotos; i++)
		if (vm->protos[i] == proto)
			return;
	if (vm->nprotos < PROTOS_MAX && is_tagged(vm, proto, TAG_PROTO))
		vm->protos[vm->nprotos++] = proto;
}

static void add_function(struct vm *vm, u64 function)
{
	u64 proto = get(vm, function, vm->l->fn_pc) - vm->l->proto_size.at;
	bool lua = !get(vm, function, vm->l->fn_ffid);

	vm->nfunctions++;
	vm->nwrong += is_tagged(vm, proto, TAG_PROTO) != lua;
	if (lua)
		add_proto(vm, proto);
}

static void find_functions(struct vm *vm, u64 thread)
{
	const struct luajit_layout *l = vm->l;
	u64 stack = get(vm, thread, l->l_stack), top = get(vm, thread, l->l_top), slot;

	for (u64 at = stack; at < top && at - stack < SLOTS_MAX * sizeof(slot); at += sizeof(slot)) {
		u64 function;

		if (!memory_read(vm->p->memory, &slot, sizeof(slot), at))
			return;
		function = slot_reference(vm, slot);
		if (is_tagged(vm, function, TAG_FUNCTION))
			add_function(vm, function);
	}
}

static void find_traces(struct vm *vm)
{
	u32 n = sizetrace(vm);

	for (u32 i = 1; i < n && i < SIZETRACE_MAX && vm->ntraces < TRACES_MAX; i++) {
		u64 trace = trace_at(vm, i);

		/* the one that is being compiled is a part of jit_State */
		if (!trace || trace - vm->gg < vm->l->gg_dispatch.at)
			continue;
		vm->numbers[vm->ntraces] = i;
		vm->traces[vm->ntraces++] = trace;
		add_proto(vm, get(vm, trace, vm->l->trace_startpt));
	}
}

static void look(struct vm *vm)
{
	u64 running = get(vm, vm->g, vm->l->g_cur_l), main = get(vm, vm->g, vm->l->g_mainthref);

	vm->nprotos = vm->ntraces = vm->nfunctions = vm->nwrong = 0;
	vm->thread = running && is_tagged(vm, running, TAG_THREAD) ? running : main;
	find_functions(vm, vm->thread);
	find_functions(vm, main);
	find_traces(vm);
}

/* --- checks --- */

static enum luajit_check_result result(bool holds)
{
	return holds ? LUAJIT_CHECK_HOLDS : LUAJIT_CHECK_FAILS;
}

static bool is_thread_of(const struct vm *vm, u64 thread)
{
	return is_tagged(vm, thread, TAG_THREAD) && get(vm, thread, vm->l->l_glref) == vm->g;
}

static enum luajit_check_result check_main(const struct vm *vm)
{
	u64 thread = get(vm, vm->g, vm->l->g_mainthref);

	return result(thread == vm->gg && is_thread_of(vm, thread) && get(vm, thread, vm->l->l_status) <= STATUS_MAX);
}

static enum luajit_check_result check_running(const struct vm *vm)
{
	u64 thread = get(vm, vm->g, vm->l->g_cur_l);

	return thread ? result(is_thread_of(vm, thread)) : LUAJIT_CHECK_SILENT;
}

/* The base and the top are kept up while C runs, and where a thread was left. */
static bool is_kept_up(const struct vm *vm, u64 thread)
{
	return thread != get(vm, vm->g, vm->l->g_cur_l) || (s32)get(vm, vm->g, vm->l->g_vmstate) == VMSTATE_C;
}

/* A function, or in the first frame the thread itself. */
static bool is_base(const struct vm *vm, u64 thread, u64 base)
{
	u64 slot, function;

	if (!memory_read(vm->p->memory, &slot, sizeof(slot), base - (luajit_gc64(vm->l) ? 16 : 8)))
		return false;
	function = slot_reference(vm, slot);
	return function == thread || is_tagged(vm, function, TAG_FUNCTION);
}

static bool stack_holds(const struct vm *vm, u64 thread)
{
	const struct luajit_layout *l = vm->l;
	u64 stack = get(vm, thread, l->l_stack), max = get(vm, thread, l->l_maxstack),
	    base = get(vm, thread, l->l_base), top = get(vm, thread, l->l_top), end = max + STACK_SLACK, first;

	if (!stack || stack % 8 || max % 8 || base % 8 || top % 8 || max - stack > STACK_MAX * 8ull || base <= stack ||
	        top <= stack || base > end || top > end || !memory_read(vm->p->memory, &first, sizeof(first), stack) ||
	        slot_reference(vm, first) != thread)
		return false;
	return !is_kept_up(vm, thread) || (base <= top && is_base(vm, thread, base));
}

static enum luajit_check_result check_stack(const struct vm *vm)
{
	return result(stack_holds(vm, vm->thread) && stack_holds(vm, get(vm, vm->g, vm->l->g_mainthref)));
}

static enum luajit_check_result check_functions(const struct vm *vm)
{
	return vm->nfunctions ? result(vm->nwrong * STALE_PART <= vm->nfunctions) : LUAJIT_CHECK_SILENT;
}

/* The C frame says whose it is. A resumed thread and one that does not run may have none. */
static enum luajit_check_result check_cframe(const struct vm *vm)
{
	bool gc64 = luajit_gc64(vm->l);
	struct layout_member saved = {gc64 ? 16 : 24, gc64 ? 8 : 4};
	u64 cframe = get(vm, vm->thread, vm->l->l_cframe) & FRAME_MASK;

	return cframe ? result(get(vm, cframe, saved) == vm->thread) : LUAJIT_CHECK_SILENT;
}

static enum luajit_check_result check_state(const struct vm *vm)
{
	const struct luajit_layout *l = vm->l;
	s32 state = (s32)get(vm, vm->g, l->g_vmstate);
	u64 base = get(vm, vm->g, l->g_jit_base), total = get(vm, vm->g, l->g_gc_total);

	if (state < -16 || state >= (s32)SIZETRACE_MAX || get(vm, vm->g, l->g_hookmask) > UINT8_MAX)
		return LUAJIT_CHECK_FAILS;
	if (base && (base % 8 || !is_readable(vm, base)))
		return LUAJIT_CHECK_FAILS;
	return result(total >= l->gg_dispatch.at && total < 1ull << 47);
}

static enum luajit_check_result check_jit(const struct vm *vm)
{
	u64 state = get(vm, vm->j, vm->l->j_state), array = get(vm, vm->j, vm->l->j_trace);
	u32 n = sizetrace(vm);

	if (n > SIZETRACE_MAX || state > UINT8_MAX || !get(vm, vm->j, vm->l->j_flags))
		return LUAJIT_CHECK_FAILS;
	return n ? result(array % 4 == 0 && is_readable(vm, array) && !trace_at(vm, 0)) : LUAJIT_CHECK_SILENT;
}

/* Areas of machine code: a list, each with its own size in front; struct MCLink. */
static enum luajit_check_result check_areas(const struct vm *vm)
{
	u64 area = get(vm, vm->j, vm->l->j_mcarea), first = get(vm, vm->j, vm->l->j_szmcarea), sum = 0, link[2];

	if (!area)
		return LUAJIT_CHECK_SILENT;
	for (u32 i = 0; area && i < AREAS_MAX; i++, area = link[0]) {
		if (!memory_read(vm->p->memory, link, sizeof(link), area) || (i == 0 && link[1] != first))
			return LUAJIT_CHECK_FAILS;
		sum += link[1];
	}
	return result(sum == get(vm, vm->j, vm->l->j_szallmcarea));
}

static const struct {
	const char *name, *what;
	enum luajit_check_result (*check)(const struct vm *vm);
} checks[] = {
        {"main thread", "is where GG_State begins, is a thread, and links back", check_main},
        {"running thread", "is a thread of this VM", check_running},
        {"stack", "its bounds are in order, its first slot is the thread, a function is at its base", check_stack},
        {"C frame", "holds the thread that it belongs to", check_cframe},
        {"VM state", "is one that exists; memory in use is more than GG_State", check_state},
        {"JIT", "has flags; the array of traces begins with none", check_jit},
        {"code areas", "sizes in their links add up", check_areas},
        {"functions", "are of Lua if they have a prototype, and only then", check_functions},
        {"bytecode", "begins with a header that has the frame size; constants are within the object",
                luajit_check_bytecode},
        {"chunk names", "are strings that end where their length says", luajit_check_names},
        {"names of variables", "follow the lines, to the end of the object", luajit_check_debug},
        {"lines", "a function ends on the line on which it is made", luajit_check_lines},
        {"traces of functions", "began in them", luajit_check_proto_traces},
        {"traces", "have the numbers that they are found by, begin in prototypes, belong to roots",
                luajit_check_traces},
        {"links of traces", "are such as their kinds have", luajit_check_links},
        {"starts of traces", "are in the bytecode of their prototypes", luajit_check_starts},
        {"code of traces", "is in memory without a file", luajit_check_code},
        {"stack adjustment", "is what the code of root traces begins with", luajit_check_adjust},
        {"parts of traces", "IR, snapshots and their map follow each other", luajit_check_parts},
        {"snapshots", "are in order", luajit_check_snapshots},
};

_Static_assert(sizeof(checks) / sizeof(*checks) == LUAJIT_CHECKS, "room that callers give");

u32 luajit_check_vm(
        const struct luajit_layout *l, const struct runtime_process *p, u64 g, struct luajit_check ret[LUAJIT_CHECKS])
{
	struct vm vm = {.l = l, .p = p, .g = g, .gg = g - l->gg_g.at};

	vm.j = vm.gg + l->gg_j.at;
	for (u32 i = 0; i < LUAJIT_CHECKS; i++) {
		ret[i] = (struct luajit_check){checks[i].name, checks[i].what, LUAJIT_CHECK_FAILS};
		for (u32 k = 0; k < ATTEMPTS && ret[i].result == LUAJIT_CHECK_FAILS; k++) {
			if (!i || k) /* it costs more than all checks; a program that runs may have changed since */
				look(&vm);
			ret[i].result = checks[i].check(&vm);
		}
	}
	return LUAJIT_CHECKS;
}

bool luajit_layout_check_process(
        const struct luajit_layout *l, const struct runtime_process *p, u64 g, struct luajit_check *failed)
{
	struct luajit_check results[LUAJIT_CHECKS];
	u32 n = luajit_check_vm(l, p, g, results);

	for (u32 i = 0; i < n; i++) {
		if (results[i].result != LUAJIT_CHECK_FAILS)
			continue;
		if (failed)
			*failed = results[i];
		return false;
	}
	return true;
}
