/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_check_vm.h"

#include <stdlib.h>
#include <string.h>

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
