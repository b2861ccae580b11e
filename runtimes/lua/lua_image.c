/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch.h"
#include "code/capstone_registers.h"
#include "lua_release.h"
#include "lua_sweep.h"

struct search {
	u64 start, call;        /* call: the end of the latest one */
	s64 savedpc;            /* lua_State.savedpc */
	u32 stores[ARCH_NREGS]; /* of each register into it */
	u8 count_base,
	        count_loaded; /* nexeccalls: the register that its slot is found from; one that it was loaded to */
	s64 count_disp;
	u64 returns;
};

static u8 general(const cs_x86_op *op)
{
	return op->type == X86_OP_REG ? capstone_register(op->reg) : CAPSTONE_NO_REG;
}

static bool is_count(const struct search *s, const cs_x86_op *op)
{
	return s->count_base && op->type == X86_OP_MEM && capstone_register(op->mem.base) == s->count_base &&
	       op->mem.index == X86_REG_INVALID && op->mem.disp == s->count_disp;
}

static bool is_less_by_one(const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	return in->id == X86_INS_DEC || (x->op_count == 2 && x->operands[1].type == X86_OP_IMM &&
	                                        ((in->id == X86_INS_SUB && x->operands[1].imm == 1) ||
	                                                (in->id == X86_INS_ADD && (s32)x->operands[1].imm == -1)));
}

static void see_store(struct search *s, const cs_x86_op *to, const cs_x86_op *from)
{
	u8 reg = general(from), base = capstone_register(to->mem.base);

	if (reg >= ARCH_NREGS || to->mem.index != X86_REG_INVALID)
		return;
	if (from->size == 8 && base != DWREG_RSP && to->mem.disp == s->savedpc)
		s->stores[reg]++;
	if (!s->count_base && from->reg == X86_REG_ESI && (base == DWREG_RSP || base == DWREG_RBP)) {
		s->count_base = base;
		s->count_disp = to->mem.disp;
	}
}

static bool see(void *ctx, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	const cs_x86_op *to = &x->operands[0], *from = &x->operands[1];
	struct search *s = ctx;
	u8 loaded = s->count_loaded;

	s->count_loaded = CAPSTONE_NO_REG;
	if (in->id == X86_INS_CALL) {
		s->call = in->address + in->size;
	} else if (in->id == X86_INS_MOV && to->type == X86_OP_MEM) {
		see_store(s, to, from);
	} else if (in->id == X86_INS_MOV && is_count(s, from)) {
		s->count_loaded = general(to);
	} else if (s->call && !s->returns && is_less_by_one(in) &&
	           (is_count(s, to) || (general(to) < ARCH_NREGS && general(to) == loaded))) {
		s->returns = s->call;
	}
	return true;
}

/*
 * 5.1: the register in which luaV_execute() has its position in the bytecode, and where it calls luaD_poscall(). The
 * former is the one that it stores into lua_State.savedpc; the latter is the call before it decrements nexeccalls, its
 * second argument. What is not found stays 0.
 */
static struct error *lua_position_find(struct image *img, struct lua_image *ret)
{
	struct search s = {
	        .start = ret->ranges[0].start, .savedpc = ret->vm.l_savedpc, .count_loaded = CAPSTONE_NO_REG};
	struct lua_sweep sweep;
	struct error *err = lua_sweep_open(img, &sweep);
	u8 best = 0;

	if (!err)
		lua_sweep(&sweep, s.start, ret->ranges[0].end, see, &s);
	lua_sweep_close(&sweep);
	for (u8 i = 1; i < ARCH_NREGS; i++)
		if (s.stores[i] > s.stores[best])
			best = i;
	ret->vm.pc_reg = best;
	ret->vm.pc_kept = ARCH_SAVED_MASK >> best & 1;
	if (s.returns && s.returns - s.start <= UINT16_MAX)
		ret->vm.returns = (u16)(s.returns - s.start - ARCH_CALL_BACK);
	return err;
}

/*
 * Members of CallInfo.callstatus (lstate.h) from a release on. 5.2 and 5.3.0-5.3.1 mark functions that run in the
 * luaV_execute() of their caller, later ones those that do not; 5.4.0 and 5.4.1 enter it anew for each.
 */
static const struct {
	u32 from; /* 50304 is 5.3.4 */
	u32 lua_mask, lua_bits, fresh_mask, fresh_bits, tail_mask;
	bool pc_in_register;
} statuses[] = {
        {50100, 0, 0, 0, 0, ~0u, true}, /* CallInfo.tailcalls: how many */
        {50200, 1, 1, 4, 0, 64, false},
        {50300, 2, 2, 8, 0, 32, false},
        {50302, 2, 2, 8, 8, 32, false},
        {50400, 2, 0, 0, 0, 16, true},
        {50402, 2, 0, 4, 4, 32, true},
        {50500, 1u << 15, 0, 1u << 16, 1u << 16, 1u << 22, true},
};

#define LUA_RELEASE_END 50600

/* "5.4.6" as 50406; 0: none. */
static u32 release_number(const char *release)
{
	u32 major, minor, patch;

	return sscanf(release, "Lua %u.%u.%u", &major, &minor, &patch) == 3 && minor < 100 && patch < 100
	               ? major * 10000 + minor * 100 + patch
	               : 0;
}

static bool knows_tables(const struct lua_layout *l)
{
	return l->l_g.size == 8 && l->l_g.at + 8u <= LUA_OBJECT && l->g_registry.size && l->t_lsizenode.size == 1 &&
	       l->t_node.size == 8 && l->p_p.size == 8 && l->p_sizep.size == 4;
}

static struct error *fill_vm(struct image *img, struct lua_image *image)
{
	const struct lua_layout *l = image->layout;
	u32 number = release_number(image->release), i = 0;
	struct lua_vm *vm = &image->vm;

