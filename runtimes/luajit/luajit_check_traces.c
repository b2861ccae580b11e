/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of traces: links, code, snapshots. */
#include "luajit_check_vm.h"

#include <string.h>
#include <sys/mman.h>

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

enum luajit_check_result luajit_check_links(const struct vm *vm)
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

enum luajit_check_result luajit_check_traces(const struct vm *vm)
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

enum luajit_check_result luajit_check_starts(const struct vm *vm)
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

enum luajit_check_result luajit_check_code(const struct vm *vm)
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

enum luajit_check_result luajit_check_adjust(const struct vm *vm)
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

enum luajit_check_result luajit_check_parts(const struct vm *vm)
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

enum luajit_check_result luajit_check_snapshots(const struct vm *vm)
{
	return each(vm, vm->traces, vm->ntraces, snapshots_hold);
}
