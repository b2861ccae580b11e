/* SPDX-License-Identifier: Apache-2.0 */
#include "copies.h"

#include <stdlib.h>
#include <string.h>

#include "match.h"
#include "own.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/hash_text.h"
#include "unwind/table.h"

#define HERE_LEAST 3 /* a type's deaths in a function take at most this times its copies there */
#define ELSE_LEAST 2 /* the same of all functions */
#define PARAMETER  " const&)"
#define DROP       "core::ptr::drop_in_place"
#define CLONE      " as core::clone::Clone>::clone"

/* The next "::" that is not in angle brackets or parentheses, or NULL. */
static const char *next_part(const char *at)
{
	u32 depth = 0;

	for (; *at; at++) {
		depth += *at == '<' || *at == '(';
		depth -= depth && (*at == '>' || *at == ')');
		if (!depth && at[0] == ':' && at[1] == ':')
			return at;
	}
	return NULL;
}

/* "alloc::vec::Vec" of "alloc::vec::Vec<u8>" and "alloc::vec::Vec::<u8>" */
static size_t rust_type(const char *at, const char **type)
{
	size_t n = strcspn(at, "<>, ");

	*type = at;
	return n > 2 && at[n - 1] == ':' ? n - 2 : n;
}

size_t copies_destroyed(const char *name, const char **type)
{
	*type = name;
	if (!strncmp(name, DROP, strlen(DROP)))
		return rust_type(name + strlen(DROP) + strspn(name + strlen(DROP), ":<"), type);
	for (const char *at = name; (at = next_part(at)); at += 2)
		if (at[2] == '~')
			return (size_t)(at - name);
	return 0;
}

static bool takes_one(const char *at, const char *type, size_t n)
{
	return at[0] == '(' && !strncmp(at + 1, type, n) && !strncmp(at + 1 + n, PARAMETER, strlen(PARAMETER));
}

size_t copies_copied(const char *name, const char **type)
{
	const char *last = name; /* "vector" of "std::vector<int>" */

	*type = name;
	if (*name == '<')
		return strstr(name, CLONE) ? rust_type(name + 1, type) : 0;
	for (const char *at = name; (at = next_part(at)); at += 2, last = at) {
		size_t n = (size_t)(at - name), length = strcspn(last, "<:");

		if (!strncmp(at + 2, last, length) && takes_one(at + 2 + length, name, n))
			return n;
		if (!strncmp(at + 2, "operator=", 9) && takes_one(at + 11, name, n))
			return n;
	}
	return 0;
}

struct role {
	u64 type; /* a hash; 0: it neither copies nor destroys */
	bool copies;
	bool is_common; /* made in many ways, everywhere */
};

static const char *const common[] = {"::basic_string<", "alloc::string::String", "alloc::vec::Vec"};

/* Of a type in a function (0: in all). */
struct place {
	u64 copied, destroyed;
	u64 most;  /* copied in one function (of all), or line (of one) */
	u32 where; /* that is */
};

struct copies {
	const struct profile *p;
	const struct libraries *l;
	struct role *role; /* by function */
	u32 *same;         /* match_unite() */
	struct place *place;
	u32 nplaces;
	struct table places;
};

static void set_role(struct role *r, const struct profile_function *f)
{
	bool may = f->kind == KIND_CXX || f->kind == KIND_NATIVE || f->kind == KIND_RUST;
	const char *type = f->name;
	size_t n = may ? copies_copied(f->name, &type) : 0;

	r->copies = n != 0;
	if (may && !n)
		n = copies_destroyed(f->name, &type);
	r->type = n ? XXH3_64bits(type, n) | 1 : 0;
	for (size_t i = 0; n && i < sizeof(common) / sizeof(*common); i++)
		r->is_common |= memmem(type, n < 32 ? n : 32, common[i], strlen(common[i])) != NULL;
}

/*
 * The outermost copy or destructor that the program's own code calls on this stack, or NULL. *holder: the function that
 * calls it; 0 if NULL.
 */
static const struct role *role_at(const struct copies *c, u32 node, u32 *holder)
{
	const struct role *ret = NULL;

	for (; node; node = c->p->nodes[node].parent) {
		u32 function = c->p->nodes[node].function;

		*holder = function;
		if (c->role[function].type)
			ret = &c->role[function];
		else if (is_own(c->l, &c->p->functions[function]))
			return ret;
	}
	*holder = 0;
	return NULL;
}

