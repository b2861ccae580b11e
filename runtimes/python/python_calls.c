/* SPDX-License-Identifier: Apache-2.0 */
#include "python_calls.h"

#include <stdio.h>
#include <string.h>

#include "grow.h"
#include "python_objects.h"
#include "table.h"

#define V3_11 0x030b0000
#define V3_12 0x030c0000
#define V3_13 0x030d0000
#define V3_14 0x030e0000

#define READS_MAX   4000000 /* some seconds */
#define WITHIN_MAX  8       /* functions, classes and wrappers one in the other */
#define OBJECT_MAX  14      /* words of an object that may be another function's wrapper */
#define TUPLE_MAX   4096
#define MODULES_MAX 65536
#define TYPE_NAME   8   /* of PyTypeObject, from its head on: tp_name, */
#define TYPE_FLAGS  152 /* tp_flags, */
#define TYPE_DICT   248 /* tp_dict */

#define IS_TYPE  (1u << 31)    /* Py_TPFLAGS_TYPE_SUBCLASS */
#define IS_PLAIN (0x3fu << 24) /* int, list, tuple, bytes, str, dict: wrap no function */

/* co_flags (Include/cpython/code.h) */
#define CODE_OPTIMIZED 1 /* a function's, not a class's or a module's */
#define CODE_GENERATOR 0x20
#define CODE_COROUTINE 0x80
#define CODE_ASYNC     0x200
#define LOCALS         "<locals>."

struct module {
	u64 dict;
	char name[NAME_MAX_BYTES];
};

struct looking {
	struct python_reader r;
	const struct python_image *image;
	struct python_names *names;
	u64 bias;
	u32 left;
	struct table seen;  /* objects that were looked at */
	struct table flags; /* of types: tp_flags | 1 << 32 */
	struct table dicts; /* of modules: number + 1 */
	struct module *modules;
	u32 nmodules;
	struct error *(*add)(void *ctx, const struct runtime_callee *c);
	void *ctx;
};

/* Where something is: what its name begins with. */
struct place {
	const char *module;
	const char *within; /* "Class." or "" */
	u32 depth;
};

static struct error *look_object(struct looking *k, u64 object, const struct place *at);

static bool is_object(u64 word)
{
	return word > 4096 && !(word & 7) && word < 1ull << 47;
}

static u64 type_of(const struct looking *k, u64 object)
{
	return is_object(object) ? python_word(&k->r, object + k->r.l->ob_type.at) : 0;
}

static bool is(const struct looking *k, u64 object, u64 type)
{
	return type_of(k, object) == type + k->bias;
}

/* The first time? *err: out of memory. */
static bool is_new(struct looking *k, u64 object, struct error **err)
{
	if (table_get(&k->seen, object))
		return false;
	*err = table_put(&k->seen, object, 1);
	return !*err;
}

static u32 flags_of(struct looking *k, u64 type)
{
	const u64 *known = table_get(&k->flags, type);
	u64 flags;

	if (known)
		return (u32)*known;
	flags = (u32)python_word(&k->r, type + TYPE_FLAGS + python_head(&k->r));
	error_free(table_put(&k->flags, type, flags | 1ull << 32));
	return (u32)flags;
}

/* Without what names functions between a function and those that it defines. */
static void cut_locals(char *name)
{
	for (char *at = name; (at = strstr(at, LOCALS));)
		memmove(at, at + strlen(LOCALS), strlen(at + strlen(LOCALS)) + 1);
}

static void qualify(const struct looking *k, u64 code, const struct place *at, char *ret)
{
	const struct python_layout *l = k->r.l;
	char name[NAME_MAX_BYTES] = "";
	const char *within = l->co_qualname.size ? "" : at->within;
	u64 str = python_word(&k->r, code + python_layout_name(l).at);

	python_str(k->r.mem, l, str, name, sizeof(name));
	cut_locals(name);
	snprintf(ret, NAME_MAX_BYTES, "%.255s%.255s", within, name);
}

/* Where the bytecode begins. Free-threaded 3.14 copies it for each thread: 0. */
static u64 bytecode(const struct looking *k, u64 code)
{
	const struct python_layout *l = k->r.l;
	u64 bytes;

	if (l->co_tlbc.size)
		return 0;
	if (!l->co_bytes.size)
		return code + l->co_code.at;
	bytes = python_word(&k->r, code + l->co_bytes.at);
	return bytes ? bytes + l->bytes_data.at : 0;
}

static u32 code_flags(const struct looking *k, u64 code)
{
	const struct python_layout *l = k->r.l;
	u64 at = k->r.version >= V3_11 ? l->co_names.at + 16u : l->co_firstlineno.at - 4u;
	u32 flags = 0;

	python_read(&k->r, &flags, sizeof(flags), code + at);
	return flags;
}

