/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PUC-Lua's walker and naming over memory of any bytes. The first bytes choose the release, the part of the code and
 * registers; the rest is the target's memory, in which small numbers of 8 bytes become pointers into it.
 */
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "runtimes/lua/lua_names.h"
#include "runtimes/lua/lua_proto.h"
#include "walk.h"

#define BASE   0x100000
#define BYTES  4096
#define FRAMES 64

int lua_step(struct walk *w);

struct target {
	struct memory memory;
	u8 byte[BYTES];
};

static bool target_read(struct memory *mem, void *dst, size_t size, u64 addr)
{
	struct target *t = (struct target *)mem;

	if (addr < BASE || addr - BASE > BYTES || size > BYTES - (addr - BASE))
		return false;
	memcpy(dst, t->byte + (addr - BASE), size);
	return true;
}

#define AT(at_, size_)                                                                                                 \
	{                                                                                                              \
		.at = at_, .size = size_                                                                               \
	}

/* Of 5.4.6 and of 5.1.5, as the library has them. */
static const struct lua_layout layouts[] = {
        {.l_tt = AT(8, 1),
                .l_ci = AT(32, 8),
                .l_stack = AT(48, 8),
                .l_stack_last = AT(40, 8),
                .l_base_ci = AT(96, 64),
                .ci_size = AT(64, 64),
                .ci_func = AT(0, 8),
                .ci_previous = AT(16, 8),
                .ci_l_savedpc = AT(32, 8),
                .ci_status = AT(62, 2),
                .cl_p = AT(24, 8),
                .cl_f = AT(24, 8),
                .p_k = AT(56, 8),
                .p_sizek = AT(20, 4),
                .p_code = AT(64, 8),
                .p_sizecode = AT(24, 4),
                .p_lineinfo = AT(88, 8),
                .p_sizelineinfo = AT(28, 4),
                .p_abslineinfo = AT(96, 8),
                .p_sizeabslineinfo = AT(40, 4),
                .p_locvars = AT(104, 8),
                .p_sizelocvars = AT(36, 4),
                .p_upvalues = AT(80, 8),
                .p_sizeupvalues = AT(16, 4),
                .p_linedefined = AT(44, 4),
                .p_lastlinedefined = AT(48, 4),
                .p_source = AT(112, 8),
                .l_g = AT(24, 8),
                .g_registry = AT(64, 16),
                .t_lsizenode = AT(11, 1),
                .t_node = AT(24, 8),
                .p_p = AT(72, 8),
                .p_sizep = AT(32, 4)},
        {.l_tt = AT(8, 1),
                .l_ci = AT(40, 8),
                .l_stack = AT(64, 8),
                .l_stack_last = AT(56, 8),
                .l_base_ci = AT(80, 8),
                .l_savedpc = AT(48, 8),
                .ci_size = AT(40, 40),
                .ci_func = AT(8, 8),
                .ci_base = AT(0, 8),
                .ci_top = AT(16, 8),
                .ci_savedpc = AT(24, 8),
                .cl_p = AT(32, 8),
                .cl_f = AT(32, 8),
                .cl_is_c = AT(10, 1),
                .p_k = AT(16, 8),
                .p_sizek = AT(76, 4),
                .p_code = AT(24, 8),
                .p_sizecode = AT(80, 4),
                .p_lineinfo = AT(40, 8),
                .p_sizelineinfo = AT(84, 4),
                .p_locvars = AT(48, 8),
                .p_sizelocvars = AT(92, 4),
                .p_upvalues = AT(56, 8),
                .p_sizeupvalues = AT(72, 4),
                .p_linedefined = AT(96, 4),
                .p_lastlinedefined = AT(100, 4),
                .p_maxstacksize = AT(115, 1),
                .p_source = AT(64, 8),
                .l_g = AT(32, 8),
                .g_registry = AT(160, 16),
                .t_lsizenode = AT(11, 1),
                .t_node = AT(32, 8),
                .p_p = AT(32, 8),
                .p_sizep = AT(88, 4)},
};

