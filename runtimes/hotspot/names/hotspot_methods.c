/* SPDX-License-Identifier: Apache-2.0 */
/* Method -> ConstMethod -> ConstantPool -> Symbols: names, files and line number tables of methods. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "cleanup.h"
#include "hotspot_lines.h"
#include "hotspot_names_state.h"
#include "hotspot_text.h"

#define METHOD_BYTES 256
#define CONST_BYTES  512 /* that are read at once: most methods end before */
#define CONST_MAX    (1u << 20)
#define POOL_BYTES   512
#define SYMBOL_FIRST 64 /* bytes of a symbol that are read at once */
#define CLASS_MAX    384
#define ACC_NATIVE   0x100

struct symbol_text {
	u8 bytes[HOTSPOT_SYMBOL_MAX];
	size_t size;
};

/* A method as it is read. */
struct reading {
	const struct hotspot_names *n;
	struct memory *m;
	u64 constants; /* ConstMethod */
	u64 texts;     /* hash of the Symbols that its cookie is made of */
	u64 pool;
	u8 bytes[CONST_BYTES]; /* of the ConstMethod */
	u32 nbytes;
	u8 pool_bytes[POOL_BYTES];
	u32 pool_length;
	bool native;
	u64 holder;
	struct symbol_text class, name, signature;
};

struct class_name {
	char name[CLASS_MAX];
	char file[];
};

static u64 number(const u8 *bytes, struct layout_member m)
{
	u64 value = 0;

	memcpy(&value, bytes + m.at, m.size < 8 ? m.size : 8);
	return value;
}

static u64 pointer(const u8 *bytes, struct layout_member m)
{
	u64 value;

	memcpy(&value, bytes + m.at, 8);
	return value;
}

/* The Method's members that matter, in one read. */
static bool read_method(const struct hotspot_names *n, struct memory *m, u64 method, u64 *constants, bool *native)
{
	u32 access = n->l->method_access.at, at = n->l->method_const.at, size = access > at ? access + 2 : at + 8;
	u8 bytes[METHOD_BYTES];

	if (!method || method & 7 || size > sizeof(bytes) || access + 2 > size || at + 8 > size ||
	        !memory_read(m, bytes, size, method))
		return false;
	*constants = pointer(bytes, n->l->method_const);
	*native = (bytes[access] | bytes[access + 1] << 8) & ACC_NATIVE;
	return *constants && !(*constants & 7);
}

bool hotspot_names_symbol(const struct hotspot_names *n, struct memory *m, u64 symbol, u8 *ret, size_t *size)
{
	u32 body = n->l->symbol_body.at, at = n->l->symbol_length.at;
	u8 bytes[SYMBOL_FIRST];
	bool first;

	if (!symbol || symbol & 7 || body >= SYMBOL_FIRST || at + 2 > SYMBOL_FIRST)
		return false;
	first = memory_read(m, bytes, sizeof(bytes), symbol);
	if (!first && !memory_read(m, bytes + at, 2, symbol + at))
		return false;
	*size = bytes[at] | bytes[at + 1] << 8;
	if (*size > HOTSPOT_SYMBOL_MAX)
		*size = HOTSPOT_SYMBOL_MAX;
	if (first && *size <= SYMBOL_FIRST - body) {
		memcpy(ret, bytes + body, *size);
		return true;
	}
	return !*size || memory_read(m, ret, *size, symbol + body);
}

static bool read_constants(struct reading *r)
{
	const struct hotspot_layout *l = r->n->l;

	r->nbytes = sizeof(r->bytes);
	if (l->const_size.at > sizeof(r->bytes))
		return false;
	if (!memory_read(r->m, r->bytes, r->nbytes, r->constants)) {
		r->nbytes = l->const_size.at;
		if (!memory_read(r->m, r->bytes, r->nbytes, r->constants))
			return false;
	}
	r->pool = pointer(r->bytes, l->const_pool);
	return r->pool && !(r->pool & 7);
}

static bool read_pool(struct reading *r)
{
	const struct hotspot_layout *l = r->n->l;

	if (l->pool_size.at > sizeof(r->pool_bytes) || !memory_read(r->m, r->pool_bytes, l->pool_size.at, r->pool))
		return false;
	r->pool_length = (u32)number(r->pool_bytes, l->pool_length);
	return r->pool_length <= 65536;
}

/* The Symbol at an index of the pool. */
static bool read_entry(const struct reading *r, u32 index, u64 *ret)
{
	return index && index < r->pool_length &&
	       memory_read(r->m, ret, 8, r->pool + r->n->l->pool_size.at + 8ull * index);
}

/* Two Symbols, which often stand side by side. */
static bool read_entries(const struct reading *r, u32 a, u32 b, u64 *reta, u64 *retb)
{
	u64 both[2];

	if (b != a + 1)
		return read_entry(r, a, reta) && read_entry(r, b, retb);
	if (!a || b >= r->pool_length ||
	        !memory_read(r->m, both, sizeof(both), r->pool + r->n->l->pool_size.at + 8ull * a))
		return false;
	*reta = both[0];
	*retb = both[1];
	return true;
}

