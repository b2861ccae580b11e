/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cleanup.h"
#include "luajit_check.h"

/* lj_obj.h: ~LJ_T*, the tags of objects */
enum { TAG_STRING = 4, TAG_THREAD = 6, TAG_PROTO = 7, TAG_FUNCTION = 8, TAG_TRACE = 9 };

#define SIZETRACE_MAX 65536u

static bool read_at(const struct luajit_checked *vm, u64 address, struct layout_member m, u64 *ret)
{
	*ret = 0;
	return m.size <= sizeof(*ret) && memory_read(vm->p->memory, ret, m.size, address + m.at);
}

/* 0 if it can not be read. */
static u64 get(const struct luajit_checked *vm, u64 address, struct layout_member m)
{
	u64 value;

	return read_at(vm, address, m, &value) ? value : 0;
}

/* The mappings that were read before do not show it: a VM that runs maps memory. */
static bool is_readable(const struct luajit_checked *vm, u64 addr)
{
	u8 byte;

	return memory_read(vm->p->memory, &byte, 1, addr);
}

static bool is_tagged(const struct luajit_checked *vm, u64 object, u8 tag)
{
	u64 value;

	return object && read_at(vm, object, vm->l->l_gct, &value) && value == tag;
}

static u32 sizetrace(const struct luajit_checked *vm)
{
	return get(vm, vm->j, vm->l->j_sizetrace);
}

static u64 trace_at(const struct luajit_checked *vm, u32 number)
{
	struct layout_member reference = {0, vm->l->l_glref.size};
	u64 array = get(vm, vm->j, vm->l->j_trace);

	return number < sizetrace(vm) ? get(vm, array + (u64)number * reference.size, reference) : 0;
}

/* Checks each prototype, or each trace. Says nothing if there is none. */
static int each(const struct luajit_checked *vm, const u64 *objects, u32 n,
        bool (*holds)(const struct luajit_checked *vm, u64 object, u32 i))
{
	for (u32 i = 0; i < n; i++)
		if (!holds(vm, objects[i], i))
			return CHECK_FAILS;
	return (int)n;
}

/* Checks of prototypes: bytecode, names and lines. */

#define BYTECODE_MAX    (1u << 24)
#define CHILDREN_WITHIN 65536u /* instructions that are searched for functions being made */
#define TEXT_MAX        (64u << 10)

static u32 op_number(const struct luajit_checked *vm, const char *name)
{
	u32 i;

	for (i = 0; i < vm->l->bytecode.n; i++)
		if (!strcmp(vm->l->bytecode.names[i], name))
			break;
	return i;
}

/* Bytecode begins with a function header, whose operand A is the frame size, and lies with its constants in the object.
 */
static bool bytecode_holds(const struct luajit_checked *vm, u64 proto, u32 i)
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

/* What proto->trace says began there, or was a part of it. */
static bool proto_trace_holds(const struct luajit_checked *vm, u64 proto, u32 i)
{
	u32 number = get(vm, proto, vm->l->proto_trace);
	u64 trace = number ? trace_at(vm, number) : 0;

	return !number || (trace && get(vm, trace, vm->l->trace_startpt) == proto);
}

static bool name_holds(const struct luajit_checked *vm, u64 proto, u32 i)
{
	u64 name = get(vm, proto, vm->l->proto_chunkname), len = get(vm, name, vm->l->str_len);
	cleanup(free) char *text = NULL;

	if (!is_tagged(vm, name, TAG_STRING) || len > TEXT_MAX)
		return false;
	text = malloc(len + 1);
	return text && memory_read(vm->p->memory, text, len + 1, name + vm->l->str_size.at) && !text[len] &&
	       (!len || (text[0] && text[len - 1]));
}

/* Numbers of 1, 2 or 4 bytes, by how many lines there are. */
static struct layout_member line_size(const struct luajit_checked *vm, u64 proto)
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
static bool debug_holds(const struct luajit_checked *vm, u64 proto, u32 i)
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

/* A function is made on the line that it ends on. at: the instruction that makes it. */
static bool child_holds(const struct luajit_checked *vm, u64 proto, u32 at, u32 instruction)
{
	const struct luajit_layout *l = vm->l;
	struct layout_member reference = {0, l->l_glref.size}, size = line_size(vm, proto);
	u64 child = get(vm, get(vm, proto, l->proto_k) - ((instruction >> 16) + 1ull) * reference.size, reference);
	u64 line = get(vm, get(vm, proto, l->proto_lineinfo) + (at - 1ull) * size.size, size);

	return is_tagged(vm, child, TAG_PROTO) &&
	       get(vm, proto, l->proto_firstline) + line ==
	               get(vm, child, l->proto_firstline) + get(vm, child, l->proto_numline);
}

