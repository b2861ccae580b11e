/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a Perl in a test's own memory: one arena, two packages, an object, a program with a variable. */
#ifndef YRT_PERL_HEAP_FAKE_H
#define YRT_PERL_HEAP_FAKE_H

#include <string.h>

#include "heap/heap.h"
#include "perl_fake.h"
#include "runtimes/perl/perl_heap.h"

#define VALUES_BASE   0x100000ull
#define VALUES_BYTES  0x4000u
#define VALUES_INTERP VALUES_BASE
#define VALUES_ARENA  (VALUES_BASE + 0x400)
#define VALUES_N      32
#define VALUES_ROOM   (VALUES_ARENA + 24 * VALUES_N)

enum { MAIN = 1, CACHE, REFERENCE, POINT, TEXT, POINT_STASH, PROGRAM, PROGRAM_PAD, VARIABLE, LOST };

struct values {
	struct memory memory;
	u8 bytes[VALUES_BYTES];
	u64 next;
	u32 reads, fail_at; /* fail_at: the number of a read that fails; 0: none */
	struct perl_layout layout;
	struct perl_image image;
};

static bool values_read(struct memory *memory, void *dst, size_t size, uint64_t addr)
{
	struct values *v = (struct values *)memory;

	if (++v->reads == v->fail_at || addr < VALUES_BASE || addr - VALUES_BASE > VALUES_BYTES ||
	        size > VALUES_BYTES - (addr - VALUES_BASE))
		return false;
	memcpy(dst, v->bytes + (addr - VALUES_BASE), size);
	return true;
}

static void values64(struct values *v, u64 at, u64 word)
{
	memcpy(v->bytes + (at - VALUES_BASE), &word, 8);
}

static u64 values_room(struct values *v, u64 size)
{
	u64 at = v->next;

	v->next += (size + 7) & ~7ull;
	return at;
}

static u64 values_sv(u32 i)
{
	return VALUES_ARENA + 24ull * i;
}

static void values_put(struct values *v, u32 i, u64 body, u32 flags, u64 own)
{
	values64(v, values_sv(i), body);
	values64(v, values_sv(i) + 8, 1 | (u64)flags << 32);
	values64(v, values_sv(i) + 16, own);
}

static u64 values_hek(struct values *v, const char *text)
{
	u64 at = values_room(v, 9 + strlen(text));

	values64(v, at, (u64)strlen(text) << 32);
	memcpy(v->bytes + (at - VALUES_BASE) + 8, text, strlen(text));
	return at;
}

/* A hash of at most one entry. key NULL: none. */
static void values_hash(struct values *v, u32 i, u32 flags, const char *name, const char *key, u64 value)
{
	u64 body = values_room(v, 96), buckets = values_room(v, 8), entry = values_room(v, 24);

	values64(v, body + 16, key != NULL);
	if (name)
		values64(v, body + 32, values_hek(v, name));
	if (key) {
		values64(v, buckets, entry);
		values64(v, entry + 8, values_hek(v, key));
		values64(v, entry + 16, value);
	}
	values_put(v, i, body, 12 | flags | (name ? 0x02000000u : 0), buckets);
}

static void values_program(struct values *v)
{
	u64 cv = values_room(v, 104), list = values_room(v, 16), pads = values_room(v, 16), names = values_room(v, 16),
	    padnames = values_room(v, 16), name = values_room(v, 8), text = values_room(v, 8), pad = values_room(v, 40),
	    items = values_room(v, 16);

	values64(v, cv + 72, list);
	values64(v, list, 1);
	values64(v, list + 8, pads);
	values64(v, pads, names);
	values64(v, pads + 8, values_sv(PROGRAM_PAD));
	values64(v, names, 1);
	values64(v, names + 8, padnames);
	values64(v, padnames + 8, name);
	values64(v, name, text);
	memcpy(v->bytes + (text - VALUES_BASE), "$it", 4);
	values64(v, pad + 16, 1);
	values64(v, pad + 24, 1);
	values64(v, items + 8, values_sv(VARIABLE));
	values_put(v, PROGRAM, cv, 13, 0);
	values_put(v, PROGRAM_PAD, pad, 11 | 0x40000000u, items);
	values_put(v, VARIABLE, 0, 0, 0);
}

static void values_make(struct values *v)
{
	u64 text, body, gp;

	memset(v, 0, sizeof(*v));
	v->memory.read = values_read;
	v->next = VALUES_ROOM;
	v->layout = perl_fake_layout();
	v->image = (struct perl_image){.layout = &v->layout, .build = {5, 36, 0, 256, ""}, .vm.multiple = true};
	for (u32 i = 1; i < VALUES_N; i++)
		values64(v, values_sv(i) + 8, 0xffull << 32);
	values64(v, VALUES_ARENA + 8, VALUES_N);
	values64(v, VALUES_INTERP + 40, VALUES_ARENA);
	values64(v, VALUES_INTERP + 56, values_sv(MAIN));
	values64(v, VALUES_INTERP + 72, values_sv(PROGRAM));
	values_hash(v, MAIN, 0, "main", "cache", values_sv(CACHE));
	gp = values_room(v, 56);
	values64(v, gp, values_sv(REFERENCE));
	values_put(v, CACHE, values_room(v, 48), 9, gp);
	values_put(v, REFERENCE, 0, 1 | 0x800, values_sv(POINT));
	values_hash(v, POINT, 0x00100000u, NULL, "x", values_sv(TEXT));
	values64(v, v->next, 0);
	memcpy(&body, v->bytes + (values_sv(POINT) - VALUES_BASE), 8);
	values64(v, body, values_sv(POINT_STASH));
	text = values_room(v, 16);
	body = values_room(v, 32);
	values64(v, body + 16, 5);
	values64(v, body + 24, 16);
	values_put(v, TEXT, body, 3 | 0x4400, text);
	values_hash(v, POINT_STASH, 0, "Point", NULL, 0);
	values_program(v);
	values_put(v, LOST, values_room(v, 40), 11 | 0x40000000u, 0);
}

static struct error *values_open(void *instance, const struct runtime_process *p, struct heap *h, void **ret)
{
	return perl_heap_open(instance, 0, VALUES_INTERP, p, h, ret);
}

static const struct runtime_heap_ops values_ops = {.objects = "values",
        .open = values_open,
        .close = perl_heap_close,
        .roots = perl_heap_roots,
        .object = perl_heap_object,
        .blocks = perl_heap_blocks,
        .blocks_are_all = true};

/* live: from the roots. *err: of heap_read(). */
static struct heap *values_heap(struct values *v, bool live, struct error **err)
{
	struct heap_options o = {.memory = 4 << 20, .references = live};
	struct runtime_process p = {.memory = &v->memory};
	struct heap *h;
	bool found;

	if (heap_create(&v->memory, 0, &o, &h))
		abort();
	*err = heap_read(h, &values_ops, &v->image, &p, &found);
	return h;
}

#endif
