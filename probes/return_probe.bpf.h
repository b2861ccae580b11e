/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Return probes of any tool (uretprobe): the kernel puts the address of its own code, in the page that maps call
 * [uprobes], in the place of a return address, and keeps the true one in a list of the task (kernel/events/uprobes.c).
 */
#ifndef YRT_RETURN_PROBE_BPF_H
#define YRT_RETURN_PROBE_BPF_H

#include "unwind/shared/record.h"

#define PROBED_INSN_MAX     16
#define RETURN_PROBE_PUSHED (3 * sizeof(u64))
#define RETURN_PROBES_EACH  8 /* of a frame, or left behind by longjmp() */

/* For a walk from outside. */
static inline void fill_return_probes(struct return_probes *ret, struct task_struct *task)
{
	struct return_instance *at = NULL;
	u32 n = 0;

	if (bpf_core_field_exists(task->utask))
		at = BPF_CORE_READ(task, utask, return_instances);
	for (; n < RETURN_PROBES_KEPT && at; n++) {
		ret->probe[n].at = BPF_CORE_READ(at, stack);
		ret->probe[n].address = BPF_CORE_READ(at, orig_ret_vaddr);
		at = BPF_CORE_READ(at, next);
	}
	ret->n = n;
}

#endif
