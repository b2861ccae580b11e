/* SPDX-License-Identifier: Apache-2.0 */
#include "image_words.h"

#include <elf.h>
#include <stdlib.h>

#include "elf_table.h"
#include "image_scan.h"

struct error *image_words_add(struct image_words *w, struct image *img, const char *section)
{
	struct words *to = &w->section[w->n];
	struct error *err;
	size_t size;
	u8 *bytes;

	if (w->n == IMAGE_WORDS_MAX)
		return NULL;
	err = image_copy_section(img, section, &bytes, &size, &to->addr);
	if (err || !bytes)
		return err;
	if (to->addr & 7 || to->addr + size < to->addr) { /* addresses only grow in it */
		free(bytes);
		return NULL;
	}
	to->word = (u64 *)bytes;
	to->n = size / sizeof(u64);
	w->n++;
	return NULL;
}

u64 *image_word(const struct image_words *w, u64 addr)
{
	for (u32 i = 0; i < w->n; i++) {
		const struct words *s = &w->section[i];

		if (!(addr & 7) && addr - s->addr < s->n * sizeof(u64))
			return &s->word[(addr - s->addr) / sizeof(u64)];
	}
	return NULL;
}

/* The file's own definition; 0: another file has it. */
static u64 symbol_value(const Elf_Data *symbols, u64 i)
{
	if (!symbols || !symbols->d_buf || symbols->d_type != ELF_T_SYM || i >= symbols->d_size / sizeof(Elf64_Sym))
		return 0;
	return ((const Elf64_Sym *)symbols->d_buf)[i].st_value;
}

void image_words_relocate(struct image_words *w, struct image *img)
{
	u64 addr;
	Elf_Data *symbols = image_section(img, ".dynsym", &addr);
	struct elf_records records;
	struct elf_place place;
	const Elf64_Rela *rela;

	if (!elf_place_find(img, ".rela.dyn", &place))
		return;
	elf_records_start(&records, img, &place);
	while ((rela = elf_records_next(&records))) {
		u64 *word = image_word(w, rela->r_offset), value;

		if (!word)
			continue;
		value = symbol_value(symbols, ELF64_R_SYM(rela->r_info));
		if (ELF64_R_TYPE(rela->r_info) == R_X86_64_RELATIVE)
			*word = (u64)rela->r_addend;
		else if (ELF64_R_TYPE(rela->r_info) == R_X86_64_64 && value)
			*word = value + (u64)rela->r_addend;
	}
}

void image_words_free(struct image_words *w)
{
	for (u32 i = 0; i < w->n; i++)
		free(w->section[i].word);
	*w = (struct image_words){0};
}
