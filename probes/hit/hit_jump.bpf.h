/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Where a jump leads that may leave a function (struct latency_jump), by the registers of the moment. */
#ifndef YRT_HIT_JUMP_BPF_H
#define YRT_HIT_JUMP_BPF_H

#include "hit/latency.h"

#define FLAG_CARRY    (1u << 0)
#define FLAG_PARITY   (1u << 2)
#define FLAG_ZERO     (1u << 6)
#define FLAG_SIGN     (1u << 7)
#define FLAG_OVERFLOW (1u << 11)

struct { /* sized where calls are measured */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct latency_jump);
} latency_jumps SEC(".maps");

/* Does jcc jump? (Intel SDM volume 1, B.1) */
static inline bool latency_holds(u32 condition, u64 flags)
{
	bool sign = flags & FLAG_SIGN, overflow = flags & FLAG_OVERFLOW, ret;

	switch (condition >> 1) {
	case 0:
		ret = overflow;
		break;
	case 1:
		ret = flags & FLAG_CARRY;
		break;
	case 2:
		ret = flags & FLAG_ZERO;
		break;
	case 3:
		ret = flags & (FLAG_CARRY | FLAG_ZERO);
		break;
	case 4:
		ret = sign;
		break;
	case 5:
		ret = flags & FLAG_PARITY;
		break;
	case 6:
		ret = sign != overflow;
		break;
	default:
		ret = sign != overflow || flags & FLAG_ZERO;
	}
	return ret != (condition & 1);
}

static inline u64 latency_register(const struct pt_regs___kernel *regs, u32 place)
{
	u64 value = 0;

	if (place < sizeof(*regs))
		bpf_probe_read_kernel(&value, sizeof(value), (const char *)regs + place);
	return value;
}

static inline const struct latency_jump *latency_jump_of(u64 number)
{
	u32 index = (u32)number - 1;

	return (u32)number ? bpf_map_lookup_elem(&latency_jumps, &index) : NULL;
}

/* Where the jump of this number leads, in the process. 0: not known. */
WALK_GLOBAL u64 latency_leads(u64 number)
{
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	const struct latency_jump *jump = latency_jump_of(number);
	u64 to;

	if (!jump)
		return 0;
	if (jump->slot)
		to = BPF_CORE_READ(regs, ip) - jump->at + jump->slot;
	else
		to = (u64)(s64)jump->disp + latency_register(regs, jump->base) +
		     latency_register(regs, jump->index) * jump->scale;
	if ((jump->in_memory || jump->slot) && bpf_probe_read_user(&to, sizeof(to), (const void *)to))
		return 0;
	return to;
}

/* number: from 1; 0 is a way out in any case. */
WALK_GLOBAL int latency_jumps_away(u64 number)
{
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	const struct latency_jump *jump = latency_jump_of(number);
	u64 to;

	if (!jump)
		return 1;
	if (jump->condition != LATENCY_NONE)
		return latency_holds(jump->condition, BPF_CORE_READ(regs, flags));
	if (jump->slot)
		return 1;
	to = latency_leads(number);
	if (!to)
		return 1;
	to -= BPF_CORE_READ(regs, ip) - jump->at;
	for (u32 i = 0; i < LATENCY_PARTS && i < jump->nparts; i++)
		if (to >= jump->start[i] && to < jump->end[i])
			return 0;
	return 1;
}

#endif