/*
 * The position of a frame while the first instruction is read: before it (3.11, 3.12), at it (3.13 on), or, up to 3.10,
 * either, as the compiler likes.
 */
static void set_frames(const struct looking *k, u64 code, struct runtime_callee *c)
{
	static const u64 before[] = {UINT64_MAX, 0};
	bool old = k->r.version < V3_11;

	c->nat = 0;
	for (u32 i = 0; i < 2; i++)
		if ((old || i == (k->r.version >= V3_13)) &&
		        python_code_frame(k->names, k->r.mem, code, before[i], &c->at[c->nat]))
			c->nat++;
}

static struct error *add_code(struct looking *k, u64 code, const char *module, const char *name)
{
	const struct python_layout *l = k->r.l;
	struct runtime_callee c = {.entry = bytecode(k, code), .bytes = 2};
	u32 flags = code_flags(k, code);
	s32 line = 0;

	if (!(flags & CODE_OPTIMIZED) || !c.entry || c.entry & 1)
		return NULL;
	set_frames(k, code, &c);
	if (!c.nat)
		return NULL;
	snprintf(c.name, sizeof(c.name), "%.255s%s%.255s", module, *module ? "." : "", name);
	python_str(k->r.mem, l, python_word(&k->r, code + l->co_filename.at), c.file, sizeof(c.file));
	python_read(&k->r, &line, sizeof(line), code + l->co_firstlineno.at);
	c.line = line > 0 ? (u32)line : 0;
	if (k->r.version >= V3_11)
		c.makes = flags & CODE_GENERATOR   ? "generator"
		          : flags & CODE_COROUTINE ? "coroutine"
		          : flags & CODE_ASYNC     ? "asynchronous generator"
		                                   : NULL;
	return k->add(k->ctx, &c);
}

/* PyTupleObject: its items follow its size, from 3.14 on also its hash. */
static u32 items(const struct looking *k, u64 tuple, u64 *first)
{
	u64 n = python_word(&k->r, tuple + k->r.l->ob_size.at);

	*first = tuple + k->r.l->ob_size.at + (k->r.version >= V3_14 ? 16 : 8);
	return n < TUPLE_MAX ? (u32)n : TUPLE_MAX;
}

/* A code object, and those among its constants. */
static struct error *look_code(struct looking *k, u64 code, const struct place *at)
{
	char name[NAME_MAX_BYTES], within[NAME_MAX_BYTES];
	struct place inner = {.module = at->module, .within = within, .depth = at->depth + 1};
	struct error *err = NULL;
	u64 consts, first, item;
	u32 n;

	if (at->depth > WITHIN_MAX || !is_new(k, code, &err))
		return err;
	qualify(k, code, at, name);
	snprintf(within, sizeof(within), "%.*s.", NAME_MAX_BYTES - 2, name);
	err = add_code(k, code, at->module, name);
	consts = python_word(&k->r, code + k->r.l->co_consts.at);
	if (err || !is(k, consts, k->image->types.tuple))
		return err;
	n = items(k, consts, &first);
	for (u32 i = 0; !err && i < n; i++) {
		item = python_word(&k->r, first + 8ull * i);
		if (is(k, item, k->image->code_type))
			err = look_code(k, item, &inner);
	}
	return err;
}

static const char *module_of(const struct looking *k, u64 globals)
{
	const u64 *number = globals ? table_get(&k->dicts, globals) : NULL;

	return number ? k->modules[*number - 1].name : NULL;
}

/* A closure's cells hold what a decorator has wrapped. */
static struct error *look_closure(struct looking *k, u64 tuple, const struct place *at)
{
	struct error *err = NULL;
	u64 first, cell;
	u32 n = items(k, tuple, &first);

	for (u32 i = 0; !err && i < n && i < 16; i++) {
		cell = python_word(&k->r, first + 8ull * i);
		if (is_object(cell))
			err = look_object(k, python_word(&k->r, cell + python_head(&k->r)), at);
	}
	return err;
}

/* PyFunctionObject, by what its words refer to: the code, its globals (one of the first two), a closure, a dict. */
static struct error *look_function(struct looking *k, u64 function, const struct place *at)
{
	struct place own = *at, inner = *at;
	u64 words[OBJECT_MAX], code = 0;
	struct error *err = NULL;

	if (!is_new(k, function, &err) || !python_read(&k->r, words, sizeof(words), function + python_head(&k->r)))
		return err;
	for (u32 i = 0; !code && i < 6; i++)
		code = is(k, words[i], k->image->code_type) ? words[i] : 0;
	if (!code)
		return NULL;
	own.module = module_of(k, words[words[0] == code]) ?: at->module;
	err = look_code(k, code, &own);
	inner.depth++;
	for (u32 i = 0; !err && i < OBJECT_MAX; i++)
		if (is(k, words[i], k->image->types.tuple))
			err = look_closure(k, words[i], &inner);
	return err;
}

