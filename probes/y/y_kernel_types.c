/* SPDX-License-Identifier: Apache-2.0 */
#include "y_kernel_types.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/table.h"

#define ITERATOR "__traceiter_"
#define CHAIN    64 /* typedefs and qualifiers in a row */

struct kernel_type {
	struct type type; /* first: type_members() gets it */
	struct y_kernel_types *owner;
	const struct btf_type *btf;
	struct type_member *members;
	bool user, has_members;
	struct kernel_type *next; /* of all, to be freed */
};

struct y_kernel_types {
	struct btf *btf;
	struct table by_id; /* 2 * id + user + 1: struct kernel_type * */
	struct kernel_type *all;
};

struct error *y_kernel_types_open(struct y_kernel_types **ret)
{
	struct y_kernel_types *k = calloc(1, sizeof(*k));

	*ret = NULL;
	if (!k)
		return &error_no_memory;
	k->btf = btf__load_vmlinux_btf();
	if (!k->btf) {
		free(k);
		return error_hint(error_new(ERROR_UNSUPPORTED, "the kernel has no BTF: %s", strerror(errno)),
		        "/sys/kernel/btf/vmlinux describes its tracepoints; `yrt doctor` says more");
	}
	*ret = k;
	return NULL;
}

void y_kernel_types_close(struct y_kernel_types *k)
{
	struct kernel_type *next;

	if (!k)
		return;
	for (struct kernel_type *t = k->all; t; t = next) {
		next = t->next;
		free(t->members);
		free(t);
	}
	table_free(&k->by_id);
	btf__free(k->btf);
	free(k);
}

static const struct type *type_of(struct y_kernel_types *k, u32 id, bool user);

/* --- members --- */

static void take_member(struct kernel_type *t, u32 i, struct type_member *ret)
{
	const struct btf_member *m = btf_members(t->btf) + i;
	struct btf *btf = t->owner->btf;
	u32 bit = btf_member_bit_offset(t->btf, i), bits = btf_member_bitfield_size(t->btf, i);
	const char *name = btf__name_by_offset(btf, m->name_off);

	ret->name = name && *name ? name : NULL;
	ret->type = type_of(t->owner, m->type, t->user);
	ret->offset = bit / 8;
	if (!bits || !ret->type || !ret->type->size || ret->type->size > 8)
		return;
	ret->bits = bits;
	ret->word = (u32)ret->type->size;
	ret->offset = bit / (8 * ret->word) * ret->word;
	ret->shift = bit % (8 * ret->word);
}

static u32 members_of(const struct type *type, const struct type_member **ret)
{
	struct kernel_type *t = (struct kernel_type *)type;
	u32 n = t->btf && btf_is_composite(t->btf) ? btf_vlen(t->btf) : 0, kept = 0;

	if (!n)
		return 0;
	if (!t->has_members) {
		t->has_members = true;
		t->members = calloc(n, sizeof(*t->members));
		for (u32 i = 0; t->members && i < n; i++)
			take_member(t, i, &t->members[i]);
	}
	for (kept = 0; t->members && kept < n && t->members[kept].type;)
		kept++;
	*ret = t->members;
	return kept;
}

/* --- types --- */

/* Behind typedefs and qualifiers; *user: one of them says so. NULL: void. */
static const struct btf_type *resolve(struct btf *btf, u32 *id, bool *user)
{
	for (u32 i = 0; i < CHAIN && *id; i++) {
		const struct btf_type *t = btf__type_by_id(btf, *id);

		if (!t)
			break;
		if (!btf_is_mod(t) && !btf_is_typedef(t))
			return t;
		if (btf_is_type_tag(t) && !strcmp(btf__name_by_offset(btf, t->name_off), "user"))
			*user = true;
		*id = t->type;
	}
	*id = 0;
	return NULL;
}

static void describe_number(const struct btf_type *t, struct type *ret)
{
	u8 encoding = btf_int_encoding(t);

	ret->kind = TYPE_INT;
	ret->is_signed = encoding & BTF_INT_SIGNED;
	ret->is_bool = encoding & BTF_INT_BOOL;
	ret->is_char = t->size == 1 && !ret->is_bool;
}

/* What an enumeration is kept in. */
static const struct type *number_of(u32 size, bool is_signed)
{
	static const struct type numbers[2][2] = {
	        {{.kind = TYPE_INT, .name = "unsigned int", .size = 4, .kernel = true},
	                {.kind = TYPE_INT, .name = "unsigned long", .size = 8, .kernel = true}},
	        {{.kind = TYPE_INT, .name = "int", .size = 4, .is_signed = true, .kernel = true},
	                {.kind = TYPE_INT, .name = "long", .size = 8, .is_signed = true, .kernel = true}}};

	return &numbers[is_signed][size == 8];
}

