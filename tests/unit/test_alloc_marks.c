/* SPDX-License-Identifier: Apache-2.0 */
/* Landmarks: which functions of this very program are tried, and which of them are chosen by how often they are hit. */
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

#include "probes/object/alloc_marks.h"
#include "unwind/binary/image.h"
#include "unwind/cfi/cfi.h"

#define PAGE    4096ull
#define HIT_NS  1000.0
#define LONG_NS 30e6 /* so long a window that whatever is not hit in it is rare */

/* Twenty functions that begin as compilers make them: with a push, which the kernel emulates. */
#define FUNCTION(n)                                                                                                    \
	void function_##n(void);                                                                                       \
	__asm__(".text; .type function_" #n ", @function; function_" #n ": .cfi_startproc; push %rbx; "                \
	        ".cfi_adjust_cfa_offset 8; xor %ebx, %ebx; nop; pop %rbx; .cfi_adjust_cfa_offset -8; ret; "            \
	        ".cfi_endproc; .size function_" #n ", . - function_" #n);
#define TEN(of, t) of(t##0) of(t##1) of(t##2) of(t##3) of(t##4) of(t##5) of(t##6) of(t##7) of(t##8) of(t##9)
#define ADDRESS(n) function_##n,

TEN(FUNCTION, 1)
TEN(FUNCTION, 2)

/* One whose uprobes would be single-stepped: its first instructions are not emulated, then it jumps. */
void no_place(void);
__asm__(".text; .type no_place, @function; no_place: .cfi_startproc; xor %eax, %eax; jmp *%rdi; .cfi_endproc; "
        ".size no_place, . - no_place");

static void (*const functions[])(void) = {TEN(ADDRESS, 1) TEN(ADDRESS, 2)};

#define FUNCTIONS (sizeof(functions) / sizeof(*functions))

struct self {
	struct process process;
	struct mapping mapping;
	struct alloc_marks *marks;
};

/* The first file is the program itself; whole pages of it are mapped. */
static int find_self(struct dl_phdr_info *info, size_t size, void *mapping)
{
	struct mapping *m = mapping;

	m->bias = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			m->start = m->bias + (info->dlpi_phdr[i].p_vaddr & ~(PAGE - 1));
			m->end = m->bias +
			         ((info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz + PAGE - 1) & ~(PAGE - 1));
			m->offset = info->dlpi_phdr[i].p_offset & ~(PAGE - 1);
		}
	return 1;
}

static int begin(void **state)
{
	static struct self s;
	static const char path[] = "/proc/self/exe";

	memset(&s, 0, sizeof(s));
	dl_iterate_phdr(find_self, &s.mapping);
	s.mapping.prot = PROT_READ | PROT_EXEC;
	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &s.mapping.image));
	assert_null(cfi_load(s.mapping.image, NULL, &s.mapping.image->cfi));
	s.process = (struct process){.pid = getpid(), .number = 1, .mappings = &s.mapping, .maps.nlines = 1};
	assert_null(alloc_marks_create(NULL, &s.marks));
	*state = &s;
	return 0;
}

static int end(void **state)
{
	struct self *s = *state;

	alloc_marks_destroy(s->marks);
	image_put(s->mapping.image);
	return 0;
}

/* A stack has a leaf, and then this function. */
static void see(struct self *s, void (*function)(void), u32 flags)
{
	u64 addr = (u64)function + 1;
	struct frame frames[2] = {
	        {.where = frame_where(FRAME_NATIVE, 0, 0, addr)}, {.where = frame_where(FRAME_NATIVE, 0, flags, addr)}};

	assert_null(alloc_marks_see(s->marks, &s->process, frames, 2));
}

static void see_first(struct self *s, u32 n)
{
	for (u32 i = 0; i < n; i++)
		see(s, functions[i], 0);
}

static void learn(struct self *s, const struct alloc_mark_hits *hits)
{
	alloc_marks_next(s->marks);
	alloc_marks_learn(s->marks, hits, LONG_NS, HIT_NS);
}

static void test_seen(void **state)
{
	struct self *s = *state;

	alloc_marks_next(s->marks);
	assert_false(alloc_marks_any(s->marks));
	see(s, functions[0], FRAME_GUESS);
	see(s, no_place, 0);
	alloc_marks_next(s->marks);
	assert_int_equal(alloc_marks_count(s->marks), 0);
	see_first(s, 3);
	see_first(s, 3); /* each is one, however often it is seen */
	alloc_marks_next(s->marks);
	assert_true(alloc_marks_any(s->marks));
	assert_int_equal(alloc_marks_count(s->marks), 3);
	assert_int_equal(alloc_marks_choice(s->marks), 0);
}

/* One of them is hit all the time; two together cost a fifth of the time at most, a third would be more. */
static void test_chosen(void **state)
{
	struct self *s = *state;
	struct alloc_mark_hits hits = {.of = {30000, 3000, 2400, 1500}};

	see_first(s, 8);
	learn(s, &hits);
	assert_int_equal(alloc_marks_choice(s->marks), 1);
	assert_int_equal(alloc_marks_count(s->marks), 2);
	alloc_marks_next(s->marks);
	assert_int_equal(alloc_marks_count(s->marks), 2);
}

/* Nobody comes by: none is chosen, and none is tried again. */
static void test_none(void **state)
{
	struct self *s = *state;
	struct alloc_mark_hits none = {0};

	see_first(s, 8);
	learn(s, &none);
	assert_int_equal(alloc_marks_choice(s->marks), 0);
	assert_false(alloc_marks_any(s->marks));
}

/* More than are placed at a time: the rest is tried afterwards. */
static void test_turns(void **state)
{
	struct self *s = *state;
	struct alloc_mark_hits hits = {0};

	see_first(s, FUNCTIONS);
	learn(s, &hits);
	assert_true(alloc_marks_any(s->marks));
	alloc_marks_next(s->marks);
	assert_int_equal(alloc_marks_count(s->marks), FUNCTIONS - ALLOC_MARKS);
	hits.of[FUNCTIONS - ALLOC_MARKS - 1] = 3000;
	learn(s, &hits);
	assert_int_equal(alloc_marks_choice(s->marks), 1);
	assert_int_equal(alloc_marks_count(s->marks), 1);
}

/* What was chosen falls silent, or comes far more often: all are tried again, and another choice has another number. */
static void test_changed(void **state)
{
	struct self *s = *state;
	struct alloc_mark_hits hits = {.of = {3000}}, none = {0}, many = {.of = {60000}};

	see_first(s, 2);
	learn(s, &hits);
	assert_int_equal(alloc_marks_choice(s->marks), 1);
	for (u32 i = 0; i < 10; i++)
		learn(s, &none);
	assert_int_equal(alloc_marks_choice(s->marks), 1);
	learn(s, &none);
	assert_int_equal(alloc_marks_choice(s->marks), 0);
	learn(s, &hits);
	assert_int_equal(alloc_marks_choice(s->marks), 2);
	learn(s, &many);
	assert_int_equal(alloc_marks_choice(s->marks), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_seen, begin, end),
	        cmocka_unit_test_setup_teardown(test_chosen, begin, end),
	        cmocka_unit_test_setup_teardown(test_none, begin, end),
	        cmocka_unit_test_setup_teardown(test_turns, begin, end),
	        cmocka_unit_test_setup_teardown(test_changed, begin, end)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
