/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_script.h"

#include <ctype.h>
#include <stdio.h>
#include <time.h>

#include "now.h"

#define LOOK_NS        100000000ull  /* at one function */
#define ALL_NS         2000000000ull /* at all of them together */
#define PAUSE_NS       100000
#define LIGHT_USERDATA 2

void lua_script_see(struct lua_script *s, u64 state, u64 at, u64 key)
{
	u32 i = 0;

	while (i < s->n && s->state[i].state != state)
		i++;
	if (i == LUA_SCRIPT_STATES)
		return;
	s->n += i == s->n;
	s->state[i].state = state;
	s->state[i].at = at;
	s->state[i].key = key;
}

static bool read_word(struct memory *mem, u64 at, u64 *ret)
{
	return memory_read(mem, ret, sizeof(*ret), at);
}

/* The Proto of the function that the main lua_State was entered with, unless a tail call has replaced it; 0: none. */
static u64 running(const struct lua_image *image, struct memory *mem, u64 state)
{
	const struct lua_layout *l = image->layout;
	u64 thread, ci, base, func, closure, proto;
	u32 tails;

	/* lstate.h of 5.1: mainthread is right behind l_registry */
	if (!read_word(mem, state + l->g_registry.at + 16u, &thread) || !read_word(mem, thread + l->l_ci.at, &ci) ||
	        !read_word(mem, thread + l->l_base_ci.at, &base) || ci <= base)
		return 0;
	ci = base + image->vm.ci_size;
	if (!read_word(mem, ci + image->vm.ci_func, &func) ||
	        !memory_read(mem, &tails, sizeof(tails), ci + image->vm.ci_status) || tails ||
	        !read_word(mem, func, &closure) || !read_word(mem, closure + image->vm.cl_p, &proto))
		return 0;
	return proto;
}

/* Its struct scriptRunCtx; 0: none. */
static u64 context(struct memory *mem, u64 at, u64 key)
{
	u64 pair[3]; /* Node of 5.1: value, its type, key */

	return memory_read(mem, pair, sizeof(pair), at) && (u8)pair[1] == LIGHT_USERDATA && pair[2] == key ? pair[0]
	                                                                                                   : 0;
}

static bool read_name(struct memory *mem, u64 at, char *ret, size_t size)
{
	size_t n = 0;

	if (!memory_string(mem, ret, size, at))
		return false;
	while (isalnum((u8)ret[n]) || ret[n] == '_')
		n++;
	return n && !ret[n];
}

/* Valkey has another pointer in front, to what begins with a pointer, too. */
static bool read_either(struct memory *mem, u64 ctx, char *ret, size_t size)
{
	u64 words[2];

	return memory_read(mem, words, sizeof(words), ctx) &&
	       (read_name(mem, words[0], ret, size) || read_name(mem, words[1], ret, size));
}

static bool look(const struct lua_script *s, u32 i, const struct lua_image *image, struct memory *mem, u64 proto,
        char *ret, size_t size)
{
	u64 ctx = context(mem, s->state[i].at, s->state[i].key);

	return ctx && running(image, mem, s->state[i].state) == proto && read_either(mem, ctx, ret, size) &&
	       running(image, mem, s->state[i].state) == proto && context(mem, s->state[i].at, s->state[i].key) == ctx;
}

bool lua_script_may_look(const struct lua_script *s)
{
	return s->spent_ns <= ALL_NS;
}

bool lua_script_find(struct lua_script *s, const struct lua_image *image, struct memory *mem, u64 proto, u32 cookie,
        char *ret, size_t size)
{
	u64 start = now_ns(), now = start;
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	u32 k = 0;
	bool found = false;

	while (k < s->nfound && (s->found[k].proto != proto || s->found[k].cookie != cookie))
		k++;
	if (k == s->nfound && (!s->n || k == LUA_SCRIPTS || image->vm.version != 501 || !lua_script_may_look(s)))
		return false;
	for (; k == s->nfound && !found && now - start < LOOK_NS; now = now_ns()) {
		for (u32 i = 0; i < s->n && !found; i++)
			found = look(s, i, image, mem, proto, s->found[k].name, LUA_SCRIPT_NAME);
		if (!found)
			nanosleep(&pause, NULL); /* it may want this CPU */
	}
	s->spent_ns += now - start;
	if (found) {
		s->found[k].proto = proto;
		s->found[k].cookie = cookie;
		s->nfound++;
	}
	if (k < s->nfound)
		snprintf(ret, size, "%s", s->found[k].name);
	return k < s->nfound;
}
