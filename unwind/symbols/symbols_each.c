/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "symbols.h"
#include "symbols_table.h"

#define STRINGS_MAX (256u << 20)

static bool is_function(const Elf64_Sym *sym, u64 strings)
{
	u8 type = ELF64_ST_TYPE(sym->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && sym->st_shndx != SHN_UNDEF && sym->st_name < strings;
}

static bool each_of(struct image *img, const struct elf_table *table,
        bool (*each)(void *ctx, const struct symbol_function *f), void *ctx)
{
	u64 size = table->strings.size;
	cleanup(free) char *strings = size && size <= STRINGS_MAX ? malloc(size + 1) : NULL;
	struct elf_records records;
	const Elf64_Sym *sym;

	if (!strings || !elf_read(img, strings, size, table->strings.offset))
		return false;
	strings[size] = '\0';
	elf_records_start(&records, img, &table->symbols);
	while ((sym = elf_records_next(&records))) {
		struct symbol_function f = {.addr = sym->st_value};
		char name[SYMBOL_NAME_MAX];
		size_t len;

		if (!is_function(sym, size))
			continue;
		len = strcspn(strings + sym->st_name, "@");
		if (!len || len >= sizeof(name))
			continue;
		memcpy(name, strings + sym->st_name, len);
		name[len] = '\0';
		f.name = name;
		f.indirect = ELF64_ST_TYPE(sym->st_info) == STT_GNU_IFUNC;
		if (each(ctx, &f))
			return true;
	}
	return false;
}

void symbols_each(struct image *img, bool (*each)(void *ctx, const struct symbol_function *f), void *ctx)
{
	const struct symbol_source *debug = img->symbols ? &img->symbols->sources[SOURCE_DEBUG] : NULL;
	struct elf_table table;

	if (elf_table_find(img, SHT_SYMTAB, &table) && each_of(img, &table, each, ctx))
		return;
	if (elf_table_find(img, SHT_DYNSYM, &table) && each_of(img, &table, each, ctx))
		return;
	if (debug && debug->img && each_of(debug->img, &debug->table, each, ctx))
		return;
	for (u32 i = 0; img->symbols && i < img->symbols->nby_language; i++) {
		const struct symbol_by_language *own = &img->symbols->by_language[i];
		const struct symbol_function f = {.addr = own->addr, .name = img->symbols->names[own->name]};

		if (each(ctx, &f))
			return;
	}
}