/* Of the class, the method and its arguments, in this order. */
static bool read_text(struct reading *r, u64 symbol, struct symbol_text *ret)
{
	if (!hotspot_names_symbol(r->n, r->m, symbol, ret->bytes, &ret->size) ||
	        !hotspot_text_is_sound(ret->bytes, ret->size, ret->size == HOTSPOT_SYMBOL_MAX))
		return false;
	r->texts = XXH3_64bits_withSeed(ret->bytes, ret->size, r->texts + ret->size);
	return true;
}

/* The pool of a method, and the class that it belongs to. */
static bool read_holder(struct reading *r, u64 *symbol)
{
	if (!read_constants(r) || !read_pool(r))
		return false;
	r->holder = pointer(r->pool_bytes, r->n->l->pool_holder);
	return r->holder && !(r->holder & 7) && memory_read(r->m, symbol, 8, r->holder + r->n->l->klass_name.at);
}

static bool read_own(const struct reading *r, u64 *symbol, u64 *descriptor)
{
	const struct hotspot_layout *l = r->n->l;

	return read_entries(
	        r, (u32)number(r->bytes, l->const_name), (u32)number(r->bytes, l->const_signature), symbol, descriptor);
}

static u32 cookie_of(const struct reading *r)
{
	return (u32)hotspot_cache_key(r->constants, r->texts);
}

/*
 * Classes that were unloaded leave their memory to others of the same shape: addresses of a method and of all that
 * belongs to it may be the same, those of the Symbols too, but not the texts.
 */
static bool read_texts(struct reading *r, u32 *cookie)
{
	u64 symbol, descriptor;

	if (!read_holder(r, &symbol) || !read_text(r, symbol, &r->class) || !read_own(r, &symbol, &descriptor) ||
	        !read_text(r, symbol, &r->name) || !read_text(r, descriptor, &r->signature))
		return false;
	*cookie = cookie_of(r);
	return true;
}

static void start(struct reading *r, const struct hotspot_names *n, struct memory *m)
{
	r->n = n;
	r->m = m;
	r->texts = 0;
}

bool hotspot_names_cookie(const struct hotspot_names *n, struct memory *m, u64 method, u32 *ret)
{
	struct reading r;

	start(&r, n, m);
	return read_method(n, m, method, &r.constants, &r.native) && read_texts(&r, ret);
}

bool hotspot_names_classed(const struct hotspot_names *n, struct memory *m, u64 method, u32 cookie, u32 *ret)
{
	struct reading r;

	start(&r, n, m);
	return read_method(n, m, method, &r.constants, &r.native) && hotspot_method_cookie(r.constants) == cookie &&
	       read_texts(&r, ret);
}

/* Since 16 the pool knows the source file, before that the class. */
static void read_file(const struct reading *r, char *ret, size_t size)
{
	const struct hotspot_layout *l = r->n->l;
	u8 bytes[HOTSPOT_SYMBOL_MAX];
	u64 symbol;
	u16 index = 0;
	size_t n;

	ret[0] = '\0';
	if (l->pool_source_file.size)
		memcpy(&index, r->pool_bytes + l->pool_source_file.at, 2);
	else if (!l->klass_source_file.size || !memory_read(r->m, &index, 2, r->holder + l->klass_source_file.at))
		return;
	if (read_entry(r, index, &symbol) && hotspot_names_symbol(r->n, r->m, symbol, bytes, &n))
		hotspot_text_name(bytes, n, ret, size);
}

/* The class that the pool belongs to. */
static const struct class_name *read_class(struct hotspot_names *n, const struct reading *r)
{
	u64 key = hotspot_cache_key(r->pool ^ r->holder << 1, XXH3_64bits(r->class.bytes, r->class.size));
	struct class_name *c = hotspot_cache_get(&n->classes, key);
	char file[NAME_MAX_BYTES];

	if (c)
		return c;
	read_file(r, file, sizeof(file));
	c = malloc(sizeof(*c) + strlen(file) + 1);
	if (!c)
		return NULL;
	hotspot_text_class(r->class.bytes, r->class.size, c->name, sizeof(c->name));
	strcpy(c->file, file);
	return hotspot_cache_put(&n->classes, key, c, sizeof(*c) + strlen(file)) ? c : NULL;
}