static int children_hold(const struct luajit_checked *vm, u64 proto, u32 fnew)
{
	const struct luajit_layout *l = vm->l;
	int all = 0;
	u64 n = get(vm, proto, l->proto_sizebc);
	u32 instruction;

	if (!get(vm, proto, l->proto_lineinfo))
		return all;
	for (u32 i = 1; i < n && i < CHILDREN_WITHIN; i++) {
		if (!memory_read(vm->p->memory, &instruction, 4, proto + l->proto_size.at + 4ull * i))
			return CHECK_FAILS;
		if ((u8)instruction != fnew)
			continue;
		if (!child_holds(vm, proto, i, instruction))
			return CHECK_FAILS;
		all = 1;
	}
	return all;
}

static int check_lines(void *subject)
{
	const struct luajit_checked *vm = subject;
	u32 fnew = op_number(vm, "FNEW");
	int all = 0, one;

	for (u32 i = 0; i < vm->nprotos; i++, all += one) {
		one = children_hold(vm, vm->protos[i], fnew);
		if (one == CHECK_FAILS)
			return one;
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
static bool link_holds(const struct luajit_checked *vm, u64 trace, u32 i)
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

static bool trace_holds(const struct luajit_checked *vm, u64 trace, u32 i)
{
	const struct luajit_layout *l = vm->l;
	u64 proto = get(vm, trace, l->trace_startpt), root = get(vm, trace, l->trace_root);

	return is_tagged(vm, trace, TAG_TRACE) && get(vm, trace, l->trace_traceno) == vm->numbers[i] &&
	       is_tagged(vm, proto, TAG_PROTO) &&
	       (!root || (trace_at(vm, root) && !get(vm, trace_at(vm, root), l->trace_root)));
}

/* A trace begins where its prototype's bytecode is; a side trace at any position, of inlined functions too. */
static bool start_holds(const struct luajit_checked *vm, u64 trace, u32 i)
{
	const struct luajit_layout *l = vm->l;
	u64 proto = get(vm, trace, l->trace_startpt), at = get(vm, trace, l->trace_startpc) - proto - l->proto_size.at;

	return at % 4 == 0 && at / 4 < get(vm, proto, l->proto_sizebc);
}

/* While code is being written its area is not executable, but anonymous in any case; it may be newer than the mappings.
 */
static bool code_holds(const struct luajit_checked *vm, u64 trace, u32 i)
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

/* A root trace begins with rsp -= spadjust, if it is not 0. */
static bool adjust_holds(const struct luajit_checked *vm, u64 trace, u32 i)
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

/* trace_save() puts a trace's IR, snapshots and their map right behind it, in one object. */
static bool parts_hold(const struct luajit_checked *vm, u64 trace, u32 i)
{
	const struct luajit_layout *l = vm->l;
	u64 nins = get(vm, trace, l->trace_nins), nk = get(vm, trace, l->trace_nk), ir = get(vm, trace, l->trace_ir),
	    snap = get(vm, trace, l->trace_snap), behind = trace + ((l->trace_size.at + 7) & ~7ull);

	return nk <= REF_BIAS && nins > REF_BIAS && nins < 2 * REF_BIAS && ir + nk * 8 == behind &&
	       snap == behind + (nins - nk) * 8 &&
	       get(vm, trace, l->trace_snapmap) == snap + get(vm, trace, l->trace_nsnap) * l->snap_size.at;
}

/* Snapshots lie in order: in the map, in the IR, and in the code. */
static bool snapshots_hold(const struct luajit_checked *vm, u64 trace, u32 number)
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

#define VMSTATE_C   (~1)
#define STATUS_MAX  6 /* LUA_ERRERR + 1 */
#define STACK_MAX   (1u << 20)
#define STACK_SLACK (4096u) /* bytes that the top may be above maxstack: errors are handled there */
#define SLOTS_MAX   4096u   /* that are searched for functions */
#define AREAS_MAX   4096
#define STALE_PART  4 /* up to a quarter of what stacks hold may have been freed */
#define FRAME_MASK  (~3ull)

static u64 slot_reference(const struct luajit_checked *vm, u64 slot)
{
	return luajit_gc64(vm->l) ? slot & ((1ull << 47) - 1) : (u32)slot;
}

/* --- what there is to check --- */

static void add_proto(struct luajit_checked *vm, u64 proto)
{
	for (u32 i = 0; i < vm->nprotos; i++)
		if (vm->protos[i] == proto)
			return;
	if (vm->nprotos < LUAJIT_CHECK_PROTOS && is_tagged(vm, proto, TAG_PROTO))
		vm->protos[vm->nprotos++] = proto;
}

static void add_function(struct luajit_checked *vm, u64 function)
{
	u64 proto = get(vm, function, vm->l->fn_pc) - vm->l->proto_size.at;
	bool lua = !get(vm, function, vm->l->fn_ffid);

	vm->nfunctions++;
	vm->nwrong += is_tagged(vm, proto, TAG_PROTO) != lua;
	if (lua)
		add_proto(vm, proto);
}

static void find_functions(struct luajit_checked *vm, u64 thread)
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

static void find_traces(struct luajit_checked *vm)
{
	u32 n = sizetrace(vm);

	for (u32 i = 1; i < n && i < SIZETRACE_MAX && vm->ntraces < LUAJIT_CHECK_TRACES; i++) {
		u64 trace = trace_at(vm, i);

		/* the one that is being compiled is a part of jit_State */
		if (!trace || trace - vm->gg < vm->l->gg_dispatch.at)
			continue;
		vm->numbers[vm->ntraces] = i;
		vm->traces[vm->ntraces++] = trace;
		add_proto(vm, get(vm, trace, vm->l->trace_startpt));
	}
}

static void look(void *subject)
{
	struct luajit_checked *vm = subject;
	u64 running = get(vm, vm->g, vm->l->g_cur_l), main = get(vm, vm->g, vm->l->g_mainthref);

	vm->gg = vm->g - vm->l->gg_g.at;
	vm->j = vm->gg + vm->l->gg_j.at;
	vm->nprotos = vm->ntraces = vm->nfunctions = vm->nwrong = 0;
	vm->thread = running && is_tagged(vm, running, TAG_THREAD) ? running : main;
	find_functions(vm, vm->thread);
	find_functions(vm, main);
	find_traces(vm);
}

/* --- checks --- */

static int result(bool holds)
{
	return holds ? 1 : CHECK_FAILS;
}

static bool is_thread_of(const struct luajit_checked *vm, u64 thread)
{
	return is_tagged(vm, thread, TAG_THREAD) && get(vm, thread, vm->l->l_glref) == vm->g;
}

static int check_main(void *subject)
{
	const struct luajit_checked *vm = subject;
	u64 thread = get(vm, vm->g, vm->l->g_mainthref);

	return result(thread == vm->gg && is_thread_of(vm, thread) && get(vm, thread, vm->l->l_status) <= STATUS_MAX);
}

static int check_running(void *subject)
{
	const struct luajit_checked *vm = subject;
	u64 thread = get(vm, vm->g, vm->l->g_cur_l);

	return thread ? result(is_thread_of(vm, thread)) : 0;
}

/* The base and the top are kept up while C runs, and where a thread was left. */
static bool is_kept_up(const struct luajit_checked *vm, u64 thread)
{
	return thread != get(vm, vm->g, vm->l->g_cur_l) || (s32)get(vm, vm->g, vm->l->g_vmstate) == VMSTATE_C;
}

/* A function, or in the first frame the thread itself. */
static bool is_base(const struct luajit_checked *vm, u64 thread, u64 base)
{
	u64 slot, function;

	if (!memory_read(vm->p->memory, &slot, sizeof(slot), base - (luajit_gc64(vm->l) ? 16 : 8)))
		return false;
	function = slot_reference(vm, slot);
	return function == thread || is_tagged(vm, function, TAG_FUNCTION);
}

static bool stack_holds(const struct luajit_checked *vm, u64 thread)
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

static int check_stack(void *subject)
{
	const struct luajit_checked *vm = subject;

	return result(stack_holds(vm, vm->thread) && stack_holds(vm, get(vm, vm->g, vm->l->g_mainthref)));
}

static int check_functions(void *subject)
{
	const struct luajit_checked *vm = subject;

	return vm->nfunctions ? result(vm->nwrong * STALE_PART <= vm->nfunctions) : 0;
}

/* The C frame says whose it is. A resumed thread and one that does not run may have none. */
static int check_cframe(void *subject)
{
	const struct luajit_checked *vm = subject;
	bool gc64 = luajit_gc64(vm->l);
	struct layout_member saved = {gc64 ? 16 : 24, gc64 ? 8 : 4};
	u64 cframe = get(vm, vm->thread, vm->l->l_cframe) & FRAME_MASK;

	return cframe ? result(get(vm, cframe, saved) == vm->thread) : 0;
}

static int check_state(void *subject)
{
	const struct luajit_checked *vm = subject;
	const struct luajit_layout *l = vm->l;
	s32 state = (s32)get(vm, vm->g, l->g_vmstate);
	u64 base = get(vm, vm->g, l->g_jit_base), total = get(vm, vm->g, l->g_gc_total);

	if (state < -16 || state >= (s32)SIZETRACE_MAX || get(vm, vm->g, l->g_hookmask) > UINT8_MAX)
		return CHECK_FAILS;
	if (base && (base % 8 || !is_readable(vm, base)))
		return CHECK_FAILS;
	return result(total >= l->gg_dispatch.at && total < 1ull << 47);
}

static int check_jit(void *subject)
{
	const struct luajit_checked *vm = subject;
	u64 state = get(vm, vm->j, vm->l->j_state), array = get(vm, vm->j, vm->l->j_trace);
	u32 n = sizetrace(vm);

	if (n > SIZETRACE_MAX || state > UINT8_MAX || !get(vm, vm->j, vm->l->j_flags))
		return CHECK_FAILS;
	return n ? result(array % 4 == 0 && is_readable(vm, array) && !trace_at(vm, 0)) : 0;
}

/* Areas of machine code: a list, each with its own size in front; struct MCLink. */
static int check_areas(void *subject)
{
	const struct luajit_checked *vm = subject;
	u64 area = get(vm, vm->j, vm->l->j_mcarea), first = get(vm, vm->j, vm->l->j_szmcarea), sum = 0, link[2];

	if (!area)
		return 0;
	for (u32 i = 0; area && i < AREAS_MAX; i++, area = link[0]) {
		if (!memory_read(vm->p->memory, link, sizeof(link), area) || (i == 0 && link[1] != first))
			return CHECK_FAILS;
		sum += link[1];
	}
	return result(sum == get(vm, vm->j, vm->l->j_szallmcarea));
}

#define OF_EACH(check, objects, holds)                                                                                 \
	static int check(void *subject)                                                                                \
	{                                                                                                              \
		const struct luajit_checked *vm = subject;                                                             \
		return each(vm, vm->objects, vm->n##objects, holds);                                                   \
	}
OF_EACH(check_bytecode, protos, bytecode_holds)
OF_EACH(check_proto_traces, protos, proto_trace_holds)
OF_EACH(check_names, protos, name_holds)
OF_EACH(check_debug, protos, debug_holds)
OF_EACH(check_links, traces, link_holds)
OF_EACH(check_traces, traces, trace_holds)
OF_EACH(check_starts, traces, start_holds)
OF_EACH(check_code, traces, code_holds)
OF_EACH(check_adjust, traces, adjust_holds)
OF_EACH(check_parts, traces, parts_hold)
OF_EACH(check_snapshots, traces, snapshots_hold)

static const struct runtime_check checks[] = {
        {"main thread", "is where GG_State begins, is a thread, and links back", check_main},
        {"running thread", "is a thread of this VM", check_running},
        {"stack", "its bounds are in order, its first slot is the thread, a function is at its base", check_stack},
        {"C frame", "holds the thread that it belongs to", check_cframe},
        {"VM state", "is one that exists; memory in use is more than GG_State", check_state},
        {"JIT", "has flags; the array of traces begins with none", check_jit},
        {"code areas", "sizes in their links add up", check_areas},
        {"functions", "are of Lua if they have a prototype, and only then", check_functions},
        {"bytecode", "begins with a header that has the frame size; constants are within the object", check_bytecode},
        {"chunk names", "are strings that end where their length says", check_names},
        {"names of variables", "follow the lines, to the end of the object", check_debug},
        {"lines", "a function ends on the line on which it is made", check_lines},
        {"traces of functions", "began in them", check_proto_traces},
        {"traces", "have the numbers that they are found by, begin in prototypes, belong to roots", check_traces},
        {"links of traces", "are such as their kinds have", check_links},
        {"starts of traces", "are in the bytecode of their prototypes", check_starts},
        {"code of traces", "is in memory without a file", check_code},
        {"stack adjustment", "is what the code of root traces begins with", check_adjust},
        {"parts of traces", "IR, snapshots and their map follow each other", check_parts},
        {"snapshots", "are in order", check_snapshots},
};
_Static_assert(sizeof(checks) / sizeof(*checks) <= RUNTIME_CHECKS_MAX, "room that callers give");

const struct runtime_checks luajit_checks = {
        .all = checks, .n = sizeof(checks) / sizeof(*checks), .attempts = 4, .look = look};
