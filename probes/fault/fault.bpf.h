/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The program of page faults (fault.h). */
#ifndef YRT_FAULT_BPF_H
#define YRT_FAULT_BPF_H

#include "fault/fault.h"

#define CONFIG_FAULTS_MAJOR 6 /* PERF_COUNT_SW_PAGE_FAULTS_MAJ */
#define FLAG_WRITE          2 /* VM_WRITE */
#define FLAG_SHARED         8 /* VM_SHARED */

const volatile bool with_find_vma = true;

static long fault_mapping(struct task_struct *task, struct vm_area_struct *vma, u32 *kind)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	u64 start = BPF_CORE_READ(vma, vm_start), end = BPF_CORE_READ(vma, vm_end),
	    top = BPF_CORE_READ(mm, start_stack), flags = BPF_CORE_READ(vma, vm_flags);
	struct pt_regs___kernel *r = (void *)bpf_task_pt_regs(task);
	u64 sp = BPF_CORE_READ(r, sp);

	if (flags & FLAG_SHARED)
		*kind = FAULT_SHARED;
	else if (BPF_CORE_READ(vma, vm_file))
		*kind = FAULT_FILE;
	else if ((top >= start && top < end) || (sp >= start && sp < end))
		*kind = FAULT_STACK;
	else if (start < BPF_CORE_READ(mm, brk) && end > BPF_CORE_READ(mm, start_brk))
		*kind = FAULT_HEAP;
	else
		*kind = FAULT_ANONYMOUS;
	if (!(flags & FLAG_WRITE))
		*kind |= FAULT_READ_ONLY;
	return 0;
}

static inline u32 fault_reason(struct bpf_perf_event_data *ctx, struct task_struct *task)
{
	struct bpf_perf_event_data_kern *kern = (void *)ctx;
	u32 kind = FAULT_UNKNOWN;

	if (with_find_vma)
		bpf_find_vma(task, ctx->addr, fault_mapping, &kind, 0);
	return kind | (BPF_CORE_READ(kern, event, attr.config) == CONFIG_FAULTS_MAJOR ? FAULT_MAJOR : 0);
}

WALKING("perf_event", on_fault)
int on_fault_walk(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe_stats *st = my_stats();
	u64 each = weight;
	u32 number, tgid;
	struct slot *slot;
	int instance;

	if (ticks != TICKS_TAKEN || !st)
		return 0;
	instance = find_target();
	if (!instance || (each > 1 && bpf_get_prandom_u32() % (u32)each))
		return 0;
	tgid = tgid_of(task);
	slot = event_begin(st, instance, tgid, each, &number);
	if (!slot)
		return 0;
	slot->head.reason = fault_reason(ctx, task) & ~FAULT_READ_ONLY;
	event_reason(slot);
	event_hit(slot, st, ctx, task, tgid);
	return 0;
}

#endif
