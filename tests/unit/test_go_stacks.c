/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of goroutines from copies of their memory: whole ones, ones that are too deep, and hostile ones. */
#include <sys/mman.h>
#include <xxhash.h>

#include "unit.h"

#include "cfi/cfi.h"
#include "go_fake.h"
#include "runtimes/go/go_rows.h"
#include "runtimes/go/go_stacks.h"

#define BIAS  0x7f0000000000ULL
#define STACK 0xc000100000ULL
#define WORDS 8192

static struct go_fake fake;
static u64 stack[WORDS];

/* Only the stack can be read. */
static bool read_stack(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	if (addr < STACK || addr + size > STACK + sizeof(stack) || addr + size < addr)
		return false;
	memcpy(dst, (u8 *)stack + (addr - STACK), size);
	return true;
}

static struct memory memory = {.read = read_stack};
static struct mapping mapping = {
        .prot = PROT_READ | PROT_EXEC, .bias = BIAS, .start = ELF_TEXT + BIAS, .end = GO_END + BIAS};
static const struct runtime_process process = {.memory = &memory, .mappings = &mapping, .nmappings = 1};

static int setup(void **state)
{
	const struct cfi_options options = {.providers = {&go_provider}};

	go_fake_make(&fake, GO_MAGIC_1_20, true);
	assert_null(image_from_memory(elf_copy(&fake.file), fake.file.n, "fake", &mapping.image));
	assert_null(cfi_load(mapping.image, &options, &mapping.image->cfi));
	return 0;
}

static int teardown(void **state)
{
	image_put(mapping.image);
	return 0;
}

/* size: bytes of it that were copied beforehand. */
static struct go_standing standing(u64 pc, u32 size)
{
	return (struct go_standing){
	        .pc = pc + BIAS, .sp = STACK, .end = STACK + sizeof(stack), .copy = (u8 *)stack, .size = size};
}

/* main.main has 24 bytes at +4 to +0x38, the method 8; runtime.goexit is where goroutines begin. */
static void make_whole(void)
{
	memset(stack, 0xff, sizeof(stack));
	stack[3] = GO_METHOD + 0x10 + BIAS;
	stack[5] = GO_GOEXIT + 1 + BIAS;
}

static void test_whole(void **state)
{
	const u64 want[] = {GO_MAIN + 0x20 + BIAS, GO_METHOD + 0x10 + BIAS, GO_GOEXIT + 1 + BIAS};
	struct go_stacks s;

	make_whole();
	go_stacks_init(&s, &process);
	for (u32 copied = 0; copied <= 64; copied += 8) {
		struct go_standing at = standing(GO_MAIN + 0x20, copied);
		bool found;
		u32 chain;

		assert_null(go_stacks_walk(&s, &at, &found, &chain));
		assert_true(found);
		assert_int_equal(chain, 0); /* the same each time */
		assert_int_equal(s.chains[0].n, 3);
		assert_false(s.chains[0].cut);
		assert_memory_equal(s.pcs, want, sizeof(want));
	}
	assert_int_equal(s.nchains, 1);
	go_stacks_free(&s);
}

/* A stack that ends before a goroutine's beginning is none. */
static void test_ends_early(void **state)
{
	struct go_standing at = standing(GO_MAIN + 0x20, 64);
	struct go_stacks s;
	bool found;
	u32 chain;

	make_whole();
	at.end = STACK + 5 * 8;
	at.size = 5 * 8;
	go_stacks_init(&s, &process);
	assert_null(go_stacks_walk(&s, &at, &found, &chain));
	assert_false(found);
	assert_int_equal(s.nchains, 0);
	go_stacks_free(&s);
}

static void test_too_deep(void **state)
{
	struct go_standing at = standing(GO_METHOD + 0x10, 512);
	struct go_stacks s;
	bool found;
	u32 chain;

	for (u32 i = 0; i < WORDS; i++)
		stack[i] = GO_METHOD + 0x10 + BIAS;
	go_stacks_init(&s, &process);
	assert_null(go_stacks_walk(&s, &at, &found, &chain));
	assert_true(found);
	assert_int_equal(s.chains[chain].n, GO_DEPTH_MAX);
	assert_true(s.chains[chain].cut);
	go_stacks_free(&s);
}

/* Whatever lies on a stack: what counts as found begins at the root or is cut. */
static void test_hostile(void **state)
{
	u32 nfound = 0;
	struct go_stacks s;

	srandom(1);
	go_stacks_init(&s, &process);
	for (u32 round = 0; round < 20000; round++) {
		struct go_standing at = standing(GO_MAIN + (u64)random() % 0x100, (u32)random() % 8 * 64);
		bool found;
		u32 chain;

		for (u32 i = 0; i < 64; i++)
			stack[i] = random() % 4 ? GO_MAIN + (u64)random() % 0x120 - 0x10 + BIAS
			                        : (u64)random() << 32 | (u64)random();
		at.exact = random() & 1;
		at.end = STACK + (u64)(random() % 64) * 8;
		at.size = at.size < at.end - STACK ? at.size : (u32)(at.end - STACK);
		assert_null(go_stacks_walk(&s, &at, &found, &chain));
		if (found) {
			const struct go_chain *c = &s.chains[chain];
			u64 last = s.pcs[c->first + c->n - 1] - 1 - BIAS;

			assert_true(c->cut || (last >= GO_GOEXIT && last < GO_METHOD));
			nfound++;
		}
	}
	assert_in_range(nfound, 1, 19999);
	go_stacks_free(&s);
}

/* Chains whose hashes are equal stay apart, and the search for a free place ends. */
static void test_equal_hashes(void **state)
{
	const u64 pcs[] = {1, 2};
	struct go_stacks s;
	u32 chain;

	go_stacks_init(&s, &process);
	for (u32 round = 0; round < 2; round++)
		for (u32 n = 0; n <= 2; n++) {
			assert_null(go_stacks_chain(&s, pcs, n, false, &chain));
			assert_int_equal(chain, n);
		}
	assert_null(table_put(&s.known, XXH3_64bits(pcs + 1, sizeof(*pcs)), 1 + 2));
	for (u32 round = 0; round < 2; round++) {
		assert_null(go_stacks_chain(&s, pcs + 1, 1, false, &chain));
		assert_int_equal(chain, 3);
	}
	assert_int_equal(s.nchains, 4);
	go_stacks_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_whole),
	        cmocka_unit_test(test_ends_early),
	        cmocka_unit_test(test_too_deep),
	        cmocka_unit_test(test_hostile),
	        cmocka_unit_test(test_equal_hashes),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
