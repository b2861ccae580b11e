/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of symbols share. */
#ifndef YRT_SYMBOLS_TABLE_H
#define YRT_SYMBOLS_TABLE_H

#include "binary/elf_table.h"
#include "error.h"
#include "binary/image.h"

#define SYMBOL_NAME_MAX  4096u
#define SYMBOLS_MAX      (1u << 23)
#define SYMBOLS_CODE_MAX 64u
#define SYMBOLS_BLOCK    64u

enum symbol_source_kind {
	SOURCE_SYMTAB,
	SOURCE_DYNSYM,
	SOURCE_DEBUG, /* .symtab of the separate debug file, or of .gnu_debugdata */
	SOURCE_PLT,   /* names of .dynsym, shown with @plt */
	SOURCE_MAX,
	SOURCE_NAMED, /* the name was read: entry.name is an index into names */
};

/* Bits of an entry's rank; the lowest rank of those that cover an address is the best. */
#define RANK_UNSIZED 0x08u
#define RANK_NOTYPE  0x04u
#define RANK_LOCAL   0x02u
#define RANK_DYNSYM  0x01u /* a whole .symtab, if there is one, has it too */

/* 16 bytes, because a large library has 100,000 of them; key sorts by address, then rank. */
struct symbol_entry {
	u64 key; /* address - base: 48 bits, rank: 8, source: 8 */
	u32 size;
	u32 name;
};

struct symbol_source {
	struct image *img; /* NULL: absent. A reference only in SOURCE_DEBUG, else the image that owns the table */
	struct elf_table table;
};

struct symbol_code { /* an executable section, or segment where there are no sections */
	u64 start, end;
};

struct symbol_by_language {
	u64 addr, size;
	u32 name; /* index into names */
};

struct symbols {
	struct symbol_source sources[SOURCE_MAX];
	bool made;
	bool whole; /* there is a .symtab, so .dynsym adds nothing where that has a symbol */
	u64 base;   /* lowest executable address */
	struct symbol_code code[SYMBOLS_CODE_MAX];
	u32 ncode;
	struct symbol_entry *entries;
	u32 count, room;
	u64 *reach; /* of each block of SYMBOLS_BLOCK entries: how far (address - base) they go */
	char **names;
	u32 nnames;
	struct symbol_by_language *by_language;
	u32 nby_language;
	bool languages;             /* were asked */
	struct symbol_files *files; /* symbols_file.c, made on demand */
	u64 alias_hash;             /* of start and name that symbols_has_alias() found last */
};

static inline u64 entry_start(const struct symbol_entry *e)
{
	return e->key >> 16;
}

static inline u32 entry_rank(const struct symbol_entry *e)
{
	return e->key >> 8 & 0xff;
}

static inline u32 entry_source(const struct symbol_entry *e)
{
	return e->key & 0xff;
}

static inline bool entry_covers(const struct symbol_entry *e, u64 at)
{
	return at - entry_start(e) < e->size;
}

void symbol_files_destroy(struct symbol_files *files);
/* Adds code at addr (file address); addresses that are not executable are ignored. size 0: unknown. */
struct error *symbols_add(struct symbols *s, u64 addr, u64 size, u32 name, u32 rank, u32 source);
/* The name at this offset of the strings, in up to SYMBOL_NAME_MAX bytes; false if there is none. */
bool symbols_read_string(const struct symbol_source *src, u32 name, char *dst);
/* Forgets the table, not the names in it. */
void symbols_forget(struct symbols *s);
/* Makes the table, of whatever sources there are. */
struct error *symbols_make(struct symbols *s, struct image *img);

#endif
