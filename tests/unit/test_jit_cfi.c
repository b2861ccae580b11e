/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind information that a JIT compiler keeps in memory: sections as LLVM makes them, in pages of this process. */
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/cfi/jit_cfi.h"
#include "unwind/cfi/jit_code.h"

#define PAGE       4096u
#define CODE_PAGES 4u

/* "zR", pc-relative 4-byte addresses; the CFA is rsp + 8, the return address below it. */
static const u8 cie[] = {0x14, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0};

struct target {
	u8 *code, *tables;
	struct memory *memory;
	struct mapping mappings[2];
	size_t used;
};

static void put(struct target *t, const void *bytes, size_t size)
{
	memcpy(t->tables + t->used, bytes, size);
	t->used += size;
}

/* A section of one function, which pushes a word with its first byte. */
static void add_section(struct target *t, u64 offset, u32 size)
{
	u8 *at;
	u8 rest[] = {0, 0x41, 0x0e, 16, 0, 0, 0, 0};
	u32 words[4] = {20, sizeof(cie) + 4, 0, size};

	put(t, cie, sizeof(cie));
	at = t->tables + t->used + 8;
	words[2] = (u32)(t->code + offset - at);
	put(t, words, sizeof(words));
	put(t, rest, sizeof(rest));
	put(t, "\0\0\0\0\0\0\0", 8);
}

