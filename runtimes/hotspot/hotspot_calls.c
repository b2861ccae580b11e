/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "code/insn.h"
#include "hotspot_frozen.h"
#include "hotspot_values.h"
#include "runtimes/hotspot/heap/hotspot_heap_view.h"
#include "table.h"

#define LOADERS_MAX  (1u << 16)
#define CLASSES_MAX  (1u << 18)
#define METHODS_MAX  65535u /* of a class: The Java Virtual Machine Specification, 4.1 */
#define METHODS_ALL  (1u << 22)
#define CODELETS_MAX 4096
#define BLOBS_MAX    (1u << 18) /* of the code cache, that are looked at */
#define CODE_MAX     (1u << 20) /* of a method that was compiled */
#define BYTECODE_MAX 65535u     /* The Java Virtual Machine Specification, 4.9.1 */

struct looking {
	struct hotspot_instance *instance;
	const struct runtime_process *p;
	const char *pattern;
	u64 head, next, klasses, link, methods; /* where loaders, classes and methods are */
	u64 object, sub, sibling, super;        /* or, in JDK 8, java.lang.Object, and where classes below it are */
	u64 entry;                              /* of nmethod: its verified entry, an address, */
	u64 entry_offset;                       /* or an offset from its code (23 on) */
	u64 stubs;                              /* and where its code ends, from the nmethod */
	u64 code_from, code_to;                 /* codelets that methods begin in */
	struct runtime_carrier carrier;
	u32 left, methods_left; /* classes; methods of all of them */
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

#define TABLESWITCH   170
#define LOOKUPSWITCH  171
#define RETURN_FIRST  172
#define RETURN_LAST   177
#define WIDE          196
#define IINC          132
#define LINEARSWITCH  228
#define BINARYSWITCH  229
#define RETURN_OBJECT 232 /* of Object's constructor */

/*
 * Sizes of bytecodes up to a number: those of The Java Virtual Machine Specification, 6.5, then those that the
 * interpreter puts in their place (src/hotspot/share/interpreter/bytecodes.hpp, JDK 8u121 to 25; 8 has none behind
 * 233). 0: not known.
 */
static u32 size_of_bytecode(u8 op)
{
	static const struct {
		u8 last, size;
	} of[] = {{15, 1}, {16, 2}, {17, 3}, {18, 2}, {20, 3}, {25, 2}, {53, 1}, {58, 2}, {131, 1}, {132, 3}, {152, 1},
	        {168, 3}, {169, 2}, {171, 0}, {177, 1}, {184, 3}, {186, 5}, {187, 3}, {188, 2}, {189, 3}, {191, 1},
	        {193, 3}, {195, 1}, {196, 0}, {197, 4}, {199, 3}, {201, 5}, {202, 0}, {219, 3}, {220, 1}, {223, 4},
	        {224, 2}, {225, 4}, {227, 3}, {229, 0}, {230, 2}, {231, 3}, {232, 1}, {235, 3}, {236, 1}, {237, 2},
	        {255, 0}};
	u32 i = 0;

	while (op > of[i].last)
		i++;
	return of[i].size;
}

static u32 big_endian(const u8 *at)
{
	return (u32)at[0] << 24 | (u32)at[1] << 16 | (u32)at[2] << 8 | at[3];
}

/* The size of the instruction at `at`; 0: not known. */
static u32 size_at(const u8 *code, u32 at, u32 n)
{
	u32 operands = (at & ~3u) + 4, low, high;

	switch (code[at]) {
	case WIDE:
		return at + 1 >= n ? 0 : code[at + 1] == IINC ? 6 : 4;
	case TABLESWITCH:
		if (operands + 12 > n)
			return 0;
		low = big_endian(code + operands + 4);
		high = big_endian(code + operands + 8);
		return high - low < n ? operands + 12 + 4 * (high - low + 1) - at : 0;
	case LOOKUPSWITCH:
	case LINEARSWITCH:
	case BINARYSWITCH:
		low = operands + 8 > n ? n : big_endian(code + operands + 4);
		return low < n ? operands + 8 + 8 * low - at : 0;
	default:
		return size_of_bytecode(code[at]);
	}
}

/* Bytecodes that return: the interpreter reads each before it runs it. */
static void find_bytecode_exits(const struct looking *k, u64 constants, struct runtime_callee *c)
{
	const struct hotspot_layout *l = k->instance->layout;
	u8 code[BYTECODE_MAX];
	u16 n = 0;
	u32 size;

	c->identity = 0xffffffffull << 32 | 15;
	if (!memory_read(k->p->memory, &n, sizeof(n), constants + l->const_code_size.at) ||
	        !memory_read(k->p->memory, code, n, c->entry))
		return;
	for (u32 at = 0; at < n; at += size) {
		size = size_at(code, at, n);
		if (!size) {
			c->nexits = 0;
			return;
		}
		if ((code[at] >= RETURN_FIRST && code[at] <= RETURN_LAST) || code[at] == RETURN_OBJECT)
			runtime_add_exit(c, c->entry + at, 1, false);
	}
}

#define POP_RBP  0x5d
#define POLL_MAX 3 /* instructions of a poll: mov and test, or cmp and ja */

/*
 * Instructions that return; or what is in front of them, once the frame is gone: a poll that finds something to do goes
 * to the caller by another way (sharedRuntime, polling_page_return_handler_blob()).
 */
static void find_code_exits(const struct looking *k, u64 nmethod, struct runtime_callee *c)
{
	cleanup(free) u8 *code = NULL;
	u32 stubs = 0, size, popped = 0, since = 0;
	struct insn insn;

	c->identity = ~((u64)HOTSPOT_PC_MASK << 4);
	if (!k->stubs || !memory_read(k->p->memory, &stubs, sizeof(stubs), nmethod + k->stubs) ||
	        nmethod + stubs <= c->entry || nmethod + stubs - c->entry > CODE_MAX)
		return;
	size = (u32)(nmethod + stubs - c->entry);
	code = malloc(size);
	if (!code || !memory_read(k->p->memory, code, size, c->entry))
		return;
	for (u32 at = 0; at < size; at += insn.size) {
		insn = insn_decode(code + at, size - at);
		if (insn.kind == INSN_BAD || !insn.size) {
			c->nexits = 0;
			return;
		}
		if (insn.kind == INSN_RETURN)
			runtime_add_exit(c, c->entry + (popped && since <= POLL_MAX ? popped : at), 8, false);
		since++;
		if (code[at] == POP_RBP) {
			popped = at + 1;
			since = 0;
		}
	}
}

#define STATIC 8 /* JVM_ACC_STATIC */

/* A method's. */
static bool find_class(const struct looking *k, u64 method, u64 constants, u64 *klass, bool *is_static)
{
	const struct hotspot_layout *l = k->instance->layout;
	u64 pool;
	u16 access;

	if (!word(k, &pool, constants + l->const_pool.at) || !word(k, klass, pool + l->pool_holder.at) ||
	        !memory_read(k->p->memory, &access, sizeof(access), method + l->method_access.at))
		return false;
	*is_static = access & STATIC;
	return true;
}

static void set_places(
        const struct looking *k, u64 method, u64 constants, const char *signature, struct runtime_callee *c)
{
	bool is_static;
	u64 klass;

	if (!find_class(k, method, constants, &klass, &is_static))
		return;
	hotspot_places(k->instance, k->p->memory, klass, constants, is_static, signature, c);
	hotspot_result(k->instance, k->p->memory, klass, constants, c);
}

static struct error *add_interpreted(
        const struct looking *k, u64 method, u64 constants, const char *signature, struct runtime_callee c)
{
	c.entry = constants + k->instance->layout->const_size.at;
	c.bytes = 1;
	c.code_from = k->code_from;
	c.code_to = k->code_to;
	c.at[0].where = frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, 0, method);
	c.at[0].detail = hotspot_method(0, 0, hotspot_method_cookie(constants));
	find_bytecode_exits(k, constants, &c);
	set_places(k, method, constants, signature, &c);
	return k->code_to ? k->add(k->ctx, &c) : NULL;
}

