/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_gc.h"

#include "arch.h"
#include "cfi/cfi.h"
#include "lua_sweep.h"

#define DEPTH 2 /* luaC_step() and luaC_fullgc() share singlestep(), which may be behind a function more */

static void keep_common(struct lua_callees *c, const struct lua_callees *other)
{
	u32 n = 0;

	for (u32 i = 0; i < c->n; i++)
		if (lua_callees_has(other, c->start[i]))
			c->start[n++] = c->start[i];
	c->n = n;
}

/*
 * luaC_step(): what all of these call, or, where the compiler has cut some in parts, what their callees do. lua_gc()
 * decides between several.
 */
static bool find_step(struct lua_sweep *s, struct lua_callees *ret)
{
	static const char *const makers[] = {"lua_concat", "lua_createtable", "lua_pushcclosure", "lua_newthread"};
	struct lua_callees other;

	for (u32 depth = 1; depth <= DEPTH; depth++) {
		if (!lua_callees_of(s, "lua_pushlstring", 1, ret))
			return false;
		for (u32 i = 0; i < sizeof(makers) / sizeof(*makers); i++)
			if (lua_callees_of(s, makers[i], depth, &other))
				keep_common(ret, &other);
		if (ret->n > 1 && lua_callees_of(s, "lua_gc", 1, &other))
			keep_common(ret, &other);
		if (ret->n == 1)
			return true;
	}
	return false;
}

static void add(struct lua_sweep *s, u64 start, struct lua_gc *ret)
{
	const struct cfi_fde *fde = cfi_fde_at(s->img->cfi, start);

	for (u32 i = 0; i < ret->n; i++)
		if (ret->start[i] == start)
			return;
	if (!fde || ret->n == LUA_GC_FUNCTIONS)
		return;
	ret->start[ret->n] = fde->start;
	ret->end[ret->n++] = fde->end;
}

static void find(struct lua_sweep *s, struct lua_gc *ret)
{
	struct lua_callees step, inside = {.n = 0}, others, theirs;

	if (!find_step(s, &step))
		return;
	add(s, step.start[0], ret);
	lua_callees(s, step.start[0], DEPTH, &inside);
	if (!lua_callees_of(s, "lua_gc", 1, &others))
		return;
	for (u32 i = 0; i < others.n; i++) {
		theirs.n = 0;
		lua_callees(s, others.start[i], DEPTH, &theirs);
		keep_common(&theirs, &inside);
		if (theirs.n)
			add(s, others.start[i], ret);
	}
}

struct error *lua_gc_find(struct image *img, struct lua_gc *ret)
{
	struct lua_sweep s;
	struct error *err = lua_sweep_open(img, &s);

	*ret = (struct lua_gc){.n = 0};
	if (!err)
		find(&s, ret);
	lua_sweep_close(&s);
	return err;
}

static bool collects(const struct lua_gc *gc, u64 bias, const struct frame *f)
{
	u64 pc = frame_addr(f) - (frame_flags(f) & FRAME_RETADDR ? ARCH_CALL_BACK : 0) - bias;

	for (u32 i = 0; i < gc->n; i++)
		if (pc >= gc->start[i] && pc < gc->end[i])
			return true;
	return false;
}

u32 lua_gc_behind(const struct lua_gc *gc, u64 bias, const struct frame *frames, u32 i, u32 end)
{
	u32 behind = i;

	for (u32 k = i; k < end; k++)
		if (collects(gc, bias, &frames[k]))
			behind = k + 1;
	return behind;
}
