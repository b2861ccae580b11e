/* SPDX-License-Identifier: Apache-2.0 */
/* A BPF object that was built with us, as ELF: its offsets are right. */
#ifndef YRT_SKELETON_ELF_H
#define YRT_SKELETON_ELF_H

#include <elf.h>
#include <string.h>
#include <types.h>

struct elf {
	u8 *bytes;
	const Elf64_Shdr *sections;
	u32 n;
};

static inline struct elf elf_of(const void *bytes)
{
	const Elf64_Ehdr *head = bytes;

	return (struct elf){.bytes = (u8 *)bytes,
	        .sections = (const Elf64_Shdr *)((u8 *)bytes + head->e_shoff),
	        .n = head->e_shnum};
}

static inline const Elf64_Shdr *find_section(const struct elf *elf, const char *name)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)elf->bytes;
	const char *names = (const char *)elf->bytes + elf->sections[head->e_shstrndx].sh_offset;

	for (u32 i = 0; i < elf->n; i++)
		if (!strcmp(names + elf->sections[i].sh_name, name))
			return &elf->sections[i];
	return NULL;
}

static inline const Elf64_Sym *symbol_at(const struct elf *elf, const Elf64_Shdr *symbols, u64 i)
{
	return (const Elf64_Sym *)(elf->bytes + symbols->sh_offset) + i;
}

static inline const char *symbol_name(const struct elf *elf, const Elf64_Shdr *symbols, u64 i)
{
	const Elf64_Shdr *names = &elf->sections[symbols->sh_link];

	return (const char *)elf->bytes + names->sh_offset + symbol_at(elf, symbols, i)->st_name;
}

/* Are these relocations of code? */
static inline bool relocates_code(const struct elf *elf, const Elf64_Shdr *s)
{
	return s->sh_type == SHT_REL && elf->sections[s->sh_info].sh_flags & SHF_EXECINSTR;
}

#endif
