/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of names on made files; real files are in test_symbols_oracle.c. */
#include "symbols_files.h"

#include "runtimes/python/cython_generator.h"
#include "unwind/binary/elf_table.h"

/* Addresses below are from `outer` on. */
static const char rules_s[] = "	.text\n"
                              "	.globl outer, weak_alias, __strong_alias, _sized_twin, twin_long, twin\n"
                              "	.weak weak_alias\n"
                              "	.type outer, @function\n"
                              "outer:	.skip 0x20\n"
                              "	.type inner, @function\n"
                              "inner:	.skip 0x10\n"
                              "	.size inner, 0x10\n"
                              "label:	.skip 0xd0\n" /* 0x30: no type, no size, within outer */
                              "	.size outer, 0x100\n"
                              "	.skip 0x40\n" /* 0x100: a gap */
                              "	.type weak_alias, @function\n"
                              "	.type __strong_alias, @function\n"
                              "	.type local_alias, @function\n"
                              "weak_alias:\n"
                              "__strong_alias:\n"
                              "local_alias: .skip 0x20\n" /* 0x140 */
                              "	.size weak_alias, 0x20\n"
                              "	.size __strong_alias, 0x20\n"
                              "	.size local_alias, 0x20\n"
                              "	.type _sized_twin, @function\n"
                              "	.type twin, @function\n"
                              "	.type twin_long, @function\n"
                              "unsized_twin:\n"
                              "_sized_twin:\n"
                              "twin_long:\n"
                              "twin:	.skip 0x20\n" /* 0x160 */
                              "	.size _sized_twin, 0x20\n"
                              "	.size twin, 0x20\n"
                              "	.size twin_long, 0x20\n"
                              "	.type table, @object\n"
                              "table:	.skip 0x10\n" /* 0x180: data among code is no function */
                              "	.size table, 0x10\n"
                              "tail:	.skip 0x30\n" /* 0x190 */
                              "	.type frame_dummy, @function\n"
                              "frame_dummy: .skip 0x60\n" /* 0x1c0: to the end of .text, but that is too long */
                              "	.section .other, \"ax\", @progbits\n"
                              "	.skip 0x10\n"
                              "other:	.skip 0x10\n"
                              "	.data\n"
                              "	.globl datum\n"
                              "	.type datum, @object\n"
                              "datum:	.quad 1\n"
                              "	.size datum, 8\n";

static void test_rules(void **state)
{
	static const struct {
		u32 at;
		const char *name;
	} expected[] = {
	        {0x0, "outer"},
	        {0x1f, "outer"},
	        {0x20, "inner"},
	        {0x2f, "inner"},
	        {0x30, "outer"},
	        {0xff, "outer"},
	        {0x100, "?"},
	        {0x13f, "?"},
	        {0x140, "weak_alias"},
	        {0x15f, "weak_alias"},
	        {0x160, "twin"},
	        {0x17f, "twin"},
	        {0x180, "?"},
	        {0x18f, "?"},
	        {0x190, "tail"},
	        {0x1bf, "tail"},
	        {0x1c0, "frame_dummy"},
	        {0x1ff, "frame_dummy"},
	        {0x200, "?"},
	        {0x21f, "?"},
	};
	struct image *img;
	struct symbol sym;
	u64 base, other;
	u32 i, pass;

	run("gcc -shared -nostdlib -o rules rules.s");
	img = open_image("rules", "");
	base = address_of(img, "outer");
	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < sizeof(expected) / sizeof(*expected); i++)
			assert_string_equal(name_at(img, base + expected[i].at), expected[i].name);
	other = address_of(img, "other");
	assert_string_equal(name_at(img, other + 0xf), "other");
	assert_string_equal(name_at(img, other + 0x10), "?");
	assert_string_equal(name_at(img, other - 1), "?");
	assert_true(symbols_find(img, base + 0x190, &sym));
	assert_int_equal(sym.end, base + 0x1c0);
	assert_string_equal(name_at(img, address_of(img, "datum")), "?");
	assert_string_equal(name_at(img, 0), "?");
	assert_string_equal(name_at(img, UINT64_MAX), "?");
	image_put(img);
}

static void test_lookup(void **state)
{
	struct image *img = open_unloaded("rules");
	struct symbol sym = {.start = 1, .end = 2, .name = "unchanged"};
	u64 base = address_of(img, "outer");

	assert_false(symbols_find(img, base, &sym)); /* not loaded */
	assert_true(symbols_lookup(img, "datum", &sym));
	assert_int_equal(sym.end - sym.start, 8);
	assert_int_equal(address_of(img, "inner"), base + 0x20);
	assert_int_equal(address_of(img, "twin"), base + 0x160); /* not unsized_twin, that ends alike */
	sym = (struct symbol){.start = 1, .end = 2, .name = "unchanged"};
	assert_false(symbols_lookup(img, "oute", &sym));
	assert_false(symbols_lookup(img, "outer2", &sym));
	assert_false(symbols_lookup(img, "uter", &sym));
	assert_false(symbols_lookup(img, "", &sym));
	assert_false(symbols_lookup(img, "rules.s", &sym));
	assert_int_equal(sym.start, 1);
	image_put(img);
}