	if (number < statuses[0].from || number >= LUA_RELEASE_END)
		return error_hint(error_new(ERROR_UNSUPPORTED, "%s holds \"%s\": 5.1 to 5.5 are supported", img->path,
		                          image->release),
		        "its Lua frames are left out");
	while (i + 1 < sizeof(statuses) / sizeof(*statuses) && statuses[i + 1].from <= number)
		i++;
	vm->lua_mask = statuses[i].lua_mask;
	vm->lua_bits = statuses[i].lua_bits;
	vm->fresh_mask = statuses[i].fresh_mask;
	vm->fresh_bits = statuses[i].fresh_bits;
	vm->tail_mask = statuses[i].tail_mask;
	vm->pc_in_register = statuses[i].pc_in_register;
	vm->version = (u16)(number / 100);
	vm->l_tt = (u8)l->l_tt.at;
	vm->l_ci = (u8)l->l_ci.at;
	vm->l_stack = (u8)l->l_stack.at;
	vm->l_stack_last = (u8)l->l_stack_last.at;
	vm->l_g = knows_tables(l) ? (u8)l->l_g.at : 0;
	vm->l_base_ci = vm->version == 501 ? (u8)l->l_base_ci.at : 0;
	vm->l_first_ci = vm->version != 501 && l->l_base_ci.at <= UINT8_MAX ? (u8)l->l_base_ci.at : 0;
	vm->l_savedpc = l->l_savedpc.size ? (u8)l->l_savedpc.at : 0;
	vm->ci_func = (u8)l->ci_func.at;
	vm->ci_previous = l->ci_previous.size ? (u8)l->ci_previous.at : 0;
	vm->ci_savedpc = (u8)(l->ci_savedpc.size ? l->ci_savedpc.at : l->ci_l_savedpc.at);
	vm->ci_status = (u8)l->ci_status.at;
	vm->ci_status_size = (u8)l->ci_status.size;
	vm->ci_size = (u8)l->ci_size.at;
	if (vm->version == 501) { /* lstate.h: tailcalls is an int, the last member */
		vm->ci_status = (u8)(vm->ci_size - sizeof(u32));
		vm->ci_status_size = sizeof(u32);
	}
	vm->cl_p = (u8)l->cl_p.at;
	vm->cl_f = (u8)l->cl_f.at;
	vm->cl_is_c = l->cl_is_c.size ? (u8)l->cl_is_c.at : 0;
	if (vm->cl_is_c && l->ci_base.size && l->ci_top.size && l->p_maxstacksize.size == 1 &&
	        l->p_maxstacksize.at < LUA_OBJECT) {
		vm->ci_base = (u8)l->ci_base.at;
		vm->ci_top = (u8)l->ci_top.at;
		vm->p_maxstacksize = (u8)l->p_maxstacksize.at;
	}
	vm->p_code = (u8)l->p_code.at;
	vm->p_sizecode = (u8)l->p_sizecode.at;
	vm->p_linedefined = (u8)l->p_linedefined.at;
	vm->p_lastlinedefined = (u8)l->p_lastlinedefined.at;
	vm->op_mask = 0x3f; /* lopcodes.h of 5.1, 5.2: OP_CALL, OP_TAILCALL */
	vm->op_call = vm->version == 501 ? 28 : 29;
	vm->op_tailcall = vm->op_call + 1;
	return NULL;
}

/* What the walker reads of a structure in one piece must hold all members; so must a byte. */
static struct error *check_sizes(struct image *img, const struct lua_layout *l)
{
	const struct layout_member *const members[] = {&l->l_ci, &l->l_stack, &l->l_stack_last, &l->l_savedpc,
	        &l->p_code, &l->p_sizecode, &l->p_linedefined, &l->p_lastlinedefined};
	bool fits = l->ci_size.at <= 128 && l->ci_func.at <= 64 && l->ci_l_savedpc.at <= 64 && l->ci_status.at <= 70 &&
	            l->cl_p.at <= 32 && l->cl_f.at <= 32 && l->l_ci.size == 8 && l->p_code.size == 8;

	for (u32 i = 0; i < sizeof(members) / sizeof(*members); i++)
		fits = fits && members[i]->at + members[i]->size <= LUA_OBJECT;
	if (fits)
		return NULL;
	return error_new(ERROR_UNSUPPORTED,
	        "%s: structures of its Lua are larger than those of any build that is known", img->path);
}

void lua_image_destroy(struct lua_image *image)
{
	if (!image)
		return;
	layout_destroy(image->origins);
	free(image);
}

struct error *lua_image_read(struct image *img, struct lua_image **ret)
{
	char release[LUA_RELEASE_MAX];
	struct lua_image *image;
	struct error *err;
	u64 near;

	*ret = NULL;
	/* a program that looks for such texts holds the beginning of one, as yrt does */
	if (img->machine != EM_X86_64 || !lua_release_find(img, release, &near) || !release_number(release))
		return NULL;
	image = calloc(1, sizeof(*image));
	if (!image)
		return &error_no_memory;
	strcpy(image->release, release);
	image->near = near;
	err = lua_code_find(img, image);
	if (!err && !image->nranges) { /* a program that only names the release of a library */
		free(image);
		return NULL;
	}
	if (!err)
		err = lua_layout_find(img, release, &image->origins);
	if (!err) {
		image->layout = image->origins->values;
		err = check_sizes(img, image->layout);
	}
	if (!err)
		err = fill_vm(img, image);
	if (!err && image->vm.version == 501)
		err = lua_position_find(img, image);
	if (err) {
		lua_image_destroy(image);
		return err;
	}
	*ret = image;
	return NULL;
}
