/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_builtins.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "binary/image_scan.h"

#define NEAR         (64u << 10) /* bytes around the array before */
#define FIRST_FFID   2
#define HEADER       3
#define NAMELESS_MAX 8 /* in a row */
#define KGC_STRING   5 /* types of constants from there on are lengths of strings */

enum tag {
	TAG_ASM = 0x40,
	TAG_STRING = 0xc0,
	TAG_LUA = 0xf9,
	TAG_SET,
	TAG_NUMBER,
	TAG_COPY,
	TAG_LASTCL,
	TAG_FFID,
	TAG_END
};
#define TAG_KIND 0xc0
#define TAG_LEN  0x3f

struct function {
	const u8 *name;
	u8 len; /* 0: nameless */
};

/* One array. */
struct library {
	struct function functions[LUAJIT_BUILTINS_MAX];
	u32 n;
	u32 nasm, nasm_max; /* functions in assembly; of those without an entry nothing is known */
};

struct reader {
	const u8 *p, *end;
};

static bool skip(struct reader *r, u64 n)
{
	if (n > (u64)(r->end - r->p))
		return false;
	r->p += n;
	return true;
}

static bool read_byte(struct reader *r, u8 *ret)
{
	if (r->p == r->end)
		return false;
	*ret = *r->p++;
	return true;
}

static bool read_uleb(struct reader *r, u64 *ret)
{
	u8 byte = 0x80;

	*ret = 0;
	for (u32 shift = 0; byte & 0x80; shift += 7) {
		if (shift > 28 || !read_byte(r, &byte))
			return false;
		*ret |= (u64)(byte & 0x7f) << shift;
	}
	return true;
}

static bool is_name(const u8 *name, u32 len)
{
	for (u32 i = 0; i < len; i++)
		if (!isalnum(name[i]) && name[i] != '_')
			return false;
	return !isdigit(name[0]);
}

/* Constants of a prototype: those that libraries use are strings and numbers. */
static bool skip_constants(struct reader *r, u64 ngc, u64 nnumbers)
{
	u64 value;

	while (ngc--)
		if (!read_uleb(r, &value) || value < KGC_STRING || !skip(r, value - KGC_STRING))
			return false;
	while (nnumbers--) {
		u64 low;

		/* the low bit says that the other half follows, and makes it 33 bits */
		if (!read_uleb(r, &low) || ((low & 1) && !read_uleb(r, &value)))
			return false;
	}
	return true;
}

static bool skip_lua(struct reader *r)
{
	u64 ngc, nnumbers, nbc;
	u8 len, nuv;

	return read_byte(r, &len) && skip(r, len & TAG_LEN) && skip(r, 3) && read_byte(r, &nuv) && read_uleb(r, &ngc) &&
	       read_uleb(r, &nnumbers) && read_uleb(r, &nbc) && skip(r, nbc * 4) && skip(r, nuv * 2) &&
	       skip_constants(r, ngc, nnumbers);
}

static bool add_function(struct reader *r, u8 tag, struct library *lib)
{
	u8 len = tag == TAG_FFID ? 0 : tag & TAG_LEN;
	const u8 *name = r->p;

	if (lib->n == LUAJIT_BUILTINS_MAX || !skip(r, len) || (len && !is_name(name, len)))
		return false;
	lib->functions[lib->n++] = (struct function){name, len};
	lib->nasm += tag != TAG_FFID && (tag & TAG_KIND) >= TAG_ASM;
	lib->nasm_max += tag == TAG_FFID || (tag & TAG_KIND) >= TAG_ASM;
	return true;
}

static bool read_entry(struct reader *r, u8 tag, struct library *lib)
{
	switch (tag) {
	case TAG_LUA:
		return skip_lua(r);
	case TAG_NUMBER:
		return skip(r, sizeof(double));
	case TAG_COPY:
		return skip(r, 1);
	case TAG_SET:
	case TAG_LASTCL:
		return true;
	case TAG_FFID:
		return add_function(r, tag, lib);
	}
	return (tag & TAG_KIND) == TAG_STRING ? skip(r, tag & TAG_LEN) : add_function(r, tag, lib);
}

static bool read_library(const u8 *at, const u8 *end, struct library *ret)
{
	struct reader r = {at, end};
	u8 tag;

	ret->n = ret->nasm = ret->nasm_max = 0;
	if (!skip(&r, HEADER))
		return false;
	while (read_byte(&r, &tag)) {
		if (tag == TAG_END)
			return ret->n;
		if (!read_entry(&r, tag, ret))
			return false;
	}
	return false;
}

static bool is_function(const struct function *f, const char *name)
{
	return f->len == strlen(name) && !memcmp(f->name, name, f->len);
}

/* The longest of the arrays that may follow *ret: what else looks like one is an accident, and short. *at: where the
 * one begins. */
static bool find_library(const u8 *bytes, size_t size, u32 ffid, struct library *ret, const u8 **at)
{
	const u32 nasm = ret->nasm, nasm_max = ret->nasm_max;
	const u8 *end = bytes + size, *p = bytes;
	bool found = false;

	for (; end - p > HEADER && (p = memchr(p, (int)ffid, end - p - HEADER)); p++) {
		struct library lib;

		if (p[1] < nasm || p[1] > nasm_max || !read_library(p, end, &lib) ||
		        (ffid == FIRST_FFID && !is_function(&lib.functions[0], "assert")))
			continue;
		lib.nasm += p[1];
		lib.nasm_max += p[1];
		if (!found || lib.n > ret->n) {
			*ret = lib;
			*at = p;
		}
		found = true;
	}
	return found;
}