static int setup(void **state)
{
	struct target *t = calloc(1, sizeof(*t));

	t->code = mmap(NULL, (CODE_PAGES + 2) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(t->code != MAP_FAILED);
	t->tables = t->code + (CODE_PAGES + 1) * PAGE;
	t->memory = memory_live(getpid());
	t->mappings[0] = (struct mapping){.start = (u64)t->code,
	        .end = (u64)t->code + CODE_PAGES * PAGE,
	        .prot = PROT_READ | PROT_EXEC,
	        .anonymous = true,
	        .name = ""};
	t->mappings[1] = (struct mapping){.start = (u64)t->tables,
	        .end = (u64)t->tables + PAGE,
	        .prot = PROT_READ,
	        .anonymous = true,
	        .name = ""};
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct target *t = *state;

	munmap(t->code, (CODE_PAGES + 2) * PAGE);
	memory_destroy(t->memory);
	free(t);
	return 0;
}

static struct cfi *find(struct target *t, u64 *hash)
{
	struct cfi *cfi;

	assert_null(jit_cfi_find(t->memory, t->mappings, 2, hash, &cfi));
	return cfi;
}

static void expect(const struct cfi *cfi, u64 addr, s32 offset)
{
	struct cfi_rule rule;

	assert_true(cfi_find(cfi, addr, &rule));
	assert_int_equal(rule.kind, CFI_REG);
	assert_int_equal(rule.cfa_reg, REG_SP);
	assert_int_equal(rule.cfa_off, offset);
}

static void test_sections(void **state)
{
	struct target *t = *state;
	struct cfi_rule rule;
	struct cfi *cfi;
	u64 hash = 0;

	t->used = 24; /* what lies before is no section */
	add_section(t, 64, 32);
	add_section(t, 2 * PAGE, 16);
	cfi = find(t, &hash);
	assert_non_null(cfi);
	assert_int_equal(cfi->nfdes, 2);
	expect(cfi, (u64)t->code + 64, 8);
	expect(cfi, (u64)t->code + 65, 16);
	expect(cfi, (u64)t->code + 95, 16);
	expect(cfi, (u64)t->code + 2 * PAGE, 8);
	assert_false(cfi_find(cfi, (u64)t->code + PAGE, &rule));
	cfi_destroy(cfi);
	assert_null(find(t, &hash)); /* the same as before */
	t->code[3 * PAGE] = 0xc3;    /* other code under the same sections */
	cfi = find(t, &hash);
	assert_non_null(cfi);
	cfi_destroy(cfi);
	add_section(t, 3 * PAGE, 16);
	cfi = find(t, &hash);
	assert_non_null(cfi);
	assert_int_equal(cfi->nfdes, 3);
	cfi_destroy(cfi);
	memset(t->tables, 0, t->used);
	assert_null(find(t, &hash));
	assert_int_equal(hash, 0); /* those from before hold no longer */
}

/* Functions that lie in no code are left out; nothing is looked for where there is no code, or a file. */
static void test_elsewhere(void **state)
{
	struct target *t = *state;
	struct cfi *cfi;
	u64 hash = 0;

	add_section(t, CODE_PAGES * PAGE, 16);
	add_section(t, 16, 16);
	cfi = find(t, &hash);
	assert_non_null(cfi);
	assert_int_equal(cfi->nfdes, 1);
	assert_int_equal(cfi->ncorrupt, 1);
	cfi_destroy(cfi);
	hash = 0;
	t->mappings[1].anonymous = false;
	assert_null(find(t, &hash));
	t->mappings[1].anonymous = true;
	t->mappings[0].prot = PROT_READ | PROT_WRITE;
	assert_null(find(t, &hash));
	t->mappings[0].prot = PROT_READ | PROT_EXEC;
	t->mappings[1].end = t->mappings[1].start + (1ull << 30);
	assert_null(find(t, &hash));
}

/* push %rbp; push %rbx; sub $0x18, %rsp; mov $9, %ebp; call *%rax; add $0x18, %rsp; pop %rbx; pop %rbp; ret */
static const u8 loop[] = {0x55, 0x53, 0x48, 0x83, 0xec, 0x18, 0xbd, 9, 0, 0, 0, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x18,
        0x5b, 0x5d, 0xc3, 0x0f, 0x1f, 0x40, 0, 0x0f, 0x1f, 0x40, 0};

/* LLVM describes no function that throws nothing: between others the code itself says what it does to the stack. */
static void test_not_described(void **state)
{
	struct target *t = *state;
	struct cfi_rule rule;
	struct cfi *cfi;
	u64 hash = 0;

	for (u32 at = 64; at < 4 * 64; at += 64)
		memcpy(t->code + at, loop, sizeof(loop));
	add_section(t, 0, 32);
	add_section(t, 128, 32);
	cfi = find(t, &hash);
	assert_non_null(cfi);
	for (u32 at = 64; at <= 192; at += 128) {
		expect(cfi, (u64)t->code + at, 8);
		expect(cfi, (u64)t->code + at + 13, 48);
		assert_true(cfi_find(cfi, (u64)t->code + at + 13, &rule));
		assert_int_equal(rule.slot[1], cfi_slot(-16, 0)); /* rbp */
	}
	expect(cfi, (u64)t->code + 128 + 13, 16); /* as its section says */
	cfi_destroy(cfi);
	mprotect(t->code, CODE_PAGES * PAGE, PROT_NONE); /* not readable: what sections say remains */
	hash = 0;
	cfi = find(t, &hash);
	assert_non_null(cfi);
	assert_false(cfi_find(cfi, (u64)t->code + 192 + 13, &rule));
	expect(cfi, (u64)t->code + 128 + 13, 16);
	cfi_destroy(cfi);
}

static void test_cut(void **state)
{
	struct target *t = *state;
	struct cfi *cfi;

	add_section(t, 64, 32);
	for (u32 i = 0; i < t->used; i++)
		for (u32 value = 0; value < 256; value += 51) {
			u8 was = t->tables[i];
			u64 hash = 0;

			t->tables[i] = (u8)value;
			cfi = find(t, &hash);
			cfi_destroy(cfi);
			t->tables[i] = was;
		}
	for (u32 i = 8; i < t->used; i += 8) {
		u64 hash = 0;

		memmove(t->tables + PAGE - i, t->tables, i); /* ends with the page */
		cfi = find(t, &hash);
		cfi_destroy(cfi);
		memset(t->tables + PAGE - i, 0, i);
		t->used = 0;
		add_section(t, 64, 32);
	}
}

static struct cfi *find_code(struct target *t, struct jit_code *c, bool *changed)
{
	const struct jit_range range = {(u64)t->code, (u64)t->code + CODE_PAGES * PAGE};
	struct cfi *cfi;

	assert_null(jit_code_find(c, getpid(), t->memory, &range, 1, changed, &cfi));
	return cfi;
}

/* Code that nothing describes: functions at the beginning of pages; others when a frame is seen in them. */
static void test_seen(void **state)
{
	/* with a frame that it leaves standing; with a register that it does not restore; data; what jumps away */
	static const u8 bad[][8] = {{0x55, 0x53, 0xff, 0xd0, 0x5b, 0xc3}, {0xbd, 9, 0, 0, 0, 0x90, 0xc3},
	        {1, 2, 3, 4, 5, 6, 7, 8}, {0x53, 0xff, 0xe0}};
	struct jit_code *c = jit_code_create();
	struct target *t = *state;
	struct cfi_rule rule;
	struct cfi *cfi;
	bool changed;

	memcpy(t->code + PAGE, loop, sizeof(loop));
	for (u32 i = 0; i < 4; i++)
		memcpy(t->code + 2 * PAGE + i * 64, bad[i], sizeof(bad[i]));
	memcpy(t->code + 3 * PAGE + 320, loop, sizeof(loop));
	cfi = find_code(t, c, &changed);
	assert_true(changed);
	expect(cfi, (u64)t->code + PAGE, 8);
	expect(cfi, (u64)t->code + PAGE + 13, 48);
	assert_true(cfi_find(cfi, (u64)t->code + PAGE + 13, &rule));
	assert_int_equal(rule.slot[1], cfi_slot(-16, 0)); /* rbp */
	assert_true(rule.flags & CFI_FROM_CODE);
	assert_false(cfi_find(cfi, (u64)t->code + 3 * PAGE + 333, &rule));
	cfi_destroy(cfi);
	assert_null(find_code(t, c, &changed));
	assert_false(changed);
	assert_false(jit_code_wants(c, t->memory));
	for (u32 i = 0; i < 4; i++)
		jit_code_saw(c, (u64)t->code + 2 * PAGE + i * 64 + 1);
	jit_code_saw(c, (u64)t->code + 3 * PAGE + 333);
	assert_true(jit_code_wants(c, t->memory));
	cfi = find_code(t, c, &changed);
	assert_true(changed);
	expect(cfi, (u64)t->code + 3 * PAGE + 333, 48);
	for (u32 i = 0; i < 4 * 64; i++)
		assert_false(cfi_find(cfi, (u64)t->code + 2 * PAGE + i, &rule));
	cfi_destroy(cfi);
	memset(t->code + PAGE, 0x90, 16); /* something else is there now */
	cfi = find_code(t, c, &changed);
	assert_true(changed);
	assert_false(cfi_find(cfi, (u64)t->code + PAGE, &rule) && rule.cfa_off == 48);
	expect(cfi, (u64)t->code + 3 * PAGE + 333, 48);
	cfi_destroy(cfi);
	jit_code_destroy(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_sections, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_elsewhere, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_not_described, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_seen, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_cut, setup, teardown)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
