/* SPDX-License-Identifier: Apache-2.0 */
/* Classes: what their objects need (layout helper, klass.hpp), what distinguishes them, and the offsets of Java fields.
 */
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "hotspot_heap_view.h"

#define CLASSES_MAX     (1u << 18)
#define SUPERS_MAX      64
#define FIELDS_MAX      4096
#define STREAM_MAX      65536
#define ARRAY_DATA      4 /* an int comes before */
#define SLOTS           6 /* u2 a field: flags, name, signature, initial value, low and high part of the offset */
#define ACC_STATIC      8 /* JVM_ACC_STATIC */
#define LH_HEADER_SHIFT 16
#define LH_ELEMENT_MASK 63

bool hotspot_symbol(const struct hotspot_heap_view *h, struct memory *m, u64 symbol, char *ret, size_t size)
{
	u16 length;

	if (!symbol || symbol & 7 || !memory_read(m, &length, 2, symbol + h->l->symbol_length.at) || !length)
		return false;
	if (length > size - 1)
		length = size - 1;
	ret[length] = 0;
	return memory_read(m, ret, length, symbol + h->l->symbol_body.at);
}

static bool has_name(const struct hotspot_heap_view *h, struct memory *m, u64 symbol, const char *name)
{
	char buf[128];

	return hotspot_symbol(h, m, symbol, buf, sizeof(buf)) && strcmp(buf, name) == 0;
}

static bool fill_array(struct hotspot_class *c, s32 helper)
{
	c->kind = SIZE_ARRAY;
	c->size = helper >> LH_HEADER_SHIFT & 0xff;
	c->log2_element = helper & LH_ELEMENT_MASK;
	return c->size >= 12 && c->size <= 32 && !(c->size & 3) && c->log2_element <= 3;
}

/* The lowest bit: allocation takes the slow path, among others because the size is not the same for all. */
static bool fill_instance(struct hotspot_heap_view *h, struct memory *m, struct hotspot_class *c, s32 helper)
{
	char name[64];

	c->size = helper & ~7;
	if (helper == 0 || helper & 1) {
		if (!hotspot_symbol(h, m, c->symbol, name, sizeof(name)))
			return false;
		if (strcmp(name, "java/lang/Class") == 0)
			c->kind = SIZE_MIRROR;
		else if (strcmp(name, "jdk/internal/vm/StackChunk") == 0)
			c->kind = SIZE_STACK_CHUNK;
	}
	if (c->kind == SIZE_STACK_CHUNK && !hotspot_java_field(h, m, c->klass, "size", "I", &c->stack_size_at))
		return false;
	return c->kind == SIZE_MIRROR || (c->size >= 8 && c->size < 1u << 24);
}

static bool fill(struct hotspot_heap_view *h, struct memory *m, u64 klass, struct hotspot_class *c)
{
	char name[2];
	s32 helper;

	*c = (struct hotspot_class){.klass = klass};
	if (!klass || klass & 7 || !memory_read(m, &helper, 4, klass + h->l->klass_layout_helper.at) ||
	        !memory_read(m, &c->symbol, 8, klass + h->l->klass_name.at) ||
	        !hotspot_symbol(h, m, c->symbol, name, sizeof(name)))
		return false;
	if (helper < 0)
		return name[0] == '[' && fill_array(c, helper);
	return name[0] != '[' && fill_instance(h, m, c, helper);
}

static struct hotspot_class *slot_of(struct hotspot_class *table, u32 capacity, u64 klass)
{
	u32 i = (klass >> 3) * 0x9e3779b97f4a7c15ull >> 32 & (capacity - 1);

	while (table[i].klass && table[i].klass != klass)
		i = (i + 1) & (capacity - 1);
	return &table[i];
}

static bool make_room(struct hotspot_heap_view *h)
{
	u32 capacity = h->capacity ? h->capacity * 2 : 1024;
	struct hotspot_class *grown;

	if (h->capacity && h->nclasses < h->capacity / 2)
		return true;
	if (h->nclasses >= CLASSES_MAX) { /* more than any JVM has at once: most are of classes that are gone */
		memset(h->classes, 0, h->capacity * sizeof(*h->classes));
		h->nclasses = 0;
		return true;
	}
	grown = calloc(capacity, sizeof(*grown));
	if (!grown)
		return false;
	for (u32 i = 0; i < h->capacity; i++)
		if (h->classes[i].klass)
			*slot_of(grown, capacity, h->classes[i].klass) = h->classes[i];
	free(h->classes);
	h->classes = grown;
	h->capacity = capacity;
	return true;
}

