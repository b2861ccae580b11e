/* SPDX-License-Identifier: Apache-2.0 */
/* The small decoder against capstone, on the code of libc and of this program. */
#include <capstone/capstone.h>
#include <elf.h>
#include <link.h>

#include "unit.h"

#include "code/insn.h"

struct counts {
	u64 same, sizes, missed;
};

static bool capstone_writes(csh handle, const cs_insn *in, u32 reg)
{
	cs_regs read, written;
	u8 nread, nwritten;

	if (cs_regs_access(handle, in, read, &nread, written, &nwritten))
		return false;
	for (u32 i = 0; i < nwritten; i++)
		if (written[i] == reg)
			return true;
	return false;
}

static void compare(csh handle, cs_insn *in, const u8 *code, size_t size, struct counts *n)
{
	u64 addr = 0;

	while (size > INSN_MAX) {
		const u8 *at = code;
		struct insn own = insn_decode(code, size);

		if (!cs_disasm_iter(handle, &code, &size, &addr, in)) {
			code++;
			size--;
			continue;
		}
		if (own.kind == INSN_BAD || own.size != in->size) {
			if (!n->sizes++)
				fprintf(stderr, "%02x %02x %02x %02x %02x %02x: %s %s: %u\n", at[0], at[1], at[2],
				        at[3], at[4], at[5], in->mnemonic, in->op_str, own.size);
			continue;
		}
		n->same++;
		if (capstone_writes(handle, in, X86_REG_RBP) && !own.writes_fp && own.kind != INSN_SET_FP &&
		        own.kind != INSN_POP_FP && !n->missed++)
			fprintf(stderr, "%s %s\n", in->mnemonic, in->op_str);
	}
}

static int each(struct dl_phdr_info *info, size_t size, void *ctx)
{
	csh handle;
	cs_insn *in;

	if (strstr(info->dlpi_name, "vdso") || cs_open(CS_ARCH_X86, CS_MODE_64, &handle))
		return 0;
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	in = cs_malloc(handle);
	for (u32 i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X)
			compare(handle, in, (const u8 *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
			        info->dlpi_phdr[i].p_memsz < 1u << 21 ? info->dlpi_phdr[i].p_memsz : 1u << 21, ctx);
	cs_free(in, 1);
	cs_close(&handle);
	return 0;
}

static void test_agrees_with_capstone(void **state)
{
	struct counts n = {0};

	dl_iterate_phdr(each, &n);
	assert_true(n.same > 100000);
	assert_true(n.sizes < n.same / 5000); /* data among the code */
	assert_int_equal(n.missed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_agrees_with_capstone)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
