/* SPDX-License-Identifier: Apache-2.0 */
#include "jit_symbols.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cleanup.h"
#include "grow.h"
#include "symbols.h"
#include "search.h"

#define FILES_MAX  65536u
#define FILE_MAX   (16ull << 20)
#define BYTES_MAX  (256ull << 20) /* of all files */
#define NAMES_MAX  (64u << 20)    /* bytes of all names */
#define NAME_BYTES 1024u

struct function {
	u64 start, end;
	char *name;
};

struct jit_symbols {
	u64 descriptor;             /* 0: not found */
	u32 nmappings;              /* when it was looked for */
	u64 first;                  /* of the list that was read */
	struct function *functions; /* sorted, once all are read */
	u32 n;
	u64 names;             /* their bytes */
	char text[NAME_BYTES]; /* what was found last */
};

/* struct jit_code_entry */
struct entry {
	u64 next, before, file, size;
};

struct jit_symbols *jit_symbols_create(void)
{
	return calloc(1, sizeof(struct jit_symbols));
}

static void forget(struct jit_symbols *s)
{
	for (u32 i = 0; i < s->n; i++)
		free(s->functions[i].name);
	s->n = 0;
	s->names = 0;
}

void jit_symbols_destroy(struct jit_symbols *s)
{
	if (!s)
		return;
	forget(s);
	free(s->functions);
	free(s);
}

static u64 find_descriptor(const struct mapping *mappings, u32 n)
{
	const struct image *last = NULL;
	struct symbol sym;

	for (u32 i = 0; i < n; i++) {
		struct image *img = mappings[i].prot & PROT_EXEC ? mappings[i].image : NULL;

		if (img && img != last && symbols_lookup(img, "__jit_debug_descriptor", &sym))
			return sym.start + mappings[i].bias;
		last = img ? img : last;
	}
	return 0;
}

static void add(struct jit_symbols *s, u64 start, u64 size, const char *name)
{
	s->names += strlen(name) + sizeof(*s->functions);
	if (s->names > NAMES_MAX || grow(&s->functions, s->n, sizeof(*s->functions)))
		return;
	s->functions[s->n] = (struct function){start, start + size, strdup(name)};
	s->n += s->functions[s->n].name != NULL;
}

/* A table within the file; NULL: it is not. */
static const void *table(const u8 *file, u64 size, u64 offset, u64 bytes)
{
	return offset < size && bytes <= size - offset && !(offset & 7) ? file + offset : NULL;
}

static void read_symbols(
        struct jit_symbols *s, const u8 *file, u64 size, const Elf64_Shdr *sections, u32 n, const Elf64_Shdr *symtab)
{
	const Elf64_Sym *sym = table(file, size, symtab->sh_offset, symtab->sh_size);
	const Elf64_Shdr *strings = symtab->sh_link < n ? &sections[symtab->sh_link] : NULL;

	if (!sym || !strings || strings->sh_offset >= size || strings->sh_size > size - strings->sh_offset)
		return;
	for (u64 i = 0; i < symtab->sh_size / sizeof(*sym); i++) {
		const char *name = (const char *)file + strings->sh_offset + sym[i].st_name;

		if (ELF64_ST_TYPE(sym[i].st_info) != STT_FUNC || sym[i].st_shndx >= n || !sym[i].st_size ||
		        sym[i].st_name >= strings->sh_size || !memchr(name, 0, strings->sh_size - sym[i].st_name))
			continue;
		add(s, sections[sym[i].st_shndx].sh_addr + sym[i].st_value, sym[i].st_size, name);
	}
}

static void read_file(struct jit_symbols *s, const u8 *file, u64 size)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)file;
	const Elf64_Shdr *sections;

	if (size < sizeof(*head) || memcmp(head->e_ident, ELFMAG, SELFMAG) || head->e_ident[EI_CLASS] != ELFCLASS64 ||
	        head->e_type != ET_REL || head->e_shentsize != sizeof(*sections))
		return;
	sections = table(file, size, head->e_shoff, head->e_shnum * sizeof(*sections));
	for (u32 i = 0; sections && i < head->e_shnum; i++)
		if (sections[i].sh_type == SHT_SYMTAB)
			read_symbols(s, file, size, sections, head->e_shnum, &sections[i]);
}

static int compare(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static void read_list(struct jit_symbols *s, struct memory *mem)
{
	struct entry e;
	u64 at = s->first, left = BYTES_MAX;

	for (u32 i = 0; at && i < FILES_MAX && memory_read(mem, &e, sizeof(e), at); i++, at = e.next) {
		cleanup(free) u8 *file = e.size <= FILE_MAX && e.size <= left ? malloc(e.size + 1) : NULL;

		left -= file ? e.size : 0;
		if (file && memory_read(mem, file, e.size, e.file))
			read_file(s, file, e.size);
	}
	if (s->n)
		qsort(s->functions, s->n, sizeof(*s->functions), compare);
}

static const struct function *search(const struct jit_symbols *s, u64 addr)
{
	u32 at = SEARCH(s->n, k, s->functions[k].start <= addr);

	return at && addr < s->functions[at - 1].end ? &s->functions[at - 1] : NULL;
}

/* Looks whether more was registered. */
static void look(struct jit_symbols *s, struct memory *mem, const struct mapping *mappings, u32 n)
{
	u64 words[3]; /* version and action, the relevant entry, the first one */

	if (!s->descriptor && s->nmappings != n)
		s->descriptor = find_descriptor(mappings, n);
	s->nmappings = n;
	if (!s->descriptor || !memory_read(mem, words, sizeof(words), s->descriptor) || (u32)words[0] != 1 ||
	        words[2] == s->first)
		return;
	forget(s);
	s->first = words[2];
	read_list(s, mem);
}

static void strip_abi(char *name)
{
	char *mark, *end;

	while ((mark = strstr(name, "[abi:")) && (end = strchr(mark, ']')))
		memmove(mark, end + 1, strlen(end + 1) + 1);
}

const char *jit_symbols_find(struct jit_symbols *s, struct memory *mem, const struct mapping *mappings, u32 n, u64 addr)
{
	const struct function *f = search(s, addr);
	cleanup(free) char *plain = NULL;

	if (!f) {
		look(s, mem, mappings, n);
		f = search(s, addr);
	}
	plain = f ? symbol_demangle(f->name) : NULL;
	if (!plain)
		return NULL;
	strip_abi(plain);
	snprintf(s->text, sizeof(s->text), "%s", plain);
	return s->text;
}
