/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_states.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "binary/resident.h"
#include "cleanup.h"
#include "runtimes/lua_common/lua_list.h"

#define LUA_THREAD  8
#define COLLECTABLE 0x40 /* from 5.2 on, in the type of a main thread */
#define NEAR        1024 /* between a main thread and its global_State */
#define STATE       2048 /* bytes of a global_State that are looked at */
#define PIECE       (1u << 20)
#define SEARCH      (8ull << 30)

static u64 word_at(const u8 *bytes)
{
	u64 word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

static bool points_back(const struct runtime_process *p, u64 g, u64 thread)
{
	u64 words[STATE / 8];

	if (!memory_read(p->memory, words, sizeof(words), g))
		return false;
	for (u32 i = 0; i < STATE / 8; i++)
		if (words[i] == thread)
			return true;
	return false;
}

struct search {
	const struct runtime_process *p;
	u32 tt, g;
	void (*each)(void *ctx, u64 thread, u64 g);
	void *ctx;
};

static void search_piece(const struct search *s, const u8 *bytes, u64 start, u64 size)
{
	for (u64 at = 0; at + s->g + 8 <= size; at += 8) {
		u64 g;

		if (bytes[at + s->tt] != LUA_THREAD && bytes[at + s->tt] != (LUA_THREAD | COLLECTABLE))
			continue;
		g = word_at(bytes + at + s->g);
		if (g > start + at && g - start - at < NEAR && points_back(s->p, g, start + at))
			s->each(s->ctx, start + at, g);
	}
}

struct error *lua_states(const struct lua_image *image, const struct runtime_process *p,
        void (*each)(void *ctx, u64 thread, u64 g), void *ctx)
{
	struct search s = {.p = p, .tt = image->layout->l_tt.at, .g = image->layout->l_g.at, .each = each, .ctx = ctx};
	struct resident *resident = malloc(sizeof(*resident));
	cleanup(free) u8 *bytes = malloc(PIECE);
	u64 left = SEARCH;

	if (!resident || !bytes) {
		free(resident);
		return &error_no_memory;
	}
	resident_open(resident, p->pid);
	for (u32 i = 0; i < p->nmappings; i++) {
		const struct mapping *m = &p->mappings[i];
		u64 at = m->start, from, to;

		if (!m->anonymous || !(m->prot & PROT_WRITE))
			continue;
		while (left > PIECE && resident_next(resident, at, m->end, PIECE, &from, &to)) {
			if (memory_read(p->memory, bytes, to - from, from))
				search_piece(&s, bytes, from, to - from);
			left -= to - from;
			at = to;
		}
	}
	resident_close(resident);
	free(resident);
	return NULL;
}

/* global_State.rootgc, allgc (lstate.h) */
static u32 list_of(u32 version)
{
	return version == 501 ? 40 : version == 502 ? 96 : version == 503 ? 88 : 112;
}

struct error *lua_objects(const struct lua_image *image, const struct runtime_process *p, u64 g, u8 type,
        struct error *(*add)(void *ctx, u64 object), void *ctx)
{
	const struct lua_list list = {.root = g + list_of(image->vm.version),
	        .word = sizeof(u64),
	        .type_at = image->layout->l_tt.at,
	        .type = type,
	        .last = UINT8_MAX};
	cleanup(free) u64 *found = NULL;
	bool all;
	u32 n;
	struct error *err = lua_list_read(&list, p->memory, &found, &n, &all);

	for (u32 i = 0; !err && i < n; i++)
		err = add(ctx, found[i]);
	return err;
}
