/* SPDX-License-Identifier: Apache-2.0 */
/* Source files of local symbols: each symbol of type STT_FILE is in front of the local symbols of its file. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "cleanup.h"
#include "grow.h"
#include "symbols.h"
#include "symbols_table.h"
#include "table.h"
#include "search.h"

#define FILES_MAX (1u << 22)

struct symbol_file {
	u64 start, end;
	u32 name; /* in the table's strings */
};

struct symbol_files {
	struct symbol_file *list; /* sorted by start */
	u32 n;
	struct table names; /* a copy by the hash of where its string is */
};

void symbol_files_destroy(struct symbol_files *files)
{
	if (!files)
		return;
	for (size_t i = 0; i < files->names.capacity; i++)
		if (files->names.entries[i].key)
			free((void *)(uintptr_t)files->names.entries[i].value);
	table_free(&files->names);
	free(files->list);
	free(files);
}

static bool add(struct symbol_files *f, const Elf64_Sym *sym, u32 name)
{
	if (f->n >= FILES_MAX || grow(&f->list, f->n, sizeof(*f->list)))
		return false;
	f->list[f->n++] = (struct symbol_file){sym->st_value, sym->st_value + sym->st_size, name};
	return true;
}

static int compare(const void *left, const void *right)
{
	const struct symbol_file *a = left, *b = right;

	return (a->start > b->start) - (a->start < b->start);
}

static struct symbol_files *make(const struct symbol_source *src)
{
	struct symbol_files *f = calloc(1, sizeof(*f));
	struct elf_records records;
	const Elf64_Sym *sym;
	u32 file = 0;

	if (!f)
		return NULL;
	elf_records_start(&records, src->img, &src->table.symbols);
	while ((sym = elf_records_next(&records)) && ELF64_ST_BIND(sym->st_info) == STB_LOCAL) {
		if (ELF64_ST_TYPE(sym->st_info) == STT_FILE)
			file = sym->st_name;
		else if (file && ELF64_ST_TYPE(sym->st_info) == STT_FUNC && !add(f, sym, file))
			break;
	}
	if (f->n)
		qsort(f->list, f->n, sizeof(*f->list), compare);
	return f;
}

static const struct symbol_file *find(const struct symbol_files *f, u64 addr)
{
	u32 at = SEARCH(f->n, k, f->list[k].start <= addr);

	/* one without a size would match what starts there and all behind it: only its own start is certain */
	return at && (addr < f->list[at - 1].end || addr == f->list[at - 1].start) ? &f->list[at - 1] : NULL;
}

static char *read_name(const struct symbol_source *src, u32 name)
{
	u64 left = name < src->table.strings.size ? src->table.strings.size - name : 0;
	char *text = left ? calloc(1, SYMBOL_NAME_MAX) : NULL;

	left = left < SYMBOL_NAME_MAX ? left : SYMBOL_NAME_MAX - 1;
	if (text && (!elf_read(src->img, text, left, src->table.strings.offset + name) || !*text)) {
		free(text);
		return NULL;
	}
	return text ? realloc(text, strlen(text) + 1) : NULL;
}

static const char *name_at(struct symbol_files *files, const struct symbol_source *src, u32 name)
{
	u64 key = XXH3_64bits(&name, sizeof(name)) | 1;
	const u64 *known = table_get(&files->names, key);
	cleanup(free) char *text = known ? NULL : read_name(src, name);
	struct error *err = text ? table_put(&files->names, key, (u64)(uintptr_t)text) : NULL;

	error_free(err);
	if (known)
		return (const char *)(uintptr_t)*known;
	return err ? NULL : TAKE(text);
}

const char *symbols_file(struct image *img, u64 addr)
{
	struct symbols *s = img->symbols;
	const struct symbol_source *src = s ? &s->sources[SOURCE_SYMTAB] : NULL;
	const struct symbol_file *file;
	struct symbol sym;

	if (!src || !src->img || !symbols_find(img, addr, &sym))
		return NULL;
	if (!s->files)
		s->files = make(src);
	file = s->files ? find(s->files, sym.start) : NULL;
	return file ? name_at(s->files, src, file->name) : NULL;
}
