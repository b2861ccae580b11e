/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile file that claims to be a libjvm without symbols: the code of its functions and the notes of its probes are
 * any bytes. */
#include "runtimes/hotspot/alloc/hotspot_alloc_code.h"
#include "tests/unit/eh_frame.h"
#include "unwind/cfi/cfi.h"

#define FUNCTIONS 8
#define CODE      (ELF_TEXT_END - ELF_TEXT)
#define BSS       0x40000u

static struct elf_file file;

static void add_rows(void)
{
	struct bytes eh = {.n = 0};
	u64 addr = elf_place(&file);
	size_t cie = eh_put_cie(&eh, &eh_cie_default);

	for (u64 at = ELF_TEXT; at < ELF_TEXT_END; at += CODE / FUNCTIONS)
		eh_put_fde(&eh, &eh_cie_default, cie, addr, at, CODE / FUNCTIONS, "", 0);
	elf_section(&file, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, eh.at, eh.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hotspot_alloc_code code;
	struct image *img;
	u64 probes[4];
	size_t half = size / 2 < CODE ? size / 2 : CODE;

	elf_start(&file);
	file.ph[file.nph++] =
	        (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_vaddr = BSS, .p_memsz = 1u << 31};
	memcpy(file.at + ELF_TEXT, data, half);
	elf_section(&file, ".stapsdt.base", SHT_PROGBITS, SHF_ALLOC, "", 1);
	elf_section(&file, ".note.stapsdt", SHT_NOTE, 0, data + half, size - half < 0x8000 ? size - half : 0x8000);
	add_rows();
	elf_finish(&file, true);
	if (image_from_memory(elf_copy(&file), file.n, "fuzzed", &img))
		return 0;
	error_free(cfi_load(img, &(struct cfi_options){0}, &img->cfi));
	hotspot_alloc_code(img, &code);
	hotspot_gc_probes(img, probes, 4);
	image_put(img);
	return 0;
}