static u64 key_of(const struct copies *c, u64 type, u32 function)
{
	u64 of[] = {type, function ? c->same[function] : 0};

	return XXH3_64bits(of, sizeof(of)) | 1;
}

static struct error *place_of(struct copies *c, u64 type, u32 function, struct place **ret)
{
	u64 key = key_of(c, type, function);
	const u64 *known = table_get(&c->places, key);
	struct error *err = NULL;

	if (!known) {
		err = grow(&c->place, c->nplaces, sizeof(*c->place));
		if (!err)
			err = table_put(&c->places, key, c->nplaces);
		if (!err)
			c->place[c->nplaces++] = (struct place){0};
	}
	if (!err)
		*ret = &c->place[known ? *known : c->nplaces - 1];
	return err;
}

static struct error *add(struct copies *c, const struct role *r, u32 holder, u64 value, const u64 *by_line)
{
	struct place *here, *all;
	struct error *err = place_of(c, r->type, holder, &here);
	u64 there;

	if (err)
		return err;
	*(r->copies ? &here->copied : &here->destroyed) += value;
	if (r->copies && by_line[holder] > here->most) {
		here->most = by_line[holder];
		here->where = holder;
	}
	there = here->copied;
	holder = here->where;
	err = place_of(c, r->type, 0, &all);
	if (err)
		return err;
	*(r->copies ? &all->copied : &all->destroyed) += value;
	if (r->copies && there >= all->most) {
		all->most = there;
		all->where = holder;
	}
	return NULL;
}

static struct error *add_all(struct copies *c)
{
	cleanup(free) u64 *by_line = calloc(c->p->nfunctions + 1, sizeof(*by_line));
	struct error *err = by_line ? NULL : &error_no_memory;

	for (u32 i = 1; !err && i < c->p->nnodes; i++) {
		u64 value = c->p->nodes[i].self;
		const struct role *r;
		u32 holder;

		if (!value || !(r = role_at(c, i, &holder)))
			continue;
		by_line[holder] += r->copies ? value : 0;
		err = add(c, r, holder, value, by_line);
	}
	return err;
}

struct error *copies_find(const struct libraries *l, const struct profile *p, struct copies **ret)
{
	struct copies *c = calloc(1, sizeof(*c));
	struct error *err = NULL;
	u32 copied = 0, destroyed = 0;

	*ret = NULL;
	if (!c)
		return &error_no_memory;
	*c = (struct copies){.p = p,
	        .l = l,
	        .role = calloc(p->nfunctions + 1, sizeof(*c->role)),
	        .same = calloc(p->nfunctions + 1, sizeof(*c->same))};
	if (!c->role || !c->same)
		err = &error_no_memory;
	for (u32 i = 1; !err && i < p->nfunctions; i++) {
		set_role(&c->role[i], &p->functions[i]);
		copied += c->role[i].copies;
		destroyed += c->role[i].type && !c->role[i].copies;
	}
	if (!err && copied && destroyed)
		err = match_unite(p, c->same);
	if (!err && copied && destroyed)
		err = add_all(c);
	if (!err && c->nplaces)
		*ret = c;
	else
		copies_free(c);
	return err;
}

u32 copies_site(const struct copies *c, u32 node, u32 site)
{
	const struct role *r;
	const struct place *p;
	const u64 *at;
	u32 holder;

	if (!c || !(r = role_at(c, node, &holder)) || r->copies || (site != holder && !c->role[site].type))
		return site;
	at = table_get(&c->places, key_of(c, r->type, holder));
	p = at ? &c->place[*at] : NULL;
	if (p && p->copied && p->copied >= p->destroyed / HERE_LEAST)
		return p->where;
	at = table_get(&c->places, key_of(c, r->type, 0));
	p = at && !r->is_common ? &c->place[*at] : NULL;
	if (p && p->copied && p->copied >= p->destroyed / ELSE_LEAST && p->most >= p->copied / 2)
		return p->where;
	return site;
}

void copies_free(struct copies *c)
{
	if (!c)
		return;
	free(c->role);
	free(c->same);
	free(c->place);
	table_free(&c->places);
	free(c);
}
