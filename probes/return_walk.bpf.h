/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* How a walk of the current thread gets past the kernel's page of probes. */
#ifndef YRT_RETURN_WALK_BPF_H
#define YRT_RETURN_WALK_BPF_H

#include "return_probe.bpf.h"

/*
 * The innermost return probe whose return address was in [from, to] of the current thread's stack. *next: where the
 * last search ended; they are in the order of a walk.
 */
static inline struct return_instance *find_return_probe(struct return_instance **next, u64 from, u64 to)
{
	struct return_instance *at = *next;

	if (!at)
		at = BPF_CORE_READ(bpf_get_current_task_btf(), utask, return_instances);
	for (u32 i = 0; i < RETURN_PROBES_EACH && at; i++) {
		*next = at;
		if (BPF_CORE_READ(at, stack) - from <= to - from)
			return at;
		at = BPF_CORE_READ(at, next);
	}
	return NULL;
}

/*
 * The end of the code to which return probes lead (uretprobe_trampoline_entry, Linux 6.11): it pops two registers, and
 * returns. By then the kernel has put the true address there, and forgotten the probe.
 */
static inline int leave_return_probe(struct walk *w)
{
	static const u8 code[] = {0x41, 0x5b, 0x59, 0xc3};
	u64 offset = w->reg[REG_PC] & (WALK_PAGE - 1), words = offset == 13 ? 2 : offset == 15 ? 1 : 0;
	u64 at = w->reg[REG_SP] + words * sizeof(u64);
	u32 there, expected;

	__builtin_memcpy(&expected, code, sizeof(expected));
	if (!w->leaf || offset < 13 || offset > 16 ||
	        !walk_read(w, &there, sizeof(there), (w->reg[REG_PC] & ~(u64)(WALK_PAGE - 1)) + 13) ||
	        there != expected || !walk_stack(w, at, &w->reg[REG_PC]))
		return STOP_RETURN_PROBE;
	w->reg[REG_SP] = at + sizeof(u64);
	w->leaf = 0;
	return STOP_NONE;
}

/*
 * The current thread's true address, for one in the kernel's page of probes ([uprobes]): of the instruction that is
 * stepped there out of its place, or of a caller to which a return probe leads. The latter's code pushes up to three
 * registers (Linux 6.11). stop: STOP_NO_REGION if the page is so new that user space has not seen it; only the former
 * is found then.
 */
WALK_GLOBAL int walk_past_probe(struct slot *slot, u32 stop)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct return_instance *at;
	struct walk *w;
	u64 sp, place;

	if (!slot)
		return STOP_ARENA;
	w = &slot->walk;
	if (!bpf_core_field_exists(task->utask))
		return (int)stop;
	place = BPF_CORE_READ(task, utask, xol_vaddr);
	if (w->leaf && place && w->reg[REG_PC] - place <= PROBED_INSN_MAX) {
		w->reg[REG_PC] += BPF_CORE_READ(task, utask, vaddr) - place;
		return STOP_NONE;
	}
	if (stop != STOP_RETURN_PROBE)
		return (int)stop;
	sp = w->reg[REG_SP] - sizeof(u64);
	at = find_return_probe(&slot->return_probe, sp, w->leaf ? sp + RETURN_PROBE_PUSHED : sp);
	if (!at)
		return leave_return_probe(w);
	w->reg[REG_PC] = BPF_CORE_READ(at, orig_ret_vaddr);
	w->reg[REG_SP] = BPF_CORE_READ(at, stack) + sizeof(u64);
	w->leaf = 0;
	return STOP_NONE;
}

#endif
