/* SPDX-License-Identifier: Apache-2.0 */
/* pclntab in each of its layouts: extents, names, lines, inlined calls, unwind rows, and what is refused. */
#include "unit.h"

#include "cfi/cfi.h"
#include "go_fake.h"
#include "runtimes/go/go.h"
#include "runtimes/go/go_names.h"
#include "runtimes/go/go_rows.h"

#define BIAS 0x7f0000000000ULL

static struct go_fake fake;

static struct image *make(enum go_magic magic, bool sections)
{
	struct image *img;

	go_fake_make(&fake, magic, sections);
	assert_null(image_from_memory(elf_copy(&fake.file), fake.file.n, "fake", &img));
	return img;
}

static struct go_table *open_table(struct image *img)
{
	struct go_table *t;

	assert_null(go_table_open(img, &t));
	assert_non_null(t);
	return t;
}

static void check_name(struct go_table *t, u64 addr, const char *want)
{
	struct go_function fn;
	char name[64];

	assert_true(go_function_find(t, addr, &fn));
	assert_int_equal(go_short_name(t, fn.name, name, sizeof(name)), strlen(want));
	assert_string_equal(name, want);
}

static void check_table(enum go_magic magic, bool sections)
{
	struct image *img = make(magic, sections);
	struct go_table *t = open_table(img);
	struct go_function fn;
	char file[64];
	s32 size;

	assert_int_equal(t->magic, magic);
	assert_int_equal(t->nfunctions, 3);
	check_name(t, GO_MAIN, "main.main");
	check_name(t, GO_GOEXIT - 1, "main.main");
	check_name(t, GO_GOEXIT, "runtime.goexit");
	check_name(t, GO_END - 1, "main.(*T).Method[...]");
	assert_false(go_function_find(t, GO_MAIN - 1, &fn));
	assert_false(go_function_find(t, GO_END, &fn));
	assert_true(go_function_find(t, GO_MAIN, &fn));
	assert_int_equal(go_line(t, &fn, GO_MAIN + 7, file, sizeof(file)), 10);
	assert_string_equal(file, "/src/main.go");
	assert_int_equal(go_line(t, &fn, GO_MAIN + 8, file, sizeof(file)), 11);
	assert_int_equal(go_line(t, &fn, GO_MAIN + 0x3f, file, sizeof(file)), 20);
	assert_true(go_pcs_find(t, &fn, fn.pcsp, GO_MAIN + 4, &size));
	assert_int_equal(size, 24);
	assert_false(go_pcs_find(t, &fn, fn.pcsp, GO_MAIN + 0x40, &size));
	go_table_close(t);
	image_put(img);
}

static void test_each_layout(void **state)
{
	for (enum go_magic m = 0; m < GO_MAGICS; m++)
		check_table(m, true);
}

static void test_without_sections(void **state)
{
	for (enum go_magic m = 0; m < GO_MAGICS; m++)
		check_table(m, false);
}

/* Frames of a place, as "innermost:line caller:line". */
static void check_frames(struct go_table *t, u64 pc, u32 flags, const char *want)
{
	struct frame native = {.where = frame_where(FRAME_NATIVE, RUNTIME_NATIVE, flags, pc + BIAS), .detail = 7},
	             frames[16];
	u32 n = go_expand_frame(t, BIAS, &native, frames, 16);
	char text[4096] = "";

	for (u32 i = 0; i < n; i++) {
		struct frame_name name = {.name = ""};

		assert_int_equal(frame_kind(&frames[i]), FRAME_SCRIPT);
		assert_int_equal(frame_runtime(&frames[i]), RUNTIME_GO);
		assert_int_equal(!(frame_flags(&frames[i]) & FRAME_INLINED), i == n - 1);
		assert_true(go_name_frame(t, BIAS, &frames[i], &name));
		assert_int_equal(name.form, FORM_JIT);
		assert_int_equal(name.code, pc - (flags & FRAME_RETADDR ? 1 : 0) + BIAS); /* of all the same */
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s:%u", i ? " " : "", name.name,
		        name.line);
	}
	assert_string_equal(text, want);
}