const struct hotspot_class *hotspot_class_of(struct hotspot_heap_view *h, struct memory *m, u64 klass)
{
	struct hotspot_class *slot, made;

	if (!klass || !make_room(h))
		return NULL;
	slot = slot_of(h->classes, h->capacity, klass);
	if (slot->klass)
		return slot;
	if (!fill(h, m, klass, &made))
		return NULL;
	*slot = made;
	h->nclasses++;
	return slot;
}

void hotspot_classes_forget(struct hotspot_heap_view *h)
{
	if (h->capacity)
		memset(h->classes, 0, h->capacity * sizeof(*h->classes));
	h->nclasses = 0;
}

/* Was this its name when it was looked at? Then the name is one. */
static bool had_name(const struct hotspot_heap_view *h, u64 klass, u64 symbol)
{
	const struct hotspot_class *c = h->capacity ? slot_of(h->classes, h->capacity, klass) : NULL;

	return c && c->klass == klass && c->symbol == symbol;
}

bool hotspot_class_cookie(struct hotspot_heap_view *h, struct memory *m, u64 klass, u32 *ret)
{
	char first[2];
	u64 symbol;

	if (!klass || klass & 7 || !memory_read(m, &symbol, 8, klass + h->l->klass_name.at) ||
	        !(had_name(h, klass, symbol) || hotspot_symbol(h, m, symbol, first, sizeof(first))))
		return false;
	*ret = symbol >> 3;
	return true;
}

/* A Symbol that an entry of an array leads to; 0: none. */
static u64 symbol_at(struct memory *m, u64 symbols, u32 index)
{
	u64 ret;

	return symbols && index && index < 65536 && memory_read(m, &ret, 8, symbols + index * 8ull) ? ret : 0;
}

static bool each_of_array(struct hotspot_heap_view *h, struct memory *m, u64 klass, u64 pool,
        bool (*each)(void *ctx, const struct hotspot_declared *f), void *ctx)
{
	u64 fields, symbols = pool + h->l->pool_size.at;
	u16 count, field[SLOTS];

	if (!memory_read(m, &fields, 8, klass + h->at.fields) ||
	        !memory_read(m, &count, 2, klass + h->at.fields_count) || count > FIELDS_MAX)
		return false;
	fields += h->at.array_data_known ? h->at.array_data : ARRAY_DATA;
	for (u32 i = 0; i < count; i++) {
		struct hotspot_declared f;

		if (!memory_read(m, field, sizeof(field), fields + i * sizeof(field)))
			return false;
		f = (struct hotspot_declared){.name = symbol_at(m, symbols, field[1]),
		        .signature = symbol_at(m, symbols, field[2]),
		        .offset = ((u32)field[5] << 16 | field[4]) >> 2, /* FIELDINFO_TAG_SIZE */
		        .is_static = field[0] & ACC_STATIC};
		if (!each(ctx, &f))
			return true;
	}
	return true;
}

/* UNSIGNED5 (unsigned5.hpp, 20 and later): no byte is zero; digits of 6 bits, and 191 values of a first byte end at
 * once. */
static bool next_uint(const u8 **p, const u8 *end, u32 *ret)
{
	u32 sum = 0;

	for (u32 i = 0; i < 5 && *p < end; i++) {
		u32 byte = *(*p)++;

		if (!byte)
			return false;
		sum += (byte - 1) << 6 * i;
		if (byte - 1 < 191 || i == 4) {
			*ret = sum;
			return true;
		}
	}
	return false;
}

/* The flags of a field that say what follows them (fieldInfo.hpp: _ff_*); 28 has three more before them, for flat
 * values. */
#define FLAGS_BEFORE_28 (1u << 0 | 1u << 2 | 1u << 4) /* initialized, generic, contended */
#define FLAGS_OF_28     (FLAGS_BEFORE_28 << 3)

static bool skip_optional(const u8 **p, const u8 *end, u32 flags)
{
	u32 ignored;

	for (; flags; flags &= flags - 1)
		if (!next_uint(p, end, &ignored))
			return false;
	return true;
}