/* Where callers enter an nmethod. */
static bool find_entry(const struct looking *k, const struct hotspot_nmethod *nm, u64 *ret)
{
	u16 offset;

	if (k->entry && !memory_read(k->p->memory, ret, sizeof(*ret), nm->at + k->entry))
		return false;
	if (!k->entry && !memory_read(k->p->memory, &offset, sizeof(offset), nm->at + k->entry_offset))
		return false;
	if (!k->entry)
		*ret = nm->code + offset;
	return *ret >= nm->code && *ret < nm->code_end;
}

static struct error *add_compiled(
        const struct looking *k, u64 method, u64 constants, const char *signature, struct runtime_callee c)
{
	struct hotspot_nmethod nm;
	u64 at;

	if (!word(k, &at, method + k->instance->layout->method_code.at) || !at ||
	        !hotspot_nmethod_read(k->instance->code, k->p->memory, at, 0, &nm) || nm.method != method ||
	        !find_entry(k, &nm, &c.entry))
		return NULL;
	c.executed = true;
	c.bytes = 8;
	c.code_from = k->code_from; /* of its interpreted form */
	c.code_to = k->code_to;
	c.at[0].where = frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, 0, nm.at);
	c.at[0].detail = hotspot_nmethod(nm.compile_id, 0);
	c.loose_detail = (u64)HOTSPOT_PC_MASK << 4;
	find_code_exits(k, nm.at, &c);
	set_places(k, method, constants, signature, &c);
	return k->add(k->ctx, &c);
}

