/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Notes where targets map memory (code_watch.h). */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "kernel.h"
#include "unwind/shared/region.h"
#include "targets.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct vm_unmapped_area_info {
	unsigned long length;
};

#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, u32); /* tgid */
	__type(value, struct code_ranges);
} made_code SEC(".maps");

static inline void note(u32 tgid, u64 start, u64 end)
{
	struct process_entry *process = bpf_map_lookup_elem(&processes, &tgid);
	struct code_change *known = bpf_map_lookup_elem(&code_changes, &tgid),
	                   change = {.ns = bpf_ktime_get_ns(), .start = start, .end = end};

	if (!process)
		return;
	if (known && known->ns > process->looked_ns) {
		change.start = known->start < start ? known->start : start;
		change.end = known->end > end ? known->end : end;
	}
	bpf_map_update_elem(&code_changes, &tgid, &change, BPF_ANY);
}

/*
 * The kernel is about to map memory in a free place: what was known of code there no longer holds. Several such places
 * are noted as one range, from the first to the last. addr may be an error code, which is outside of all code.
 */
SEC("tp_btf/vm_unmapped_area")
int BPF_PROG(on_mapped, unsigned long addr, struct vm_unmapped_area_info *info)
{
	u32 tgid = tgid_of_typed(bpf_get_current_task_btf());
	struct code_ranges *code = bpf_map_lookup_elem(&made_code, &tgid);
	u64 end = addr + info->length;

	for (u32 i = 0; code && i < CODE_RANGES_MAX && i < code->n; i++)
		if (addr < code->range[i].end && end > code->range[i].start)
			note(tgid, addr, end);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