/* By a function that those further up do not have. */
static const char *prefix_of(const struct library *lib)
{
	static const struct {
		const char *function, *prefix;
	} known[] = {
	        {"assert", ""},
	        {"yield", "coroutine."},
	        {"floor", "math."},
	        {"tobit", "bit."},
	        {"gsub", "string."},
	        {"concat", "table."},
	        {"setvbuf", "file:"},
	        {"tmpfile", "io."},
	        {"getenv", "os."},
	        {"traceback", "debug."},
	        {"attach", "jit."},
	        {"funcinfo", "jit.util."},
	        {"dumpstack", "jit.profile."},
	        {"start", "jit.opt."},
	        {"__concat", "cdata."},
	        {"__newindex", "ffi.clib:"},
	        {"cdef", "ffi."},
	        {"putf", "buffer:"},
	        {"encode", "string.buffer."},
	        {"free", "ffi.callback:"},
	};

	for (u32 k = 0; k < sizeof(known) / sizeof(*known); k++)
		for (u32 i = 0; i < lib->n; i++)
			if (is_function(&lib->functions[i], known[k].function))
				return known[k].prefix;
	return "";
}

/* Functions without names in their array: n in a row, before a named one or at the end (NULL). */
static const struct {
	const char *prefix, *before;
	u32 n;
	const char *names[NAMELESS_MAX];
} nameless[] = {
        {"", "ipairs", 1, {"ipairs_aux"}},
        {"coroutine.", "wrap", 1, {"coroutine.wrap_aux"}},
        {"coroutine.", NULL, 1, {"thread.exdata"}},
        {"coroutine.", NULL, 2, {"thread.exdata", "thread.exdata2"}},
        {"string.", "gmatch", 1, {"string.gmatch_aux"}},
        {"table.", "sort", 1, {"table.clone"}},
        {"table.", "sort", 2, {"table.clone", "table.isarray"}},
        {"table.", "sort", 3, {"table.clone", "table.isarray", "table.nkeys"}},
        {"table.", "sort", 4, {"table.clone", "table.isarray", "table.nkeys", "table.isempty"}},
        {"table.", NULL, 2, {"table.new", "table.clear"}},
};

static const char *name_nameless(const struct library *lib, const char *prefix, u32 i)
{
	u32 first = i, end = i;

	while (first && !lib->functions[first - 1].len)
		first--;
	while (end < lib->n && !lib->functions[end].len)
		end++;
	for (u32 k = 0; k < sizeof(nameless) / sizeof(*nameless); k++) {
		bool stands = end == lib->n
		                      ? !nameless[k].before
		                      : nameless[k].before && is_function(&lib->functions[end], nameless[k].before);

		if (stands && nameless[k].n == end - first && !strcmp(nameless[k].prefix, prefix))
			return nameless[k].names[i - first];
	}
	return NULL;
}

static struct error *add_names(const struct library *lib, struct luajit_builtins *b)
{
	const char *prefix = prefix_of(lib);

	for (u32 i = 0; i < lib->n && b->n < LUAJIT_BUILTINS_MAX; i++) {
		const struct function *f = &lib->functions[i];
		const char *name = f->len ? NULL : name_nameless(lib, prefix, i);
		u32 ffid = b->n++;
		char *copy;

		if (!f->len && !name)
			continue;
		if (f->len ? asprintf(&copy, "%s%.*s", prefix, f->len, f->name) < 0 : !(copy = strdup(name)))
			return &error_no_memory;
		b->names[ffid] = copy;
	}
	return NULL;
}

/* The linker puts them beside each other, unless it sorts them: first there, then everywhere. */
static bool find_next(const u8 *bytes, size_t size, u32 ffid, struct library *lib, const u8 **at)
{
	size_t before = *at ? (size_t)(*at - bytes) : 0, after = size - before;
	const u8 *near = before > NEAR ? *at - NEAR : bytes, *end = after > NEAR ? bytes + before + NEAR : bytes + size;

	return (*at && find_library(near, end - near, ffid, lib, at)) || find_library(bytes, size, ffid, lib, at);
}

struct error *luajit_builtins_parse(const u8 *bytes, size_t size, struct luajit_builtins *ret)
{
	struct library lib = {0};
	struct error *err = NULL;
	const u8 *at = NULL;

	*ret = (struct luajit_builtins){.n = FIRST_FFID};
	while (!err && ret->n < LUAJIT_BUILTINS_MAX && find_next(bytes, size, ret->n, &lib, &at))
		err = add_names(&lib, ret);
	if (ret->n == FIRST_FFID)
		ret->n = 0;
	if (err)
		luajit_builtins_free(ret);
	return err;
}

struct error *luajit_builtins_read(struct image *img, struct luajit_builtins *ret)
{
	cleanup(free) u8 *bytes = NULL;
	struct error *err;
	size_t size;
	u64 addr;

	*ret = (struct luajit_builtins){0};
	err = image_copy_section(img, ".rodata", &bytes, &size, &addr);
	return err || !bytes ? err : luajit_builtins_parse(bytes, size, ret);
}

void luajit_builtins_free(struct luajit_builtins *builtins)
{
	for (u32 i = 0; i < LUAJIT_BUILTINS_MAX; i++)
		free((char *)builtins->names[i]);
	*builtins = (struct luajit_builtins){0};
}
