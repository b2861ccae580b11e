/* SPDX-License-Identifier: Apache-2.0 */
/* Go's own descriptions of types (internal/abi/type.go), which a stripped program has too, and DWARF's. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "go_refs_internal.h"
#include "grow.h"

#define DEPTH_MAX   16
#define SLOTS_MAX   4096
#define FIELDS_MAX  4096
#define TYPES_MAX   (1u << 20)
#define LABEL_BYTES 128
#define NAME_BYTES  256
#define TYPE_BYTES  72
#define FIELD_BYTES 24
#define SIZE_MAX_OF (1ull << 40)
#define KINDS       31 /* of Kind_ */
#define DIRECTORY   ".dirPtr"

#define DW_AT_GO_RUNTIME_TYPE 0x2904 /* cmd/internal/dwarf/dwarf.go */
#define BY_DWARF              (1ull << 63)

enum { ARRAY = 17, CHAN, FUNC, INTERFACE, MAP, POINTER, SLICE, STRING, STRUCT, UNSAFE_POINTER };

/* abi.Type, and the words behind it: Elem; Slice, Len of an array; PkgPath, Fields of a structure. */
struct description {
	u64 size, pointers; /* the last pointer ends there */
	u8 kind;
	u64 more[3];
};

static bool describe(struct go_refs *r, u64 type, struct description *ret)
{
	const u8 *bytes;

	if (type < r->module.types || type >= r->module.etypes || type & 7)
		return false;
	bytes = heap_bytes(r->h, type, TYPE_BYTES);
	if (!bytes)
		return false;
	memcpy(&ret->size, bytes, 8);
	memcpy(&ret->pointers, bytes + 8, 8);
	ret->kind = bytes[23] & KINDS;
	memcpy(ret->more, bytes + 48, 24);
	return ret->kind && ret->kind <= UNSAFE_POINTER && ret->size < SIZE_MAX_OF && ret->pointers <= ret->size;
}

struct flattening {
	struct go_refs *r;
	struct go_type *t;
	const char *name; /* the type's */
	u32 steps;        /* fields and elements that were looked at */
	struct error *err;
};

/*
 * What maps consist of, by names that no program can give: entries are drawn as such, and what holds them belongs to
 * the map (internal/runtime/maps: 1.24 and later; runtime/map.go before).
 */
static const struct {
	const char *type, *label, *drawn; /* drawn: NULL: as a part of the map */
} in_maps[] = {
        {"map<", DIRECTORY, NULL},
        {"*table<", "", NULL},
        {"table<", ".groups.data", NULL},
        {"map.group[", ".slots[].key", "{key}"},
        {"map.group[", ".slots[].elem", "{}"},
        {"hash<", ".buckets", NULL},
        {"hash<", ".oldbuckets", NULL},
        {"bucket<", ".overflow", NULL},
        {"bucket<", ".keys[]", "{key}"},
        {"bucket<", ".values[]", "{}"},
};

static u32 label_of(struct flattening *f, const char *label)
{
	char text[LABEL_BYTES];

	for (size_t i = 0; i < sizeof(in_maps) / sizeof(*in_maps); i++) {
		size_t n = strlen(in_maps[i].label);

		if (!strstr(f->name, in_maps[i].type) || strncmp(label, in_maps[i].label, n) != 0 ||
		        isalnum((unsigned char)label[n]) || (!n && *label))
			continue;
		if (!in_maps[i].drawn)
			return heap_label(f->r->h, label) | HEAP_PART;
		snprintf(text, sizeof(text), "%s%s", in_maps[i].drawn, label + n);
		return heap_label(f->r->h, text);
	}
	return heap_label(f->r->h, label);
}

static void add_slot(struct flattening *f, u64 at, enum go_slot_kind kind, u64 to, const char *label)
{
	struct go_type *t = f->t;

	if (t->nslots >= SLOTS_MAX || at > UINT32_MAX) {
		t->whole = false;
		return;
	}
	f->err = grow(&t->slots, t->nslots, sizeof(*t->slots));
	if (!f->err)
		t->slots[t->nslots++] = (struct go_slot){(u32)at, label_of(f, label), kind, to};
}

static void flatten(struct flattening *f, u64 type, u64 at, const char *label, u32 depth);

static void flatten_fields(struct flattening *f, const struct description *d, u64 at, const char *label, u32 depth)
{
	for (u64 i = 0; i < d->more[2] && !f->err; i++) {
		char text[LABEL_BYTES], name[LABEL_BYTES / 2];
		const void *bytes = heap_bytes(f->r->h, d->more[1] + i * FIELD_BYTES, FIELD_BYTES);
		u64 field[3];

		if (!bytes || i >= FIELDS_MAX) {
			f->t->whole = false;
			return;
		}
		memcpy(field, bytes, sizeof(field));
		go_type_text(f->r->v, field[0], false, name, sizeof(name));
		snprintf(text, sizeof(text), "%s.%s", label, name);
		if (field[2] < d->size)
			flatten(f, field[1], at + field[2], text, depth + 1);
	}
}

