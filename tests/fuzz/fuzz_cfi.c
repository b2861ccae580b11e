/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile ELF files: opening them, compiling their CFI, and looking up what came out. The first byte of the input says
 * what the rest is: a whole file; the .eh_frame or .debug_frame of a good file; changes to a good file.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/eh_frame.h"
#include "unwind/cfi/cfi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct elf_file file;

static void look_up(const struct cfi *cfi)
{
	struct cfi_rule rule;

	for (u32 i = 0; i < cfi->nfdes && i < 64; i++) {
		cfi_find(cfi, cfi->fdes[i].start, &rule);
		cfi_find(cfi, cfi->fdes[i].end - 1, &rule);
	}
	for (u32 i = 0; i < cfi->npieces && i < 64; i++) {
		if (cfi->pieces[i].start % CFI_PAGE_SIZE || cfi->pieces[i].end <= cfi->pieces[i].start)
			abort();
		for (u64 at = cfi->pieces[i].start; at < cfi->pieces[i].end && at - cfi->pieces[i].start < 8192;
		        at += 3)
			cfi_find(cfi, at, &rule);
	}
}

static void try(const void *bytes, size_t size)
{
	void *copy = malloc(size ? size : 1);
	struct image *img;
	struct cfi *cfi;
	struct error *err;

	if (!copy)
		return;
	memcpy(copy, bytes, size);
	err = image_from_memory(copy, size, "fuzz", &img);
	if (err) {
		error_free(err);
		return;
	}
	err = cfi_load(img, NULL, &cfi);
	if (!err) {
		look_up(cfi);
		cfi_destroy(cfi);
	}
	error_free(err);
	image_put(img);
}

static void make_file(const char *name, u64 flags, const void *bytes, size_t size)
{
	elf_start(&file);
	elf_build_id(&file, "fuzzed", 6);
	elf_section(&file, name, SHT_PROGBITS, flags, bytes, size);
	file.entry = ELF_TEXT;
	elf_finish(&file, true);
}

static void make_good_file(void)
{
	static const u8 code[] = {DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2};
	struct bytes eh = {.n = 0};
	size_t cie;
	u64 addr;

	elf_start(&file);
	elf_build_id(&file, "fuzzed", 6);
	addr = elf_place(&file);
	cie = eh_put_cie(&eh, &eh_cie_default);
	for (u32 i = 0; i < 4; i++)
		eh_put_fde(&eh, &eh_cie_default, cie, addr, ELF_TEXT + 0x400 * i, 0x300, code, sizeof(code));
	make_file(".eh_frame", SHF_ALLOC, eh.at, eh.n);
}

/* Three bytes a change: where, from the start or among the headers and tables at the end, and what. */
static void change_file(const uint8_t *data, size_t size)
{
	for (; size >= 3; data += 3, size -= 3) {
		size_t at = data[0] | (size_t)(data[1] & 0x3f) << 8;

		at = data[1] & 0x80 ? at % sizeof(Elf64_Ehdr) : ELF_TEXT_END + at % (file.n - ELF_TEXT_END);
		if (data[1] & 0x40)
			at = sizeof(Elf64_Ehdr) + at % (3 * sizeof(Elf64_Phdr));
		file.at[at] = data[2];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size || size > ELF_SIZE_MAX / 2)
		return 0;
	switch (data[0] & 3) {
	case 0:
		try(data + 1, size - 1);
		return 0;
	case 1:
		make_file(".eh_frame", SHF_ALLOC, data + 1, size - 1);
		break;
	case 2:
		make_file(".debug_frame", 0, data + 1, size - 1);
		break;
	case 3:
		make_good_file();
		change_file(data + 1, size - 1);
		break;
	}
	try(file.at, file.n);
	return 0;
}
