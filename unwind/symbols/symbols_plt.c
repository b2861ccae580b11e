/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of PLT stubs. A stub is decoded rather than counted, so the layouts of all linkers (binutils' .plt, .plt.sec
 * and .plt.got, lld's and mold's .plt) are one case: the stub jumps through a word of the GOT, and the relocation of
 * that word names the function. Only binutils' lazy .plt beside a .plt.sec has no such jump: it pushes the relocation's
 * number.
 */
#include <stdlib.h>
#include <string.h>

#include "binary/endbr64.h"
#include "binary/image_pages.h"
#include "cleanup.h"
#include "grow.h"
#include "symbols_table.h"

#define PLT_SIZE_MAX (16u << 20)
#define STUB_SIZE    16u
#define SLOTS_MAX    (1u << 20)

struct plt_slot {
	u64 got;
	u32 symbol; /* index in .dynsym */
};

struct plt {
	struct plt_slot *slots; /* sorted by got */
	u32 count;
	struct elf_place jumps;     /* .rela.plt */
	struct image_pages symbols; /* .dynsym, from 0 on */
};

static struct error *add_slot(struct plt *plt, const Elf64_Rela *rela)
{
	if (plt->count == SLOTS_MAX)
		return NULL;
	if (grow(&plt->slots, plt->count, sizeof(*plt->slots)))
		return &error_no_memory;
	plt->slots[plt->count++] = (struct plt_slot){rela->r_offset, ELF64_R_SYM(rela->r_info)};
	return NULL;
}

static struct error *add_slots(struct plt *plt, struct image *img, const struct elf_place *place)
{
	struct elf_records records;
	const Elf64_Rela *rela;
	struct error *err;
	u32 type;

	elf_records_start(&records, img, place);
	while ((rela = elf_records_next(&records))) {
		type = ELF64_R_TYPE(rela->r_info);
		if (!ELF64_R_SYM(rela->r_info) || (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT))
			continue;
		err = add_slot(plt, rela);
		if (err)
			return err;
	}
	return NULL;
}

static int compare(const void *left, const void *right)
{
	const struct plt_slot *a = left, *b = right;

	return (a->got > b->got) - (a->got < b->got);
}

static bool slot_symbol(const struct plt *plt, u64 got, u32 *ret)
{
	struct plt_slot key = {.got = got}, *found = NULL;

	if (plt->count)
		found = bsearch(&key, plt->slots, plt->count, sizeof(key), compare);
	if (found)
		*ret = found->symbol;
	return found;
}

static bool jump_symbol(const struct plt *plt, struct image *img, u32 number, u32 *ret)
{
	Elf64_Rela rela;

	if (number >= plt->jumps.size / sizeof(rela) ||
	        !elf_read(img, &rela, sizeof(rela), plt->jumps.offset + number * sizeof(rela)))
		return false;
	*ret = ELF64_R_SYM(rela.r_info);
	return *ret;
}

/* code: STUB_SIZE bytes at addr */
static bool stub_symbol(const struct plt *plt, struct image *img, const u8 *code, u64 addr, u32 *ret)
{
	u32 at = is_endbr64(code) ? ENDBR64_SIZE : 0;
	s32 operand;

	at += code[at] == 0xf2; /* bnd */
	if (code[at] == 0x68) { /* push imm32 */
		memcpy(&operand, code + at + 1, sizeof(operand));
		return jump_symbol(plt, img, operand, ret);
	}
	if (code[at] != 0xff || code[at + 1] != 0x25) /* jmp *disp32(%rip) */
		return false;
	memcpy(&operand, code + at + 2, sizeof(operand));
	return slot_symbol(plt, addr + at + 6 + operand, ret);
}

static struct error *add_stub(struct symbols *s, struct plt *plt, u64 addr, u64 size, u32 number)
{
	const struct symbol_source *src = &s->sources[SOURCE_PLT];
	Elf64_Sym sym;
	const u8 *at;
	size_t room;

	at = image_pages_at(&plt->symbols, (u64)number * sizeof(sym), &room);
	if (!at || room < sizeof(sym))
		return NULL;
	memcpy(&sym, at, sizeof(sym));
	if (!sym.st_name || sym.st_name >= src->table.strings.size)
		return NULL;
	return symbols_add(s, addr, size, sym.st_name, 0, SOURCE_PLT);
}

static struct error *add_section(struct symbols *s, struct plt *plt, const char *name)
{
	struct image *img = s->sources[SOURCE_PLT].img;
	cleanup(free) u8 *code = NULL;
	struct error *err = NULL;
	struct elf_place place;
	u64 at, size;
	u32 symbol;

	if (!elf_place_find(img, name, &place) || place.size > PLT_SIZE_MAX)
		return NULL;
	size = place.entsize == STUB_SIZE / 2 ? STUB_SIZE / 2 : STUB_SIZE;
	code = calloc(1, place.size + STUB_SIZE);
	if (!code)
		return &error_no_memory;
	if (!elf_read(img, code, place.size, place.offset))
		return NULL;
	for (at = 0; at + size <= place.size && !err; at += size)
		if (stub_symbol(plt, img, code + at, place.addr + at, &symbol))
			err = add_stub(s, plt, place.addr + at, size, symbol);
	return err;
}

struct error *symbols_add_plt(struct symbols *s)
{
	static const char *const sections[] = {".plt", ".plt.sec", ".plt.got"};
	struct image *img = s->sources[SOURCE_PLT].img;
	struct plt plt = {.count = 0};
	struct error *err = NULL;
	struct elf_place dyn;
	u32 i;

	if (!img)
		return NULL;
	if (elf_place_find(img, ".rela.plt", &plt.jumps))
		err = add_slots(&plt, img, &plt.jumps);
	if (!err && elf_place_find(img, ".rela.dyn", &dyn))
		err = add_slots(&plt, img, &dyn);
	dyn = s->sources[SOURCE_PLT].table.symbols;
	dyn.addr = 0;
	if (!err)
		err = image_pages_of_place(&plt.symbols, img, &dyn);
	if (plt.count)
		qsort(plt.slots, plt.count, sizeof(*plt.slots), compare);
	for (i = 0; i < sizeof(sections) / sizeof(*sections) && !err; i++)
		err = add_section(s, &plt, sections[i]);
	image_pages_free(&plt.symbols);
	free(plt.slots);
	return err;
}