static void flatten_items(struct flattening *f, const struct description *d, u64 at, const char *label, u32 depth)
{
	struct description item;
	char text[LABEL_BYTES];

	if (!describe(f->r, d->more[0], &item) || !item.pointers)
		return;
	snprintf(text, sizeof(text), "%s[]", label);
	for (u64 i = 0; i < d->more[2] && (i + 1) * item.size <= d->size && f->t->whole && !f->err; i++)
		flatten(f, d->more[0], at + i * item.size, text, depth + 1);
}

static void flatten(struct flattening *f, u64 type, u64 at, const char *label, u32 depth)
{
	struct description d;

	if (depth > DEPTH_MAX || ++f->steps > SLOTS_MAX || !describe(f->r, type, &d)) {
		f->t->whole = false;
		return;
	}
	if (!d.pointers)
		return;
	switch (d.kind) {
	case STRUCT:
		flatten_fields(f, &d, at, label, depth);
		break;
	case ARRAY:
		flatten_items(f, &d, at, label, depth);
		break;
	case POINTER:
		add_slot(f, at, GO_SLOT_POINTER, d.more[0], label);
		break;
	case SLICE:
		add_slot(f, at, GO_SLOT_SLICE, d.more[0], label);
		break;
	case STRING:
		add_slot(f, at, GO_SLOT_STRING, 0, label);
		break;
	case INTERFACE:
		add_slot(f, at, GO_SLOT_INTERFACE, 0, label);
		break;
	case CHAN:
		add_slot(f, at, GO_SLOT_CHANNEL, d.more[0], label);
		break;
	case MAP:
		add_slot(f, at, GO_SLOT_POINTER, type, label);
		break;
	default: /* functions, unsafe pointers */
		add_slot(f, at, GO_SLOT_POINTER, 0, label);
	}
}

/* --- by DWARF --- */

static u64 key_of(u64 addr)
{
	return addr * 0x9e3779b97f4a7c15ull >> 3 | 1;
}

u64 go_refs_dwarf(struct go_refs *r, const struct type *type)
{
	u64 own = type_attribute(type, DW_AT_GO_RUNTIME_TYPE), ret = BY_DWARF | type->die << 3;
	struct error *err;

	if (own && own < r->module.etypes - r->module.types)
		return r->module.types + own; /* an offset */
	if (own)
		return own + r->v->bias;
	if (!type->die || !type->size || type->kind == TYPE_FUNCTION || type->kind == TYPE_VOID)
		return 0;
	err = table_put(&r->dwarf_at, key_of(ret), (u64)type);
	error_free(err);
	return err ? 0 : ret;
}

static void flatten_dwarf(struct flattening *f, const struct type *type, u64 at, const char *label, u32 depth);

/* Strings, slices and interfaces are structures there (runtime/runtime2.go, cmd/link/internal/ld/dwarf.go). */
static bool is_special(struct flattening *f, const struct type *type, u64 at, const char *label)
{
	const struct type_member *m;
	u32 n = type_members(type, &m);

	if (n && !strcmp(type->name, "string"))
		add_slot(f, at, GO_SLOT_STRING, 0, label);
	else if (n == 3 && !strncmp(type->name, "[]", 2) && m->type->kind == TYPE_POINTER)
		add_slot(f, at, GO_SLOT_SLICE, go_refs_dwarf(f->r, m->type->to), label);
	else if (!strcmp(type->name, "runtime.eface") || !strcmp(type->name, "runtime.iface"))
		add_slot(f, at, GO_SLOT_INTERFACE, 0, label);
	else
		return false;
	return true;
}

static void flatten_members(struct flattening *f, const struct type *type, u64 at, const char *label, u32 depth)
{
	const struct type_member *m;
	u32 n = type_members(type, &m);

	for (u32 i = 0; i < n && i < FIELDS_MAX && !f->err; i++) {
		char text[LABEL_BYTES];

		snprintf(text, sizeof(text), "%s.%s", label, m[i].name ? m[i].name : "");
		if (m[i].offset < type->size)
			flatten_dwarf(f, m[i].type, at + m[i].offset, text, depth + 1);
	}
}

/* maps.Map.dirPtr (1.24 and later), to which the linker gives the type of a pointer to a table's address. */
static bool is_directory(const struct type *type, const char *label)
{
	size_t n = strlen(label), end = strlen(DIRECTORY);

	return type->to && type->to->kind == TYPE_POINTER && n >= end && !strcmp(label + n - end, DIRECTORY);
}

