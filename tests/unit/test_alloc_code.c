/* SPDX-License-Identifier: Apache-2.0 */
/* Where the uprobes of allocation functions are placed, in code as compilers make it of mimalloc's. */
#include <fcntl.h>
#include <gelf.h>

#include "unit.h"

#include "probes/object/alloc_functions.h"
#include "unwind/symbols/symbols.h"

/* Each has the place that is expected as a symbol, too. */
__asm__(".text\n"
        ".globl mi_malloc_aligned, mi_free, mi_zalloc_aligned, mi_realloc\n"
        ".type mi_malloc_aligned, @function\nmi_malloc_aligned:\n"
        "mov $-16, %rax\nmov %rsi, %rdx\nmov %rdi, %rsi\nmov %fs:(%rax), %rax\nmov %rax, %rdi\n"
        "place_of_malloc: .globl place_of_malloc\njmp code_behind\n"
        ".size mi_malloc_aligned, . - mi_malloc_aligned\n"
        ".type mi_free, @function\nmi_free:\n"
        "mov %rdi, %rdx\nmov %rdi, %rsi\nshr $29, %rdx\nlea (%rdx, %rdx), %rax\nmov %rdi, %rax\n"
        "shr $16, %rax\nand $8191, %eax\nmov %rax, %rdi\ntest %rdi, %rdi\n"
        "place_of_free: .globl place_of_free\nje code_behind\nret\n"
        ".size mi_free, . - mi_free\n"
        ".type mi_zalloc_aligned, @function\nmi_zalloc_aligned:\n" /* the size is gone */
        "mov %rdi, %rax\nmov %rsi, %rdi\njmp code_behind\n"
        ".size mi_zalloc_aligned, . - mi_zalloc_aligned\n"
        ".type mi_realloc, @function\nmi_realloc:\n" /* both arguments are read */
        "mov %rdx, %rsi\njmp code_behind\n"
        ".size mi_realloc, . - mi_realloc\n"
        ".type code_behind, @function\ncode_behind: ret\n.size code_behind, . - code_behind\n");

static const struct alloc_function *function(const struct alloc_functions *f, const char *name)
{
	for (u32 i = 0; i < f->n; i++)
		if (!strcmp(f->of[i].name, name))
			return &f->of[i];
	fail_msg("%s is not found", name);
	return NULL;
}

static u64 place(struct image *img, const char *name)
{
	struct symbol sym;

	assert_true(symbols_lookup(img, name, &sym));
	return sym.start;
}

/* The first jump is emulated: up to there the size, or the block, may have moved on to the second argument. */
static void test_moved(void **state)
{
	static struct alloc_functions f;
	struct image *img = *state;

	assert_null(alloc_functions_find(img, &f));
	assert_int_equal(function(&f, "mi_malloc_aligned")->place, place(img, "place_of_malloc"));
	assert_int_equal(function(&f, "mi_malloc_aligned")->shape, ALLOC_SIZE_2);
	assert_false(function(&f, "mi_malloc_aligned")->stepped);
	assert_int_equal(function(&f, "mi_free")->place, place(img, "place_of_free"));
	assert_int_equal(function(&f, "mi_free")->shape, ALLOC_FREE_2);
	assert_false(function(&f, "mi_free")->stepped);
}

/* Where a register that is read has been written, the place is the function's first instruction. */
static void test_kept(void **state)
{
	static const char *const names[] = {"mi_zalloc_aligned", "mi_realloc"};
	static const enum alloc_shape shapes[] = {ALLOC_SIZE_1, ALLOC_RESIZE};
	static struct alloc_functions f;
	struct image *img = *state;

	assert_null(alloc_functions_find(img, &f));
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_int_equal(function(&f, names[i])->place, place(img, names[i]));
		assert_int_equal(function(&f, names[i])->shape, shapes[i]);
		assert_true(function(&f, names[i])->stepped);
	}
}

/* A pool's function may read any argument. */
static void test_any(void **state)
{
	static struct alloc_functions f;
	struct image *img = *state;

	alloc_functions_add(&f, "mi_free", ALLOC_ANY, place(img, "mi_free"));
	assert_null(alloc_functions_read(img, &f));
	assert_int_equal(f.of[0].place, place(img, "mi_free"));
	assert_int_equal(f.of[0].shape, ALLOC_ANY);
	assert_true(f.nreturns > 0);
}

/* An allocator whose functions have names is none without; this file has the begin of mimalloc's messages, too. */
static void test_nameless(void **state)
{
	static const char *volatile message = "mimalloc: error: ";

	assert_int_equal(strlen(message), 17);
	assert_null(alloc_functions_nameless(*state));
}

static int open_this(void **state)
{
	struct image *img;

	assert_null(image_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "/proc/self/exe", &img));
	assert_null(symbols_load(img, ""));
	*state = img;
	return 0;
}

static int close_this(void **state)
{
	image_put(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_moved), cmocka_unit_test(test_kept),
	        cmocka_unit_test(test_any), cmocka_unit_test(test_nameless)};

	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, open_this, close_this);
}
