/* SPDX-License-Identifier: Apache-2.0 */
/* From raw symbol tables to the sorted table that is searched. */
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "binary/endbr64.h"
#include "binary/image_pages.h"
#include "cleanup.h"
#include "grow.h"
#include "sort_keys.h"
#include "symbols_table.h"

/*
 * Names of PLT stubs. A stub is decoded rather than counted, so the layouts of all linkers (binutils' .plt, .plt.sec
 * and .plt.got, lld's and mold's .plt) are one case: the stub jumps through a word of the GOT, and the relocation of
 * that word names the function. Only binutils' lazy .plt beside a .plt.sec has no such jump: it pushes the relocation's
 * number.
 */

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

/* Adds the stubs of .plt, .plt.sec and .plt.got. */
static struct error *symbols_add_plt(struct symbols *s)
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

#define OFFSET_BITS 48
#define ALIASES_MAX 256u /* symbols kept of one address; the best come first */
#define STARTUP_MAX 64u  /* bytes of a function of crtstuff.c (gcc 4 to 15: 16 to 57) */

static void add_code(struct symbols *s, u64 start, u64 size)
{
	if (size && start + size > start && s->ncode < SYMBOLS_CODE_MAX)
		s->code[s->ncode++] = (struct symbol_code){start, start + size};
}

static bool in_executable_segment(const struct image *img, u64 addr, u64 size)
{
	const struct image_segment *seg;
	u32 i;

	for (i = 0; i < img->nsegments; i++) {
		seg = &img->segments[i];
		if (seg->flags & PF_X && addr >= seg->vaddr && size <= seg->memsz &&
		        addr - seg->vaddr <= seg->memsz - size)
			return true;
	}
	return false;
}

static void find_code(struct symbols *s, struct image *img)
{
	const u64 wanted = SHF_ALLOC | SHF_EXECINSTR;
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	u32 i;

	while ((scn = elf_nextscn(img->elf, scn)))
		if (gelf_getshdr(scn, &sh) && (sh.sh_flags & wanted) == wanted &&
		        in_executable_segment(img, sh.sh_addr, sh.sh_size))
			add_code(s, sh.sh_addr, sh.sh_size);
	if (!s->ncode || s->ncode == SYMBOLS_CODE_MAX) {
		s->ncode = 0;
		for (i = 0; i < img->nsegments; i++)
			if (img->segments[i].flags & PF_X)
				add_code(s, img->segments[i].vaddr, img->segments[i].memsz);
	}
	s->base = UINT64_MAX;
	for (i = 0; i < s->ncode; i++)
		if (s->code[i].start < s->base)
			s->base = s->code[i].start;
}

static const struct symbol_code *code_at(const struct symbols *s, u64 addr)
{
	u32 i;

	for (i = 0; i < s->ncode; i++)
		if (addr >= s->code[i].start && addr < s->code[i].end)
			return &s->code[i];
	return NULL;
}

static struct error *reserve(struct symbols *s)
{
	u32 room = s->room ? s->room * 2 : 1024;
	void *entries;

	if (s->count < s->room)
		return NULL;
	entries = realloc(s->entries, room * sizeof(*s->entries));
	if (!entries)
		return &error_no_memory;
	s->entries = entries;
	s->room = room;
	return NULL;
}

struct error *symbols_add(struct symbols *s, u64 addr, u64 size, u32 name, u32 rank, u32 source)
{
	const struct symbol_code *code = code_at(s, addr);
	struct error *err;

	if (!code || (addr - s->base) >> OFFSET_BITS || s->count == SYMBOLS_MAX)
		return NULL;
	err = reserve(s);
	if (err)
		return err;
	if (!size)
		rank |= RANK_UNSIZED;
	if (!size || size > code->end - addr)
		size = code->end - addr;
	s->entries[s->count++] = (struct symbol_entry){
	        .key = (addr - s->base) << 16 | rank << 8 | source,
	        .size = size < UINT32_MAX ? size : UINT32_MAX,
	        .name = name,
	};
	return NULL;
}

static bool is_function(const Elf64_Sym *sym)
{
	u8 type = ELF64_ST_TYPE(sym->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) && sym->st_name &&
	       sym->st_shndx != SHN_UNDEF && sym->st_shndx != SHN_ABS && sym->st_shndx != SHN_COMMON;
}

/*
 * Functions of crtstuff.c, which each program has, have symbols without a size. Code without symbols that follows them
 * must not get their names.
 */
