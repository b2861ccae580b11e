/* SPDX-License-Identifier: Apache-2.0 */
#include "elf_table.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(Elf64_Sym) == ELF_RECORD_SIZE, "symbols are records");
_Static_assert(sizeof(Elf64_Rela) == ELF_RECORD_SIZE, "relocations are records");

bool elf_read(const struct image *img, void *dst, size_t size, u64 offset)
{
	size_t done = 0;
	ssize_t n;

	if (offset > img->size || size > img->size - offset)
		return false;
	if (img->copy) {
		memcpy(dst, (char *)img->copy + offset, size);
		return true;
	}
	while (done < size) {
		n = pread(img->fd, (char *)dst + done, size - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static bool place_of(struct image *img, const GElf_Shdr *sh, struct elf_place *ret)
{
	if (sh->sh_type == SHT_NOBITS || sh->sh_flags & SHF_COMPRESSED || sh->sh_offset > img->size ||
	        sh->sh_size > img->size - sh->sh_offset)
		return false;
	*ret = (struct elf_place){sh->sh_addr, sh->sh_offset, sh->sh_size, sh->sh_entsize};
	return true;
}

bool elf_place_find(struct image *img, const char *name, struct elf_place *ret)
{
	Elf_Scn *scn = NULL;
	const char *found;
	size_t names;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(img->elf, &names))
		return false;
	while ((scn = elf_nextscn(img->elf, scn))) {
		if (!gelf_getshdr(scn, &sh))
			continue;
		found = elf_strptr(img->elf, names, sh.sh_name);
		if (found && !strcmp(found, name))
			return place_of(img, &sh, ret);
	}
	return false;
}

bool elf_table_find(struct image *img, u32 type, struct elf_table *ret)
{
	struct elf_table table;
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(img->elf, scn))) {
		if (!gelf_getshdr(scn, &sh) || sh.sh_type != type || !place_of(img, &sh, &table.symbols))
			continue;
		if (!gelf_getshdr(elf_getscn(img->elf, sh.sh_link), &sh) || sh.sh_type != SHT_STRTAB ||
		        !place_of(img, &sh, &table.strings))
			continue;
		*ret = table;
		return true;
	}
	return false;
}

void elf_records_start(struct elf_records *r, struct image *img, const struct elf_place *place)
{
	r->img = img;
	r->offset = place->offset;
	r->left = place->size / ELF_RECORD_SIZE;
	r->have = r->next = 0;
}

const void *elf_records_next(struct elf_records *r)
{
	if (r->next == r->have) {
		r->have = r->left < ELF_RECORDS_ROOM ? r->left : ELF_RECORDS_ROOM;
		r->next = 0;
		if (!r->have || !elf_read(r->img, r->buf, r->have * ELF_RECORD_SIZE, r->offset)) {
			r->have = r->left = 0;
			return NULL;
		}
		r->left -= r->have;
		r->offset += r->have * ELF_RECORD_SIZE;
	}
	return (char *)r->buf + r->next++ * ELF_RECORD_SIZE;
}
