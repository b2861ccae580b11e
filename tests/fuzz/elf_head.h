/* SPDX-License-Identifier: Apache-2.0 */
/* The sound head that fuzzers put in front of an ELF file's hostile sections. */
#ifndef YRT_ELF_HEAD_H
#define YRT_ELF_HEAD_H

#include <elf.h>

/* Of a library with one program header; the last section has the names. phoff, shoff: offsets in the file. */
static inline Elf64_Ehdr elf_head(Elf64_Off phoff, Elf64_Off shoff, Elf64_Half sections)
{
	return (Elf64_Ehdr){.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	        .e_type = ET_DYN,
	        .e_machine = EM_X86_64,
	        .e_version = EV_CURRENT,
	        .e_phoff = phoff,
	        .e_shoff = shoff,
	        .e_ehsize = sizeof(Elf64_Ehdr),
	        .e_phentsize = sizeof(Elf64_Phdr),
	        .e_phnum = 1,
	        .e_shentsize = sizeof(Elf64_Shdr),
	        .e_shnum = sections,
	        .e_shstrndx = sections - 1};
}

#endif