static void describe(struct y_kernel_types *k, struct kernel_type *t)
{
	const struct btf_type *b = t->btf;
	struct type *ret = &t->type;
	const char *name = b ? btf__name_by_offset(k->btf, b->name_off) : "void";

	*ret = (struct type){.kind = TYPE_OTHER, .name = name ? name : "", .kernel = !t->user, .members = members_of};
	if (!b) {
		ret->kind = TYPE_VOID;
	} else if (btf_is_int(b)) {
		describe_number(b, ret);
		ret->size = b->size;
	} else if (btf_is_ptr(b)) {
		ret->kind = TYPE_POINTER;
		ret->size = 8;
		ret->to = type_of(k, b->type, false);
	} else if (btf_is_array(b)) {
		ret->kind = TYPE_ARRAY;
		ret->count = btf_array(b)->nelems;
		ret->to = type_of(k, btf_array(b)->type, t->user);
		ret->size = ret->to ? ret->count * ret->to->size : 0;
	} else if (btf_is_composite(b)) {
		ret->kind = btf_is_struct(b) ? TYPE_STRUCT : TYPE_UNION;
		ret->size = b->size;
	} else if (btf_is_any_enum(b)) {
		ret->kind = TYPE_ENUM;
		ret->size = b->size;
		ret->is_signed = btf_kflag(b);
		ret->to = number_of(b->size, ret->is_signed);
	} else if (btf_is_fwd(b)) {
		ret->kind = btf_kflag(b) ? TYPE_UNION : TYPE_STRUCT;
		ret->is_declared = true;
	}
}

/* Types may lead to themselves: one is known before it is described. */
static const struct type *type_of(struct y_kernel_types *k, u32 id, bool user)
{
	const struct btf_type *b = resolve(k->btf, &id, &user);
	u64 key = 2 * (u64)id + user + 1, *known = table_get(&k->by_id, key);
	struct kernel_type *t = known ? (struct kernel_type *)*known : calloc(1, sizeof(*t));
	static const struct type none = {.kind = TYPE_OTHER, .name = ""};

	if (!t)
		return &none;
	if (known)
		return &t->type;
	t->next = k->all;
	k->all = t;
	t->owner = k;
	t->btf = b;
	t->user = user;
	t->type = none;
	if (table_put(&k->by_id, key, (u64)t))
		return &none;
	describe(k, t);
	return &t->type;
}

const struct type *y_kernel_type(struct y_kernel_types *k, enum type_space space, const char *name)
{
	static const u32 kinds[] = {[TYPES_STRUCT] = BTF_KIND_STRUCT,
	        [TYPES_UNION] = BTF_KIND_UNION,
	        [TYPES_ENUM] = BTF_KIND_ENUM,
	        [TYPES_PLAIN] = BTF_KIND_TYPEDEF};
	s32 id = space <= TYPES_PLAIN ? btf__find_by_name_kind(k->btf, name, kinds[space]) : -1;

	return id > 0 ? type_of(k, (u32)id, false) : NULL;
}

bool y_kernel_enumerator(struct y_kernel_types *k, const char *name, s64 *value, const struct type **type)
{
	for (u32 id = 1; id < btf__type_cnt(k->btf); id++) {
		const struct btf_type *t = btf__type_by_id(k->btf, id);

		for (u32 i = 0; btf_is_enum(t) && i < btf_vlen(t); i++) {
			if (strcmp(btf__name_by_offset(k->btf, btf_enum(t)[i].name_off), name) != 0)
				continue;
			*value = btf_kflag(t) ? btf_enum(t)[i].val : (s64)(u32)btf_enum(t)[i].val;
			*type = type_of(k, id, false);
			return true;
		}
	}
	return false;
}

/* --- tracepoints --- */

static const struct btf_type *iterator_of(const struct y_kernel_types *k, const char *tracepoint)
{
	char name[256];
	s32 id;

	if ((size_t)snprintf(name, sizeof(name), ITERATOR "%s", tracepoint) >= sizeof(name))
		return NULL;
	id = btf__find_by_name_kind(k->btf, name, BTF_KIND_FUNC);
	return id > 0 ? btf__type_by_id(k->btf, btf__type_by_id(k->btf, (u32)id)->type) : NULL;
}

int y_kernel_tracepoint(struct y_kernel_types *k, const char *name)
{
	const struct btf_type *proto = iterator_of(k, name);

	return proto && btf_is_func_proto(proto) && btf_vlen(proto) ? btf_vlen(proto) - 1 : -1;
}

const struct type *y_kernel_argument(struct y_kernel_types *k, const char *tracepoint, u32 number, const char **name)
{
	const struct btf_param *p = btf_params(iterator_of(k, tracepoint)) + 1 + number;

	*name = btf__name_by_offset(k->btf, p->name_off);
	return type_of(k, p->type, false);
}

void y_kernel_tracepoints(struct y_kernel_types *k, void (*each)(void *ctx, const char *name), void *ctx)
{
	for (u32 i = 1; i < btf__type_cnt(k->btf); i++) {
		const struct btf_type *t = btf__type_by_id(k->btf, i);
		const char *name = btf_is_func(t) ? btf__name_by_offset(k->btf, t->name_off) : NULL;

		if (name && !strncmp(name, ITERATOR, strlen(ITERATOR)))
			each(ctx, name + strlen(ITERATOR));
	}
}