static bool is_startup(const struct symbol_source *src, const Elf64_Sym *sym)
{
	static const char *const names[] = {
	        "frame_dummy", "deregister_tm_clones", "register_tm_clones", "__do_global_dtors_aux"};
	char name[SYMBOL_NAME_MAX];

	if (sym->st_size || sym->st_info != ELF64_ST_INFO(STB_LOCAL, STT_FUNC) ||
	        !symbols_read_string(src, sym->st_name, name))
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static struct error *add_source(struct symbols *s, u32 kind)
{
	const struct symbol_source *src = &s->sources[kind];
	struct elf_records records;
	const Elf64_Sym *sym;
	struct error *err;
	u32 rank, before;

	if (!src->img)
		return NULL;
	elf_records_start(&records, src->img, &src->table.symbols);
	while ((sym = elf_records_next(&records))) {
		if (!is_function(sym) || sym->st_name >= src->table.strings.size)
			continue;
		rank = kind == SOURCE_DYNSYM ? RANK_DYNSYM : 0;
		if (ELF64_ST_TYPE(sym->st_info) == STT_NOTYPE)
			rank |= RANK_NOTYPE;
		if (ELF64_ST_BIND(sym->st_info) == STB_LOCAL)
			rank |= RANK_LOCAL;
		before = s->count;
		err = symbols_add(s, sym->st_value, sym->st_size, sym->st_name, rank, kind);
		if (err)
			return err;
		if (s->count > before && s->entries[before].size > STARTUP_MAX && is_startup(src, sym))
			s->entries[before].size = STARTUP_MAX;
	}
	return NULL;
}

static u32 group_end(const struct symbols *s, u32 i)
{
	u64 start = entry_start(&s->entries[i]);

	while (i < s->count && entry_start(&s->entries[i]) == start)
		i++;
	return i;
}

/* An unsized symbol ends at the next one, and where the sized one that it lies in does. */
static void end_unsized(struct symbol_entry *e, u64 next, u64 cover)
{
	u64 start = entry_start(e), end = start + e->size;

	if (!(entry_rank(e) & RANK_UNSIZED))
		return;
	if (end > next)
		end = next;
	if (cover > start && end > cover)
		end = cover;
	e->size = end - start;
}

static u64 sized_end(const struct symbol_entry *e)
{
	return entry_rank(e) & RANK_UNSIZED ? 0 : entry_start(e) + e->size;
}

/* Settles entries i to end of one address: sets sizes, adds what is to be kept to the first kept entries. */
static u32 settle_group(struct symbols *s, u32 i, u32 end, u64 *cover, u32 kept)
{
	u64 next = end < s->count ? entry_start(&s->entries[end]) : UINT64_MAX;
	bool has_symtab = false;
	u32 j;

	if (end - i > ALIASES_MAX)
		end = i + ALIASES_MAX;
	for (j = i; j < end; j++) {
		has_symtab |= !(entry_rank(&s->entries[j]) & RANK_DYNSYM);
		if (sized_end(&s->entries[j]) > *cover)
			*cover = sized_end(&s->entries[j]);
	}
	for (j = i; j < end; j++) {
		if (s->whole && has_symtab && entry_rank(&s->entries[j]) & RANK_DYNSYM)
			continue;
		end_unsized(&s->entries[j], next, *cover);
		s->entries[kept++] = s->entries[j];
	}
	return kept;
}

static void settle(struct symbols *s)
{
	u32 i, end, kept = 0;
	u64 cover = 0;

	for (i = 0; i < s->count; i = end) {
		end = group_end(s, i);
		kept = settle_group(s, i, end, &cover, kept);
	}
	s->count = kept;
}

static struct error *find_reach(struct symbols *s)
{
	u32 i;
	u64 end;

	s->reach = calloc(s->count / SYMBOLS_BLOCK + 1, sizeof(*s->reach));
	if (!s->reach)
		return &error_no_memory;
	for (i = 0; i < s->count; i++) {
		end = entry_start(&s->entries[i]) + s->entries[i].size;
		if (end > s->reach[i / SYMBOLS_BLOCK])
			s->reach[i / SYMBOLS_BLOCK] = end;
	}
	return NULL;
}

struct error *symbols_make(struct symbols *s, struct image *img)
{
	struct error *err = NULL;
	void *shrunk;
	u32 kind;

	s->made = true;
	find_code(s, img);
	for (kind = 0; kind < SOURCE_PLT && !err; kind++)
		err = add_source(s, kind);
	if (!err)
		err = symbols_add_plt(s);
	for (u32 i = 0; i < s->nby_language && !err; i++)
		err = symbols_add(
		        s, s->by_language[i].addr, s->by_language[i].size, s->by_language[i].name, 0, SOURCE_NAMED);
	if (err) {
		s->count = 0;
		return err;
	}
	if (!s->count)
		return NULL;
	sort_keys(s->entries, s->count, sizeof(*s->entries));
	settle(s);
	shrunk = realloc(s->entries, s->count * sizeof(*s->entries) + 1);
	s->entries = shrunk ? shrunk : s->entries;
	err = find_reach(s);
	if (err)
		s->count = 0;
	return err;
}
