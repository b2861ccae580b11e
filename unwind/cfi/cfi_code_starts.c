/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi_code_starts.h"

#include <stdlib.h>
#include <string.h>

#include "binary/elf_table.h"
#include "binary/image_pages.h"
#include "cleanup.h"
#include "grow.h"
#include "search.h"
#include "sort_keys.h"

#define STARTS_MAX (1u << 22)

/* They leave for another frame by an instruction that looks like a return or a tail call. */
static const char *const leaving[] = {
        "longjmp", "_longjmp", "siglongjmp", "__longjmp", "__longjmp_chk", "____longjmp_chk", "_Unwind_Resume", NULL};

/* Functions of C and C++ libraries that end the program, the thread, or the caller. */
static const char *const ending[] = {"abort", "exit", "_exit", "_Exit", "quick_exit", "pthread_exit", "err", "errx",
        "verr", "verrx", "__assert_fail", "__assert", "__assert_perror_fail", "__stack_chk_fail", "__chk_fail",
        "__fortify_fail", "__libc_start_main", "__cxa_throw", "__cxa_rethrow", "__cxa_bad_cast",
        "__cxa_throw_bad_array_new_length", "_ZSt9terminatev", "_ZSt17__throw_bad_allocv",
        "_ZSt20__throw_length_errorPKc", "_ZSt19__throw_logic_errorPKc", "_ZSt20__throw_out_of_rangePKc",
        "_ZSt24__throw_out_of_range_fmtPKcz", NULL};

static bool is_one_of(const char *const *names, struct image_pages *strings, const Elf64_Sym *sym)
{
	size_t room;
	const char *name = (const char *)image_pages_at(strings, sym->st_name, &room);

	if (!name)
		return false;
	while (*names && (strlen(*names) >= room || strcmp(name, *names)))
		names++;
	return *names;
}

static struct error *add_symbol(struct code_starts *starts, struct image_pages *strings, const Elf64_Sym *sym)
{
	struct error *err;

	if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || sym->st_shndx == SHN_UNDEF)
		return NULL;
	err = grow(&starts->list, starts->n, sizeof(*starts->list));
	if (!err)
		starts->list[starts->n++] = (struct code_start){sym->st_value, is_one_of(leaving, strings, sym)};
	return err;
}

/* A string table has addresses of its own, from 0 on. */
static struct error *open_strings(struct image_pages *ret, struct image *img, const struct elf_table *table)
{
	struct elf_place place = table->strings;

	place.addr = 0;
	return image_pages_of_place(ret, img, &place);
}

static struct error *add_symbols(struct code_starts *starts, struct image *img, u32 type)
{
	cleanup(free) struct elf_records *records = malloc(sizeof(*records));
	struct error *err = records ? NULL : &error_no_memory;
	struct image_pages strings;
	struct elf_table table;
	const Elf64_Sym *sym;

	if (err || !elf_table_find(img, type, &table))
		return err;
	err = open_strings(&strings, img, &table);
	elf_records_start(records, img, &table.symbols);
	while (!err && starts->n < STARTS_MAX && (sym = elf_records_next(records)))
		err = add_symbol(starts, &strings, sym);
	image_pages_free(&strings);
	return err;
}

static struct error *add_end(struct code_starts *starts, struct image *img, const struct elf_table *table,
        struct image_pages *strings, const Elf64_Rela *rela)
{
	u32 type = ELF64_R_TYPE(rela->r_info), number = ELF64_R_SYM(rela->r_info);
	struct error *err;
	Elf64_Sym sym;

	if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) || number >= table->symbols.size / sizeof(sym) ||
	        !elf_read(img, &sym, sizeof(sym), table->symbols.offset + number * sizeof(sym)) ||
	        !(is_one_of(leaving, strings, &sym) || is_one_of(ending, strings, &sym)))
		return NULL;
	err = grow(&starts->ends, starts->nends, sizeof(*starts->ends));
	if (!err)
		starts->ends[starts->nends++] = rela->r_offset;
	return err;
}

static struct error *add_ends(struct code_starts *starts, struct image *img, const char *section)
{
	cleanup(free) struct elf_records *records = malloc(sizeof(*records));
	struct error *err = records ? NULL : &error_no_memory;
	struct image_pages strings;
	struct elf_table table;
	struct elf_place place;
	const Elf64_Rela *rela;

	if (err || !elf_table_find(img, SHT_DYNSYM, &table) || !elf_place_find(img, section, &place))
		return err;
	err = open_strings(&strings, img, &table);
	elf_records_start(records, img, &place);
	while (!err && starts->nends < STARTS_MAX && (rela = elf_records_next(records)))
		err = add_end(starts, img, &table, &strings, rela);
	image_pages_free(&strings);
	return err;
}

struct error *code_starts_find(struct code_starts *ret, struct image *img)
{
	struct error *err = add_symbols(ret, img, SHT_SYMTAB);

	if (!err)
		err = add_symbols(ret, img, SHT_DYNSYM);
	if (!err)
		err = add_ends(ret, img, ".rela.plt");
	if (!err)
		err = add_ends(ret, img, ".rela.dyn");
	sort_keys(ret->list, ret->n, sizeof(*ret->list));
	sort_keys(ret->ends, ret->nends, sizeof(*ret->ends));
	return err;
}

void code_starts_free(struct code_starts *starts)
{
	free(starts->list);
	free(starts->ends);
	*starts = (struct code_starts){0};
}

u32 code_starts_from(const struct code_starts *starts, u64 addr)
{
	u32 at = SEARCH(starts->n, k, starts->list[k].addr < addr);

	return at;
}

bool code_starts_ends(const struct code_starts *starts, u64 addr)
{
	u32 at = SEARCH(starts->nends, k, starts->ends[k] < addr);

	return at < starts->nends && starts->ends[at] == addr;
}
