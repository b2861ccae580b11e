/* SPDX-License-Identifier: Apache-2.0 */
#include "go_places.h"

#include <arch.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "go_names.h"
#include "grow.h"

#define TEXT_MAX (1u << 30)

static u64 key_of(u64 pc)
{
	u64 key = pc * 0x9e3779b97f4a7c15ULL;

	return key ? key : 1;
}

static struct error *add_text(struct go_places *p, const char *s, u32 *ret)
{
	u32 len = (u32)strlen(s) + 1, room = p->size ? 64 - (u32)__builtin_clzll(p->size) : 0,
	    want = 64 - (u32)__builtin_clzll((u64)p->size + len);
	char *grown;

	if (p->size > TEXT_MAX)
		return error_new(ERROR_LOST, "names of too many places");
	if (want > room) { /* capacity: the power of two above what is there */
		grown = realloc(p->text, 1ULL << want);
		if (!grown)
			return &error_no_memory;
		p->text = grown;
	}
	*ret = p->size;
	for (u32 i = 0; i < len; i++) /* lines stay lines, whatever a name holds */
		p->text[p->size + i] = s[i] == '\n' || s[i] == '\t' ? '?' : s[i];
	p->size += len;
	return NULL;
}

static struct error *add_place(struct go_places *p, struct go_place place, const char *name, const char *file)
{
	struct error *err = grow(&p->places, p->n, sizeof(*p->places));

	if (!err)
		err = add_text(p, name, &place.name);
	if (!err)
		err = add_text(p, file, &place.file);
	if (!err)
		p->places[p->n++] = place;
	return err;
}

/* back: how far the first place is before its pc. */
static struct error *add_functions(
        struct go_places *p, struct go_table *t, u64 bias, const struct frame *frames, u32 n, u32 back)
{
	cleanup(free) struct frame_name *name = calloc(1, sizeof(*name));
	struct error *err = name ? NULL : &error_no_memory;
	struct go_function fn;

	for (u32 i = 0; !err && i < n; i++) {
		u64 addr = frame_addr(&frames[i]);
		bool found = go_function_find(t, addr - bias, &fn);

		if (found)
			addr = go_frame_place(t, &fn, addr - bias, (u32)frames[i].detail) + bias;
		struct go_place place = {
		        .pc = addr + (i ? ARCH_CALL_BACK : back), .entry = found ? fn.start + bias : addr};

		memset(name, 0, sizeof(*name));
		if (!go_name_frame(t, bias, &frames[i], name))
			snprintf(name->name, sizeof(name->name), "0x%lx", addr);
		place.line = name->line;
		place.definition = name->definition;
		place.inlined = frame_flags(&frames[i]) & FRAME_INLINED;
		place.wrapper =
		        go_is_wrapper(name->name, name->file) || (found && !place.inlined && fn.id == go_wrapper_id(t));
		err = add_place(p, place, name->name, name->file);
	}
	return err;
}

/* The table of the file that a mapping is of: opened at the first place in it. */
static struct error *table_at(struct go_places *p, const struct mapping *m, struct go_table **ret)
{
	struct error *err;

	*ret = NULL;
	if (!m || !m->image)
		return NULL;
	for (u32 i = 0; i < p->nfiles; i++)
		if (p->file[i].img == m->image) {
			*ret = p->file[i].table;
			return NULL;
		}
	if (p->nfiles == GO_PLACES_FILES)
		return NULL;
	err = go_table_open(m->image, ret);
	if (err && err != &error_no_memory) { /* the probe says so */
		error_free(err);
		err = NULL;
	}
	p->file[p->nfiles].img = m->image;
	p->file[p->nfiles++].table = *ret;
	return err;
}

/* A function's first instruction is behind no call: up to 1.12 mstart() stands so below systemstack(). */
static bool is_entry(struct go_table *t, u64 addr)
{
	struct go_function fn;

	return go_function_find(t, addr, &fn) && fn.start == addr;
}

struct error *go_places_add(struct go_places *p, u64 pc)
{
	struct frame at = {0}, frames[GO_INLINED_MAX + 1];
	const struct mapping *m = mapping_find(p->p->mappings, p->p->nmappings, pc - ARCH_CALL_BACK);
	struct go_place elsewhere = {.pc = pc, .entry = pc};
	u32 first = p->n, n = 0, back = ARCH_CALL_BACK;
	struct go_table *t;
	char text[32];
	struct error *err;

	if (table_get(&p->known, key_of(pc)))
		return NULL;
	err = table_at(p, m, &t);
	if (err)
		return err;
	if (t)
		back = is_entry(t, pc - m->bias) ? 0 : ARCH_CALL_BACK;
	at.where = frame_where(FRAME_NATIVE, RUNTIME_NATIVE, back ? FRAME_RETADDR : 0, pc);
	if (t)
		n = go_expand_frame(t, m->bias, &at, frames, GO_INLINED_MAX + 1);
	snprintf(text, sizeof(text), "0x%lx", pc);
	err = n ? add_functions(p, t, m->bias, frames, n, back) : add_place(p, elsewhere, text, "");
	return err ? err : table_put(&p->known, key_of(pc), (u64)first << 8 | (p->n - first));
}

struct error *go_places_read(struct go_places *p, const struct go_stacks *stacks)
{
	struct error *err = NULL;

	p->p = stacks->p;
	for (u32 i = 0; !err && i < stacks->npcs; i++)
		err = go_places_add(p, stacks->pcs[i]);
	return err;
}

void go_places_free(struct go_places *p)
{
	for (u32 i = 0; i < p->nfiles; i++)
		go_table_close(p->file[i].table);
	table_free(&p->known);
	free(p->places);
	free(p->text);
}

const struct go_place *go_places_at(const struct go_places *p, u64 pc, u32 *n)
{
	const u64 *found = table_get(&p->known, key_of(pc));

	*n = found ? (u32)*found & 0xff : 0;
	return found ? &p->places[*found >> 8] : NULL;
}

const char *go_place_name(const struct go_places *p, const struct go_place *at)
{
	return p->text + at->name;
}

const char *go_place_file(const struct go_places *p, const struct go_place *at)
{
	return p->text + at->file;
}

bool go_is_runtime(const char *name)
{
	return !strncmp(name, "runtime.", 8) || !strncmp(name, "internal/runtime/", 17);
}
