/* SPDX-License-Identifier: Apache-2.0 */
#include "image_words.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#define SECTION_MAX (256u << 20)

struct error *image_words_add(struct image_words *w, struct image *img, const char *section)
{
	struct words *to = &w->section[w->n];
	u64 addr;
	Elf_Data *data = image_section(img, section, &addr);

	if (!data || !data->d_buf || data->d_size > SECTION_MAX || addr & 7 || w->n == IMAGE_WORDS_MAX)
		return NULL;
	to->word = malloc(data->d_size + sizeof(u64));
	if (!to->word)
		return &error_no_memory;
	memcpy(to->word, data->d_buf, data->d_size);
	to->addr = addr;
	to->n = data->d_size / sizeof(u64);
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

void image_words_relocate(struct image_words *w, struct image *img)
{
	u64 addr;
	Elf_Data *data = image_section(img, ".rela.dyn", &addr);

	if (!data || !data->d_buf || data->d_type != ELF_T_RELA)
		return;
	for (size_t i = 0; i < data->d_size / sizeof(Elf64_Rela); i++) {
		const Elf64_Rela *rela = &((const Elf64_Rela *)data->d_buf)[i];
		u64 *word = image_word(w, rela->r_offset);

		if (word && ELF64_R_TYPE(rela->r_info) == R_X86_64_RELATIVE)
			*word = (u64)rela->r_addend;
	}
}

void image_words_free(struct image_words *w)
{
	for (u32 i = 0; i < w->n; i++)
		free(w->section[i].word);
	*w = (struct image_words){0};
}
