/* SPDX-License-Identifier: Apache-2.0 */
#include "copies.h"

#include <stdlib.h>
#include <string.h>

#include "binary/elf_table.h"

#define NAME_ROOM 64u

struct search {
	u64 bias;
	const struct copies_variable *variables;
	u32 n;
	const void *description;
	size_t size;
	void *copy;
	bool no_memory;
};

static bool name_of(struct image *img, const struct elf_table *table, u64 number, char ret[NAME_ROOM])
{
	Elf64_Sym sym;
	u64 left;

	if (number >= table->symbols.size / sizeof(sym) ||
	        !elf_read(img, &sym, sizeof(sym), table->symbols.offset + number * sizeof(sym)) ||
	        sym.st_name >= table->strings.size)
		return false;
	left = table->strings.size - sym.st_name;
	ret[NAME_ROOM - 1] = 0;
	return elf_read(img, ret, left < NAME_ROOM - 1 ? left : NAME_ROOM - 1, table->strings.offset + sym.st_name);
}

static void move(struct search *s, size_t at, u64 address)
{
	if (!s->copy) {
		s->copy = malloc(s->size);
		s->no_memory = !s->copy;
		if (s->no_memory)
			return;
		memcpy(s->copy, s->description, s->size);
	}
	memcpy((u8 *)s->copy + at, &address, sizeof(address));
}

static void look(struct search *s, const struct mapping *m)
{
	struct elf_records records;
	struct elf_table table;
	struct elf_place place;
	const Elf64_Rela *rela;
	char name[NAME_ROOM] = "";

	if (!elf_place_find(m->image, ".rela.dyn", &place) || !elf_table_find(m->image, SHT_DYNSYM, &table))
		return;
	elf_records_start(&records, m->image, &place);
	while ((rela = elf_records_next(&records))) {
		if (ELF64_R_TYPE(rela->r_info) != R_X86_64_COPY ||
		        !name_of(m->image, &table, ELF64_R_SYM(rela->r_info), name))
			continue;
		for (u32 i = 0; i < s->n; i++)
			if (!strcmp(name, s->variables[i].name))
				move(s, s->variables[i].at, rela->r_offset + m->bias - s->bias);
	}
}

struct error *copies_apply(const struct runtime_process *p, u64 bias, const struct copies_variable *variables, u32 n,
        const void *description, size_t size, void **ret)
{
	struct search s = {.bias = bias, .variables = variables, .n = n, .description = description, .size = size};
	const struct image *last = NULL;

	/* only programs have copies; of libraries only the C library and its loader have an entry, too */
	for (u32 i = 0; i < p->nmappings && !s.copy && !s.no_memory; i++) {
		const struct mapping *m = &p->mappings[i];

		if (!m->image || m->image == last || !m->image->entry)
			continue;
		last = m->image;
		look(&s, m);
	}
	*ret = s.copy;
	return s.no_memory ? &error_no_memory : NULL;
}
