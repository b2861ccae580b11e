/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile file that claims to be Python: the code of its eval loop, of what else is looked at, and what it says of
 * its layout are any bytes in a sound ELF file with Python's symbols. The first bytes choose the version and how the
 * input is cut.
 */
#include "runtimes/python/python_methods.h"
#include "tests/unit/eh_frame.h"
#include "unwind/cfi/cfi.h"
#include "unwind/runtime.h"
#include "unwind/symbols/symbols.h"

#define LOOP_BYTES 0x1000
#define DATA_BYTES 0x1000
#define OTHER      (ELF_TEXT + LOOP_BYTES) /* a function beside the loop */

static struct elf_file file;

static const struct {
	const char *name;
	bool code;
	u16 at, size;
} symbols[] = {
        {"_PyEval_EvalFrameDefault", true, 0, 0x800},
        {"PyGILState_GetThisThreadState", true, LOOP_BYTES, 64},
        {"PyInterpreterState_Head", true, LOOP_BYTES + 64, 32},
        {"PyThreadState_Swap", true, LOOP_BYTES + 128, 64},
        {"_PyThreadState_Current", false, 0xf00, 8},
        {"Py_Version", false, 0xe00, 8},
        {"_PyRuntime", false, 0, 0xd00},
        {"PyCode_Type", false, 0xe10, 8},
        {"PyFrame_Type", false, 0xe20, 8},
        {"PyType_Type", false, 0xe30, 8},
        {"PyTuple_Type", false, 0xe40, 8},
        {"PyBytes_Type", false, 0xe50, 8},
        {"PyUnicode_Type", false, 0xe60, 8},
};
#define SYMBOLS (sizeof(symbols) / sizeof(*symbols))

static void add_symbols(u64 data)
{
	struct bytes names = {.n = 0};
	Elf64_Sym table[SYMBOLS + 1] = {{0}};

	put8(&names, 0);
	for (u32 i = 0; i < SYMBOLS; i++) {
		table[i + 1] = (Elf64_Sym){.st_name = (u32)names.n,
		        .st_info = ELF64_ST_INFO(STB_GLOBAL, symbols[i].code ? STT_FUNC : STT_OBJECT),
		        .st_shndx = 1,
		        .st_value = symbols[i].at + (symbols[i].code ? ELF_TEXT : data),
		        .st_size = symbols[i].size};
		put(&names, symbols[i].name, strlen(symbols[i].name) + 1);
	}
	elf_section(&file, ".dynstr", SHT_STRTAB, SHF_ALLOC, names.at, names.n);
	elf_section(&file, ".dynsym", SHT_DYNSYM, SHF_ALLOC, table, sizeof(table));
	file.sh[file.nsh - 1].sh_link = file.nsh - 2;
	file.sh[file.nsh - 1].sh_entsize = sizeof(Elf64_Sym);
	file.sh[file.nsh - 1].sh_info = 1;
}

static void add_rows(void)
{
	static const u8 code[] = {DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc | 8,
	        DW_CFA_def_cfa_offset, 0x80, 2};
	struct bytes eh = {.n = 0};
	u64 addr = elf_place(&file);
	size_t cie = eh_put_cie(&eh, &eh_cie_default);

	eh_put_fde(&eh, &eh_cie_default, cie, addr, ELF_TEXT, 0x800, code, sizeof(code));
	eh_put_fde(&eh, &eh_cie_default, cie, addr, ELF_TEXT + 0x800, 0x800, code, sizeof(code));
	eh_put_fde(&eh, &eh_cie_default, cie, addr, OTHER, 0x200, code, sizeof(code));
	elf_section(&file, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, eh.at, eh.n);
}

/* What it says of itself: a cookie, a version, offsets of which most are small. */
static u64 add_data(u32 version, bool tame, const uint8_t *from, size_t size)
{
	static u64 words[DATA_BYTES / 8];

	memset(words, 0, sizeof(words));
	memcpy(words, from, size < sizeof(words) ? size : sizeof(words));
	for (u32 i = 2; tame && i < 112; i++)
		words[i] %= i % 3 ? 128 : 1024;
	memcpy(words, "xdebugpy", 8);
	words[1] = version;
	words[0xe00 / 8] = version;
	return elf_section(&file, ".data.rel.ro", SHT_PROGBITS, SHF_ALLOC, words, sizeof(words));
}

static void probe(struct image *img)
{
	struct c_names names = {0};
	void *data = NULL;

	error_free(symbols_load(img, ""));
	error_free(cfi_load(img, &(struct cfi_options){0}, &img->cfi));
	error_free(python_runtime.image_probe(img, &data));
	if (data)
		python_runtime.image_destroy(data);
	error_free(python_methods(img, &names));
	c_names_sort(&names);
	c_names_free(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const u8 minors[] = {6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	struct image *img;
	size_t code;
	u64 at;

	if (size < 8)
		return 0;
	code = size / 4 * (data[1] % 4 + 1) / 2;
	code = code < size - 4 ? code : size - 4;
	elf_start(&file);
	memcpy(file.at + ELF_TEXT, data + 4, code < 2 * LOOP_BYTES ? code : 2 * LOOP_BYTES);
	at = add_data(3u << 24 | (u32)minors[data[0] % sizeof(minors)] << 16 | 0xf0, data[1] & 4, data + 4 + code,
	        size - 4 - code);
	add_symbols(at);
	add_rows();
	file.entry = ELF_TEXT;
	elf_finish(&file, true);
	if (!image_from_memory(elf_copy(&file), file.n, "fuzzed", &img)) {
		probe(img);
		image_put(img);
	}
	return 0;
}
