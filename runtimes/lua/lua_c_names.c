/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "lua_image.h"
#include "lua_sweep.h"
#include "binary/image_pages.h"
#include "binary/image_scan.h"
#include "binary/image_words.h"
#include "symbols/c_names.h"
#include "symbols/symbols.h"

#define NAME_BYTES    64
#define FUNCTIONS_MAX 4096 /* of a table */
#define MODULES_MAX   256
#define PAIRS_MAX     (1u << 20) /* that are looked at for modules, however often a file names the same table */
#define OPEN          "luaopen_"

struct reading {
	struct image *img;
	struct image_words words;
	struct image_pages names; /* .rodata */
	u64 text, text_size;      /* .text: no names are there, and most pairs of words of C++ are functions */
	struct c_names *ret;
	const char *module; /* whose luaopen_NAME() is looked at */
	u32 pairs;          /* looked at for modules */
	struct error *err;
};

/* Has the file to do with Lua? It uses or has its API, or all of Lua. */
static bool is_lua(struct image *img)
{
	static const char *const texts[][2] = {{".dynstr", "lua_pushcclosure"}, {".dynstr", "lua_settop"},
	        {".rodata", ": Lua 5."}}; /* "$Lua: Lua 5.1.5", "$LuaVersion: Lua 5.4.8" */

	for (u32 i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (image_scan_find(img, texts[i][0], texts[i][1], strlen(texts[i][1])))
			return true;
	return false;
}

static bool is_code(const struct image *img, u64 addr)
{
	for (u32 i = 0; i < img->nsegments; i++)
		if (img->segments[i].flags & 1 && addr - img->segments[i].vaddr < img->segments[i].filesz)
			return true;
	return false;
}

/* A name as functions of Lua have them. */
static bool read_name(struct reading *r, u64 addr, char ret[NAME_BYTES])
{
	size_t room, n = 0;
	const u8 *text = image_pages_at(&r->names, addr, &room);

	if (!text)
		return false;
	for (; n < room && n < NAME_BYTES - 1 && (isalnum(text[n]) || text[n] == '_'); n++)
		ret[n] = (char)text[n];
	ret[n] = '\0';
	return n && n < room && !text[n] && !isdigit(text[0]);
}

static bool pair_at(const struct reading *r, u64 addr, u64 ret[2])
{
	const u64 *name = image_word(&r->words, addr), *function = image_word(&r->words, addr + 8);

	if (!name || !function)
		return false;
	ret[0] = *name;
	ret[1] = *function;
	return true;
}

/*
 * How many entries a table of luaL_Reg has at addr, the one of zeroes behind them left out; 0: there is none. *seen:
 * how many pairs could be entries.
 */
static u32 table_at(struct reading *r, u64 addr, u32 *seen)
{
	char name[NAME_BYTES];
	u32 functions = 0;
	u64 pair[2];

	for (*seen = 0; *seen < FUNCTIONS_MAX && pair_at(r, addr + 16ull * *seen, pair); (*seen)++) {
		if (!pair[0] && !pair[1])
			return functions ? *seen : 0;
		if ((pair[1] && !is_code(r->img, pair[1])) || pair[0] - r->text < r->text_size ||
		        !read_name(r, pair[0], name))
			return 0;
		functions += pair[1] != 0; /* a place that is filled in later has none */
	}
	return 0;
}

static void add_table(struct reading *r, u64 addr, u32 n)
{
	char name[NAME_BYTES], whole[2 * NAME_BYTES];
	u64 pair[2];

	for (u32 i = 0; !r->err && i < n && pair_at(r, addr + 16ull * i, pair); i++) {
		if (!pair[1] || !read_name(r, pair[0], name))
			continue;
		snprintf(whole, sizeof(whole), "%s%s%s", r->module ? r->module : "", r->module ? "." : "", name);
		r->err = c_names_add(r->ret, pair[1], whole);
	}
}

static void add_tables(struct reading *r, const struct words *w)
{
	for (u64 i = 0; !r->err && i < w->n; i++) {
		u32 seen = 0, n = w->word[i] ? table_at(r, w->addr + 8 * i, &seen) : 0;

		add_table(r, w->addr + 8 * i, n);
		i += seen ? 2 * (u64)seen - 1 : 0;
	}
}

/* luaopen_NAME() takes the addresses of the module's tables. */
static bool see_table(void *ctx, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	struct reading *r = ctx;
	u64 addr = 0;
	u32 seen;

	if (in->id == X86_INS_LEA && x->operands[1].mem.base == X86_REG_RIP)
		addr = in->address + in->size + (u64)x->operands[1].mem.disp;
	else if (in->id == X86_INS_MOV && x->op_count == 2 && x->operands[1].type == X86_OP_IMM)
		addr = (u64)x->operands[1].imm;
	if (!addr)
		return true;
	add_table(r, addr, table_at(r, addr, &seen));
	r->pairs += seen;
	return !r->err && r->pairs < PAIRS_MAX;
}

/* name: "luaopen_socket_core" opens "socket.core", and "luaopen_base" has what needs no module. */
static void open_module(struct reading *r, struct lua_sweep *s, const char *name)
{
	char module[NAME_BYTES];
	struct symbol symbol;

	if (!symbols_lookup(r->img, name, &symbol))
		return;
	snprintf(module, sizeof(module), "%s", name + strlen(OPEN));
	for (char *c = module; *c; c++)
		if (*c == '_')
			*c = '.';
	r->module = strcmp(module, "base") ? module : NULL;
	lua_sweep(s, symbol.start, symbol.end, see_table, r);
	r->module = NULL;
}

static void open_modules(struct reading *r, struct lua_sweep *s)
{
	u64 addr;
	Elf_Data *data = image_section(r->img, ".dynstr", &addr);
	const char *at = data ? data->d_buf : NULL, *end = at ? at + data->d_size : NULL;

	for (u32 i = 0; !r->err && i < MODULES_MAX && at; i++) {
		at = memmem(at, (size_t)(end - at), OPEN, strlen(OPEN));
		if (!at || !memchr(at, '\0', (size_t)(end - at)))
			return;
		open_module(r, s, at);
		at += strlen(OPEN);
	}
}

struct error *lua_c_names(struct image *img, struct c_names *ret)
{
	static const char *const sections[] = {".data.rel.ro", ".data", ".rodata"};
	struct reading r = {.img = img, .ret = ret};
	struct lua_sweep s;

	if (img->machine != EM_X86_64 || !is_lua(img))
		return NULL;
	image_section_range(img, ".text", &r.text, &r.text_size);
	r.err = image_pages_create(&r.names, img, ".rodata");
	for (u32 i = 0; !r.err && i < sizeof(sections) / sizeof(*sections); i++)
		r.err = image_words_add(&r.words, img, sections[i]);
	if (!r.err)
		image_words_relocate(&r.words, img);
	for (u32 i = 0; !r.err && i < r.words.n; i++)
		add_tables(&r, &r.words.section[i]);
	if (!r.err && !(r.err = lua_sweep_open(img, &s))) {
		open_modules(&r, &s);
		lua_sweep_close(&s);
	}
	image_pages_free(&r.names);
	image_words_free(&r.words);
	return r.err;
}