static struct error *add_forms(
        const struct looking *k, u64 method, u64 constants, const char *signature, struct runtime_callee *c)
{
	struct error *err;

	c->nat = 1;
	c->unseen = "calls that a compiler inlined into the caller are not seen: `yrt java-flame` shows their time";
	c->changes = method + k->instance->layout->method_code.at;
	c->carrier = k->carrier;
	err = add_interpreted(k, method, constants, signature, *c);
	return err ? err : add_compiled(k, method, constants, signature, *c);
}

static struct error *add_method(const struct looking *k, const struct methods *all, u64 method)
{
	struct runtime_callee c = {0};
	struct frame_name name;
	const u64 *same;
	u64 constants;

	if (!read_method(k, method, &constants, &name))
		return NULL;
	same = table_get(&all->names, hash_of(name.name));
	write_name(&name, same && *same > 1, c.name);
	snprintf(c.file, sizeof(c.file), "%s", name.file);
	c.line = name.definition;
	return add_forms(k, method, constants, name.signature, &c);
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
static struct error *look_class(struct looking *k, u64 klass)
{
	struct methods all = {0};
	struct error *err;
	u64 array;
	s32 n;

	if (!word(k, &array, klass + k->methods) || !array || array & 7 ||
	        !memory_read(k->p->memory, &n, sizeof(n), array) || n <= 0 || (u32)n > METHODS_MAX ||
	        (u32)n > k->methods_left)
		return NULL;
	k->methods_left -= (u32)n;
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
	size_t literal = k->pattern ? strcspn(k->pattern, "*(") : 0, n;
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

/* JDK 8 does not say which classes a loader has, but which are below a class. */
static bool find_tree(struct looking *k)
{
	const struct vmstructs *v = k->instance->v;
	u64 at;

	return vmstructs_static(
	               v, "SystemDictionary", "_well_known_klasses[SystemDictionary::Object_klass_knum]", &at) &&
	       vmstructs_field(v, "Klass", "_subklass", &k->sub, NULL) &&
	       vmstructs_field(v, "Klass", "_next_sibling", &k->sibling, NULL) &&
	       vmstructs_field(v, "Klass", "_super", &k->super, NULL) && word(k, &k->object, at) && k->object;
}

/*
 * Virtual threads (21 on): r15 is the JavaThread in all code of Java; _vthread and _threadObj are OopHandles, which
 * point to references without compression (javaThread.hpp); Thread.tid does not change.
 */
static void find_carrier(struct looking *k)
{
	struct hotspot_heap_view *h = k->instance->heap;
	struct memory *m = k->p->memory;
	u64 klass, current;
	u32 number;

	if (!h || !k->instance->freezes || !hotspot_heap_ready(h, m) || h->oops == OOP_COLOURED ||
	        !vmstructs_field(k->instance->v, "JavaThread", "_vthread", &current, NULL))
		return;
	klass = hotspot_vm_class(k->instance, m, "java/lang/Thread");
	if (!klass || !hotspot_java_field(h, m, klass, "tid", "J", &number) || number > UINT16_MAX ||
	        current > UINT16_MAX)
		return;
	k->carrier = (struct runtime_carrier){.reg = DWREG_R15,
	        .current = (u16)current,
	        .own = k->instance->layout->thread_obj.at,
	        .number = (u16)number};
}

static bool find_members(struct looking *k)
{
	const struct vmstructs *v = k->instance->v;

	if (!vmstructs_field(v, "InstanceKlass", "_methods", &k->methods, NULL))
		return false;
	if ((!vmstructs_static(v, "ClassLoaderDataGraph", "_head", &k->head) ||
	            !vmstructs_field(v, "ClassLoaderData", "_next", &k->next, NULL) ||
	            !vmstructs_field(v, "ClassLoaderData", "_klasses", &k->klasses, NULL) ||
	            !vmstructs_field(v, "Klass", "_next_link", &k->link, NULL)) &&
	        !find_tree(k))
		return false;
	vmstructs_field(v, "nmethod", "_verified_entry_point", &k->entry, NULL);         /* up to 22 */
	vmstructs_field(v, "nmethod", "_verified_entry_offset", &k->entry_offset, NULL); /* 23 on */
	vmstructs_field(v, "nmethod", "_stub_offset", &k->stubs, NULL);
	if (!k->code_to)
		find_codelets(k);
	find_carrier(k);
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

static struct error *look_loaders(struct looking *k)
{
	struct error *err = NULL;
	u64 loader;

	if (!word(k, &loader, k->head))
		return NULL;
	for (u32 i = 0; !err && i < LOADERS_MAX && loader; i++) {
		err = look_loader(k, loader);
		if (!word(k, &loader, loader + k->next))
			break;
	}
	return err;
}

/* The class behind this one, of all below Object; 0: there are no more. */
static u64 next_class(struct looking *k, u64 klass)
{
	u64 ret;

	if (word(k, &ret, klass + k->sub) && ret)
		return ret;
	while (klass && klass != k->object && k->left && word(k, &ret, klass + k->sibling)) {
		if (ret)
			return ret;
		k->left--;
		if (!word(k, &klass, klass + k->super))
			break;
	}
	return 0;
}

static struct error *look_tree(struct looking *k)
{
	struct error *err = NULL;

	for (u64 klass = k->object; !err && klass && k->left; klass = next_class(k, klass)) {
		k->left--;
		if (may_match(k, klass))
			err = look_class(k, klass);
	}
	return err;
}

static struct error *list(void *data, const struct runtime_process *p, const char *pattern,
        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx)
{
	struct hotspot_instance *instance = data;
	struct looking k = {.instance = instance,
	        .p = p,
	        .pattern = pattern,
	        .left = CLASSES_MAX,
	        .methods_left = METHODS_ALL,
	        .add = add,
	        .ctx = ctx};

	if (!instance->names || !instance->heap || !find_members(&k))
		return NULL;
	if ((!k.entry && !k.entry_offset) || !k.code_to)
		return error_hint(error_new(ERROR_UNSUPPORTED, "this JVM does not say where its methods begin"),
		        "yrt finds them in HotSpot of JDK 8 to 25");
	return k.object ? look_tree(&k) : look_loaders(&k);
}

static struct error *again(void *data, const struct runtime_process *p, const struct runtime_callee *of,
        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx)
{
	struct hotspot_instance *instance = data;
	struct looking k = {.instance = instance,
	        .p = p,
	        .code_from = of->code_from,
	        .code_to = of->code_to,
	        .add = add,
	        .ctx = ctx};
	struct runtime_callee c = {.line = of->line};
	struct frame_name name;
	u64 method = of->changes - instance->layout->method_code.at, constants;

	if (!instance->names || !find_members(&k) || !read_method(&k, method, &constants, &name) ||
	        strncmp(of->name, name.name, strlen(name.name)) != 0)
		return NULL;
	memcpy(c.name, of->name, sizeof(c.name));
	memcpy(c.file, of->file, sizeof(c.file));
	return add_forms(&k, method, constants, name.signature, &c);
}

static bool field(void *data, const struct runtime_process *p, const struct runtime_callee *of, u32 i,
        const char *fields, struct value_places *v, u32 slot)
{
	struct hotspot_instance *instance = data;
	struct looking k = {.instance = instance, .p = p};
	u64 method = of->changes - instance->layout->method_code.at, constants, klass;
	struct frame_name name;
	bool is_static;

	return instance->names && read_method(&k, method, &constants, &name) &&
	       find_class(&k, method, constants, &klass, &is_static) &&
	       hotspot_fields(instance, p->memory, klass, is_static, name.signature, i, fields, v, slot);
}

struct inlining {
	struct looking k;
	u64 method;
	u32 left; /* blobs */
	void (*add)(void *ctx, const char *into);
	void *ctx;
};

static bool look_blob(void *ctx, const struct hotspot_blob *blob)
{
	struct inlining *in = ctx;
	struct frame_name name;
	u64 into, constants;

	if (blob->kind == BLOB_NMETHOD &&
	        hotspot_has_inlined(in->k.instance->names, in->k.p->memory, blob->at, in->method, &into) &&
	        read_method(&in->k, into, &constants, &name))
		in->add(in->ctx, name.name);
	return --in->left;
}

static void inlined(void *data, const struct runtime_process *p, const struct runtime_callee *of,
        void (*add)(void *ctx, const char *into), void *ctx)
{
	struct hotspot_instance *instance = data;
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	struct inlining in = {.k = {.instance = instance, .p = p}, .left = BLOBS_MAX, .add = add, .ctx = ctx};
	u32 n;

	if (!instance->names || !instance->code)
		return;
	in.method = of->changes - instance->layout->method_code.at;
	n = hotspot_heaps(instance->code, p->memory, heaps);
	for (u32 i = 0; i < n && in.left; i++)
		hotspot_each_blob(instance->code, p->memory, &heaps[i], look_blob, &in);
}

static const struct runtime_server servers[] = {
        {"Tomcat", "java:org.apache.catalina.connector.CoyoteAdapter.service",
                "1.methodMB.byteC.buff,1.uriMB.byteC.buff", 0}, /* CoyoteAdapter.java, org/apache/coyote/Request.java */
        /* HttpChannel.java, Request.java, MetaData.java, HttpURI.java of 9; of 10 and 11 */
        {"Jetty", "java:org.eclipse.jetty.server.HttpChannel.handle",
                "0._request._metaData._method,0._request._metaData._uri._path|"
                "0._request._method,0._request._uri<org.eclipse.jetty.http.HttpURI$Immutable>._path",
                0},
        /* internal/HttpChannelState.java of 12: HandlerInvoker, around the handlers */
        {"Jetty", "java:org.eclipse.jetty.server.internal.HttpChannelState$HandlerInvoker.run",
                "0.this$0._request._metaData._method,"
                "0.this$0._request._metaData._uri<org.eclipse.jetty.http.HttpURI$Immutable>._path",
                0},
        /* sun/net/httpserver/AuthFilter.java, HttpExchangeImpl.java, ExchangeImpl.java: jdk.httpserver; AuthFilter is
           the first filter of each context */
        {"JDK HttpServer", "java:sun.net.httpserver.AuthFilter.doFilter",
                "1<sun.net.httpserver.HttpExchangeImpl>.impl.method,"
                "1<sun.net.httpserver.HttpExchangeImpl>.impl.uri.path",
                0},
        /* ServletInitialHandler.java, HttpServerExchange.java */
        {"Undertow", "java:io.undertow.servlet.handlers.ServletInitialHandler.handleFirstRequest",
                "1.requestMethod.string,1.requestPath", 0},
        {0},
};
static const char *const files[] = {"libjvm.so", NULL};

const struct runtime_calls_ops hotspot_calls = {.form = "java:PACKAGE.CLASS.METHOD",
        .list = list,
        .again = again,
        .inlined = inlined,
        .value = hotspot_value,
        .field = field,
        .servers = servers,
        .files = files};
