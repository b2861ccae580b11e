/* SPDX-License-Identifier: Apache-2.0 */
/* A process that describes its compiled code to debuggers by any bytes: its list of files, a file. */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "unwind/symbols/jit_symbols.h"
#include "unwind/symbols/symbols.h"

#define FILE_AT 4096u

/* The fuzzer is the program that has it: its list begins at address 8 and names the bytes at FILE_AT. */
u64 __jit_debug_descriptor[3] = {1, 0, 8};

struct bytes {
	struct memory memory;
	const uint8_t *data;
	size_t size;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_bytes(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	const struct bytes *b = (const struct bytes *)mem;
	const u64 entry[4] = {0, 0, FILE_AT, b->size};

	if (size == sizeof(__jit_debug_descriptor)) {
		memcpy(dst, __jit_debug_descriptor, size);
		return true;
	}
	if (addr == 8 && size == sizeof(entry)) {
		memcpy(dst, entry, size);
		return true;
	}
	if (addr != FILE_AT || size > b->size)
		return false;
	memcpy(dst, b->data, size);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mapping mapping;
	static uint8_t file[65536];
	struct bytes b = {
	        .memory = {.read = read_bytes}, .data = file, .size = size < sizeof(file) ? size : sizeof(file)};
	struct jit_symbols *s = jit_symbols_create();
	Elf64_Ehdr *head = (Elf64_Ehdr *)file;

	memcpy(file, data, b.size);
	if (size >= sizeof(*head)) { /* else no input gets anywhere */
		memcpy(head->e_ident, ELFMAG, SELFMAG);
		head->e_ident[EI_CLASS] = ELFCLASS64;
		head->e_type = ET_REL;
		head->e_shentsize = sizeof(Elf64_Shdr);
		head->e_shoff &= 0x1f8;
		head->e_shnum &= 7;
	}
	if (!mapping.image && image_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "self", &mapping.image))
		abort();
	mapping.prot = PROT_EXEC;
	for (u64 addr = 0; addr < 64; addr += 8)
		jit_symbols_find(s, &b.memory, &mapping, 1, addr);
	jit_symbols_destroy(s);
	return 0;
}