/* Versions of both kinds are left out of names, and do not hide them from a search. */
static bool count(void *ctx, const char *string)
{
	assert_non_null(strstr(string, "twin"));
	return !strcmp(string, "twin_long") || ++*(u32 *)ctx == 100;
}

static void test_search(void **state)
{
	struct image *img = open_unloaded("rules");
	u32 n = 0;

	assert_true(symbols_search(img, "twin", count, &n));
	assert_in_range(n, 0, 3);
	assert_false(symbols_search(img, "nosuch", count, &n));
	image_put(img);
}

/* Bodies of generators, by the functions that make them; one within a function whose name is as long as the other's
 * number. */
static void test_cython_generators(void **state)
{
	static const char source[] = "#define F(name) void name(void); void name(void) {}\n"
	                             "F(__pyx_pw_1m_1C_11first) F(__pyx_gb_1m_1C_12generator) F(__pyx_pw_1m_1C_1one) "
	                             "F(__pyx_gb_1m_1C_2generator9)\n"
	                             "F(__pyx_pw_1m_1C_5build_1inner) F(__pyx_gb_1m_1C_5build_2generator3) "
	                             "F(__pyx_gb_1m_1C_5build_5generator4)\n"
	                             "F(__pyx_pw_1m_1C_5other) F(__pyx_gb_1m_1C_6generator5) "
	                             "F(__pyx_gb_1m_2generator6) F(__pyx_pw_1m_1build)\n";
	static const char *const expected[][2] = {{"__pyx_gb_1m_1C_12generator", "m.C.first"},
	        {"__pyx_gb_1m_1C_2generator9", "m.C.one"}, {"__pyx_gb_1m_1C_5build_2generator3", "m.C.build.inner"},
	        {"__pyx_gb_1m_1C_5build_5generator4", "m.C.build.genexpr"},
	        {"__pyx_gb_1m_1C_6generator5.cold", "m.C.other [clone .cold]"}, {"__pyx_gb_1m_2generator6", "m.build"}};
	struct image *img;
	char name[64] = "unchanged";

	write_file("generators.c", source, sizeof(source) - 1);
	run("gcc -shared -fPIC -o generators generators.c");
	img = open_image("generators", "");
	assert_false(cython_generator_name(img, "__pyx_pw_1m_1C_1one", name, sizeof(name)));
	assert_false(cython_generator_name(img, "__pyx_gb_1m_1C_2generator9", name, strlen("m.C.one")));
	assert_string_equal(name, "unchanged");
	for (u32 i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		assert_true(cython_generator_name(img, expected[i][0], name, sizeof(name)));
		assert_string_equal(name, expected[i][1]);
	}
	image_put(img);
}

static void test_versions(void **state)
{
	static const char source[] = "__asm__(\".symver old_f, f@V1\\n.symver new_f, f@@V2\");\n"
	                             "int old_f(void) { return 1; }\nint new_f(void) { return 2; }\n";
	static const char script[] = "V1 { local: *; }; V2 { global: f; } V1;\n";
	struct image *img;

	write_file("versions.c", source, sizeof(source) - 1);
	write_file("versions.map", script, sizeof(script) - 1);
	run("gcc -shared -O1 -Wl,--version-script=versions.map -o versions versions.c");
	img = open_image("versions", "");
	assert_string_equal(name_at(img, address_of(img, "new_f")), "f");
	assert_string_equal(name_at(img, address_of(img, "old_f")), "f");
	assert_true(
	        address_of(img, "f") == address_of(img, "new_f") || address_of(img, "f") == address_of(img, "old_f"));
	image_put(img);
}

/* Every stub that objdump can name, in each layout of binutils. */
static void expect_stubs(const char *name)
{
	struct image *img = open_image(name, "");
	char command[512], line[1024], stub[512];
	unsigned long addr;
	u32 n = 0;
	FILE *f;

	snprintf(command, sizeof(command), "cd %s && objdump -d -j .plt -j .plt.sec -j .plt.got %s 2>objdump.log", dir,
	        name);
	f = popen(command, "r");
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx <%[^>]>:", &addr, stub) != 2 || !strstr(stub, "@plt") || strpbrk(stub, "+-"))
			continue;
		assert_string_equal(name_at(img, addr), stub);
		assert_string_equal(name_at(img, addr + 7), stub);
		n++;
	}
	pclose(f);
	assert_true(n >= 3);
	image_put(img);
}

