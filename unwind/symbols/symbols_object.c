/* SPDX-License-Identifier: Apache-2.0 */
/* From an address to the variable that contains it, by a scan of the table, because few are asked for. */
#include <string.h>

#include "symbols.h"
#include "symbols_table.h"

static bool covers(const Elf64_Sym *sym, u64 addr)
{
	return ELF64_ST_TYPE(sym->st_info) == STT_OBJECT && sym->st_shndx != SHN_UNDEF && sym->st_shndx != SHN_COMMON &&
	       addr - sym->st_value < sym->st_size;
}

static bool find_in(struct image *img, const struct elf_table *table, u64 addr, char *name, size_t size, u64 *offset)
{
	struct elf_records records;
	const Elf64_Sym *sym;
	u64 best = 0;

	elf_records_start(&records, img, &table->symbols);
	while ((sym = elf_records_next(&records))) {
		u64 rest;

		if (!covers(sym, addr) || sym->st_name >= table->strings.size || (best && sym->st_size >= best))
			continue;
		rest = table->strings.size - sym->st_name;
		memset(name, 0, size);
		if (!elf_read(img, name, rest < size - 1 ? rest : size - 1, table->strings.offset + sym->st_name))
			continue;
		name[strcspn(name, "@")] = '\0';
		best = *name ? sym->st_size : best;
		*offset = addr - sym->st_value;
	}
	return best;
}

bool symbols_object(struct image *img, u64 addr, char *name, size_t size, u64 *offset)
{
	const struct symbol_source *debug = img->symbols ? &img->symbols->sources[SOURCE_DEBUG] : NULL;
	struct elf_table table;

	if (elf_table_find(img, SHT_SYMTAB, &table) && find_in(img, &table, addr, name, size, offset))
		return true;
	if (debug && debug->img && find_in(debug->img, &debug->table, addr, name, size, offset))
		return true;
	return elf_table_find(img, SHT_DYNSYM, &table) && find_in(img, &table, addr, name, size, offset);
}
