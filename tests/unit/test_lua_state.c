/* SPDX-License-Identifier: Apache-2.0 */
/* Where luaV_execute() keeps its lua_State, in code as compilers make it, and what `yrt inspect` says of that. */
#include <fcntl.h>
#include <unistd.h>

#include "unit.h"

#include "arch.h"
#include "runtimes/lua/lua_image.h"
#include "runtimes/lua/lua_sweep.h"
#include "shell.h"

/* The code of a function, from its first instruction to ret, in a file of its own. */
static struct lua_vm found(const char *code)
{
	char dir[] = "/tmp/yrt-lua-state-XXXXXX", path[64];
	struct lua_sweep sweep = {0};
	struct lua_vm vm = {0};
	struct image *img;
	FILE *file;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/x.s", dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, ".globl _start\n_start:\n%s\nret\n.fill 4096, 1, 0xc3\n", code);
	fclose(file);
	run("cd %s && cc -nostdlib -static -Wl,-Ttext=0x500000 -o x x.s", dir);
	snprintf(path, sizeof(path), "%s/x", dir);
	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	assert_null(lua_sweep_open(img, &sweep));
	assert_true(lua_state_find(&sweep, 0x500000, 0x500400, &vm));
	lua_sweep_close(&sweep);
	image_put(img);
	run("rm -r %s", dir);
	return vm;
}

static void test_saved(void **state)
{
	struct lua_vm vm = found("push %rbp\nmov %rdi, %rbp\ncall _start\nmov 8(%rbp), %rax");

	assert_int_equal(vm.l_reg, DWREG_RBP);
	assert_false(vm.l_in_slot);
	assert_non_null(strstr(lua_state_extent(&vm), "in all of luaV_execute behind"));
	vm = found("push %rbp\nmov %rdi, %rbp\ncall _start\nmov %rbp, 16(%rsp)\nmov %rax, %rbp\nmov 16(%rsp), %rbp");
	assert_int_equal(vm.l_reg, DWREG_RBP);
	assert_int_equal(vm.nspills, 1);
	assert_non_null(strstr(lua_state_extent(&vm), "in most of luaV_execute"));
}

/* Calls do not preserve r9: it is stored before each. */
static void test_not_saved(void **state)
{
	static const char store[] = "mov %r9, -8(%rbp)\ncall _start\nmov -8(%rbp), %r9\n";
	char code[1024] = "push %rbp\nmov %rsp, %rbp\nmov %rdi, %r9\n";
	struct lua_vm vm;

	for (u32 i = 0; i < 10; i++)
		strcat(code, store);
	vm = found(code);
	assert_int_equal(vm.l_reg, DWREG_R9);
	assert_int_equal(vm.nspills, 1);
	assert_int_equal(vm.spill[0], -8);
	assert_int_equal(vm.spill_reg, DWREG_RBP);
	assert_non_null(strstr(lua_state_extent(&vm), "between calls"));
}

static void test_slot(void **state)
{
	struct lua_vm vm = found("push %rbp\nmov %rsp, %rbp\nmov %rdi, -24(%rbp)\nmov %rax, %rdi\ncall _start");

	assert_true(vm.l_in_slot);
	assert_int_equal(vm.l_reg, DWREG_RBP);
	assert_int_equal(vm.l_slot, -24);
	assert_non_null(strstr(lua_state_extent(&vm), "in all of luaV_execute behind"));
}

/* -Oz loads small constants by the stack. */
static void test_pushes(void **state)
{
	struct lua_vm vm = found("sub $72, %rsp\nmov %rdi, 32(%rsp)\nmov %rax, %rdi\ncall _start\npush $9\npop %r8");

	assert_true(vm.l_in_slot);
	assert_int_equal(vm.l_reg, DWREG_RSP);
	assert_int_equal(vm.l_slot, 32);
	assert_int_equal(vm.nspills, 1);
	assert_int_equal(vm.spill_reg, DWREG_RSP);
	assert_int_equal(vm.spill[0], 40);
	vm = found("push %rbx\nsub $64, %rsp\nmov %rdi, 32(%rsp)\nmov %rax, %rdi\ncall _start\npop %rbx");
	assert_int_equal(vm.nspills, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_saved),
	        cmocka_unit_test(test_not_saved),
	        cmocka_unit_test(test_slot),
	        cmocka_unit_test(test_pushes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
