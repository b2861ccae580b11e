/* SPDX-License-Identifier: Apache-2.0 */
#include "python_calls.h"

#include <stdio.h>
#include <string.h>

#include "grow.h"
#include "python_objects.h"
#include "python_values.h"
#include "table.h"

#define V3_11 0x030b0000
#define V3_12 0x030c0000
#define V3_13 0x030d0000
#define V3_14 0x030e0000
#define V3_15 0x030f0000

#define READS_MAX   4000000 /* some seconds */
#define WITHIN_MAX  8       /* functions, classes and wrappers one in the other */
#define OBJECT_MAX  14      /* words of an object that may be another function's wrapper */
#define TUPLE_MAX   4096
#define MODULES_MAX 65536
#define WRAPPER_MAX 16
#define TYPE_NAME   8   /* of PyTypeObject, from its head on: tp_name, */
#define TYPE_SIZE   16  /* tp_basicsize, */
#define TYPE_FLAGS  152 /* tp_flags, */
#define TYPE_DICT   248 /* tp_dict */

#define IS_TYPE  (1u << 31)    /* Py_TPFLAGS_TYPE_SUBCLASS */
#define IS_PLAIN (0x3fu << 24) /* int, list, tuple, bytes, str, dict: wrap no function */

/* co_flags (Include/cpython/code.h) */
#define CODE_OPTIMIZED 1 /* a function's, not a class's or a module's */
#define CODE_GENERATOR 0x20
#define CODE_COROUTINE 0x80
#define CODE_ASYNC     0x200
#define CURSOR_FRAME   3 /* of a walk's cursor: the first frame */
#define LOCALS         "<locals>."

/* of 3.11 */
#define RESUME       151
#define RESUME_QUICK 150
#define PREFIX_MAX   32
#define RESUME_313   149 /* it specialises itself */
#define RESUME_314   128
#define UNITS_READ   256
#define CODE_MAX     (1u << 20)

struct module {
	u64 dict;
	char name[NAME_MAX_BYTES];
};

