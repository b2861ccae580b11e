/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw symbol and relocation tables of an image, read piece by piece, because a large library's tables should not be in
 * memory as a whole. Every offset is checked against the file's size.
 */
#ifndef YRT_ELF_TABLE_H
#define YRT_ELF_TABLE_H

#include <elf.h>
#include <types.h>

#include "image.h"

#define ELF_RECORD_SIZE  24u /* of both Elf64_Sym and Elf64_Rela */
#define ELF_RECORDS_ROOM 1024u

/* A section's place: in the file, and (addr) in memory. */
struct elf_place {
	u64 addr, offset, size, entsize;
};

/* A symbol table and the strings that its names are in. */
struct elf_table {
	struct elf_place symbols, strings;
};

/* An iterator over records of ELF_RECORD_SIZE bytes. */
struct elf_records {
	struct image *img;
	u64 offset, left; /* of what is not in buf yet; left in records */
	u32 have, next;
	u64 buf[ELF_RECORDS_ROOM * ELF_RECORD_SIZE / sizeof(u64)];
};

/* size bytes at offset of the file; false if not all of them exist. Not by mmap: the target may truncate its file at
 * any time. */
bool elf_read(const struct image *img, void *dst, size_t size, u64 offset);
/* A section by name; false if absent, without bytes, compressed, or outside the file. */
bool elf_place_find(struct image *img, const char *name, struct elf_place *ret);
/* The first symbol table of this type (SHT_SYMTAB, SHT_DYNSYM) and its strings. */
bool elf_table_find(struct image *img, u32 type, struct elf_table *ret);

void elf_records_start(struct elf_records *r, struct image *img, const struct elf_place *place);
/* The next record, valid until the next call; NULL at the end. */
const void *elf_records_next(struct elf_records *r);

#endif