static void test_plt(void **state)
{
	static const char source[] = "#include <stdio.h>\n#include <stdlib.h>\nvoid *p = 0;\n"
	                             "int f(char *s) { p = (void *)puts; return puts(s) + atoi(s) + abs(rand()); }\n";

	write_file("plt.c", source, sizeof(source) - 1);
	run("gcc -shared -fPIC -O1 -Wl,-z,lazy -o plt plt.c");
	expect_stubs("plt");
	run("gcc -shared -fPIC -O1 -Wl,-z,now -o plt-now plt.c");
	expect_stubs("plt-now");
	run("gcc -shared -fPIC -O1 -fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy -o plt-ibt plt.c");
	expect_stubs("plt-ibt");
}

/* The vDSO is only in memory. */
static void test_vdso(void **state)
{
	char line[256];
	unsigned long start = 0, end = 0;
	struct image *img;
	FILE *f = fopen("/proc/self/maps", "r");
	void *copy;

	while (fgets(line, sizeof(line), f) && !strstr(line, "[vdso]"))
		;
	assert_int_equal(sscanf(line, "%lx-%lx", &start, &end), 2);
	fclose(f);
	copy = malloc(end - start);
	memcpy(copy, (void *)start, end - start);
	assert_null(image_from_memory(copy, end - start, "[vdso]", &img));
	assert_null(symbols_load(img, ""));
	assert_string_equal(name_at(img, address_of(img, "__vdso_clock_gettime") + 1), "clock_gettime");
	image_put(img);
}

static struct image *patched(const u8 *bytes, size_t size, void (*patch)(u8 *, size_t, const struct elf_table *),
        const struct elf_table *table)
{
	u8 *copy = malloc(size);
	struct image *img = NULL;

	memcpy(copy, bytes, size);
	patch(copy, size, table);
	assert_null(image_from_memory(copy, size, "patched", &img));
	assert_null(symbols_load(img, ""));
	return img;
}

static void unterminate(u8 *bytes, size_t size, const struct elf_table *t)
{
	memset(bytes + t->strings.offset, 'x', size - t->strings.offset < t->strings.size ? 0 : t->strings.size);
}

static void point_outside(u8 *bytes, size_t size, const struct elf_table *t)
{
	Elf64_Sym *sym = (Elf64_Sym *)(bytes + t->symbols.offset);
	u64 i;

	for (i = 0; i < t->symbols.size / sizeof(*sym); i++)
		sym[i].st_name = i & 1 ? UINT32_MAX : t->strings.size;
}

static void all_at_one_place(u8 *bytes, size_t size, const struct elf_table *t)
{
	Elf64_Sym *sym = (Elf64_Sym *)(bytes + t->symbols.offset);
	u64 i;

	for (i = 1; i < t->symbols.size / sizeof(*sym); i++) {
		sym[i].st_value = sym[1].st_value ? sym[1].st_value : 0x1000;
		sym[i].st_size = UINT64_MAX - i;
		sym[i].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
		sym[i].st_shndx = 1;
		sym[i].st_name = 1;
	}
}

static void test_hostile(void **state)
{
	static void (*const patches[])(u8 *, size_t, const struct elf_table *) = {
	        unterminate, point_outside, all_at_one_place};
	struct elf_table table;
	struct image *img = open_unloaded("rules");
	struct symbol sym;
	u64 base = address_of(img, "outer"), at;
	size_t size, i;
	u8 *bytes = read_whole("rules", &size);

	assert_true(elf_table_find(img, SHT_SYMTAB, &table));
	image_put(img);
	for (i = 0; i < sizeof(patches) / sizeof(*patches); i++) {
		img = patched(bytes, size, patches[i], &table);
		for (at = base - 0x2000; at < base + 0x2000; at += 8)
			if (symbols_find(img, at, &sym))
				assert_true(sym.start <= at && at < sym.end && strlen(sym.name) < 4096);
		assert_false(symbols_lookup(img, "x", &sym));
		assert_false(symbols_lookup(img, "nosuch", &sym));
		image_put(img);
	}
	free(bytes);
}

static int make_rules(void **state)
{
	if (make_dir(state))
		return -1;
	write_file("rules.s", rules_s, sizeof(rules_s) - 1);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_rules),
	        cmocka_unit_test(test_lookup),
	        cmocka_unit_test(test_search),
	        cmocka_unit_test(test_cython_generators),
	        cmocka_unit_test(test_versions),
	        cmocka_unit_test(test_plt),
	        cmocka_unit_test(test_vdso),
	        cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, make_rules, remove_dir);
}