/* The line number table, of which a part may have been read already. NULL: there is none. */
static u8 *read_lines(const struct reading *r, u32 *size)
{
	const struct hotspot_layout *l = r->n->l;
	u32 bit = l->const_has_lines.size ? l->const_has_lines.at : 1;
	u32 at = l->const_size.at + (u32)number(r->bytes, l->const_code_size), end;
	u8 *bytes;

	*size = 0;
	if (!(number(r->bytes, l->const_flags) & bit))
		return NULL;
	if (at < r->nbytes && (*size = hotspot_lines_size(r->bytes + at, r->nbytes - at, r->n->no_zero))) {
		bytes = malloc(*size);
		return bytes ? memcpy(bytes, r->bytes + at, *size) : NULL;
	}
	end = 8 * (u32)number(r->bytes, l->const_words);
	if (end <= at || end > CONST_MAX)
		return NULL;
	bytes = malloc(end - at);
	if (bytes && memory_read(r->m, bytes, end - at, r->constants + at))
		*size = hotspot_lines_size(bytes, end - at, r->n->no_zero);
	return bytes;
}

/* name, signature and file are texts; the table of lines goes behind them. */
static struct hotspot_method_name *make(const struct reading *r, const char *name, const char *signature,
        const char *file, const u8 *lines, u32 nlines, size_t *bytes)
{
	size_t n = strlen(name) + 1, s = strlen(signature) + 1, f = strlen(file) + 1;
	struct hotspot_method_name *ret;
	char *at;

	*bytes = sizeof(*ret) + n + s + f + nlines;
	ret = malloc(*bytes);
	if (!ret)
		return NULL;
	at = (char *)(ret + 1);
	*ret = (struct hotspot_method_name){.native = r->native,
	        .nlines = nlines,
	        .name = memcpy(at, name, n),
	        .signature = memcpy(at + n, signature, s),
	        .file = memcpy(at + n + s, file, f),
	        .lines = (u8 *)at + n + s + f};
	if (nlines) {
		memcpy(at + n + s + f, lines, nlines);
		ret->definition = hotspot_line(ret->lines, nlines, r->n->no_zero, 0);
	}
	ret->identity = XXH3_64bits(at, n + s + f);
	return ret;
}

static bool is_scala(const char *file)
{
	size_t n = strlen(file);

	return n > 6 && !strcmp(file + n - 6, ".scala");
}

/* "com.foo.Bar.baz" */
static void write_name(const struct reading *r, const struct class_name *class, char *name, char *signature)
{
	int put = snprintf(name, NAME_MAX_BYTES, "%s.", class->name);

	hotspot_text_name(r->name.bytes, r->name.size, name + put, NAME_MAX_BYTES - put);
	if (is_scala(class->file))
		hotspot_text_scala(name);
	hotspot_text_signature(r->signature.bytes, r->signature.size, signature, NAME_MAX_BYTES);
}

/* Of what read_texts() has read. */
static struct hotspot_method_name *make_name(struct hotspot_names *n, const struct reading *r, size_t *bytes)
{
	char name[NAME_MAX_BYTES], signature[NAME_MAX_BYTES];
	const struct class_name *class = read_class(n, r);
	cleanup(free) u8 *lines = NULL;
	u32 nlines;

	if (!class)
		return NULL;
	write_name(r, class, name, signature);
	lines = read_lines(r, &nlines);
	return make(r, name, signature, class->file, lines, nlines, bytes);
}

/* Keeps what read_texts() has read, by the cookie that it made. */
static const struct hotspot_method_name *keep_name(struct hotspot_names *n, const struct reading *r, u64 key)
{
	size_t bytes;
	struct hotspot_method_name *name = make_name(n, r, &bytes);

	return name && hotspot_cache_put(&n->methods, key, name, bytes) ? name : NULL;
}

static u64 key_of(u64 method, u32 cookie, bool classed)
{
	return hotspot_cache_key(method, (u64)classed << 32 | cookie);
}

bool hotspot_names_learn(struct hotspot_names *n, struct memory *m, u64 method, u32 *ret)
{
	struct reading r;
	u64 key;

	start(&r, n, m);
	if (!hotspot_names_ready(n, m) || !read_method(n, m, method, &r.constants, &r.native) || !read_texts(&r, ret))
		return false;
	key = key_of(method, *ret, true);
	if (!hotspot_cache_get(&n->methods, key))
		keep_name(n, &r, key);
	return true;
}

const struct hotspot_method_name *hotspot_names_method(
        struct hotspot_names *n, struct memory *m, u64 method, u32 cookie, bool classed)
{
	u64 key = key_of(method, cookie, classed);
	const struct hotspot_method_name *known = hotspot_cache_get(&n->methods, key);
	struct reading r;
	u32 made;

	if (known)
		return known;
	start(&r, n, m);
	if (!hotspot_names_ready(n, m) || !cookie || !read_method(n, m, method, &r.constants, &r.native))
		return NULL;
	if (read_texts(&r, &made) && (classed ? made : hotspot_method_cookie(r.constants)) == cookie)
		known = keep_name(n, &r, key);
	if (!known && m != hotspot_blocks_direct(n->blocks))
		return hotspot_names_method(n, hotspot_blocks_direct(n->blocks), method, cookie, classed);
	return known;
}
