/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a name to its address, and from a part of a name to names. The strings are searched first, once. So a name that
 * is not there costs no search of the symbols: that is the usual answer when a runtime asks whether an image is its
 * own.
 */
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "grow.h"
#include "symbols.h"
#include "symbols_table.h"

#define CHUNK         (32u << 10)
#define LOOKUP_MAX    512u /* bytes of a name */
#define POSITIONS_MAX (1u << 20)

/* Where a name ends a string of the table (linkers share tails), sorted. */
struct positions {
	u32 *at;
	u32 count;
};

static bool add_position(struct positions *p, u64 at)
{
	if (at > UINT32_MAX || p->count == POSITIONS_MAX || grow(&p->at, p->count, sizeof(*p->at)))
		return false;
	p->at[p->count++] = at;
	return true;
}

/* buf holds the strings from offset on; the byte behind the name must be in it too. */
static bool search_chunk(struct positions *p, const char *buf, size_t size, u64 offset, const char *name, size_t len)
{
	const char *found = buf, *end = buf + size - 1;

	while (found < end && (found = memmem(found, end - found, name, len))) {
		if ((!found[len] || found[len] == '@') && !add_position(p, offset + (found - buf)))
			return false;
		found++;
	}
	return true;
}

static void find_positions(struct positions *p, struct image *img, const struct elf_place *strings, const char *name)
{
	size_t len = strlen(name), size;
	cleanup(free) char *buf = malloc(CHUNK);
	u64 at;

	for (at = 0; buf && at + len < strings->size; at += size - len) {
		size = strings->size - at < CHUNK ? strings->size - at : CHUNK;
		if (!elf_read(img, buf, size, strings->offset + at) || !search_chunk(p, buf, size, at, name, len))
			return;
		if (at + size == strings->size)
			return;
	}
}

static int compare(const void *left, const void *right)
{
	const u32 *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static bool is_defined(const Elf64_Sym *sym, bool of_thread)
{
	u8 type = ELF64_ST_TYPE(sym->st_info);

	return sym->st_shndx != SHN_UNDEF && sym->st_shndx != SHN_COMMON && type != STT_SECTION && type != STT_FILE &&
	       (type == STT_TLS) == of_thread;
}

/* The first global one, else the first. */
static bool find_symbol(
        const struct positions *p, struct image *img, const struct elf_place *symbols, bool of_thread, Elf64_Sym *ret)
{
	struct elf_records records;
	const Elf64_Sym *sym;
	bool found = false;

	elf_records_start(&records, img, symbols);
	while ((sym = elf_records_next(&records))) {
		if (!is_defined(sym, of_thread) || !bsearch(&sym->st_name, p->at, p->count, sizeof(*p->at), compare))
			continue;
		if (!found || ELF64_ST_BIND(sym->st_info) != STB_LOCAL)
			*ret = *sym;
		found = true;
		if (ELF64_ST_BIND(ret->st_info) != STB_LOCAL)
			break;
	}
	return found;
}

static bool lookup_table(
        struct image *img, const struct elf_table *table, const char *name, bool of_thread, struct symbol *ret)
{
	struct positions p = {.count = 0};
	Elf64_Sym sym;
	bool found;

	find_positions(&p, img, &table->strings, name);
	found = p.count && find_symbol(&p, img, &table->symbols, of_thread, &sym);
	free(p.at);
	if (found)
		*ret = (struct symbol){.start = sym.st_value, .end = sym.st_value + sym.st_size, .name = name};
	return found;
}

static bool can_be_looked_up(const char *name)
{
	return *name && strlen(name) <= LOOKUP_MAX;
}

static bool lookup_exported(struct image *img, const char *name, bool of_thread, struct symbol *ret)
{
	struct elf_table table;

	if (!can_be_looked_up(name) || !elf_table_find(img, SHT_DYNSYM, &table) ||
	        !lookup_table(img, &table, name, of_thread, ret))
		return false;
	ret->exported = true;
	return true;
}

static bool lookup(struct image *img, const char *name, bool of_thread, struct symbol *ret)
{
	const struct symbol_source *debug = img->symbols ? &img->symbols->sources[SOURCE_DEBUG] : NULL;
	struct elf_table table;

	if (!can_be_looked_up(name))
		return false;
	if (lookup_exported(img, name, of_thread, ret))
		return true;
	if (elf_table_find(img, SHT_SYMTAB, &table) && lookup_table(img, &table, name, of_thread, ret))
		return true;
	return debug && debug->img && lookup_table(debug->img, &debug->table, name, of_thread, ret);
}

bool symbols_lookup_exported(struct image *img, const char *name, struct symbol *ret)
{
	return lookup_exported(img, name, false, ret);
}

bool symbols_lookup(struct image *img, const char *name, struct symbol *ret)
{
	return lookup(img, name, false, ret);
}

bool symbols_thread_local(struct image *img, const char *name, struct symbol *ret)
{
	return lookup(img, name, true, ret);
}

/* The strings of buf, which ends with one. */
static bool search_strings(
        const char *buf, size_t size, const char *part, bool (*is)(void *ctx, const char *string), void *ctx)
{
	size_t len = strlen(part);
	const char *found = buf, *start;

	while ((found = memmem(found, size - (size_t)(found - buf), part, len))) {
		start = memrchr(buf, 0, (size_t)(found - buf));
		start = start ? start + 1 : buf;
		if (strlen(start) <= LOOKUP_MAX && is(ctx, start))
			return true;
		found += strlen(found);
	}
	return false;
}

static bool search_table(struct image *img, const struct elf_place *strings, const char *part,
        bool (*is)(void *ctx, const char *string), void *ctx)
{
	cleanup(free) char *buf = malloc(CHUNK);
	const char *end;
	size_t size;
	u64 at = 0;

	for (; buf && at < strings->size; at += size) {
		size = strings->size - at < CHUNK ? strings->size - at : CHUNK;
		if (!elf_read(img, buf, size, strings->offset + at))
			return false;
		end = memrchr(buf, 0, size);
		if (!end)
			continue;
		size = (size_t)(end - buf) + 1;
		if (search_strings(buf, size, part, is, ctx))
			return true;
	}
	return false;
}

bool symbols_search(struct image *img, const char *part, bool (*is)(void *ctx, const char *string), void *ctx)
{
	const struct symbol_source *debug = img->symbols ? &img->symbols->sources[SOURCE_DEBUG] : NULL;
	struct elf_table table;

	if (elf_table_find(img, SHT_SYMTAB, &table))
		return search_table(img, &table.strings, part, is, ctx);
	return debug && debug->img && search_table(debug->img, &debug->table.strings, part, is, ctx);
}