static void flatten_dwarf(struct flattening *f, const struct type *type, u64 at, const char *label, u32 depth)
{
	char text[LABEL_BYTES];
	u32 before = f->t->nslots;

	if (depth > DEPTH_MAX || ++f->steps > SLOTS_MAX) {
		f->t->whole = false;
		return;
	}
	switch (type->kind) {
	case TYPE_POINTER:
		add_slot(f, at, is_directory(type, label) ? GO_SLOT_DIRECTORY : GO_SLOT_POINTER,
		        go_refs_dwarf(f->r, type->to), label);
		break;
	case TYPE_STRUCT:
		if (!is_special(f, type, at, label))
			flatten_members(f, type, at, label, depth);
		break;
	case TYPE_ARRAY:
		snprintf(text, sizeof(text), "%s[]", label);
		for (u64 i = 0; i < type->count && f->t->whole && !f->err; i++) {
			flatten_dwarf(f, type->to, at + i * type->to->size, text, depth + 1);
			if (f->t->nslots == before)
				break; /* no pointers in the first: none in the others */
		}
		break;
	default:
		break;
	}
}

/* --- all of them --- */

static bool begin_type(struct go_refs *r, u64 addr, struct go_type *ret, const struct type **dwarf)
{
	const u64 *known = addr & BY_DWARF ? table_get(&r->dwarf_at, key_of(addr)) : NULL;
	struct description d;

	*dwarf = known ? (const struct type *)*known : NULL;
	if (known)
		*ret = (struct go_type){.addr = addr, .size = (*dwarf)->size, .name = (*dwarf)->name, .whole = true};
	else if (describe(r, addr, &d))
		*ret = (struct go_type){.addr = addr, .size = d.size, .whole = true, .map = d.kind == MAP};
	else
		return false;
	return true;
}

static struct error *read_type(struct go_refs *r, u64 addr, struct go_type **ret)
{
	struct go_type *t, begun;
	struct flattening f = {.r = r};
	const struct type *dwarf;
	char name[NAME_BYTES] = "";

	*ret = NULL;
	if (r->ntypes >= TYPES_MAX || !begin_type(r, addr, &begun, &dwarf))
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return &error_no_memory;
	*t = begun;
	f.t = t;
	f.name = t->name ? t->name : name;
	if (!t->name)
		go_type_name(r->v, &r->module, addr, name, sizeof(name));
	if (dwarf)
		flatten_dwarf(&f, dwarf, 0, "", 0);
	else if (!t->map)
		flatten(&f, addr, 0, "", 0);
	if (!f.err)
		f.err = grow(&r->types, r->ntypes, sizeof(*r->types));
	if (f.err) {
		free(t->slots);
		free(t);
		return f.err;
	}
	r->types[r->ntypes++] = t;
	*ret = t;
	return NULL;
}

const struct go_type *go_refs_type(struct go_refs *r, u64 addr)
{
	const u64 *known = addr ? table_get(&r->type_at, key_of(addr)) : NULL;
	struct go_type *t;
	struct error *err;

	if (!addr || known)
		return known && *known ? r->types[*known - 1] : NULL;
	err = read_type(r, addr, &t);
	if (!err)
		err = table_put(&r->type_at, key_of(addr), t ? r->ntypes : 0);
	if (!err)
		return t;
	error_free(err);
	return NULL;
}

void go_refs_types_free(struct go_refs *r)
{
	for (u32 i = 0; i < r->ntypes; i++) {
		free(r->types[i]->slots);
		free(r->types[i]);
	}
	free(r->types);
	table_free(&r->type_at);
	table_free(&r->dwarf_at);
	types_close(r->dwarf);
}

u64 go_refs_pointee(struct go_refs *r, u64 type)
{
	struct description d;

	if (!describe(r, type, &d))
		return 0;
	return d.kind == POINTER ? d.more[0] : d.kind == MAP ? type : 0;
}

/* An itab has its interface and then its type (runtime2.go); an empty interface has the type itself. */
u64 go_refs_interface(struct go_refs *r, u64 word, bool *direct)
{
	struct description d;

	*direct = false;
	if (word >= r->module.etypes || word < r->module.types || !describe(r, word, &d)) {
		word = word && !(word & 7) && word < 1ull << 47 ? go_refs_word(r, word + 8) : 0;
		if (!describe(r, word, &d))
			return 0;
	}
	*direct = d.kind == POINTER || d.kind == MAP || d.kind == CHAN || d.kind == FUNC || d.kind == UNSAFE_POINTER;
	return word;
}
