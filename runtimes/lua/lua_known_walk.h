/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The Proto of a caller, by what was found before: in this walk (struct lua_call), or in an earlier one (walk_cache).
 *
 * A caller's closure and position identify its Proto. What an earlier walk left is true if the Proto there is the same
 * still, and has the position in its code, where a caller's lies as long as it is called. In 5.1 CallInfos of functions
 * in C have the position of an earlier call: if a closure in C has taken the place of one in Lua since, its slots tell
 * (ldo.c: a function in Lua has Proto.maxstacksize of them, one in C its arguments and LUA_MINSTACK, 20). The
 * instruction in front of the position was a call, which a Proto's code keeps.
 */
#ifndef YRT_LUA_KNOWN_WALK_H
#define YRT_LUA_KNOWN_WALK_H

#include "lua_walk.h"

#define LUA_KNOWN_TAG 19 /* bits of a walk_cache's value; the others: the Proto's address / 8 */

/* Keeps what is in scratch, that of the function which was pushed. */
static inline void lua_remember(const struct walk *w, const struct lua_vm *vm, struct lua_call *call, u64 proto)
{
	call->code = lua_word(w, vm->p_code);
	call->size = lua_int(w, vm->p_sizecode);
	call->cookie =
	        lua_cookie(call->code, call->size, lua_int(w, vm->p_linedefined), lua_int(w, vm->p_lastlinedefined));
	call->proto = proto;
	call->known = call->closure;
}

static inline u64 lua_known_key(const struct walk *w, const struct lua_call *call)
{
	return walk_mix(walk_mix(w->region.vm, call->closure), call->pc);
}

static inline u64 lua_known_value(u64 key, const struct lua_call *call)
{
	return call->proto >> 3 << LUA_KNOWN_TAG | (walk_mix(key, call->cookie) & ((1ull << LUA_KNOWN_TAG) - 1));
}

/* For later walks, if its Proto was read just now and lasts. */
WALK_GLOBAL int lua_leave_known(struct walk *w, const struct lua_call *call)
{
	struct walk_cache *cached;
	u64 key;

	WALK_CHECK(w);
	WALK_CHECK(call);
	if (!call->lasts || call->known != call->closure)
		return false;
	key = lua_known_key(w, call);
	cached = walk_cache(w, (u32)(key >> 32));
	if (!cached || call->proto & 7 || call->proto >> (64 - LUA_KNOWN_TAG + 3))
		return false;
	cached->key = key;
	cached->value = lua_known_value(key, call);
	return true;
}

/* Has an earlier walk found the Proto of the function at call->closure? Then call has what is known of it. */
WALK_GLOBAL int lua_find_known(struct walk *w, struct lua_call *call)
{
	const struct lua_vm *vm;
	struct walk_cache *cached;
	u64 key, value, proto;

	WALK_CHECK(w);
	WALK_CHECK(call);
	vm = walk_arena(w, w->region.vm);
	key = lua_known_key(w, call);
	cached = walk_cache(w, (u32)(key >> 32));
	if (!vm || !cached || cached->key != key)
		return false;
	value = cached->value;
	proto = value >> LUA_KNOWN_TAG << 3;
	if (!walk_read(w, w->scratch, LUA_OBJECT, proto))
		return false;
	if (vm->cl_is_c && (!vm->p_maxstacksize || lua_byte(w, vm->p_maxstacksize) != call->slots))
		return false;
	lua_remember(w, vm, call, proto);
	if (lua_known_value(key, call) != value) {
		call->known = 0;
		return false;
	}
	call->follows = call->pc;
	return true;
}
#endif
