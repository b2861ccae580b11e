/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_states.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "binary/resident.h"
#include "cleanup.h"

#define LUA_THREAD  8
#define COLLECTABLE 0x40 /* from 5.2 on, in the type of a main thread */
#define NEAR        1024 /* between a main thread and its global_State */
#define STATE       2048 /* bytes of a global_State that are looked at */
#define PIECE       (1u << 20)
#define SEARCH      (8ull << 30)
#define PAGE        4096u
#define PAGES       1024u
#define OBJECTS_MAX (1u << 26)
#define HEAD        16 /* bytes of an object: CommonHeader */

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

/* Pages that were read. */
struct pages {
	struct memory *memory;
	u64 addr[PAGES]; /* | 1: it was read */
	u8 bytes[PAGES][PAGE];
};

/* The head of an object, which may lie across two pages. */
static bool read_head(struct pages *c, u64 addr, u8 head[HEAD])
{
	u64 page = addr & ~(u64)(PAGE - 1);
	u32 i = (u32)(page / PAGE % PAGES);

	if (addr - page > PAGE - HEAD)
		return memory_read(c->memory, head, HEAD, addr);
	if (c->addr[i] != (page | 1)) {
		c->addr[i] = 0;
		if (!memory_read(c->memory, c->bytes[i], PAGE, page))
			return memory_read(c->memory, head, HEAD, addr);
		c->addr[i] = page | 1;
	}
	memcpy(head, c->bytes[i] + (addr - page), HEAD);
	return true;
}

/* global_State.rootgc, allgc (lstate.h) */
static u32 list_of(u32 version)
{
	return version == 501 ? 40 : version == 502 ? 96 : version == 503 ? 88 : 112;
}

struct error *lua_objects(const struct lua_image *image, const struct runtime_process *p, u64 g, u8 type,
        struct error *(*add)(void *ctx, u64 object), void *ctx)
{
	cleanup(free) struct pages *pages = calloc(1, sizeof(*pages));
	u32 tt = image->layout->l_tt.at;
	struct error *err = NULL;
	u8 head[HEAD];
	u64 at;

	if (!pages)
		return &error_no_memory;
	pages->memory = p->memory;
	if (tt >= HEAD || !memory_read(p->memory, &at, sizeof(at), g + list_of(image->vm.version)))
		return NULL;
	for (u32 i = 0; !err && at && !(at & 7) && i < OBJECTS_MAX && read_head(pages, at, head); i++) {
		if (head[tt] == type)
			err = add(ctx, at);
		at = word_at(head);
	}
	return err;
}
