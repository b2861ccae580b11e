/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of this process's own malloc that are looked at again: which are there still, by what they hold. */
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

#include "probes/object/leak_again.h"
#include "unwind/now.h"

/* glibc's, whatever a sanitizer puts in its place. */
void *__libc_malloc(size_t size);
void __libc_free(void *block);

#define SIZE   200
#define ALWAYS UINT64_MAX
#define HEADER true

struct ended {
	u32 n[3];
	u64 last;
};

static void count(void *ctx, const struct leak_again_block *b, enum leak_again_end how)
{
	struct ended *e = ctx;

	e->n[how]++;
	e->last = b->key.addr;
}

static struct leak_again *open_again(struct ended *e)
{
	struct leak_again *a;

	memset(e, 0, sizeof(*e));
	assert_null(leak_again_create(&(struct leak_again_options){.end = count, .ctx = e}, &a));
	return a;
}

static struct leak_key key_of(const void *block)
{
	return (struct leak_key){.addr = (u64)block, .tgid = (u32)getpid()};
}

static bool add(struct leak_again *a, const void *addr, u64 hash, bool header)
{
	struct leak_key key = key_of(addr);
	struct leak_block block = {.hash = hash, .size = SIZE, .bytes = SIZE, .ns = now_ns(), .code = 1};

	return leak_again_add(a, &key, &block, header);
}

static void *filled(void)
{
	void *ret = __libc_malloc(SIZE);

	return ret ? memset(ret, 1, SIZE) : NULL;
}

static u32 left(struct leak_again *a)
{
	u32 n;

	leak_again_all(a, &n);
	return n;
}

static void test_ends(void **state)
{
	struct ended e;
	struct leak_again *a = open_again(&e);
	char *kept = filled(), *freed = filled(), *changed = filled();

	assert_true(add(a, freed, 7, HEADER) && add(a, kept, 7, HEADER) && add(a, changed, 7, HEADER));
	leak_again_look(a, ALWAYS);
	assert_int_equal(left(a), 3);
	__libc_free(freed);
	changed[8] = 2;
	leak_again_look(a, ALWAYS);
	assert_int_equal(e.n[LEAK_AGAIN_FREED], 1);
	assert_int_equal(e.n[LEAK_AGAIN_CHANGED], 1);
	assert_int_equal(left(a), 1);
	leak_again_end_all(a);
	assert_int_equal(e.n[LEAK_AGAIN_OUT], 1);
	assert_int_equal(e.last, (u64)kept);
	__libc_free(kept);
	__libc_free(changed);
	leak_again_destroy(a);
}

/* It is looked at when it is due, and then later each time. */
static void test_due(void **state)
{
	struct ended e;
	struct leak_again *a = open_again(&e);
	char *block = filled();
	u64 began = now_ns();

	assert_true(add(a, block, 7, HEADER));
	block[0] = 2;
	leak_again_look(a, began);
	assert_int_equal(left(a), 1);
	leak_again_look(a, now_ns() + 1000000000);
	assert_int_equal(left(a), 0);
	__libc_free(block);
	leak_again_destroy(a);
}

/* One page of many is gone: the blocks around it are read still. */
static void test_unmapped(void **state)
{
	struct ended e;
	struct leak_again *a = open_again(&e);
	char *pages = mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(pages != MAP_FAILED);
	for (u32 i = 0; i < 8; i++)
		assert_true(add(a, pages + i * 4096 + 64, 7, !HEADER));
	munmap(pages + 2 * 4096, 4096);
	munmap(pages + 7 * 4096, 4096);
	leak_again_look(a, ALWAYS);
	assert_int_equal(e.n[LEAK_AGAIN_FREED], 2);
	assert_int_equal(left(a), 6);
	assert_false(add(a, pages + 2 * 4096 + 64, 7, !HEADER));
	munmap(pages, 8 * 4096);
	leak_again_destroy(a);
}

/* A stack has few of them, and gives way to those that have less. */
static void test_room(void **state)
{
	static u32 memory[1 << 18];
	struct ended e;
	struct leak_again *a = open_again(&e);
	u32 full, added = 0;

	for (u32 i = 0; i < sizeof(memory) / sizeof(*memory); i++)
		memory[i] = i;
	for (u32 i = 0; i < 100; i++)
		added += add(a, memory + 16 + i * 16, 7, !HEADER);
	assert_int_equal(added, left(a));
	assert_true(added < 100);
	for (u32 i = 0; i < 4096; i++)
		add(a, memory + 16384 + i * 16, 100 + i / 16, !HEADER);
	full = left(a);
	assert_true(full < 4096);
	assert_true(add(a, memory + 8192, 8, !HEADER));
	assert_int_equal(left(a), full);
	assert_true(e.n[LEAK_AGAIN_OUT] > 0);
	leak_again_destroy(a);
}

/* Two stacks write the same into their blocks: neither is looked at, from then on. */
static void test_same(void **state)
{
	static char memory[4096];
	struct ended e;
	struct leak_again *a = open_again(&e);

	assert_true(add(a, memory + 64, 7, !HEADER) && add(a, memory + 128, 7, !HEADER));
	memory[256] = 1;
	assert_true(add(a, memory + 256, 8, !HEADER));
	assert_false(add(a, memory + 512, 8, !HEADER));
	assert_int_equal(e.n[LEAK_AGAIN_OUT], 2);
	assert_int_equal(left(a), 1);
	assert_false(add(a, memory + 64, 7, !HEADER));
	leak_again_destroy(a);
}

/* What the ledger has no more was freed. */
static void test_ledger(void **state)
{
	struct ended e;
	struct leak_again *a = open_again(&e);
	char *one = filled(), *two = filled();
	struct leak_key key = key_of(two);
	struct leak_again_block *b;

	assert_true(add(a, one, 7, HEADER) && add(a, two, 7, HEADER));
	leak_again_begin_ledger(a);
	b = leak_again_in_ledger(a, &key);
	assert_non_null(b);
	b->there = true;
	key.tgid++;
	assert_null(leak_again_in_ledger(a, &key));
	leak_again_end_ledger(a);
	assert_int_equal(left(a), 1);
	b = leak_again_all(a, &(u32){0});
	assert_int_equal(b->key.addr, (u64)two);
	assert_true(leak_again_holds(b));
	two[20] = 5;
	assert_false(leak_again_holds(b));
	leak_again_remove(a, b);
	assert_int_equal(left(a) + e.n[0] + e.n[1] + e.n[2], 0);
	__libc_free(one);
	__libc_free(two);
	leak_again_destroy(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_ends), cmocka_unit_test(test_due),
	        cmocka_unit_test(test_unmapped), cmocka_unit_test(test_room), cmocka_unit_test(test_same),
	        cmocka_unit_test(test_ledger)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
