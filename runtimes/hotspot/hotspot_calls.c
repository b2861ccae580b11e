/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "runtimes/hotspot/heap/hotspot_heap_view.h"
#include "table.h"

#define LOADERS_MAX  (1u << 16)
#define CLASSES_MAX  (1u << 18)
#define METHODS_MAX  65535u /* of a class: The Java Virtual Machine Specification, 4.1 */
#define CODELETS_MAX 4096

struct looking {
	struct hotspot_instance *instance;
	const struct runtime_process *p;
	const char *pattern;
	u64 head, next, klasses, link, methods; /* where loaders, classes and methods are */
	u64 verified;                           /* of nmethod: its verified entry, an address */
	u64 code_from, code_to;                 /* codelets that methods begin in */
	u32 left;                               /* classes */
	struct error *(*add)(void *ctx, const struct runtime_callee *c);
	void *ctx;
};

struct methods { /* of a class */
	u64 *at;
	u32 n;
	struct table names; /* how many have a name */
};

static bool word(const struct looking *k, u64 *ret, u64 addr)
{
	return addr && !(addr & 7) && memory_read(k->p->memory, ret, sizeof(*ret), addr);
}

static u64 hash_of(const char *text)
{
	u64 hash = 14695981039346656037ull;

	while (*text)
		hash = (hash ^ (u8)*text++) * 1099511628211ull;
	return hash;
}

/* "com.shop.OrderService.place". False: it has no bytecode, or is gone. */
static bool read_method(const struct looking *k, u64 method, u64 *constants, struct frame_name *ret)
{
	const struct hotspot_layout *l = k->instance->layout;
	struct frame frame;
	u16 size = 0;

	if (!word(k, constants, method + l->method_const.at) || *constants & 7 ||
	        !memory_read(k->p->memory, &size, sizeof(size), *constants + l->const_code_size.at) || !size)
		return false;
	*ret = (struct frame_name){0};
	frame.where = frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, 0, method);
	frame.detail = hotspot_method(0, 0, hotspot_method_cookie(*constants));
	return hotspot_name_frame(k->instance->names, k->p->memory, &frame, ret) && *ret->name;
}

/* With its arguments, if others of its class have that name. */
static void write_name(const struct frame_name *name, bool overloaded, char *ret)
{
	size_t n = (size_t)snprintf(ret, NAME_MAX_BYTES, "%s", name->name);

	for (const char *s = overloaded ? name->signature : ""; *s && n + 1 < NAME_MAX_BYTES; s++)
		if (*s != ' ')
			ret[n++] = *s;
	ret[n < NAME_MAX_BYTES ? n : NAME_MAX_BYTES - 1] = '\0';
}

static struct error *add_interpreted(const struct looking *k, u64 method, u64 constants, struct runtime_callee c)
{
	c.entry = constants + k->instance->layout->const_size.at;
	c.bytes = 1;
	c.code_from = k->code_from;
	c.code_to = k->code_to;
	c.at[0].where = frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, 0, method);
	c.at[0].detail = hotspot_method(0, 0, hotspot_method_cookie(constants));
	return k->code_to ? k->add(k->ctx, &c) : NULL;
}

static struct error *add_compiled(const struct looking *k, u64 method, struct runtime_callee c)
{
	const struct hotspot_layout *l = k->instance->layout;
	u64 nmethod, of;
	u32 id;

	if (!k->verified || !word(k, &nmethod, method + l->method_code.at) || !nmethod ||
	        !word(k, &of, nmethod + l->nm_method.at) || of != method ||
	        !memory_read(k->p->memory, &id, sizeof(id), nmethod + l->nm_compile_id.at) ||
	        !memory_read(k->p->memory, &c.entry, sizeof(c.entry), nmethod + k->verified) || c.entry < nmethod)
		return NULL;
	c.executed = true;
	c.bytes = 8;
	c.at[0].where = frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, 0, nmethod);
	c.at[0].detail = hotspot_nmethod(id, 0);
	c.loose_detail = (u64)HOTSPOT_PC_MASK << 4;
	return k->add(k->ctx, &c);
}

static struct error *add_method(const struct looking *k, const struct methods *all, u64 method)
{
	struct runtime_callee c = {.nat = 1};
	struct frame_name name;
	const u64 *same;
	struct error *err;
	u64 constants;

	if (!read_method(k, method, &constants, &name))
		return NULL;
	same = table_get(&all->names, hash_of(name.name));
	write_name(&name, same && *same > 1, c.name);
	snprintf(c.file, sizeof(c.file), "%s", name.file);
	c.line = name.definition;
	err = add_interpreted(k, method, constants, c);
	return err ? err : add_compiled(k, method, c);
}

static struct error *count_names(const struct looking *k, struct methods *all)
{
	struct frame_name name;
	struct error *err = NULL;
	u64 constants;

	for (u32 i = 0; !err && i < all->n; i++) {
		const u64 *n;
		u64 hash;

		if (!read_method(k, all->at[i], &constants, &name))
			continue;
		hash = hash_of(name.name);
		n = table_get(&all->names, hash);
		err = table_put(&all->names, hash, n ? *n + 1 : 1);
	}
	return err;
}