static void test_inlined_calls(void **state)
{
	for (enum go_magic m = 0; m < GO_MAGICS; m++) {
		struct image *img = make(m, true);
		struct go_table *t = open_table(img);

		check_frames(t, GO_MAIN + 0x0f, 0, "main.main:11");
		check_frames(t, GO_MAIN + 0x10, 0, "main.inner:11 main.main:11");
		check_frames(t, GO_MAIN + 0x18, 0, "main.innermost[...].func1:11 main.inner:11 main.main:11");
		check_frames(
		        t, GO_MAIN + 0x1c, FRAME_RETADDR, "main.innermost[...].func1:11 main.inner:11 main.main:11");
		check_frames(t, GO_MAIN + 0x1c, 0, "main.inner:11 main.main:11");
		check_frames(t, GO_MAIN + 0x20, 0, "main.main:20");
		check_frames(t, GO_METHOD, 0, "main.(*T).Method[...]:0");
		check_frames(t, GO_END, 0, "");
		go_table_close(t);
		image_put(img);
	}
}

static void check_row(const struct cfi *cfi, u64 addr, u8 kind, s32 offset)
{
	struct cfi_rule rule;

	assert_true(cfi_find(cfi, addr, &rule));
	assert_int_equal(rule.kind, kind);
	if (kind != CFI_REG)
		return;
	assert_int_equal(rule.cfa_reg, REG_SP);
	assert_int_equal(rule.cfa_off, offset);
}

static void test_rows(void **state)
{
	const struct cfi_options options = {.providers = {&go_provider}};

	for (enum go_magic m = 0; m < GO_MAGICS; m++) {
		struct image *img = make(m, true);
		struct cfi *cfi;

		assert_null(cfi_load(img, &options, &cfi));
		assert_int_equal(cfi->nfdes, 3);
		assert_int_equal(cfi->ncorrupt, 0);
		check_row(cfi, GO_MAIN, CFI_REG, 8);
		check_row(cfi, GO_MAIN + 3, CFI_REG, 8);
		check_row(cfi, GO_MAIN + 4, CFI_REG, 32);
		check_row(cfi, GO_MAIN + 0x37, CFI_REG, 32);
		check_row(cfi, GO_MAIN + 0x38, CFI_REG, 8);
		check_row(cfi, GO_GOEXIT, CFI_ROOT, 0);
		check_row(cfi, GO_GOEXIT + 1, CFI_ROOT, 0);
		check_row(cfi, GO_METHOD, CFI_REG, 16);
		cfi_destroy(cfi);
		image_put(img);
	}
}

/* What is no Go program is none, quickly; a Go program whose table makes no sense is refused in words. */
static void test_refused(void **state)
{
	struct elf_file plain;
	struct go_table *t;
	struct image *img;
	struct error *err;

	elf_start(&plain);
	elf_finish(&plain, true);
	assert_null(image_from_memory(elf_copy(&plain), plain.n, "plain", &img));
	assert_null(go_table_open(img, &t));
	assert_null(t);
	image_put(img);
	for (enum go_magic m = 0; m < GO_MAGICS; m++) {
		go_fake_make(&fake, m, true);
		fake.file.at[fake.addr] ^= 0x40; /* of a layout to come */
		assert_null(image_from_memory(elf_copy(&fake.file), fake.file.n, "future", &img));
		err = go_table_open(img, &t);
		assert_non_null(err);
		assert_int_equal(err->kind, ERROR_UNSUPPORTED);
		assert_null(t);
		error_free(err);
		image_put(img);
	}
}

/* As garble leaves it: a magic number of its own, and entries that only who knows its key can read. */
static void test_garbled(void **state)
{
	struct go_table *t;
	struct image *img;

	go_fake_make(&fake, GO_MAGIC_1_20, true);
	fake.file.at[fake.addr] ^= 0x40;
	for (u32 i = 0; i < 3; i++) {
		u8 *functions = fake.file.at + fake.addr + fake.functions;
		u32 func[2], offset;

		memcpy(&offset, functions + 8 * i + 4, sizeof(offset));
		memcpy(func, functions + offset, sizeof(func));
		func[0] ^= func[1] * 0x9e3779b1u;
		memcpy(functions + offset, func, sizeof(func));
	}
	assert_null(image_from_memory(elf_copy(&fake.file), fake.file.n, "garbled", &img));
	t = open_table(img);
	assert_int_equal(t->entry_key, 0x9e3779b1u);
	check_name(t, GO_END - 1, "main.(*T).Method[...]");
	check_frames(t, GO_MAIN + 0x18, 0, "main.innermost[...].func1:11 main.inner:11 main.main:11");
	go_table_close(t);
	image_put(img);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_each_layout),
	        cmocka_unit_test(test_without_sections),
	        cmocka_unit_test(test_inlined_calls),
	        cmocka_unit_test(test_rows),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_garbled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
