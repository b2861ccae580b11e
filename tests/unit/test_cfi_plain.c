/* SPDX-License-Identifier: Apache-2.0 */
/* Frequent instructions, decoded without capstone, are as capstone has them: all of some files, one after the other. */
#include <capstone/capstone.h>
#include <fcntl.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/binary/image.h"
#include "unwind/code/capstone_registers.h"
#include "unwind/cfi/cfi_code_plain.h"
#include "unwind/cfi/cfi_code_state.h"

#define LIBS "/usr/lib/x86_64-linux-gnu/"
#define ROOM 16 /* bytes behind an instruction */

struct decoders {
	csh handle;
	cs_insn *plain, *told;
	u64 all, known, faults;
};

static bool same_operand(const cs_x86_op *a, const cs_x86_op *b)
{
	if (a->type != b->type || (a->size != b->size && a->type != X86_OP_IMM))
		return false;
	switch (a->type) {
	case X86_OP_REG:
		return a->reg == b->reg && (a->access & CS_AC_WRITE) == (b->access & CS_AC_WRITE);
	case X86_OP_IMM:
		return a->imm == b->imm;
	default:
		return a->mem.base == b->mem.base && a->mem.index == b->mem.index && a->mem.disp == b->mem.disp &&
		       a->mem.segment == b->mem.segment && a->mem.scale == b->mem.scale;
	}
}

static u32 written(const cs_insn *in)
{
	u32 ret = 0;

	for (u32 i = 0; i < in->detail->regs_write_count; i++)
		if (capstone_register(in->detail->regs_write[i]) < ARCH_NREGS)
			ret |= 1u << capstone_register(in->detail->regs_write[i]);
	return ret;
}

static bool same(const struct decoders *d)
{
	const cs_insn *a = d->plain, *b = d->told;
	const cs_x86 *x = &a->detail->x86, *y = &b->detail->x86;
	bool ret = a->id == b->id && a->size == b->size && a->address == b->address && x->op_count == y->op_count &&
	           !memcmp(a->bytes, b->bytes, a->size) && written(a) == written(b) &&
	           cs_insn_group(d->handle, a, X86_GRP_JUMP) == cs_insn_group(d->handle, b, X86_GRP_JUMP);

	for (u32 i = 0; ret && i < x->op_count; i++)
		ret = same_operand(&x->operands[i], &y->operands[i]);
	return ret;
}

/* Decodes what is at code, which has ROOM, in both ways. Its size; 0: it is no instruction. */
static u32 compare(struct decoders *d, const u8 *code, u64 addr)
{
	bool known = code_plain_decode(code, ROOM, addr, d->plain);
	size_t size = ROOM;
	const u8 *p = code;
	u64 at = addr;

	if (!cs_disasm_iter(d->handle, &p, &size, &at, d->told)) {
		d->faults += known;
		return 0;
	}
	d->all++;
	d->known += known;
	if (known && !same(d)) {
		d->faults++;
		print_message("%#lx: %s %s is not as it was decoded\n", addr, d->told->mnemonic, d->told->op_str);
	}
	return d->told->size;
}

static void open_decoders(struct decoders *d)
{
	*d = (struct decoders){0};
	assert_int_equal(cs_open(CS_ARCH_X86, CS_MODE_64, &d->handle), CS_ERR_OK);
	cs_option(d->handle, CS_OPT_DETAIL, CS_OPT_ON);
	d->plain = cs_malloc(d->handle);
	d->told = cs_malloc(d->handle);
}

static void close_decoders(struct decoders *d)
{
	cs_free(d->plain, 1);
	cs_free(d->told, 1);
	cs_close(&d->handle);
}

static void test_file(void **state)
{
	const char *path = *state;
	struct decoders d;
	struct image *img;
	u64 addr, size;
	u8 *code;

	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	assert_true(image_section_range(img, ".text", &addr, &size));
	code = malloc(size);
	assert_true(image_read(img, code, size, addr));
	open_decoders(&d);
	for (u64 at = 0; at + ROOM <= size && d.faults < 20;) {
		u32 n = compare(&d, code + at, addr + at);

		at += n ? n : 1;
	}
	print_message("%s: %lu instructions, %.1f %% decoded\n", path, d.all, 100.0 * (double)d.known / (double)d.all);
	assert_int_equal(d.faults, 0);
	assert_true(d.known > d.all / 2);
	close_decoders(&d);
	free(code);
	image_put(img);
}

/* Every opcode with each prefix and each form of its operands, also those that no compiler makes. */
static void test_all_forms(void **state)
{
	static const u8 sibs[] = {0x24, 0x25, 0x20, 0x65, 0x88, 0xcd, 0x64};
	u8 code[ROOM] = {0};
	struct decoders d;

	open_decoders(&d);
	for (u32 rex = 0; rex < 17; rex++)
		for (u32 opcode = 0; opcode < 512 && d.faults < 20; opcode++)
			for (u32 form = 0; form < 256; form++)
				for (u32 i = 0; i < sizeof(sibs); i++) {
					u8 *p = code;

					memset(code, form & 1 ? 0x11 : 0x91, sizeof(code));
					if (rex)
						*p++ = (u8)(0x3f + rex);
					if (opcode > 255)
						*p++ = 0x0f;
					*p++ = (u8)opcode;
					*p++ = (u8)form;
					*p = sibs[i];
					compare(&d, code, 0x401000);
				}
	assert_int_equal(d.faults, 0);
	assert_true(d.known > 100000);
	assert_false(code_plain_decode(code, 14, 0x401000, d.plain));
	close_decoders(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_all_forms),
	        cmocka_unit_test_prestate(test_file, LIBS "libc.so.6"),
	        cmocka_unit_test_prestate(test_file, LIBS "libstdc++.so.6"),
	        cmocka_unit_test_prestate(test_file, "/proc/self/exe"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