struct looking {
	struct python_reader r;
	const struct python_image *image;
	struct python_names *names;
	u64 bias;
	bool greenlets;
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

/* The frame that begins: its code, and the instruction before the first one, or that (3.13 on). */
static void set_proof(const struct looking *k, u64 code, struct runtime_callee *c)
{
	const struct python_vm *vm = &k->image->vm;

	if (k->r.version < V3_11)
		return;
	c->nproof = 2;
	c->proof[0].at = vm->f_code;
	c->proof[0].value = code;
	c->proof[1].at = vm->f_instr;
	c->proof[1].value = c->entry - (k->r.version < V3_13 ? 2 : 0);
}

/*
 * The cache entries (code units) behind each opcode, of specialised and instrumented ones as of the one that they stand
 * for, and the opcodes that return (_PyOpcode_Caches and _PyOpcode_Deopt of a version's headers).
 */
struct opcodes {
	u32 from; /* version */
	u8 returns[4], nreturns;
	u8 executor;  /* hides the instruction that it stands for; 0: none does */
	u8 generates; /* RETURN_GENERATOR: behind it the body of what can be suspended begins; 0: not known */
	struct {
		u8 first, last, n;
	} caches[36]; /* n is 0 behind the last */
};

static const struct opcodes opcodes[] = {
        {V3_14, {35, 246}, 2, 255, 34,
                {{3, 3, 5}, {38, 38, 1}, {39, 39, 3}, {44, 44, 5}, {52, 52, 3}, {55, 55, 3}, {56, 57, 1}, {70, 70, 1},
                        {75, 75, 1}, {80, 80, 9}, {92, 92, 4}, {96, 96, 1}, {100, 103, 1}, {106, 106, 1}, {110, 110, 4},
                        {119, 119, 1}, {129, 142, 5}, {143, 165, 3}, {166, 176, 1}, {177, 189, 9}, {192, 193, 4},
                        {194, 195, 1}, {197, 197, 1}, {198, 200, 4}, {201, 202, 1}, {203, 208, 3}, {209, 211, 1},
                        {237, 237, 1}, {241, 244, 1}, {249, 249, 1}, {250, 251, 3}, {253, 253, 1}}},
        {V3_13, {36, 103, 239, 240}, 4, 70, 35,
                {{3, 3, 1}, {5, 5, 1}, {39, 39, 1}, {40, 40, 3}, {45, 45, 1}, {53, 53, 3}, {58, 59, 1}, {72, 72, 1},
                        {77, 77, 1}, {82, 82, 9}, {91, 91, 4}, {93, 93, 1}, {97, 100, 1}, {104, 104, 1}, {108, 108, 4},
                        {117, 117, 1}, {150, 161, 1}, {162, 181, 3}, {182, 190, 1}, {191, 202, 9}, {203, 204, 4},
                        {205, 206, 1}, {208, 208, 1}, {209, 211, 4}, {212, 213, 1}, {214, 219, 3}, {220, 222, 1},
                        {242, 243, 1}, {244, 244, 3}, {249, 253, 1}}},
        {V3_12, {83, 121, 242, 247}, 4, 0, 75,
                {{6, 8, 1}, {10, 10, 1}, {13, 14, 1}, {16, 16, 1}, {18, 22, 1}, {23, 24, 3}, {25, 25, 1}, {28, 29, 3},
                        {34, 34, 3}, {38, 48, 3}, {56, 56, 3}, {57, 60, 1}, {62, 67, 1}, {70, 70, 9}, {72, 73, 9},
                        {76, 82, 9}, {92, 93, 1}, {95, 95, 4}, {106, 106, 9}, {107, 107, 1}, {111, 113, 4},
                        {116, 116, 4}, {122, 123, 1}, {141, 141, 1}, {148, 148, 4}, {153, 153, 4}, {159, 161, 1},
                        {166, 168, 1}, {171, 171, 3}, {237, 237, 1}, {241, 241, 3}, {248, 248, 1}}},
        {V3_11, {83}, 1, 0, 75,
                {{3, 8, 1}, {13, 14, 1}, {16, 16, 1}, {17, 25, 4}, {26, 29, 2}, {39, 43, 4}, {47, 48, 5}, {55, 55, 5},
                        {56, 59, 10}, {60, 60, 1}, {62, 63, 10}, {64, 67, 1}, {72, 73, 1}, {76, 81, 1}, {92, 92, 1},
                        {95, 95, 4}, {106, 106, 4}, {107, 107, 2}, {113, 113, 1}, {116, 116, 5}, {121, 122, 1},
                        {127, 127, 1}, {141, 141, 1}, {143, 143, 1}, {153, 154, 4}, {158, 159, 4}, {160, 160, 10},
                        {166, 166, 1}, {168, 170, 1}, {171, 171, 4}, {177, 180, 1}}},
        {0, {83}, 1, 0, 0, {{0}}},
};

/* NULL: of a version that is not known. */
static const struct opcodes *opcodes_of(u32 version)
{
	const struct opcodes *ret = opcodes;

	while (version < ret->from)
		ret++;
	return version >= V3_15 ? NULL : ret;
}

static u8 caches_behind(const struct opcodes *o, u8 op)
{
	for (u32 i = 0; i < sizeof(o->caches) / sizeof(*o->caches) && o->caches[i].n; i++)
		if (op >= o->caches[i].first && op <= o->caches[i].last)
			return o->caches[i].n;
	return 0;
}

/* 3.11: where RESUME is, behind what makes cells and copies free variables. */
static u64 resume_at(const struct looking *k, u64 entry)
{
	u8 units[2 * PREFIX_MAX] = {0};

	python_read(&k->r, units, sizeof(units), entry);
	for (u32 i = 0; i < PREFIX_MAX; i++)
		if (units[2 * i] == RESUME || units[2 * i] == RESUME_QUICK)
			return i;
	return 0;
}

#define HANDLERS_MAX 1024 /* bytes of co_exceptiontable that are looked at */

/*
 * Where the first handler of exceptions is, in code units: compilers from 3.11 on put them behind all else
 * (Objects/exception_handling_notes.txt: entries of four numbers, of six bits a byte, 64: more follow).
 */
static u32 first_handler(const struct looking *k, u64 code)
{
	const struct python_layout *l = k->r.l;
	u64 table = k->r.version < V3_11 ? 0 : python_word(&k->r, code + l->co_names.at + 8);
	u64 size = table ? python_word(&k->r, table + l->ob_size.at) : 0;
	u32 ret = UINT32_MAX, number = 0, which = 0;
	u8 bytes[HANDLERS_MAX];

	size = size < sizeof(bytes) ? size : sizeof(bytes);
	if (!size || !python_read(&k->r, bytes, size, table + l->bytes_data.at))
		return ret;
	for (u32 i = 0; i < size; i++) {
		number = number << 6 | (bytes[i] & 63);
		if (bytes[i] & 64)
			continue;
		if (which == 2 && number < ret)
			ret = number;
		which = (which + 1) & 3;
		number = 0;
	}
	return ret;
}

/*
 * Takes the returns among n units that are at `since` or behind, and before `to`. Returns the place of the first
 * instruction behind; 0: they cannot be told apart.
 */
static u32 take_returns(
        const struct opcodes *o, const u8 *units, u32 at, u32 n, u64 from, u64 since, u64 to, struct runtime_callee *c)
{
	u8 op;

	for (; at < n; at += 1 + caches_behind(o, op)) {
		op = units[2 * at];
		if (o->executor && op == o->executor)
			return 0;
		if (from + 2ull * at >= since && from + 2ull * at < to && memchr(o->returns, op, o->nreturns))
			runtime_add_exit(c, from + 2ull * at, 1, false);
	}
	return at;
}

/* All returns of n units of code, from a place on and up to another. False: they cannot be told apart. */
static bool find_returns(const struct looking *k, u32 n, u64 since, u64 to, struct runtime_callee *c)
{
	const struct opcodes *o = opcodes_of(k->r.version);
	u8 units[2 * UNITS_READ];
	u32 at = 0;

	for (u32 from = 0; from < n; from += UNITS_READ) {
		u32 here = n - from < UNITS_READ ? n - from : UNITS_READ;
		u64 addr = c->entry + 2ull * from;

		if (!python_read(&k->r, units, 2ul * here, addr) ||
		        !(at = take_returns(o, units, at, here, addr, since, to, c)))
			return false;
		at -= here;
	}
	return true;
}

/* Where there are more than can be watched, those of handlers of exceptions are left out first. */
static void find_exits(const struct looking *k, u64 code, struct runtime_callee *c)
{
	const struct python_layout *l = k->r.l;
	u64 size, object = l->co_bytes.size ? python_word(&k->r, code + l->co_bytes.at) : code, handlers;
	u32 n;

	size = python_word(&k->r, object + l->ob_size.at);
	n = (u32)(l->co_bytes.size ? size / 2 : size);
	if (!opcodes_of(k->r.version) || !object || size > CODE_MAX)
		return;
	handlers = c->entry + 2ull * first_handler(k, code);
	if (!find_returns(k, n, handlers, UINT64_MAX, c) || !find_returns(k, n, 0, handlers, c)) {
		c->nexits = 0;
		return;
	}
	c->identity = ~((1ull << PYTHON_COOKIE_BITS) - 1);
	if (k->r.version >= V3_11 && k->r.version < V3_12) /* there bytecode is made ready for being specialised */
		python_code_frame(k->names, k->r.mem, code, resume_at(k, c->entry), &c->begun);
}

/* What tells the end of a call beside its returns. co_exceptiontable follows co_names. */
static void find_ends(const struct looking *k, u64 code, struct runtime_callee *c)
{
	const struct opcodes *o = opcodes_of(k->r.version);

	c->frame_cursor = k->image->code_type + k->bias;
	c->frame_word = CURSOR_FRAME;
	if (!o || k->r.version < V3_11 || k->r.version >= V3_14 || python_head(&k->r) != 16)
		return;
	c->references = code;
	c->raises = code + k->r.l->co_names.at + 8;
	c->nreturns = o->nreturns;
	memcpy(c->returns, o->returns, sizeof(c->returns));
	c->identity = ~((1ull << PYTHON_COOKIE_BITS) - 1);
}

/* Where the body of what can be suspended begins, in code units: up to 3.10 that is all of it. 0: it is not known. */
static u32 body_at(const struct looking *k, u64 entry, const struct opcodes *o)
{
	u8 units[2 * PREFIX_MAX] = {0};

	python_read(&k->r, units, sizeof(units), entry);
	for (u32 i = 0; o && o->generates && i < PREFIX_MAX; i++)
		if (units[2 * i] == o->generates)
			return i + 1;
	return 0;
}

/*
 * A generator's or coroutine's call begins with the first step of its body, behind what makes the object, and goes on
 * in the frame that the object has, whoever resumes it.
 */
static void begin_in_body(const struct looking *k, u64 code, struct runtime_callee *c)
{
	u32 body = k->r.version < V3_11 ? 0 : body_at(k, c->entry, opcodes_of(k->r.version));
	bool at_it = k->r.version >= V3_13; /* as set_frames() */

	if (!c->frame_word || (k->r.version >= V3_11 && !body))
		return;
	if (body && !python_code_frame(k->names, k->r.mem, code, body - !at_it, &c->at[0]))
		return;
	c->nat = body ? 1 : c->nat;
	c->entry += 2ull * body;
	c->proof[1].value = c->entry - (at_it ? 0 : 2);
	c->stamp = 0;
	c->compared = 0;
	c->references = 0;
	c->raises = c->nexits < RUNTIME_CALL_EXITS ? c->raises : 0;
	c->place.own = RUNTIME_OWN_FRAME;
}

/*
 * Tail calls: bytecodes are functions, of which one has read the first instruction, or its caller in C has. So how deep
 * a call is on the thread's stack says nothing.
 */
static void begin_in_functions(struct runtime_callee *c)
{
	c->lead = 1;
	c->place.own = c->frame_word ? RUNTIME_OWN_FRAME : 0;
}

/* Greenlets of a thread are in calls of the same depth at the same time. */
static void begin_in_greenlets(struct runtime_callee *c)
{
	c->switched = c->frame_word != 0;
	c->place.own = c->switched ? RUNTIME_OWN_FRAME : 0;
}

static struct error *add_code(struct looking *k, u64 code, const char *module, const char *name)
{
	const struct python_layout *l = k->r.l;
	struct runtime_callee c = {.entry = bytecode(k, code), .bytes = 1};
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
	c.origin = strstr(c.file, "-packages/")    ? RUNTIME_INSTALLED
	           : strstr(c.file, "/lib/python") ? RUNTIME_STANDARD
	                                           : RUNTIME_OF_PROGRAM;
	c.makes = flags & CODE_GENERATOR   ? "generator"
	          : flags & CODE_COROUTINE ? "coroutine"
	          : flags & CODE_ASYNC     ? "asynchronous generator"
	                                   : NULL;
	set_proof(k, code, &c);
	if (k->r.version >= V3_12) /* _co_instrumentation_version; what follows it differs */
		c.stamp = code + l->co_code.at - 40;
	c.compared = k->r.version < V3_13 ? 0 : k->r.version < V3_14 ? RESUME_313 : RESUME_314;
	find_exits(k, code, &c);
	find_ends(k, code, &c);
	if (!k->image->eval.dispatches)
		begin_in_functions(&c);
	else if (k->greenlets)
		begin_in_greenlets(&c);
	if (c.makes)
		begin_in_body(k, code, &c);
	python_places(&k->r, k->image, k->bias, code, flags, &c);
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
	memory_string(k->r.mem, name, sizeof(name), python_word(&k->r, class + python_head(&k->r) + TYPE_NAME));
	dot = strrchr(name, '.');
	snprintf(within, sizeof(within), "%.300s%s.", at->within, dot ? dot + 1 : name);
	return look_dict(k, python_word(&k->r, class + python_head(&k->r) + TYPE_DICT), &inner);
}

/* What wraps a function: a static method, a property, functools.partial, lru_cache and the like. */
static struct error *look_wrapper(struct looking *k, u64 object, u64 type, const struct place *at)
{
	u64 words[WRAPPER_MAX], size = python_word(&k->r, type + python_head(&k->r) + TYPE_SIZE);
	struct place inner = *at;
	struct error *err = NULL;
	u32 n;

	size = size > python_head(&k->r) ? size - python_head(&k->r) : 0;
	n = size / 8 < WRAPPER_MAX ? (u32)(size / 8) : WRAPPER_MAX;
	inner.depth++;
	if (!n || !is_new(k, object, &err) || !python_read(&k->r, words, 8ul * n, object + python_head(&k->r)))
		return err;
	for (u32 i = 0; !err && i < n; i++)
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
	return flags & IS_TYPE ? look_class(k, object, at) : look_wrapper(k, object, type, at);
}

/* May the module have a function of this name? */
static bool may_have(const char *module, const char *pattern)
{
	size_t literal = pattern ? strcspn(pattern, "*") : 0, len = strlen(module);

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

struct error *python_calls(const struct python_image *image, u64 bias, struct python_names *names, bool greenlets,
        const struct runtime_process *p, const char *pattern,
        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx)
{
	struct looking k = {.image = image,
	        .names = names,
	        .bias = bias,
	        .greenlets = greenlets,
	        .left = READS_MAX,
	        .add = add,
	        .ctx = ctx};
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
