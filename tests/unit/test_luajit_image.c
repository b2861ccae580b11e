/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of the files that hold LuaJIT: its layout, and the rows of its VM's code. */
#include <fcntl.h>
#include <unistd.h>

#include "unit.h"

#include "cfi/cfi_search_cache.h"
#include "code/disassembler.h"
#include "runtimes/luajit/luajit_callers.h"
#include "runtimes/luajit/luajit_code.h"
#include "runtimes/luajit/luajit_image.h"
#include "runtime.h"

#define LIBRARY "/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"
#define RET     0xc3

static struct image *open_image(const char *path)
{
	const struct cfi_options options = {0};
	struct image *img;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		fail_msg("%s is missing: fixtures/setup.sh installs it", path);
	assert_null(image_open(fd, path, &img));
	assert_null(cfi_load(img, &options, &img->cfi));
	return img;
}

static const struct cfi_rule *rule_at(const struct luajit_blob *blob, u64 addr)
{
	u32 i = 0;

	while (i + 1 < blob->nentries && blob->entries[i + 1].addr <= addr)
		i++;
	return &blob->entries[i].rule;
}

/* Where a function returns nothing of it is left on the stack; where it begins nothing is there yet. */
static void assert_bare(const struct luajit_blob *blob, u64 addr)
{
	const struct cfi_rule *rule = rule_at(blob, addr);

	assert_int_equal(rule->kind, CFI_REG);
	assert_int_equal(rule->cfa_reg, REG_SP);
	if (rule->cfa_off != 8)
		fail_msg("at 0x%lx CFA is rsp+%d", addr, rule->cfa_off);
	for (u32 i = 0; i < ARCH_NSAVED; i++)
		assert_int_equal(rule->slot[i], CFI_SAME);
}

/* fff_gcstep returns by an address that it pushed itself, in the frame of its caller. */
static bool pushed_before(const struct code *code, u32 i)
{
	return i && code->ins[i - 1].op == CODE_PUSH;
}

static void check_rows(struct image *img, const struct luajit_blob *blob)
{
	struct code code;
	u8 *bytes = malloc(blob->end - blob->start);
	u32 returns = 0;

	assert_true(image_read(img, bytes, blob->end - blob->start, blob->start));
	assert_null(code_read(bytes, blob->start, blob->end - blob->start, &code));
	for (u32 i = 0; i < code.n; i++) {
		if (bytes[code.ins[i].addr - blob->start] != RET || pushed_before(&code, i))
			continue;
		assert_bare(blob, code.ins[i].addr);
		returns++;
	}
	assert_true(returns > 8);
	code_free(&code);
	free(bytes);
}

static void check_stretches(const struct luajit_blob *blob)
{
	u32 seen[LUAJIT_TRACE + 1] = {0};
	u64 at = blob->start;

	for (u32 i = 0; i < blob->nstretches; i++) {
		const struct luajit_stretch *s = &blob->stretches[i];

		assert_true(s->start >= at && s->end > s->start && s->end <= blob->end);
		assert_true(s->part <= LUAJIT_EXIT && s->part != LUAJIT_INTERP);
		seen[s->part]++;
		at = s->end;
	}
	for (u32 part = LUAJIT_GLUE; part <= LUAJIT_EXIT; part++)
		assert_true(part == LUAJIT_INTERP || seen[part]);
	assert_int_equal(seen[LUAJIT_INTERP_8], 2);
	assert_int_equal(seen[LUAJIT_INTERP_16], 1);
}

static void check_file(const char *path)
{
	struct image *img = open_image(path);
	struct luajit_image *image;
	void *data;

	assert_null(luajit_runtime.image_probe(img, &data));
	assert_non_null(data);
	image = data;
	for (u32 i = 1; i < image->blob.nentries; i++)
		assert_true(image->blob.entries[i].addr > image->blob.entries[i - 1].addr);
	assert_int_equal(image->blob.entries[0].addr, image->blob.start);
	check_rows(img, &image->blob);
	check_stretches(&image->blob);
	luajit_runtime.image_destroy(data);
	image_put(img);
}

static void test_library(void **state)
{
	check_file(LIBRARY);
}

static void test_program(void **state)
{
	check_file("/usr/bin/luajit");
}

static void test_other_files(void **state)
{
	struct image *img = open_image("/proc/self/exe");
	void *data = &img;

	assert_null(luajit_runtime.image_probe(img, &data));
	assert_null(data);
	image_put(img);
}

static u32 remembered(const struct image *img)
{
	struct search_result found;

	return search_cache_load(img, LUAJIT_BLOB_SEARCH, &found) ? found.n : ~0u;
}

