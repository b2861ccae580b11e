/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions as text, much as the kernel's own tools write them. */
#include <stdio.h>

#include "bpf_make.h"

static const char *const operators[] = {
        "+=", "-=", "*=", "/=", "|=", "&=", "<<=", ">>=", "= -", "%=", "^=", "=", "s>>="};
static const char *const comparisons[] = {"", "==", ">", ">=", "&", "!=", "s>", "s>=", "", "", "<", "<=", "s<", "s<="};

static const char *helper_name(s32 helper)
{
	switch (helper) {
	case HELPER_MAP_LOOKUP:
		return "map_lookup_elem";
	case HELPER_MAP_UPDATE:
		return "map_update_elem";
	case HELPER_MAP_DELETE:
		return "map_delete_elem";
	case HELPER_KTIME:
		return "ktime_get_ns";
	case HELPER_CPU:
		return "get_smp_processor_id";
	case HELPER_TAIL_CALL:
		return "tail_call";
	case HELPER_PID_TGID:
		return "get_current_pid_tgid";
	case HELPER_UID_GID:
		return "get_current_uid_gid";
	case HELPER_CGROUP:
		return "get_current_cgroup_id";
	case HELPER_TASK:
		return "get_current_task";
	case HELPER_COMM:
		return "get_current_comm";
	case HELPER_READ_USER:
		return "probe_read_user";
	case HELPER_READ_KERNEL:
		return "probe_read_kernel";
	case HELPER_READ_USER_STR:
		return "probe_read_user_str";
	case HELPER_READ_KERNEL_STR:
		return "probe_read_kernel_str";
	case HELPER_NS_PID:
		return "get_ns_current_pid_tgid";
	case HELPER_RING_OUTPUT:
		return "ringbuf_output";
	case HELPER_COPY_USER:
		return "copy_from_user";
	case HELPER_COOKIE:
		return "get_attach_cookie";
	default:
		return "?";
	}
}

static const char *map_name(const struct y_program *p, u32 map)
{
	static const char *const own[] = {"states", "ring", "failures", "globals", "literals", "left", "edit",
	        "pending", "on_y", "on_y_point", "on_y_tick"};

	return map < Y_OWN_MAPS ? own[map] : map - Y_OWN_MAPS < p->nmaps ? p->maps[map - Y_OWN_MAPS].name : "?";
}

static void put_operand(FILE *out, const struct bpf_insn *i)
{
	if (BPF_SRC(i->code) == BPF_X)
		fprintf(out, "r%u", i->src_reg);
	else
		fprintf(out, "%d", i->imm);
}

static void put_jump(FILE *out, const struct bpf_insn *i, u32 at)
{
	static const char *const kfuncs[] = {"iter_num_new", "iter_num_next", "iter_num_destroy"};
	u32 op = BPF_OP(i->code);

	if (op == BPF_EXIT) {
		fputs("exit", out);
	} else if (op == BPF_CALL && i->src_reg == BPF_PSEUDO_KFUNC_CALL) {
		fprintf(out, "call bpf_%s", (u32)i->imm < Y_KFUNCS ? kfuncs[i->imm] : "?");
	} else if (op == BPF_CALL) {
		fprintf(out, "call bpf_%s", helper_name(i->imm));
	} else if (op == BPF_JA) {
		fprintf(out, "goto %u", at + 1 + (u32)i->off);
	} else {
		fprintf(out, "if r%u %s ", i->dst_reg, comparisons[op >> 4]);
		put_operand(out, i);
		fprintf(out, " goto %u", at + 1 + (u32)i->off);
	}
}

static void put_memory(FILE *out, const struct bpf_insn *i)
{
	static const char *const sizes[] = {"u32", "u16", "u8", "u64"};
	const char *size = sizes[BPF_SIZE(i->code) >> 3];

	if (BPF_CLASS(i->code) == BPF_LDX)
		fprintf(out, "r%u = *(%s *)(r%u %+d)", i->dst_reg, size, i->src_reg, i->off);
	else if (BPF_CLASS(i->code) == BPF_ST)
		fprintf(out, "*(%s *)(r%u %+d) = %d", size, i->dst_reg, i->off, i->imm);
	else if (BPF_MODE(i->code) == BPF_ATOMIC)
		fprintf(out, "%s *(%s *)(r%u %+d), r%u",
		        i->imm == BPF_CMPXCHG             ? "lock cmpxchg"
		        : i->imm == (BPF_ADD | BPF_FETCH) ? "lock fetch_add"
		                                          : "lock add",
		        size, i->dst_reg, i->off, i->src_reg);
	else
		fprintf(out, "*(%s *)(r%u %+d) = r%u", size, i->dst_reg, i->off, i->src_reg);
}

static void put_arithmetic(FILE *out, const struct bpf_insn *i)
{
	const char *half = BPF_CLASS(i->code) == BPF_ALU ? "w" : "r";
	u32 op = BPF_OP(i->code) >> 4;

	fprintf(out, "%s%u %s ", half, i->dst_reg, op < sizeof(operators) / sizeof(*operators) ? operators[op] : "?");
	if (BPF_OP(i->code) == BPF_NEG)
		fprintf(out, "%s%u", half, i->dst_reg);
	else
		put_operand(out, i);
}

static void put_wide(FILE *out, const struct bpf_insn *i, const struct y_program *p)
{
	if (i->src_reg == BPF_PSEUDO_MAP_FD)
		fprintf(out, "r%u = map %s", i->dst_reg, map_name(p, (u32)i->imm));
	else if (i->src_reg)
		fprintf(out, "r%u = &%s[0] + %d", i->dst_reg, map_name(p, (u32)i->imm), i[1].imm);
	else
		fprintf(out, "r%u = 0x%lx", i->dst_reg, (u64)(u32)i[1].imm << 32 | (u32)i->imm);
}

void y_bpf_print(const struct y_bpf *b, const struct y_program *p, FILE *out)
{
	for (u32 n = 0; n < b->object.nhandlers; n++) {
		const struct y_object_handler *h = &b->object.handlers[n];

		fprintf(out, "%s_probe %s%s: %u instructions\n", n ? "\n" : "", h->spec, h->returns ? ":return" : "",
		        h->ninsns);
		for (u32 k = 0; k < h->ninsns; k++) {
			const struct bpf_insn *i = &h->insns[k];
			u32 class = BPF_CLASS(i->code), at = k;

			fprintf(out, "%5u: ", at);
			if (class == BPF_LD)
				put_wide(out, i, p);
			else if (class == BPF_JMP)
				put_jump(out, i, at);
			else if (class == BPF_ALU || class == BPF_ALU64)
				put_arithmetic(out, i);
			else
				put_memory(out, i);
			fputc('\n', out);
			k += class == BPF_LD;
		}
	}
}
