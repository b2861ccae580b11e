/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Go program's table of functions, in any of its four layouts, in an ELF file: main.main with two inlined calls, one
 * in the other and generic, runtime.goexit, and a method whose type arguments are longer than what is shown of a name.
 */
#ifndef YRT_TEST_GO_FAKE_H
#define YRT_TEST_GO_FAKE_H

#include <stdio.h>

#include "elf_file.h"
#include "runtimes/go/go_table.h"

#define GO_MAIN   ELF_TEXT
#define GO_GOEXIT (ELF_TEXT + 0x40)
#define GO_METHOD (ELF_TEXT + 0x60)
#define GO_END    (ELF_TEXT + 0x100)
#define GO_TREE   64 /* offset of main.main's tree of inlined calls from gofunc */

struct go_fake {
	struct elf_file file;
	struct bytes table, data;
	u64 addr; /* of the table */
	u64 data_at;
	u32 names, pcs; /* offsets that others are relative to */
	size_t units, files, functions;
};

/* Values by pc: pairs of a value and the bytes that it holds for. */
static inline u32 go_fake_pcs(struct go_fake *g, const s32 *pairs, u32 n)
{
	u32 at = (u32)g->table.n - g->pcs;
	s32 before = -1;

	for (u32 i = 0; i < n; i++) {
		u32 delta = (u32)(pairs[2 * i] - before);

		put_uleb(&g->table, (delta << 1) ^ (u32)((s32)delta >> 31));
		put_uleb(&g->table, (u32)pairs[2 * i + 1]);
		before = pairs[2 * i];
	}
	put8(&g->table, 0);
	return at;
}

static inline u32 go_fake_string(struct go_fake *g, const char *text, u32 base)
{
	u32 at = (u32)g->table.n - base;

	put(&g->table, text, strlen(text) + 1);
	return at;
}

static inline void go_fake_align(struct bytes *b, size_t to)
{
	while (b->n % to)
		put8(b, 0);
}

static inline void go_fake_set(struct bytes *b, size_t at, u64 value, u32 size)
{
	memcpy(b->at + at, &value, size);
}

struct go_fake_function {
	u64 start;
	u32 name, pcsp, pcfile, pcln, inlined;
	u64 tree; /* address; 0: none */
};

/* A struct _func and its arrays; returns its offset in the table. */
static inline size_t go_fake_func(struct go_fake *g, enum go_magic magic, const struct go_fake_function *f, u64 gofunc)
{
	u32 npcdata = 3, nfuncdata = magic >= GO_MAGIC_1_18 ? 4 : 5;
	struct bytes *b = &g->table;
	size_t at;

	go_fake_align(b, 8);
	at = b->n;
	if (magic >= GO_MAGIC_1_18)
		put32(b, (u32)(f->start - ELF_TEXT));
	else
		put64(b, f->start);
	put32(b, f->name);
	put32(b, 0);
	put32(b, 0);
	put32(b, f->pcsp);
	put32(b, f->pcfile);
	put32(b, f->pcln);
	put32(b, npcdata);
	if (magic >= GO_MAGIC_1_16)
		put32(b, 1); /* behind the first unit's only file */
	if (magic == GO_MAGIC_1_20)
		put32(b, 9); /* the first line */
	put32(b, nfuncdata << 24);
	put32(b, 0);
	put32(b, 0);
	put32(b, f->inlined);
	if (magic < GO_MAGIC_1_18)
		go_fake_align(b, 8);
	for (u32 i = 0; i < nfuncdata; i++)
		if (magic < GO_MAGIC_1_18)
			put64(b, i == nfuncdata - 1 ? f->tree : 0);
		else
			put32(b, i == nfuncdata - 1 && f->tree ? (u32)(f->tree - gofunc) : 0xffffffff);
	return at;
}

/* An entry of the tree of inlined calls. */
static inline void go_fake_call(struct bytes *b, enum go_magic magic, u32 name, u32 parent_pc)
{
	put32(b, 0);
	if (magic != GO_MAGIC_1_20) {
		put32(b, 0);
		put32(b, 0);
	}
	put32(b, name);
	put32(b, parent_pc);
	if (magic == GO_MAGIC_1_20)
		put32(b, 1);
}

static inline void go_fake_head(struct go_fake *g, enum go_magic magic)
{
	static const u32 magics[GO_MAGICS] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};

	put32(&g->table, magics[magic]);
	put16(&g->table, 0);
	put8(&g->table, 1);
	put8(&g->table, 8);
	put64(&g->table, 3);
	if (magic == GO_MAGIC_1_2)
		for (u32 i = 0; i < 4 * 2; i++) /* functions, the end, where the files are */
			put64(&g->table, 0);
	else
		for (u32 i = 0; i < 7; i++)
			put64(&g->table, 0);
}