/*
 * Fields that the VM has added have their names and signatures among the Symbols that it knows itself (fieldInfo.hpp).
 * each NULL: does the stream end where it should? Read by the wrong flags it does not.
 */
static bool each_in_stream(struct hotspot_heap_view *h, struct memory *m, const u8 *p, const u8 *end, u32 optional,
        u64 symbols, bool (*each)(void *ctx, const struct hotspot_declared *f), void *ctx)
{
	u32 count, injected;

	if (!next_uint(&p, end, &count) || !next_uint(&p, end, &injected) || count > FIELDS_MAX ||
	        injected > FIELDS_MAX)
		return false;
	for (u32 i = 0; i < count + injected; i++) {
		u64 names = i < count ? symbols : h->at.vm_symbols;
		u32 v[5]; /* name, signature, offset, access, flags */
		struct hotspot_declared f;

		for (u32 k = 0; k < 5; k++)
			if (!next_uint(&p, end, &v[k]))
				return false;
		if (!skip_optional(&p, end, v[4] & optional))
			return false;
		if (!each)
			continue;
		f = (struct hotspot_declared){.name = symbol_at(m, names, v[0]),
		        .signature = symbol_at(m, names, v[1]),
		        .offset = v[2],
		        .is_static = v[3] & ACC_STATIC};
		if (!each(ctx, &f))
			return true;
	}
	return p == end || !*p;
}

static bool each_of_stream(struct hotspot_heap_view *h, struct memory *m, u64 klass, u64 pool,
        bool (*each)(void *ctx, const struct hotspot_declared *f), void *ctx)
{
	u64 stream, symbols = pool + h->l->pool_size.at;
	cleanup(free) u8 *bytes = NULL;
	u32 length, optional;

	if (!memory_read(m, &stream, 8, klass + h->at.fieldinfo) || !memory_read(m, &length, 4, stream) ||
	        length > STREAM_MAX || !(bytes = malloc(length + 1)) ||
	        !memory_read(m, bytes, length, stream + (h->at.array_data_known ? h->at.array_data : ARRAY_DATA)))
		return false;
	optional = each_in_stream(h, m, bytes, bytes + length, FLAGS_BEFORE_28, 0, NULL, NULL) ? FLAGS_BEFORE_28
	                                                                                       : FLAGS_OF_28;
	return each_in_stream(h, m, bytes, bytes + length, optional, symbols, each, ctx);
}

bool hotspot_each_field(struct hotspot_heap_view *h, struct memory *m, u64 klass,
        bool (*each)(void *ctx, const struct hotspot_declared *f), void *ctx)
{
	u64 pool;

	return memory_read(m, &pool, 8, klass + h->at.constants) && pool &&
	       (h->at.fieldinfo ? each_of_stream : each_of_array)(h, m, klass, pool, each, ctx);
}

struct wanted {
	struct hotspot_heap_view *h;
	struct memory *m;
	const char *name, *signature;
	u32 offset;
	bool found;
};

static bool is_another(void *ctx, const struct hotspot_declared *f)
{
	struct wanted *w = ctx;

	if (!has_name(w->h, w->m, f->name, w->name) || !has_name(w->h, w->m, f->signature, w->signature))
		return true;
	w->offset = f->offset;
	w->found = true;
	return false;
}

bool hotspot_java_field(
        struct hotspot_heap_view *h, struct memory *m, u64 klass, const char *name, const char *signature, u32 *offset)
{
	struct wanted w = {.h = h, .m = m, .name = name, .signature = signature};

	hotspot_each_field(h, m, klass, is_another, &w);
	if (!w.found)
		return false;
	*offset = w.offset;
	return *offset >= 8 && *offset < 4096;
}

u64 hotspot_super_named(struct hotspot_heap_view *h, struct memory *m, u64 klass, const char *name)
{
	u64 symbol;

	for (u32 i = 0; i < SUPERS_MAX && klass && !(klass & 7); i++) {
		if (!memory_read(m, &symbol, 8, klass + h->l->klass_name.at))
			return 0;
		if (has_name(h, m, symbol, name))
			return klass;
		if (!memory_read(m, &klass, 8, klass + h->at.super))
			return 0;
	}
	return 0;
}
