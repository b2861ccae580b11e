/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of pymalloc behind a guard, in machine code that an assembler made of what GCC prints. */
#include <fcntl.h>
#include <unistd.h>

#include "unit.h"

#include "binary/image.h"
#include "runtimes/python/python_alloc.h"
#include "symbols/symbols.h"

/* Each guard's jump has a name. */
__asm__(".text\n"
        "guards_table: .quad 0, 0, 0, 0, 0\n"
        ".globl guards_malloc\nguards_malloc: ret\n.skip 32\n"
        /* the size is in rbx */
        "guards_code:\n"
        "	mov guards_table+8(%rip), %rax\n"
        "	lea guards_malloc(%rip), %rdx\n"
        "	cmp %rdx, %rax\n"
        ".globl guards_register\nguards_register: jne 1f\n"
        "	ret\n"
        "1:	mov guards_table(%rip), %rdi\n"
        "	mov %rbx, %rsi\n"
        "	call *%rax\n"
        "	ret\n"
        /* it is a constant; the register has a high number; the other way round */
        "	mov guards_table+8(%rip), %r13\n"
        "	lea guards_malloc(%rip), %r12\n"
        "	cmp %r13, %r12\n"
        ".globl guards_constant\nguards_constant: je 1f\n"
        "	mov $48, %esi\n"
        "	jmp 2f\n"
        "1:	ret\n"
        "2:	jmp *%r13\n"
        /* it is on the stack */
        "	lea guards_malloc(%rip), %rdx\n"
        "	mov %rsi, 24(%rsp)\n"
        "	cmp %rax, %rdx\n"
        ".globl guards_stack\nguards_stack: jne 1f\n"
        "	ret\n"
        "1:	mov 24(%rsp), %rsi\n"
        "	call *%rax\n"
        "	ret\n"
        /* none is asked for */
        "	lea guards_malloc(%rip), %rdx\n"
        "	cmp %rax, %rdx\n"
        ".globl guards_zero\nguards_zero: jne 1f\n"
        "	ret\n"
        "1:	xor %ebp, %ebp\n"
        "	mov %rbp, %rsi\n"
        "	call *%rax\n"
        "	ret\n"
        /* rdi objects of 40 bytes */
        "	lea guards_malloc(%rip), %rdx\n"
        "	cmp %rax, %rdx\n"
        ".globl guards_times\nguards_times: jne 1f\n"
        "	ret\n"
        "1:	mov %rdi, %rsi\n"
        "	mov $40, %edx\n"
        "	call *%rax\n"
        "	ret\n"
        /* it is not known: computed in between */
        "	lea guards_malloc(%rip), %rdx\n"
        "	cmp %rax, %rdx\n"
        "	jne 1f\n"
        "	ret\n"
        "1:	lea 1(%rbx), %rsi\n"
        "	call *%rax\n"
        "	ret\n"
        /* no guard: nothing is called, or something else */
        "	lea guards_malloc(%rip), %rdx\n"
        "	cmp %rax, %rdx\n"
        "	jne 1f\n"
        "	ret\n"
        "1:	xor %eax, %eax\n"
        "	ret\n"
        "	lea guards_malloc(%rip), %rdx\n"
        "	cmp %rcx, %rax\n"
        "	jne 2b\n"
        ".globl guards_direct\nguards_direct: .byte 0xe8\n	.long guards_malloc - . - 4\n"
        "	ret\n");

struct state {
	struct image *img;
	struct python_guards *guards;
};

static void open_own(struct state *s)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_null(image_open(fd, "/proc/self/exe", &s->img));
	assert_null(symbols_load(s->img, ""));
}

static u64 in_file(struct state *s, const char *name)
{
	struct symbol sym;

	assert_true(symbols_lookup(s->img, name, &sym));
	return sym.start;
}

static u32 operand_at(struct state *s, const char *name)
{
	u64 at = in_file(s, name);

	for (u32 i = 0; i < s->guards->n; i++)
		if (s->guards->of[i].at == at)
			return s->guards->of[i].operand;
	return 0;
}

static void test_one_size(void **state)
{
	struct state s = {.guards = calloc(1, sizeof(*s.guards))};

	open_own(&s);
	assert_null(python_guards_find(s.img, in_file(&s, "guards_malloc"), PYTHON_MALLOC, s.guards));
	assert_int_equal(operand_at(&s, "guards_register"), ALLOC_OPERAND_REGISTER | 3);
	assert_int_equal(operand_at(&s, "guards_constant"), 48);
	assert_int_equal(operand_at(&s, "guards_stack"), ALLOC_OPERAND_STACK | 24);
	assert_int_equal(operand_at(&s, "guards_zero"), 1);
	assert_int_equal(s.guards->n, 5);
	assert_int_equal(s.guards->unknown, 1);
	assert_int_equal(s.guards->ndirect, 1);
	assert_int_equal(s.guards->direct[0].at, in_file(&s, "guards_direct"));
	assert_true(s.guards->direct[0].call);
	free(s.guards);
	image_put(s.img);
}

static void test_product(void **state)
{
	struct state s = {.guards = calloc(1, sizeof(*s.guards))};

	open_own(&s);
	assert_null(python_guards_find(s.img, in_file(&s, "guards_malloc"), PYTHON_CALLOC, s.guards));
	assert_int_equal(operand_at(&s, "guards_register"), ALLOC_OPERAND_PRODUCT | 3 | 1 << 8);
	assert_int_equal(operand_at(&s, "guards_times"), ALLOC_OPERAND_REGISTER | 5 | 40 << 8);
	free(s.guards);
	image_put(s.img);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_one_size),
	        cmocka_unit_test(test_product),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
