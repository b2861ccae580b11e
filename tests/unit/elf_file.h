/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes small ELF files for tests: code at [ELF_TEXT, ELF_TEXT_END), then what elf_section() appends. File offsets and
 * addresses are the same.
 */
#ifndef YRT_TEST_ELF_FILE_H
#define YRT_TEST_ELF_FILE_H

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <types.h>

#define ELF_TEXT         0x1000u
#define ELF_TEXT_END     0x3000u
#define ELF_SIZE_MAX     0x20000u
#define ELF_SECTIONS_MAX 8

struct bytes {
	u8 at[0x8000];
	size_t n;
};

static inline void put(struct bytes *b, const void *from, size_t n)
{
	if (n > sizeof(b->at) - b->n)
		abort();
	memcpy(b->at + b->n, from, n);
	b->n += n;
}

static inline void put8(struct bytes *b, u8 v)
{
	put(b, &v, 1);
}

static inline void put16(struct bytes *b, u16 v)
{
	put(b, &v, 2);
}

static inline void put32(struct bytes *b, u32 v)
{
	put(b, &v, 4);
}

static inline void put64(struct bytes *b, u64 v)
{
	put(b, &v, 8);
}

static inline void put_uleb(struct bytes *b, u64 v)
{
	for (; v >= 0x80; v >>= 7)
		put8(b, (u8)(v | 0x80));
	put8(b, (u8)v);
}

static inline void put_sleb(struct bytes *b, s64 v)
{
	for (; v < -64 || v >= 64; v >>= 7)
		put8(b, (u8)(v | 0x80));
	put8(b, (u8)(v & 0x7f));
}

struct elf_file {
	u8 at[ELF_SIZE_MAX];
	size_t n;
	Elf64_Phdr ph[4];
	u16 nph;
	Elf64_Shdr sh[ELF_SECTIONS_MAX];
	u16 nsh;
	char names[256];
	size_t names_n;
	u64 entry;
};

static inline void elf_segment(struct elf_file *f, u32 type, u32 flags, u64 offset, u64 size)
{
	f->ph[f->nph++] = (Elf64_Phdr){.p_type = type,
	        .p_flags = flags,
	        .p_offset = offset,
	        .p_vaddr = offset,
	        .p_filesz = size,
	        .p_memsz = size};
}

static inline void elf_start(struct elf_file *f)
{
	memset(f, 0, sizeof(*f));
	f->n = ELF_TEXT_END;
	f->nsh = f->names_n = 1;
	elf_segment(f, PT_LOAD, PF_R | PF_X, ELF_TEXT, ELF_TEXT_END - ELF_TEXT);
	elf_segment(f, PT_LOAD, PF_R, ELF_TEXT_END, ELF_SIZE_MAX - ELF_TEXT_END);
}

static inline u32 elf_name(struct elf_file *f, const char *name)
{
	size_t at = f->names_n, n = strlen(name) + 1;

	if (n > sizeof(f->names) - at)
		abort();
	memcpy(f->names + at, name, n);
	f->names_n += n;
	return (u32)at;
}

/* Where the next section will lie. */
static inline u64 elf_place(const struct elf_file *f)
{
	return (f->n + 15) & ~(u64)15;
}

static inline u64 elf_section(struct elf_file *f, const char *name, u32 type, u64 flags, const void *bytes, size_t n)
{
	u64 at = elf_place(f);

	if (at + n > sizeof(f->at) || f->nsh == ELF_SECTIONS_MAX)
		abort();
	memcpy(f->at + at, bytes, n);
	f->n = at + n;
	f->sh[f->nsh++] = (Elf64_Shdr){.sh_name = elf_name(f, name),
	        .sh_type = type,
	        .sh_flags = flags,
	        .sh_addr = flags & SHF_ALLOC ? at : 0,
	        .sh_offset = at,
	        .sh_size = n,
	        .sh_addralign = 1};
	return at;
}

/* owner: 4 bytes. */
static inline void elf_note(struct elf_file *f, const char *section, const char *owner, u32 type, const void *id, u32 n)
{
	struct bytes b = {.n = 0};

	put32(&b, 4);
	put32(&b, n);
	put32(&b, type);
	put(&b, owner, 4);
	put(&b, id, n);
	elf_segment(f, PT_NOTE, PF_R, elf_section(f, section, SHT_NOTE, SHF_ALLOC, b.at, b.n), b.n);
}

static inline void elf_build_id(struct elf_file *f, const void *id, u32 n)
{
	elf_note(f, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID, id, n);
}

static inline Elf64_Ehdr *elf_header(struct elf_file *f)
{
	return (Elf64_Ehdr *)f->at;
}

/* Writes the headers; without section headers the file is as sstrip leaves it. */
static inline void elf_finish(struct elf_file *f, bool sections)
{
	Elf64_Ehdr eh = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	        .e_type = ET_DYN,
	        .e_machine = EM_X86_64,
	        .e_version = EV_CURRENT,
	        .e_entry = f->entry,
	        .e_phoff = sizeof(eh),
	        .e_ehsize = sizeof(eh),
	        .e_phentsize = sizeof(Elf64_Phdr),
	        .e_phnum = f->nph};

	if (sections) {
		u32 name = elf_name(f, ".shstrtab");
		u64 at = elf_place(f), table = (at + f->names_n + 15) & ~(u64)15;

		memcpy(f->at + at, f->names, f->names_n);
		f->sh[f->nsh++] =
		        (Elf64_Shdr){.sh_name = name, .sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = f->names_n};
		eh.e_shoff = table;
		eh.e_shentsize = sizeof(f->sh[0]);
		eh.e_shnum = f->nsh;
		eh.e_shstrndx = f->nsh - 1;
		memcpy(f->at + table, f->sh, f->nsh * sizeof(f->sh[0]));
		f->n = table + f->nsh * sizeof(f->sh[0]);
	}
	memcpy(f->at, &eh, sizeof(eh));
	memcpy(f->at + sizeof(eh), f->ph, f->nph * sizeof(f->ph[0]));
}

/* A copy of the file's bytes, for image_from_memory(). */
static inline void *elf_copy(const struct elf_file *f)
{
	void *copy = malloc(f->n);

	if (!copy)
		abort();
	return memcpy(copy, f->at, f->n);
}

#endif
