/* SPDX-License-Identifier: Apache-2.0 */
#include "layout_types.h"

#include <stdlib.h>
#include <string.h>

#define MEMBERS_MOST 64u
#define NAME_SIZE    64
#define ORIGIN_SIZE  192

struct made {
	struct type type; /* first: members_of() gets it */
	const struct layout_type *from;
	struct type_member members[MEMBERS_MOST];
	char origins[MEMBERS_MOST][ORIGIN_SIZE];
	u32 nmembers, align;
};

/* Pointers and arrays, and copies of names: what the members need besides structures. */
struct piece {
	struct piece *next;
	struct type type;
	char name[NAME_SIZE];
};

struct layout_types {
	const struct layout *layout;
	layout_place *place;
	struct made *made;
	u32 n;
	struct piece *pieces;
};

/* --- base types --- */

static const struct type none = {.kind = TYPE_VOID, .name = "void"};

#define INT(text, c, bytes, sign)                                                                                      \
	{                                                                                                              \
		text,                                                                                                  \
		{                                                                                                      \
			.kind = TYPE_INT, .name = c, .size = bytes, .is_signed = sign, .is_char = (bytes) == 1,        \
			.to = &none                                                                                    \
		}                                                                                                      \
	}

static const struct {
	const char *name;
	struct type type;
} numbers[] = {INT("u8", "unsigned char", 1, false), INT("s8", "signed char", 1, true), INT("char", "char", 1, true),
        INT("u16", "unsigned short", 2, false), INT("s16", "short", 2, true), INT("u32", "unsigned int", 4, false),
        INT("s32", "int", 4, true), INT("u64", "unsigned long", 8, false), INT("s64", "long", 8, true),
        {"double", {.kind = TYPE_FLOAT, .name = "double", .size = 8, .to = &none}},
        {"void", {.kind = TYPE_VOID, .name = "void"}}};

static struct made *find_made(const struct layout_types *t, const char *name)
{
	for (u32 i = 0; i < t->n; i++)
		if (!strcmp(t->made[i].from->name, name))
			return &t->made[i];
	return NULL;
}

static const struct type *base_type(const struct layout_types *t, const char *name)
{
	const struct made *m = find_made(t, name);

	for (u32 i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!strcmp(numbers[i].name, name))
			return &numbers[i].type;
	return !m ? NULL : m->from->kind == LAYOUT_TYPEDEF ? m->type.to : &m->type;
}

static struct piece *new_piece(struct layout_types *t)
{
	struct piece *p = calloc(1, sizeof(*p));

	if (p) {
		p->next = t->pieces;
		t->pieces = p;
	}
	return p;
}

static const struct type *derived(struct layout_types *t, enum type_kind kind, const struct type *to, u64 count)
{
	struct piece *p = new_piece(t);

	if (!p)
		return NULL;
	p->type = (struct type){.kind = kind,
	        .name = "",
	        .to = to,
	        .count = count,
	        .size = kind == TYPE_POINTER ? 8 : count * to->size};
	return &p->type;
}

static u32 align_of(const struct layout_types *t, const struct type *type)
{
	while (type->kind == TYPE_ARRAY)
		type = type->to;
	for (u32 i = 0; i < t->n; i++)
		if (type == &t->made[i].type)
			return t->made[i].align;
	return type->size ? (u32)type->size : 1;
}

/* --- texts --- */

static const char *skip(const char *p)
{
	return p + strspn(p, " ;");
}

static const char *word(const char *p, char ret[NAME_SIZE])
{
	size_t n = strcspn(p, " ;*[]");

	snprintf(ret, NAME_SIZE, "%.*s", (int)n, p);
	return p + n;
}

/* "TYPE *" up to the member's name. NULL: no memory, or the text is wrong. */
static const struct type *read_type(struct layout_types *t, const char **p)
{
	char name[NAME_SIZE];
	const struct type *type;

	*p = word(*p, name);
	type = base_type(t, name);
	for (*p += strspn(*p, " "); type && **p == '*'; (*p)++)
		type = derived(t, TYPE_POINTER, type, 0);
	return type;
}

/* Where "@" says; -2: nothing says it. */
static s64 read_place(const struct layout_types *t, const char **p)
{
	char name[NAME_SIZE];

	if (**p != '@')
		return -2;
	*p = word(*p + 1, name);
	*p += strspn(*p, " ");
	if (*name >= '0' && *name <= '9')
		return strtol(name, NULL, 10);
	return t->place ? t->place(t->layout->values, name) : -1;
}

static const struct layout_member *field_of(const struct layout_types *t, const char *name, const char *member, u32 *i)
{
	char full[2 * NAME_SIZE + 8];

	snprintf(full, sizeof(full), member ? "%s.%s" : "sizeof %s", name, member);
	for (*i = 0; *i < t->layout->schema->n; ++*i)
		if (!t->layout->schema->fields[*i].list && !strcmp(t->layout->schema->fields[*i].name, full) &&
		        layout_member(t->layout, *i)->size)
			return layout_member(t->layout, *i);
	return NULL;
}