/* That a file holds none is kept, and so is where it was; a place that is wrong leads to a new search. */
static void test_remembered(void **state)
{
	const struct search_result wrong = {.values = {0x1234}, .n = 1};
	char dir[] = "/tmp/yrt-luajit-XXXXXX", command[64];
	struct image *none = open_image("/lib/x86_64-linux-gnu/libc.so.6");
	u64 start, end;

	assert_non_null(mkdtemp(dir));
	none->cache_dir = dir;
	assert_int_equal(remembered(none), ~0u);
	assert_null(luajit_blob_find(none, &start, &end));
	assert_int_equal(remembered(none), 0);
	search_cache_store(none, LUAJIT_BLOB_SEARCH, &wrong);
	assert_null(luajit_blob_find(none, &start, &end));
	assert_int_equal(end, 0);
	assert_int_equal(remembered(none), 0);
	assert_null(luajit_blob_find(none, &start, &end));
	assert_int_equal(end, 0);
	image_put(none);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

static bool is_movabs(void *ctx, const cs_insn *in)
{
	if (in->size == 10)
		*(u64 *)ctx = in->address;
	return in->size != 10;
}

/* An instruction of ten bytes outside of the VM: eight of them are a number. */
static u64 find_movabs(struct image *img, u64 start, u64 end)
{
	u64 at = 0;

	for (u32 i = 0; i < img->cfi->nfdes && !at; i++) {
		const struct cfi_fde *fde = &img->cfi->fdes[i];

		if (fde->end <= start || fde->start >= end)
			code_each(img, fde->start, fde->end, is_movabs, &at);
	}
	assert_true(at);
	return at;
}

static void see_target(void *ctx, u64 target)
{
	u64 *wanted = ctx;

	if (target == *wanted)
		*wanted = 0;
}

/* Is this place of the VM called from the rest of a copy of the library, where these bytes stand at `at`? */
static bool calls_with(u64 at, u64 skip, u64 target)
{
	char path[] = "/tmp/yrt-luajit-XXXXXX", command[128];
	s32 displacement = (s32)(target - (at + skip + 5));
	u8 call[5] = {0xe8};
	int fd = mkstemp(path);
	struct image *img;
	u64 start, end;

	memcpy(call + 1, &displacement, 4);
	snprintf(command, sizeof(command), "cp %s %s", LIBRARY, path);
	assert_int_equal(system(command), 0);
	assert_int_equal(pwrite(fd, call, 5, (off_t)(at + skip)), 5); /* .text lies where its addresses say */
	close(fd);
	img = open_image(path);
	assert_null(luajit_blob_find(img, &start, &end));
	luajit_callers(img, start, end, see_target, &target);
	image_put(img);
	unlink(path);
	return !target;
}

/* Bytes in the middle of an instruction that look like a call of some place in the VM are none. */
static void test_callers(void **state)
{
	struct image *img = open_image(LIBRARY);
	u64 start, end, at;

	assert_null(luajit_blob_find(img, &start, &end));
	at = find_movabs(img, start, end);
	image_put(img);
	assert_true(calls_with(at, 0, start + 0x123));
	assert_false(calls_with(at, 2, start + 0x123));
}

/* The C frame of a build with references of 32 bits is another one. */
static void test_contradiction(void **state)
{
	struct image *img = open_image(LIBRARY);
	struct luajit_layout layout;
	struct luajit_blob blob = {0};
	struct layout *known;
	struct error *err;
	u64 start, end;

	assert_null(luajit_blob_find(img, &start, &end));
	assert_null(luajit_layout_find(img, "", start, end, &known));
	layout = *(const struct luajit_layout *)known->values;
	assert_null(luajit_blob_analyse(img, start, end, &layout, &blob));
	luajit_blob_free(&blob);
	layout.l_glref.size = 4;
	err = luajit_blob_analyse(img, start, end, &layout, &blob);
	assert_non_null(err);
	assert_int_equal(err->kind, ERROR_UNSUPPORTED);
	error_free(err);
	layout_destroy(known);
	image_put(img);
}

static void test_hides(void **state)
{
	assert_true(luajit_runtime.is_runtime_internal(NULL, "lua_pcall"));
	assert_true(luajit_runtime.is_runtime_internal(NULL, "lj_vm_call"));
	assert_false(luajit_runtime.is_runtime_internal(NULL, "lj_tab_get"));
	assert_false(luajit_runtime.is_runtime_internal(NULL, ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_library),
	        cmocka_unit_test(test_program),
	        cmocka_unit_test(test_other_files),
	        cmocka_unit_test(test_remembered),
	        cmocka_unit_test(test_callers),
	        cmocka_unit_test(test_contradiction),
	        cmocka_unit_test(test_hides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