/* Array<Method*>: its length, then the elements. */
static struct error *look_class(const struct looking *k, u64 klass)
{
	struct methods all = {0};
	struct error *err;
	u64 array;
	s32 n;

	if (!word(k, &array, klass + k->methods) || !array || array & 7 ||
	        !memory_read(k->p->memory, &n, sizeof(n), array) || n <= 0 || (u32)n > METHODS_MAX)
		return NULL;
	all.at = calloc((u32)n, sizeof(*all.at));
	if (!all.at)
		return &error_no_memory;
	all.n = memory_read(k->p->memory, all.at, (u32)n * sizeof(*all.at), array + 8) ? (u32)n : 0;
	err = count_names(k, &all);
	for (u32 i = 0; !err && i < all.n; i++)
		err = add_method(k, &all, all.at[i]);
	table_free(&all.names);
	free(all.at);
	return err;
}

/* May this class have methods of such a name? */
static bool may_match(const struct looking *k, u64 klass)
{
	size_t literal = k->pattern ? strcspn(k->pattern, "*?[(") : 0, n;
	char name[NAME_MAX_BYTES];
	s32 shape;
	u64 symbol;

	if (!memory_read(k->p->memory, &shape, sizeof(shape), klass + k->instance->layout->klass_layout_helper.at) ||
	        shape <= 0) /* an array */
		return false;
	if (!literal)
		return true;
	if (!word(k, &symbol, klass + k->instance->layout->klass_name.at) ||
	        !hotspot_symbol(k->instance->heap, k->p->memory, symbol, name, sizeof(name)))
		return false;
	for (char *at = name; *at; at++)
		*at = *at == '/' ? '.' : *at;
	n = strlen(name);
	return !strncmp(name, k->pattern, n < literal ? n : literal);
}

/* Codelets of methods' entries follow each other. */
static void find_codelets(struct looking *k)
{
	u64 size_at, text_at, start, end, text;
	char name[64];
	u32 size;

	if (!vmstructs_field(k->instance->v, "InterpreterCodelet", "_size", &size_at, NULL) ||
	        !vmstructs_field(k->instance->v, "InterpreterCodelet", "_description", &text_at, NULL) ||
	        !hotspot_interpreter(k->instance->code, k->p->memory, &start, &end))
		return;
	for (u32 i = 0; i < CODELETS_MAX && start < end; i++, start += size) {
		if (!memory_read(k->p->memory, &size, sizeof(size), start + size_at) || !size || size > end - start)
			return;
		if (!memory_read(k->p->memory, &text, 8, start + text_at))
			continue;
		if (!memory_string(k->p->memory, name, sizeof(name), text) ||
		        strncmp(name, "method entry point", 18) != 0)
			continue;
		k->code_from = k->code_from ? k->code_from : start;
		k->code_to = start + size;
	}
}

static bool find_members(struct looking *k)
{
	const struct vmstructs *v = k->instance->v;

	if (!vmstructs_static(v, "ClassLoaderDataGraph", "_head", &k->head) ||
	        !vmstructs_field(v, "ClassLoaderData", "_next", &k->next, NULL) ||
	        !vmstructs_field(v, "ClassLoaderData", "_klasses", &k->klasses, NULL) ||
	        !vmstructs_field(v, "Klass", "_next_link", &k->link, NULL) ||
	        !vmstructs_field(v, "InstanceKlass", "_methods", &k->methods, NULL))
		return false;
	vmstructs_field(v, "nmethod", "_verified_entry_point", &k->verified, NULL); /* up to 22 */
	find_codelets(k);
	return true;
}

static struct error *look_loader(struct looking *k, u64 loader)
{
	struct error *err = NULL;
	u64 klass;

	if (!word(k, &klass, loader + k->klasses))
		return NULL;
	while (!err && klass && k->left && !(klass & 7)) {
		k->left--;
		if (may_match(k, klass))
			err = look_class(k, klass);
		if (!word(k, &klass, klass + k->link))
			break;
	}
	return err;
}

static struct error *list(void *data, const struct runtime_process *p, const char *pattern,
        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx)
{
	struct hotspot_instance *instance = data;
	struct looking k = {
	        .instance = instance, .p = p, .pattern = pattern, .left = CLASSES_MAX, .add = add, .ctx = ctx};
	struct error *err = NULL;
	u64 loader;

	if (!instance->names || !instance->heap || !find_members(&k) || !word(&k, &loader, k.head))
		return NULL;
	if (!k.verified || !k.code_to)
		return error_hint(error_new(ERROR_UNSUPPORTED, "this JVM does not say where its methods begin"),
		        "yrt finds them up to JDK 22");
	for (u32 i = 0; !err && i < LOADERS_MAX && loader; i++) {
		err = look_loader(&k, loader);
		if (!word(&k, &loader, loader + k.next))
			break;
	}
	return err;
}

const struct runtime_calls_ops hotspot_calls = {.form = "java:PACKAGE.CLASS.METHOD", .list = list};
