/* SPDX-License-Identifier: Apache-2.0 */
/* Names of compiled code: this process announces an object file as LLVM does, as if its code was loaded somewhere. */
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/symbols/jit_symbols.h"
#include "unwind/symbols/symbols.h"

#define LOADED    0x10000000u
#define BYTES_MAX 65536u

struct jit_code_entry {
	struct jit_code_entry *next, *before;
	const void *file;
	u64 size;
};

struct {
	u32 version, action;
	struct jit_code_entry *relevant, *first;
} __jit_debug_descriptor = {1, 0, NULL, NULL};

static u8 object[BYTES_MAX];
static struct jit_code_entry entries[2];
static struct mapping mapping;
static struct memory *memory;

/* Its sections are where a JIT compiler would have put them. */
static void load(void)
{
	Elf64_Ehdr *head = (Elf64_Ehdr *)object;
	Elf64_Shdr *sections = (Elf64_Shdr *)(object + head->e_shoff);

	for (u32 i = 0; i < head->e_shnum; i++)
		if (sections[i].sh_flags & SHF_EXECINSTR)
			sections[i].sh_addr = LOADED + i * 0x1000;
}

static u64 address_of(const char *name, u64 *size)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)object;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(object + head->e_shoff);

	for (u32 i = 0; i < head->e_shnum; i++) {
		const Elf64_Sym *sym = (const Elf64_Sym *)(object + sections[i].sh_offset);

		for (u64 k = 0; sections[i].sh_type == SHT_SYMTAB && k < sections[i].sh_size / sizeof(*sym); k++)
			if (!strcmp((char *)object + sections[sections[i].sh_link].sh_offset + sym[k].st_name, name)) {
				*size = sym[k].st_size;
				return sections[sym[k].st_shndx].sh_addr + sym[k].st_value;
			}
	}
	fail_msg("no %s", name);
	return 0;
}

static int setup(void **state)
{
	char dir[] = "/tmp/yrt-jit-symbols-XXXXXX", command[512], path[64];
	struct symbol sym;
	ssize_t n;
	int fd;

	assert_non_null(mkdtemp(dir));
	snprintf(command, sizeof(command),
	        "cd %s && echo 'int plain(int x) { return x + 1; } __attribute__((section(\".text.b\"))) "
	        "int b(int x) __asm__(\"_ZN4main6kernelB2v1B9c8tJTIeFIEx\"); int b(int x) { return x * 3; }' > a.c && "
	        "gcc -O1 -c a.c",
	        dir);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof(path), "%s/a.o", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, object, sizeof(object));
	assert_true(n > 0 && n < (ssize_t)sizeof(object));
	close(fd);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
	load();
	entries[1] = (struct jit_code_entry){NULL, NULL, object, (u64)n};
	entries[0] = (struct jit_code_entry){&entries[1], NULL, "no ELF file", 11};
	memory = memory_live(getpid());
	assert_null(image_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "self", &mapping.image));
	assert_true(symbols_lookup(mapping.image, "__jit_debug_descriptor", &sym));
	mapping.prot = PROT_READ | PROT_EXEC;
	mapping.bias = (u64)&__jit_debug_descriptor - sym.start;
	return 0;
}

static int teardown(void **state)
{
	image_put(mapping.image);
	memory_destroy(memory);
	return 0;
}

static void test_names(void **state)
{
	struct jit_symbols *s = jit_symbols_create();
	u64 size, plain = address_of("plain", &size), b, size_b;

	b = address_of("_ZN4main6kernelB2v1B9c8tJTIeFIEx", &size_b);
	__jit_debug_descriptor.first = NULL;
	assert_null(jit_symbols_find(s, memory, &mapping, 1, plain));
	__jit_debug_descriptor.first = entries; /* announced meanwhile */
	assert_string_equal(jit_symbols_find(s, memory, &mapping, 1, plain), "plain");
	assert_string_equal(jit_symbols_find(s, memory, &mapping, 1, plain + size - 1), "plain");
	assert_null(jit_symbols_find(s, memory, &mapping, 1, plain - 1));
	assert_null(jit_symbols_find(s, memory, &mapping, 1, plain + size));
	assert_string_equal(jit_symbols_find(s, memory, &mapping, 1, b), "main::kernel(long long)");
	__jit_debug_descriptor.first = &entries[1];
	assert_null(jit_symbols_find(s, memory, &mapping, 1, 1));
	assert_string_equal(jit_symbols_find(s, memory, &mapping, 1, b + size_b - 1), "main::kernel(long long)");
	jit_symbols_destroy(s);
}

/* What it announces is damaged in any byte of the head, the headers, the symbols; a list without an end. */
static void test_hostile(void **state)
{
	static u8 whole[BYTES_MAX];

	memcpy(whole, object, sizeof(whole));
	__jit_debug_descriptor.first = &entries[1];
	for (u64 at = 0; at < entries[1].size; at += at < sizeof(Elf64_Ehdr) ? 1 : 7) {
		struct jit_symbols *s = jit_symbols_create();

		object[at] ^= 0xff;
		jit_symbols_find(s, memory, &mapping, 1, LOADED + 0x1001);
		object[at] = whole[at];
		jit_symbols_destroy(s);
	}
	entries[1].next = &entries[0];
	entries[1].size = 64;
	struct jit_symbols *s = jit_symbols_create();

	assert_null(jit_symbols_find(s, memory, &mapping, 1, LOADED));
	jit_symbols_destroy(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_hostile)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
