/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_list.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "sort_keys.h"

#define OBJECTS_MAX (1u << 26)
#define TRIES       16
#define PAGE        4096u
#define PAGES       8192 /* power of two */
#define HEAD        16   /* of an object: next, marks, type */

/* Memory by the page, for the length of one reading. */
struct pages {
	struct memory *memory;
	u64 number[PAGES]; /* + 1; 0: none */
	u8 bytes[PAGES][PAGE];
};

struct found {
	u64 *of;
	u32 n;
};

static const u8 *page_at(struct pages *c, u64 addr)
{
	u64 page = addr / PAGE, slot = page * 0x9e3779b97f4a7c15ull >> 51;

	if (c->number[slot] == page + 1)
		return c->bytes[slot];
	c->number[slot] = 0;
	if (!memory_read(c->memory, c->bytes[slot], PAGE, page * PAGE))
		return NULL;
	c->number[slot] = page + 1;
	return c->bytes[slot];
}

/* Objects are aligned to 8 bytes, so a head may be on two pages. */
static bool read_head(struct pages *c, u64 addr, u8 head[HEAD])
{
	const u8 *bytes = addr % PAGE <= PAGE - HEAD ? page_at(c, addr) : NULL;

	if (!bytes)
		return memory_read(c->memory, head, HEAD, addr);
	memcpy(head, bytes + addr % PAGE, HEAD);
	return true;
}

/* *all: it came to the end. A list that is torn ends at what is no object, leads elsewhere, or round. */
static struct error *read_once(const struct lua_list *l, struct pages *c, struct found *f, bool *all)
{
	struct error *err = NULL;
	u64 at = 0, seen = 0;
	u8 head[HEAD], current = 0;

	if (!memory_read(c->memory, &at, l->word, l->root) ||
	        (l->current && !memory_read(c->memory, &current, sizeof(current), l->current)))
		return NULL;
	for (u32 i = 0; !err && i < OBJECTS_MAX && at != l->end && at && !(at & 7); i++) {
		u8 type, marks;

		if (at == seen || !read_head(c, at, head))
			return NULL;
		type = head[l->type_at];
		marks = head[l->type_at - 1];
		if (type < l->first || type > l->last)
			return NULL;
		if (!(i & (i - 1)))
			seen = at;
		if (type == l->type && !(l->current && marks & ~current & l->dead)) {
			err = grow(&f->of, f->n, sizeof(*f->of));
			if (!err)
				f->of[f->n++] = at;
		}
		at = 0;
		memcpy(&at, head, l->word);
	}
	*all = at == l->end;
	return err;
}

static void sort(struct found *f)
{
	u32 n = 0;

	if (f->n)
		sort_keys(f->of, f->n, sizeof(*f->of));
	for (u32 i = 0; i < f->n; i++)
		if (!n || f->of[n - 1] != f->of[i])
			f->of[n++] = f->of[i];
	f->n = n;
}

struct error *lua_list_read(const struct lua_list *l, struct memory *memory, u64 **ret, u32 *n, bool *all)
{
	struct found f = {0};
	struct pages *c = calloc(1, sizeof(*c));
	struct error *err = c ? NULL : &error_no_memory;
	bool valid = l->type_at > 0 && l->type_at < HEAD && (l->word == 4 || l->word == 8);

	*all = false;
	for (u32 i = 0; !err && valid && !*all && i < TRIES; i++) {
		memset(c->number, 0, sizeof(c->number));
		c->memory = memory;
		memory_forget(memory);
		err = read_once(l, c, &f, all);
		sort(&f);
	}
	free(c);
	if (err) {
		free(f.of);
		return err;
	}
	*ret = f.of;
	*n = f.n;
	return NULL;
}
