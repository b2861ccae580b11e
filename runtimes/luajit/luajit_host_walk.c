/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Coroutines that a host schedules. lua-nginx-module replaces coroutine.resume: it yields to nginx, which then resumes
 * the other coroutine from C, so nothing on the native stack waits for that one. The module keeps a record of each
 * coroutine, to which lua_State.exdata2 points (ngx_http_lua_co_ctx_t, ngx_http_lua_common.h, 0.7.0 to 0.10.32;
 * stream-lua-nginx-module has the same):
 *
 *	0	data
 *	8	its lua_State
 *	16	the record of its parent: who resumed it last, or made it if it is a thread (ngx.thread.spawn)
 *	..
 *		co_ref (int): LUA_NOREF, unless it is a thread or the first coroutine of a request
 *		flags: bit 0 waited for, 1 to 3 status, 4 flushing, 5 a thread, 6 to 9 others
 *
 * The caller of coroutine.resume waits (status "normal") until that coroutine ends or yields; the one that made a
 * thread continues. The offsets of the last two members depend on the version, so they are searched for: both records
 * must have, at the same offset, the values of a running coroutine and of one that waits for it. NGX_LUA_USE_ASSERT
 * moves co_ref to the other half of a word; then they are not found.
 */
#include "walk.h"
#include "luajit_thread_walk.h"

#define LJ_CO_THREAD    8
#define LJ_CO_PARENT    16
#define LJ_CO_FLAGS     0x80 /* co_ref and flags are a word from here on */
#define LJ_CO_WORDS     32
#define LJ_CO_NOREF     0xfffffffeu
#define LJ_CO_BITS      10
#define LJ_CO_STATUS    (7u << 1)
#define LJ_CO_RUNNING   (0u << 1)
#define LJ_CO_SUSPENDED (1u << 1)
#define LJ_CO_NORMAL    (2u << 1)
#define LJ_CO_SPAWNED   (1u << 5)
#define LJ_YIELDED      1 /* LUA_YIELD */

/* The record of a coroutine, which must know it; 0: it has none. */
static inline u64 lj_co_record(struct walk *w, const struct luajit_vm *vm, u64 l)
{
	u64 record, thread;

	if (!l || l & 7 || !walk_read(w, &record, sizeof(record), l + vm->l_exdata2) || !record || record & 7)
		return 0;
	return walk_read(w, &thread, sizeof(thread), record + LJ_CO_THREAD) && thread == l ? record : 0;
}

/* Can these be the flags of a coroutine (that runs, or waits itself) and of the one that waits for it? */
static inline bool lj_co_fits(u32 flags, u32 parent)
{
	u32 status = flags & LJ_CO_STATUS;

	if (flags >> LJ_CO_BITS || parent >> LJ_CO_BITS || flags & LJ_CO_SPAWNED)
		return false;
	if ((parent & LJ_CO_STATUS) == LJ_CO_NORMAL)
		return status == LJ_CO_RUNNING || status == LJ_CO_NORMAL || status == LJ_CO_SUSPENDED;
	/* in coroutine.yield */
	return (parent & LJ_CO_STATUS) == LJ_CO_RUNNING && status == LJ_CO_SUSPENDED;
}

/* Are the words at these places of both records co_ref and flags of such two? */
LUAJIT_SHARED int luajit_co_fits(struct walk *w, u64 record, u64 parent)
{
	u64 word, other;

	WALK_CHECK(w);
	return walk_read(w, &word, sizeof(word), record) && (u32)word == LJ_CO_NOREF &&
	       walk_read(w, &other, sizeof(other), parent) && lj_co_fits(word >> 32, other >> 32);
}

static inline bool lj_co_waits(struct walk *w, u64 record, u64 parent)
{
	for (u32 i = 0; i < LJ_CO_WORDS; i++)
		if (luajit_co_fits(w, record + LJ_CO_FLAGS + 8 * i, parent + LJ_CO_FLAGS + 8 * i))
			return true;
	return false;
}

/* The coroutine that waits for this one, which runs or waits itself; 0: not known. */
static inline u64 lj_co_parent(struct walk *w, const struct luajit_vm *vm, u64 l)
{
	u64 record = lj_co_record(w, vm, l), parent, ret;

	if (!record || !walk_read(w, &parent, sizeof(parent), record + LJ_CO_PARENT) || !parent || parent & 7)
		return 0;
	if (!walk_read(w, &ret, sizeof(ret), parent + LJ_CO_THREAD) || ret == l || lj_co_record(w, vm, ret) != parent)
		return 0;
	return lj_co_waits(w, record, parent) ? ret : 0;
}

/*
 * Its frames are shown as if this cframe had them: it has none of its own. The cframe must be the outermost of its
 * coroutine, because the cursor becomes the other's.
 */
LUAJIT_SHARED int luajit_waiting(struct walk *w, u64 cf)
{
	const struct luajit_vm *vm;
	struct walk_cursor *c;
	struct lj_thread t;
	u64 g, l, prev;

	WALK_CHECK(w);
	vm = walk_arena_here(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	c = lj_cursor(w);
	if (!vm->l_exdata2 || !walk_read(w, &prev, sizeof(prev), cf + vm->cf_prev) || prev & LUAJIT_CFRAME_MASK)
		return LUAJIT_FRAMES_DONE;
	l = lj_co_parent(w, vm, c->key);
	if (!l || lj_read_thread(w, vm, c->key, &t))
		return LUAJIT_FRAMES_DONE;
	g = t.g;
	if (lj_read_thread(w, vm, l, &t) || t.g != g || t.cframe || !t.steady)
		return LUAJIT_FRAMES_DONE;
	if ((u8)(lj_thread_word(w->scratch, vm->l_status) >> (vm->l_status & 7) * 8) != LJ_YIELDED)
		return LUAJIT_FRAMES_DONE;
	c->key = l;
	c->at = t.base - 8;
	c->more[0] = cf;
	c->more[1] = LUAJIT_PENDING;
	return STOP_NONE;
}