static void put_member(struct layout_types *t, struct made *m, const struct type *type, const char *name, s64 at)
{
	struct type_member *member = &m->members[m->nmembers];
	char *origin = m->origins[m->nmembers], source[ORIGIN_SIZE - 32];
	u32 align = align_of(t, type), field;
	const struct layout_member *known = field_of(t, m->from->name, name, &field);

	if (known)
		at = known->at;
	else if (at == -2)
		at = m->from->kind == LAYOUT_UNION ? 0 : (s64)((m->type.size + align - 1) / align * align);
	if (known)
		snprintf(origin, ORIGIN_SIZE, "the layout of %s: %s", t->layout->schema->runtime,
		        layout_origin(t->layout, field, source, sizeof(source)));
	else
		snprintf(origin, ORIGIN_SIZE, "what yrt knows of %s", t->layout->schema->runtime);
	*member = (struct type_member){.name = name, .type = type, .offset = (u64)at, .from = origin};
	m->nmembers++;
	m->align = align > m->align ? align : m->align;
	m->type.size = (u64)at + type->size > m->type.size || m->from->kind == LAYOUT_STRUCT ? (u64)at + type->size
	                                                                                     : m->type.size;
}

static bool read_member(struct layout_types *t, struct made *m, const char **p)
{
	s64 at = read_place(t, p);
	const struct type *type = read_type(t, p);
	struct piece *name = type ? new_piece(t) : NULL;
	u32 field;

	if (!name || m->nmembers == MEMBERS_MOST)
		return false;
	*p = word(*p, name->name);
	if (!*name->name)
		return false;
	if (**p == '[') {
		type = derived(t, TYPE_ARRAY, type, strtoul(*p + 1, NULL, 10));
		*p += strcspn(*p, ";");
	}
	if (type && (at != -1 || field_of(t, m->from->name, name->name, &field)))
		put_member(t, m, type, name->name, at);
	return type;
}

static u64 size_of(const struct layout_types *t, const struct made *m, u64 end)
{
	const struct layout_member *known;
	s64 place = m->from->size && t->place ? t->place(t->layout->values, m->from->size) : -1;
	u32 field;

	known = field_of(t, m->from->name, NULL, &field);
	if (!known && m->from->size && !strcmp(m->from->size, LAYOUT_PART))
		return 0;
	return known ? known->at : place >= 0 ? (u64)place : (end + m->align - 1) / m->align * m->align;
}

static bool fill(struct layout_types *t, struct made *m)
{
	const char *p = skip(m->from->text);
	u64 end = 0;

	if (m->from->kind == LAYOUT_TYPEDEF) {
		m->type.to = read_type(t, &p);
		return m->type.to;
	}
	for (; *p; p = skip(p)) {
		if (!read_member(t, m, &p))
			return false;
		end = m->type.size > end ? m->type.size : end;
	}
	m->type.size = size_of(t, m, end);
	return true;
}

/* --- all of them --- */

static u32 members_of(const struct type *type, const struct type_member **ret)
{
	const struct made *m = (const struct made *)type;

	*ret = m->members;
	return m->nmembers;
}

struct error *layout_types_make(
        const struct layout_type *types, const struct layout *l, layout_place *place, struct layout_types **ret)
{
	struct layout_types *t = calloc(1, sizeof(*t));
	u32 n = 0;

	*ret = NULL;
	while (types[n].kind)
		n++;
	if (t)
		*t = (struct layout_types){.layout = l, .place = place, .made = calloc(n, sizeof(*t->made)), .n = n};
	if (!t || !t->made) {
		free(t);
		return &error_no_memory;
	}
	for (u32 i = 0; i < n; i++)
		t->made[i] = (struct made){.from = &types[i],
		        .align = 1,
		        .type = {.kind = types[i].kind == LAYOUT_UNION ? TYPE_UNION : TYPE_STRUCT,
		                .name = types[i].name,
		                .members = members_of}};
	for (u32 i = 0; i < n; i++)
		if (!fill(t, &t->made[i])) {
			layout_types_free(t);
			return error_new(ERROR_INTERNAL, "the types of %s: %s cannot be made", l->schema->runtime,
			        types[i].name);
		}
	*ret = t;
	return NULL;
}

void layout_types_free(struct layout_types *t)
{
	struct piece *next;

	if (!t)
		return;
	for (struct piece *p = t->pieces; p; p = next) {
		next = p->next;
		free(p);
	}
	free(t->made);
	free(t);
}

const struct type *layout_types_find(const struct layout_types *t, enum type_space space, const char *name)
{
	const struct made *m = find_made(t, name);

	if (!m)
		return NULL;
	if (space == TYPES_PLAIN)
		return m->from->kind == LAYOUT_TYPEDEF ? m->type.to : &m->type;
	return (space == TYPES_STRUCT && m->from->kind == LAYOUT_STRUCT) ||
	                       (space == TYPES_UNION && m->from->kind == LAYOUT_UNION)
	               ? &m->type
	               : NULL;
}

bool layout_types_name(const struct layout_type *types, const char *name)
{
	for (; types->kind; types++)
		if (!strcmp(types->name, name))
			return true;
	return false;
}
