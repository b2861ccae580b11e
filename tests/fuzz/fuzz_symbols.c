/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols of a hostile file: either the input is the whole file, or a sound ELF header is put in front of sections that
 * are cut out of it, so that their parsers are reached at once.
 */
#include <stdlib.h>
#include <string.h>

#include "elf_head.h"
#include "unwind/symbols/symbols.h"

#define CODE_START 0x1000u
#define CODE_SIZE  0x2000u
#define PLT_START  (CODE_START + CODE_SIZE)
#define PLT_SIZE   0x400u

static const struct {
	const char *name;
	u32 type, link, entsize;
} kinds[] = {
        {"", SHT_NULL, 0, 0},
        {".strtab", SHT_STRTAB, 0, 0},
        {".symtab", SHT_SYMTAB, 1, sizeof(Elf64_Sym)},
        {".dynstr", SHT_STRTAB, 0, 0},
        {".dynsym", SHT_DYNSYM, 3, sizeof(Elf64_Sym)},
        {".rela.plt", SHT_RELA, 4, sizeof(Elf64_Rela)},
        {".plt", SHT_PROGBITS, 0, 16},
        {".plt.got", SHT_PROGBITS, 0, 8},
        {".gnu_debugdata", SHT_PROGBITS, 0, 0},
        {".gnu_debuglink", SHT_PROGBITS, 0, 0},
        {".text", SHT_NOBITS, 0, 0},
        {".shstrtab", SHT_STRTAB, 0, 0},
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

struct frame_file {
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	Elf64_Shdr sh[KINDS];
	char names[KINDS * 16];
	u8 bytes[];
};

/* Most records are brought near to what makes sense; the rest stay as wild as they are. */
static void tame_symbols(u8 *bytes, size_t size)
{
	Elf64_Sym sym;

	for (; size >= sizeof(sym); bytes += sizeof(sym), size -= sizeof(sym)) {
		memcpy(&sym, bytes, sizeof(sym));
		if ((sym.st_other & 15) == 15)
			continue;
		sym.st_value = CODE_START + sym.st_value % CODE_SIZE;
		sym.st_name %= 64;
		sym.st_shndx = sym.st_other & 16 ? sym.st_shndx : 1;
		if (sym.st_other & 1)
			sym.st_size %= 256;
		memcpy(bytes, &sym, sizeof(sym));
	}
}

static void tame_relocations(u8 *bytes, size_t size)
{
	Elf64_Rela rela;

	for (; size >= sizeof(rela); bytes += sizeof(rela), size -= sizeof(rela)) {
		memcpy(&rela, bytes, sizeof(rela));
		if ((rela.r_addend & 15) == 15)
			continue;
		rela.r_offset = PLT_START + rela.r_offset % 64 * 8;
		rela.r_info = ELF64_R_INFO((rela.r_info >> 32) % 16, R_X86_64_JUMP_SLOT);
		memcpy(bytes, &rela, sizeof(rela));
	}
}

/* Stubs of 8 bytes that jump through words near them, or push a number. */
static void tame_stubs(u8 *bytes, size_t size)
{
	for (; size >= 8; bytes += 8, size -= 8) {
		if (bytes[7] & 8)
			continue;
		memcpy(bytes, bytes[7] & 1 ? "\xff\x25" : "\xf2\x68", 2);
		memset(bytes + 4, 0, 3);
	}
}

static void tame(u32 type, const char *name, u8 *bytes, size_t size)
{
	if (type == SHT_SYMTAB || type == SHT_DYNSYM)
		tame_symbols(bytes, size);
	else if (type == SHT_RELA)
		tame_relocations(bytes, size);
	else if (!strncmp(name, ".plt", 4))
		tame_stubs(bytes, size);
}

static void fill_sections(struct frame_file *file, const u8 *data, size_t size)
{
	size_t at = 0, len, i;

	memcpy(file->bytes, data, size);
	for (i = 1; i < KINDS; i++) {
		bool code = !strncmp(kinds[i].name, ".plt", 4) || kinds[i].type == SHT_NOBITS;

		strcpy(file->names + i * 16, kinds[i].name);
		len = at < size ? data[at] * (data[at] & 1 ? 8 : 1) % (size - at) : 0;
		file->sh[i] = (Elf64_Shdr){
		        .sh_name = i * 16,
		        .sh_type = kinds[i].type,
		        .sh_flags = code ? SHF_ALLOC | SHF_EXECINSTR : 0,
		        .sh_addr = kinds[i].type == SHT_NOBITS ? CODE_START : PLT_START + i * 32,
		        .sh_offset = sizeof(*file) + at,
		        .sh_size = kinds[i].type == SHT_NOBITS ? CODE_SIZE : len,
		        .sh_link = kinds[i].link,
		        .sh_entsize = kinds[i].entsize,
		};
		tame(kinds[i].type, kinds[i].name, file->bytes + at, len);
		at += len;
	}
	file->sh[KINDS - 1].sh_offset = offsetof(struct frame_file, names);
	file->sh[KINDS - 1].sh_size = sizeof(file->names);
}

static void *frame(const u8 *data, size_t size)
{
	struct frame_file *file = calloc(1, sizeof(*file) + size);

	file->eh = elf_head(offsetof(struct frame_file, ph), offsetof(struct frame_file, sh), KINDS);
	file->ph = (Elf64_Phdr){
	        .p_type = PT_LOAD,
	        .p_flags = PF_R | PF_X,
	        .p_vaddr = CODE_START,
	        .p_memsz = CODE_SIZE + PLT_SIZE,
	};
	fill_sections(file, data, size);
	return file;
}

static void look(struct image *img)
{
	struct symbol sym;
	u32 i, j;
	u64 at;

	for (i = 0; i < img->nsegments && i < 4; i++) {
		for (j = 0; j < 600; j++) {
			at = img->segments[i].vaddr + j * 16;
			if (symbols_find(img, at, &sym) && (sym.start > at || sym.end <= at || strlen(sym.name) > 4096))
				abort();
		}
	}
	if (symbols_lookup(img, "main", &sym) && strcmp(sym.name, "main"))
		abort();
	symbols_lookup(img, "a", &sym);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool framed = size && data[0] & 1;
	struct image *img;
	struct error *err;
	void *bytes;

	if (!size)
		return 0;
	data++;
	size--;
	bytes = framed ? frame(data, size) : memcpy(malloc(size + 1), data, size);
	err = image_from_memory(bytes, framed ? sizeof(struct frame_file) + size : size, "fuzz", &img);
	if (err) {
		if (framed)
			abort();
		error_free(err);
		return 0;
	}
	if (symbols_load(img, ""))
		abort();
	look(img);
	image_put(img);
	return 0;
}