static void fill_image(struct lua_image *image, u32 which)
{
	const struct lua_layout *l = &layouts[which & 1];

	*image = (struct lua_image){.layout = l,
	        .vm = {.version = which & 1 ? 501 : 504 + (which >> 1 & 1),
	                .l_reg = which & 4 ? REG_SP : DWREG_RBX,
	                .l_in_slot = which >> 2 & 1,
	                .l_from = 8,
	                .l_slot = 16,
	                .pc_in_register = 1,
	                .l_tt = 8,
	                .l_ci = (u8)l->l_ci.at,
	                .l_stack = (u8)l->l_stack.at,
	                .l_stack_last = (u8)l->l_stack_last.at,
	                .l_g = (u8)l->l_g.at,
	                .l_base_ci = which & 1 ? 80 : 0,
	                .l_savedpc = which & 1 ? 48 : 0,
	                .l_first_ci = which & 1 ? 0 : 96,
	                .returns = which & 1 ? 7 : 0,
	                .pc_reg = which & 1 ? DWREG_RBX : 0,
	                .pc_kept = which >> 3 & 1,
	                .ci_func = (u8)l->ci_func.at,
	                .ci_previous = which & 1 ? 0 : 16,
	                .ci_savedpc = which & 1 ? 24 : 32,
	                .ci_status = 62,
	                .ci_status_size = which & 1 ? 0 : 2,
	                .ci_size = 40,
	                .cl_p = (u8)l->cl_p.at,
	                .cl_f = (u8)l->cl_f.at,
	                .cl_is_c = which & 1 ? 10 : 0,
	                .ci_top = which & 1 ? 16 : 0,
	                .p_maxstacksize = which & 1 ? 115 : 0,
	                .p_code = (u8)l->p_code.at,
	                .p_sizecode = (u8)l->p_sizecode.at,
	                .p_linedefined = (u8)l->p_linedefined.at,
	                .p_lastlinedefined = (u8)l->p_lastlinedefined.at,
	                .fresh_mask = 4,
	                .fresh_bits = 4,
	                .lua_mask = 2,
	                .tail_mask = 32,
	                .op_mask = 0x3f,
	                .op_call = 28,
	                .op_tailcall = 29}};
}

static void name_all(struct lua_image *image, struct walk *w, struct target *t)
{
	struct runtime_process p = {.memory = &t->memory};
	struct lua_names *names = lua_names_create(image);
	struct frame_name name;
	char callee[LUA_NAME_MAX];

	for (u32 i = 0; names && i < w->nframes; i++) {
		memset(&name, 0, sizeof(name));
		if (w->target.frames[i].detail & LUA_STATE)
			lua_names_see(names, frame_addr(&w->target.frames[i]));
		if (frame_kind(&w->target.frames[i]) == FRAME_SCRIPT)
			lua_name_frame(names, &p, w->target.frames, i, w->nframes, &name);
	}
	lua_names_destroy(names);
	for (u32 at = 0; at < BYTES; at += 512) {
		struct lua_proto *proto = lua_proto_read(image, &t->memory, BASE + at);

		for (u32 pos = 0; proto && pos < proto->sizecode && pos < 64; pos++)
			lua_proto_callee(proto, &t->memory, pos, callee);
		lua_proto_free(proto);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct frame frames[FRAMES];
	static struct arena *arena;
	static struct walk w;
	static u32 config;
	static struct target t = {.memory = {.read = target_read}};
	struct lua_image image;
	int stop = STOP_NONE;

	if (!arena && (arena_create(NULL, &arena) || arena_alloc(arena, sizeof(struct lua_vm), &config)))
		abort();
	if (size < 4)
		return 0;
	memset(t.byte, 0, BYTES);
	memcpy(t.byte, data + 4, size - 4 < BYTES ? size - 4 : BYTES);
	for (u32 i = 0; i + 8 <= BYTES; i += 8) {
		u64 word;

		memcpy(&word, t.byte + i, sizeof(word));
		if (word >= 0x8000 && word < 0x8000 + BYTES)
			word += BASE - 0x8000;
		memcpy(t.byte + i, &word, sizeof(word));
	}
	fill_image(&image, data[0]);
	memcpy(arena_at(arena, config, sizeof(image.vm)), &image.vm, sizeof(image.vm));
	memset(&w, 0, sizeof(w));
	w.max_frames = FRAMES;
	w.target = (struct walk_target){.memory = &t.memory, .arena = arena, .frames = frames};
	w.region = (struct region){
	        .start = 0x1000, .end = 0x2000, .vm = config, .runtime = RUNTIME_LUA, .part = data[1] & 3};
	w.valid = (1u << ARCH_NREGS) - 1;
	w.leaf = data[1] >> 2 & 1;
	w.reg[DWREG_RBX] = w.reg[DWREG_RDI] = BASE + data[2] * 8;
	w.reg[REG_SP] = BASE + data[3] * 8;
	w.reg[REG_PC] = 0x1000 + (data[1] >> 3) * 8;
	for (u32 i = 0; i < 2 * FRAMES && stop == STOP_NONE; i++) {
		stop = lua_step(&w);
		w.region.part = data[1] >> (i & 7) & 3;
	}
	if (w.nframes > FRAMES)
		abort();
	name_all(&image, &w, &t);
	return 0;
}