static struct error *look_dict(struct looking *k, u64 dict, const struct place *at)
{
	struct python_dict d;
	struct python_entry entry;
	struct error *err = NULL;

	if (!python_dict_open(&k->r, dict, &d))
		return NULL;
	for (u32 i = 0; !err && i < d.n && python_dict_entry(&k->r, &d, i, &entry); i++)
		if (is_object(entry.key) && is_object(entry.value))
			err = look_object(k, entry.value, at);
	return err;
}

static struct error *look_class(struct looking *k, u64 class, const struct place *at)
{
	char within[NAME_MAX_BYTES], name[128] = "";
	struct place inner = {.module = at->module, .within = within, .depth = at->depth + 1};
	const char *dot;
	struct error *err = NULL;

	if (!is_new(k, class, &err))
		return err;
	python_read(&k->r, name, sizeof(name) - 1, python_word(&k->r, class + python_head(&k->r) + TYPE_NAME));
	dot = strrchr(name, '.');
	snprintf(within, sizeof(within), "%.300s%s.", at->within, dot ? dot + 1 : name);
	return look_dict(k, python_word(&k->r, class + python_head(&k->r) + TYPE_DICT), &inner);
}

/* What wraps a function: a static method, a property, functools.partial and the like. */
static struct error *look_wrapper(struct looking *k, u64 object, const struct place *at)
{
	struct place inner = *at;
	u64 words[6];
	struct error *err = NULL;

	inner.depth++;
	if (!is_new(k, object, &err) || !python_read(&k->r, words, sizeof(words), object + python_head(&k->r)))
		return err;
	for (u32 i = 0; !err && i < 6; i++)
		if (is(k, words[i], k->image->types.function))
			err = look_function(k, words[i], &inner);
	return err;
}

static struct error *look_object(struct looking *k, u64 object, const struct place *at)
{
	u64 type = type_of(k, object);
	u32 flags;

	if (!type || at->depth > WITHIN_MAX)
		return NULL;
	if (type == k->image->types.function + k->bias)
		return look_function(k, object, at);
	flags = flags_of(k, type);
	if (flags & IS_PLAIN)
		return NULL;
	return flags & IS_TYPE ? look_class(k, object, at) : look_wrapper(k, object, at);
}

/* May the module have a function of this name? */
static bool may_have(const char *module, const char *pattern)
{
	size_t literal = pattern ? strcspn(pattern, "*?[") : 0, len = strlen(module);

	if (!pattern || (pattern[literal] && len >= literal))
		return !pattern || !strncmp(module, pattern, literal);
	return !strncmp(module, pattern, len) && (pattern[len] == '.' || pattern[len] == '*');
}

static struct error *read_modules(struct looking *k, u64 interp)
{
	const struct python_layout *l = k->r.l;
	struct layout_member at = l->interp_modules.size ? l->interp_modules : l->interp_modules_old;
	struct python_dict d;
	struct python_entry entry;
	struct error *err = NULL;

	if (!at.size || !python_dict_open(&k->r, python_word(&k->r, interp + at.at), &d))
		return NULL;
	for (u32 i = 0; !err && i < d.n && k->nmodules < MODULES_MAX && python_dict_entry(&k->r, &d, i, &entry); i++) {
		if (!is_object(entry.key) || !is_object(entry.value))
			continue;
		err = grow(&k->modules, k->nmodules, sizeof(*k->modules));
		if (err || !python_str(k->r.mem, l, entry.key, k->modules[k->nmodules].name, NAME_MAX_BYTES))
			continue;
		k->modules[k->nmodules].dict = python_word(&k->r, entry.value + python_head(&k->r));
		if (!k->modules[k->nmodules].dict)
			continue;
		k->nmodules++;
		err = table_put(&k->dicts, k->modules[k->nmodules - 1].dict, k->nmodules);
	}
	return err;
}

struct error *python_calls(const struct python_image *image, u64 bias, struct python_names *names,
        const struct runtime_process *p, const char *pattern,
        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx)
{
	struct looking k = {.image = image, .names = names, .bias = bias, .left = READS_MAX, .add = add, .ctx = ctx};
	u64 interp[PYTHON_INTERPRETERS_MAX];
	struct error *err = NULL;
	u32 n;

	k.r = (struct python_reader){.mem = p->memory, .l = image->layout, .version = image->version, .left = &k.left};
	n = python_interpreters(&k.r, bias + image->runtime, interp);
	for (u32 i = 0; !err && i < n; i++)
		err = read_modules(&k, interp[i]);
	for (u32 i = 0; !err && i < k.nmodules; i++) {
		struct place at = {.module = k.modules[i].name, .within = ""};

		if (may_have(at.module, pattern))
			err = look_dict(&k, k.modules[i].dict, &at);
	}
	table_free(&k.seen);
	table_free(&k.flags);
	table_free(&k.dicts);
	free(k.modules);
	return err;
}
