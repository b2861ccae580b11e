/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile core file: any table of segments with any notes, or one note of a known kind with any content. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <unistd.h>

#include "unwind/binary/core_file.h"

#define NOTES 0x200u

static void put_note(uint8_t *to, size_t *at, uint32_t type, const void *desc, size_t size)
{
	Elf64_Nhdr nh = {.n_namesz = 5, .n_descsz = (uint32_t)size, .n_type = type};

	memcpy(to + *at, &nh, sizeof(nh));
	memcpy(to + *at + sizeof(nh), "CORE\0\0\0", 8);
	memcpy(to + *at + sizeof(nh) + 8, desc, size);
	*at += sizeof(nh) + 8 + ((size + 3) & ~3ul);
}

static size_t make(uint8_t *to, const uint8_t *data, size_t size)
{
	static const uint32_t types[] = {NT_PRSTATUS, NT_PRPSINFO, NT_SIGINFO, NT_AUXV, NT_FILE};
	Elf64_Ehdr eh = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64},
	        .e_type = ET_CORE,
	        .e_machine = ARCH_CORE_MACHINE,
	        .e_phoff = sizeof(eh),
	        .e_phentsize = sizeof(Elf64_Phdr),
	        .e_phnum = 4};
	Elf64_Phdr ph[4] = {{.p_type = PT_NOTE, .p_offset = NOTES}};
	struct elf_prstatus status = {.pr_pid = 1};
	size_t at = NOTES;

	memcpy(to, &eh, sizeof(eh));
	if (data[0] & 1) {
		memcpy(to + sizeof(eh), data, size);
		return sizeof(eh) + size;
	}
	put_note(to, &at, NT_PRSTATUS, &status, sizeof(status));
	put_note(to, &at, types[(data[0] >> 1) % 5], data + 1, size - 1);
	ph[0].p_filesz = at - NOTES;
	for (uint32_t i = 1; i < 4; i++)
		ph[i] = (Elf64_Phdr){.p_type = PT_LOAD,
		        .p_flags = PF_R | PF_X,
		        .p_vaddr = i << 12,
		        .p_memsz = 1 << 12,
		        .p_filesz = i & 1 ? 64 : 0};
	memcpy(to + sizeof(eh), ph, sizeof(ph));
	return at;
}

static void look(struct core_file *core)
{
	struct memory *mem = core_memory(core);
	struct maps maps;
	char bytes[64];

	if (!mem || core_maps(core, &maps))
		abort();
	for (uint32_t i = 0; i < core->nsegments && i < 64; i++) {
		const struct core_segment *s = &core->segments[i];

		if (s->start >= s->end || s->kept > s->end - s->start || (s->file && s->file > core->nfiles))
			abort();
		memory_read(mem, bytes, sizeof(bytes), s->start);
		memory_read(mem, bytes, sizeof(bytes), s->start + s->kept - 8);
		memory_read(mem, bytes, sizeof(bytes), s->end - 8);
	}
	error_free(core_complaint(core));
	maps_free(&maps);
	memory_destroy(mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct core_file *core;
	struct error *err;
	uint8_t *file;
	char path[64];
	int fd;

	if (!size)
		return 0;
	file = calloc(1, size + 4096);
	fd = memfd_create("core", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!file || fd < 0 || write(fd, file, make(file, data, size)) < 0)
		abort();
	err = core_open(path, "/nonexistent", &core);
	if (!err) {
		look(core);
		core_close(core);
	}
	error_free(err);
	close(fd);
	free(file);
	return 0;
}
