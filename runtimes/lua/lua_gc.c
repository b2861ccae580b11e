/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_gc.h"

#include "binary/image_scan.h"
#include "binary/image_words.h"
#include "cfi/cfi.h"
#include "lua_sweep.h"
#include "symbols/symbols.h"

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

/* The C function that a luaL_Reg table registers under this name; 0: none does. */
static struct error *find_registered(struct image *img, const char *name, size_t size, u64 *ret)
{
	static const char *const sections[] = {".data.rel.ro", ".data", ".rodata"};
	u64 text = image_scan_find(img, ".rodata", name, size);
	struct image_words w = {.n = 0};
	struct error *err = NULL;

	*ret = 0;
	for (u32 i = 0; text && !err && i < sizeof(sections) / sizeof(*sections); i++)
		err = image_words_add(&w, img, sections[i]);
	if (!err)
		image_words_relocate(&w, img);
	for (u32 i = 0; !err && i < w.n; i++)
		for (u64 k = 0; !*ret && k + 1 < w.section[i].n; k++)
			if (w.section[i].word[k] == text && cfi_fde_at(img->cfi, w.section[i].word[k + 1]))
				*ret = w.section[i].word[k + 1];
	image_words_free(&w);
	return err;
}

struct calls_to {
	u64 start;
	u32 n;
};

static bool count_call(void *ctx, const cs_insn *in)
{
	const cs_x86_op *op = &in->detail->x86.operands[0];
	struct calls_to *c = ctx;

	c->n += (in->id == X86_INS_CALL || in->id == X86_INS_JMP) && op->type == X86_OP_IMM && (u64)op->imm == c->start;
	return true;
}

/* lua_gc(), as a compiler may have made it part of its caller; 0: it is not found. */
static u64 find_api(struct lua_sweep *s, u64 collectgarbage, const struct lua_callees *executes)
{
	const struct cfi_fde *fde = cfi_fde_at(s->img->cfi, collectgarbage);
	struct lua_callees callees = {.n = 0}, theirs;
	u32 most = 0;
	u64 found = 0;

	if (!fde)
		return 0;
	lua_callees(s, fde->start, 1, &callees);
	for (u32 i = 0; i < callees.n; i++) {
		struct calls_to c = {.start = callees.start[i]};

		theirs.n = 0;
		lua_callees(s, c.start, 1, &theirs);
		keep_common(&theirs, executes);
		if (!theirs.n)
			continue;
		lua_sweep(s, fde->start, fde->end, count_call, &c);
		if (c.n > most) {
			most = c.n;
			found = c.start;
		}
	}
	return found ? found : fde->start;
}

/*
 * luaC_step() of a host that exports nothing: the only function that both luaV_execute() and lua_gc() call. In 5.2
 * these have none: the only one that luaV_execute() calls and that calls what lua_gc() does.
 */
static bool find_unnamed(struct lua_sweep *s, u64 execute, u64 collectgarbage, struct lua_callees *ret, u64 *api)
{
	struct lua_callees executes = {.n = 0}, nested = {.n = 0}, gc = {.n = 0}, theirs;

	lua_callees(s, execute, 1, &executes);
	*api = find_api(s, collectgarbage, &executes);
	lua_callees(s, *api, 1, &gc);
	*ret = executes;
	keep_common(ret, &gc);
	if (ret->n)
		return ret->n == 1;
	lua_callees(s, execute, DEPTH, &nested);
	*api = find_api(s, collectgarbage, &nested);
	gc.n = 0;
	lua_callees(s, *api, 1, &gc);
	for (u32 i = 0; i < executes.n; i++) {
		theirs.n = 0;
		lua_callees(s, executes.start[i], 1, &theirs);
		keep_common(&theirs, &gc);
		if (theirs.n)
			lua_callees_add(ret, executes.start[i]);
	}
	return ret->n == 1;
}

struct ends {
	u64 start, end;
	struct lua_callees into;
};

static bool see_end(void *ctx, const cs_insn *in)
{
	const cs_x86_op *op = &in->detail->x86.operands[0];
	struct ends *e = ctx;

	if (in->id == X86_INS_JMP && op->type == X86_OP_IMM && ((u64)op->imm < e->start || (u64)op->imm >= e->end))
		lua_callees_add(&e->into, (u64)op->imm);
	return true;
}

/*
 * What collects in the place of one of these, which is gone then: luaC_fullgc() of 5.2 by gcc -Os ends in a jump to
 * callallpendingfinalizers(), which shares a callee with luaC_step().
 */
static void add_ends(struct lua_sweep *s, const struct lua_callees *inside, struct lua_gc *ret)
{
	struct lua_callees theirs;

	for (u32 i = 0; i < ret->n; i++) {
		struct ends e = {.start = ret->start[i], .end = ret->end[i]};

		lua_sweep(s, e.start, e.end, see_end, &e);
		for (u32 k = 0; k < e.into.n; k++) {
			theirs.n = 0;
			lua_callees(s, e.into.start[k], 1, &theirs);
			keep_common(&theirs, inside);
			if (theirs.n)
				add(s, e.into.start[k], ret);
		}
	}
}

static void find(struct lua_sweep *s, u64 execute, u64 collectgarbage, struct lua_gc *ret)
{
	struct lua_callees step, inside = {.n = 0}, others = {.n = 0}, theirs;
	u64 api;

	if (collectgarbage) {
		if (!find_unnamed(s, execute, collectgarbage, &step, &api))
			return;
		lua_callees(s, api, 1, &others);
	} else if (!find_step(s, &step) || !lua_callees_of(s, "lua_gc", 1, &others)) {
		return;
	}
	add(s, step.start[0], ret);
	lua_callees(s, step.start[0], DEPTH, &inside);
	for (u32 i = 0; i < others.n; i++) {
		theirs.n = 0;
		lua_callees(s, others.start[i], DEPTH, &theirs);
		keep_common(&theirs, &inside);
		if (theirs.n)
			add(s, others.start[i], ret);
	}
	add_ends(s, &inside, ret);
}

struct error *lua_gc_find(struct image *img, u64 execute, struct lua_gc *ret)
{
	static const char name[] = "collectgarbage";
	struct symbol symbol;
	struct lua_sweep s;
	struct error *err = lua_sweep_open(img, &s);
	u64 function = 0;

	*ret = (struct lua_gc){.n = 0};
	if (!err && !symbols_lookup(img, "lua_pushlstring", &symbol))
		err = find_registered(img, name, sizeof(name), &function);
	if (!err)
		find(&s, execute, function, ret);
	lua_sweep_close(&s);
	return err;
}