/* Names, files, values by pc, in the order that each layout wants them in. */
static inline void go_fake_parts(struct go_fake *g, enum go_magic magic, struct go_fake_function *f, u32 *inner)
{
	static const s32 frame[] = {0, 4, 24, 0x34, 0, 8}, flat[] = {0, 0x20}, deep[] = {8, 0xa0}, file[] = {0, 0x40};
	static const s32 lines[] = {10, 8, 11, 0x18, 20, 0x20}, inlined[] = {-1, 0x10, 0, 8, 1, 4, 0, 4, -1, 0x20};
	bool old = magic == GO_MAGIC_1_2;
	char generic[700];
	u32 name;

	g->names = old ? 0 : (u32)g->table.n;
	f[0].name = go_fake_string(g, "main.main", g->names);
	f[1].name = go_fake_string(g, "runtime.goexit", g->names);
	snprintf(generic, sizeof(generic), "main.(*T).Method[go.shape.struct { F%0600d int }]", 1);
	f[2].name = go_fake_string(g, generic, g->names);
	inner[0] = go_fake_string(g, "main.inner", g->names);
	inner[1] = go_fake_string(g, "main.innermost[go.shape.struct { a []int }].func1", g->names);
	go_fake_align(&g->table, 4);
	g->units = g->table.n;
	if (!old)
		put32(&g->table, 0xffffffff); /* of the first unit: none */
	put32(&g->table, 0);                  /* of 1.2: the number of the first file; later the offset of its name */
	g->files = g->table.n;
	name = go_fake_string(g, "/src/main.go", 0);
	if (old)
		go_fake_set(&g->table, g->units, name, 4);
	g->pcs = old ? 0 : (u32)g->table.n;
	put8(&g->table, 0);
	f[0].pcsp = go_fake_pcs(g, frame, 3);
	f[0].pcfile = go_fake_pcs(g, file, 1);
	f[0].pcln = go_fake_pcs(g, lines, 3);
	f[0].inlined = go_fake_pcs(g, inlined, 5);
	f[1].pcsp = go_fake_pcs(g, flat, 1);
	f[2].pcsp = go_fake_pcs(g, deep, 1);
	go_fake_align(&g->table, 8);
	g->functions = g->table.n;
}

static inline void go_fake_functions(
        struct go_fake *g, enum go_magic magic, const struct go_fake_function *f, u64 gofunc)
{
	u32 width = magic >= GO_MAGIC_1_18 ? 4 : 8;
	bool old = magic == GO_MAGIC_1_2;
	size_t at = old ? 16 : g->functions, base = old ? 0 : g->functions;
	u64 text = magic >= GO_MAGIC_1_18 ? ELF_TEXT : 0;

	for (u32 i = 0; !old && i < 4 * 2; i++)
		put64(&g->table, 0);
	for (u32 i = 0; i < 3; i++) {
		size_t func = go_fake_func(g, magic, &f[i], gofunc);

		go_fake_set(&g->table, at + 2 * i * width, f[i].start - text, width);
		go_fake_set(&g->table, at + (2 * i + 1) * width, func - base, width);
	}
	go_fake_set(&g->table, at + 6 * width, GO_END - text, width);
	if (old)
		go_fake_set(&g->table, at + 6 * width + 8, g->units, 4);
}

/* moduledata: the table's parts as slices, what the text is, and where the functions' data is from 1.18 on. */
static inline void go_fake_module(struct go_fake *g, enum go_magic magic, u64 gofunc)
{
	u64 m[48] = {g->addr};
	u32 ftab = magic == GO_MAGIC_1_2 ? 3 : 16;

	m[1] = g->addr + g->names;
	m[4] = g->addr + g->units;
	m[7] = g->addr + g->files;
	m[10] = g->addr + g->pcs;
	m[ftab] = g->addr + (magic == GO_MAGIC_1_2 ? 16 : g->functions);
	m[ftab + 1] = m[ftab + 2] = 4;
	m[ftab + 4] = m[ftab + 6] = ELF_TEXT;
	m[ftab + 5] = m[ftab + 7] = GO_END;
	m[magic == GO_MAGIC_1_20 ? 40 : 38] = gofunc;
	put(&g->data, m, sizeof(m));
}

/* The file; sections false: without section headers. */
static inline void go_fake_make(struct go_fake *g, enum go_magic magic, bool sections)
{
	struct go_fake_function f[3] = {{.start = GO_MAIN}, {.start = GO_GOEXIT}, {.start = GO_METHOD}};
	u32 inner[2], part = magic >= GO_MAGIC_1_18 ? 3 : 2;
	u64 gofunc;

	memset(&g->table, 0, sizeof(g->table));
	memset(&g->data, 0, sizeof(g->data));
	elf_start(&g->file);
	g->file.ph[0].p_filesz = g->file.ph[0].p_memsz = GO_END - ELF_TEXT;
	g->file.ph[1].p_flags |= PF_W;
	g->addr = elf_place(&g->file);
	go_fake_head(g, magic);
	go_fake_parts(g, magic, f, inner);
	gofunc = g->data_at = (g->addr + 0x1000) & ~15ULL; /* behind the table, whose size is not known yet */
	f[0].tree = gofunc + GO_TREE;
	go_fake_functions(g, magic, f, gofunc);
	for (u32 i = 0; magic != GO_MAGIC_1_2 && i < 5; i++) {
		const size_t parts[] = {g->names, g->units, g->files, g->pcs, g->functions};

		go_fake_set(&g->table, 8 + 8 * (part + i), parts[i], 8);
	}
	while (g->table.n < gofunc - g->addr)
		put8(&g->table, 0);
	elf_section(&g->file, ".gopclntab", SHT_PROGBITS, SHF_ALLOC, g->table.at, g->table.n);
	while (g->data.n < GO_TREE)
		put8(&g->data, 0);
	go_fake_call(&g->data, magic, inner[0], 0x0c);
	go_fake_call(&g->data, magic, inner[1], 0x14);
	go_fake_align(&g->data, 8);
	go_fake_module(g, magic, gofunc);
	elf_section(&g->file, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, g->data.at, g->data.n);
	elf_finish(&g->file, sections);
}

#endif
