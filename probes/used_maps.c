/* SPDX-License-Identifier: Apache-2.0 */
#include "used_maps.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>

#include "sample.skel.h"
#include "skeleton_elf.h"
#include "unwind/cleanup.h"
#include "unwind/search.h"

struct used {
	struct elf elf;
	const Elf64_Shdr *symbols;
	u64 nsymbols;
	u8 *seen;       /* of each symbol: is it called, or referred to? */
	u32 *todo;      /* functions that were not looked at yet */
	u32 *functions; /* all */
	u32 ntodo, nfunctions;
};

static bool is_function(const struct used *u, u64 i)
{
	return ELF64_ST_TYPE(symbol_at(&u->elf, u->symbols, i)->st_info) == STT_FUNC;
}

static void use(struct used *u, u64 i)
{
	if (u->seen[i])
		return;
	u->seen[i] = 1;
	if (is_function(u, i))
		u->todo[u->ntodo++] = (u32)i;
}

static void use_function_at(struct used *u, u32 section, u64 offset)
{
	for (u32 i = 0; i < u->nfunctions; i++) {
		const Elf64_Sym *s = symbol_at(&u->elf, u->symbols, u->functions[i]);

		if (s->st_shndx == section && s->st_value == offset)
			use(u, u->functions[i]);
	}
}

static const struct bpf_insn *insn_at(const struct used *u, u32 section, u64 offset)
{
	return (const struct bpf_insn *)(u->elf.bytes + u->elf.sections[section].sh_offset + offset);
}

/* A call of a function of the same section, or its address for bpf_loop(): libbpf tells them apart as well. */
static void use_relocation(struct used *u, u32 section, const Elf64_Rel *rel)
{
	u64 i = ELF64_R_SYM(rel->r_info);
	const Elf64_Sym *s = symbol_at(&u->elf, u->symbols, i);
	const struct bpf_insn *insn = insn_at(u, section, rel->r_offset);

	if (ELF64_ST_TYPE(s->st_info) != STT_SECTION)
		use(u, i);
	else if (u->elf.sections[s->st_shndx].sh_flags & SHF_EXECINSTR)
		use_function_at(u, s->st_shndx,
		        insn->code == (BPF_JMP | BPF_CALL) ? (u64)(insn->imm + 1) * sizeof(*insn) : (u64)insn->imm);
}

/* They are in the order of the code. */
static void use_relocations(struct used *u, const Elf64_Sym *f)
{
	u32 n;

	for (u32 k = 0; k < u->elf.n; k++) {
		const Elf64_Shdr *s = &u->elf.sections[k];
		const Elf64_Rel *rel = (const Elf64_Rel *)(u->elf.bytes + s->sh_offset);

		if (s->sh_info != f->st_shndx || !relocates_code(&u->elf, s))
			continue;
		n = (u32)(s->sh_size / sizeof(*rel));
		for (u32 i = SEARCH(n, at, rel[at].r_offset < f->st_value);
		        i < n && rel[i].r_offset < f->st_value + f->st_size; i++)
			use_relocation(u, f->st_shndx, &rel[i]);
	}
}

/* Calls of static functions of the same section have no relocation. */
static void use_local_calls(struct used *u, const Elf64_Sym *f)
{
	for (u64 at = f->st_value; at < f->st_value + f->st_size; at += sizeof(struct bpf_insn)) {
		const struct bpf_insn *insn = insn_at(u, f->st_shndx, at);

		if (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL && insn->imm != -1)
			use_function_at(u, f->st_shndx, at + (u64)((s64)insn->imm + 1) * sizeof(*insn));
	}
}

static void use_all(struct used *u)
{
	while (u->ntodo) {
		const Elf64_Sym *f = symbol_at(&u->elf, u->symbols, u->todo[--u->ntodo]);

		use_relocations(u, f);
		use_local_calls(u, f);
	}
}

static void use_program(struct used *u, const char *name)
{
	for (u32 i = 0; i < u->nfunctions; i++)
		if (!strcmp(symbol_name(&u->elf, u->symbols, u->functions[i]), name))
			use(u, u->functions[i]);
}

/* Those of libbpf (.rodata) are no symbols. */
static bool is_used(const struct used *u, const char *name, u32 maps)
{
	for (u64 i = 0; i < u->nsymbols; i++)
		if (symbol_at(&u->elf, u->symbols, i)->st_shndx == maps &&
		        !strcmp(symbol_name(&u->elf, u->symbols, i), name))
			return u->seen[i];
	return true;
}

bool used_maps_only(struct sample *skel)
{
	size_t size;
	struct used u = {.elf = elf_of(sample__elf_bytes(&size))};
	cleanup(free) u32 *functions = NULL, *todo = NULL;
	cleanup(free) u8 *seen = NULL;
	struct bpf_program *p;
	struct bpf_map *map;
	u32 maps;

	u.symbols = find_section(&u.elf, ".symtab");
	u.nsymbols = u.symbols->sh_size / sizeof(Elf64_Sym);
	u.seen = seen = calloc(u.nsymbols, sizeof(*seen));
	u.todo = todo = calloc(u.nsymbols, sizeof(*todo));
	u.functions = functions = calloc(u.nsymbols, sizeof(*functions));
	if (!seen || !todo || !functions)
		return false;
	for (u64 i = 0; i < u.nsymbols; i++)
		if (is_function(&u, i))
			functions[u.nfunctions++] = (u32)i;
	bpf_object__for_each_program(p, skel->obj)
	{
		if (bpf_program__autoload(p))
			use_program(&u, bpf_program__name(p));
	}
	use_all(&u);
	maps = (u32)(find_section(&u.elf, ".maps") - u.elf.sections);
	bpf_object__for_each_map(map, skel->obj)
	{
		bpf_map__set_autocreate(map, is_used(&u, bpf_map__name(map), maps));
	}
	return true;
}
