/* SPDX-License-Identifier: Apache-2.0 */
/* Builders of frames that tests of the native walker share. */
#ifndef YRT_NATIVE_STACK_FAKE_H
#define YRT_NATIVE_STACK_FAKE_H

#include "unit.h"

#include "native_fake.h"
#include "unwind.h"

#define SP           (FAKE_STACK + 0x400) /* of the leaf, unless a test says otherwise */
#define RA(function) ((function) + FAKE_RETURN)

static inline struct cfi_rule by_sp(s32 off)
{
	return fake_rule(CFI_REG, REG_SP, off);
}

static u64 add_root(struct fake *f)
{
	struct cfi_rule rule = fake_rule(CFI_ROOT, REG_SP, 8);

	return fake_function(f, &rule);
}

static inline void check_frame(const struct fake *f, u32 i, u64 addr, u32 flags)
{
	assert_true(i < f->walk.nframes);
	assert_int_equal(frame_kind(&f->frames[i]), FRAME_NATIVE);
	assert_int_equal(frame_addr(&f->frames[i]), addr);
	assert_int_equal(frame_flags(&f->frames[i]), flags);
	assert_int_equal(f->frames[i].detail, (addr - FAKE_CODE) / FAKE_PAGE + 1);
}

/* A CFI frame, two by rbp without CFI, a signal frame, a frame that saves its registers, the root: all ways to read. */
static inline void build_mixture(struct fake *f, u64 *reg)
{
	struct cfi_rule leaf = by_sp(0x900), signal = fake_rule(CFI_SIGNAL, REG_SP, 0),
	                last = fake_rule(CFI_REG, REG_FP, 16);
	u64 a = fake_function(f, &leaf), b = fake_function(f, NULL), c = fake_function(f, &signal), d, root;

	last.slot[0] = cfi_slot(-24, 0);
	last.slot[1] = cfi_slot(-16, 0);
	d = fake_function(f, &last);
	root = add_root(f);
	memset(reg, 0, ARCH_NREGS * sizeof(*reg));
	reg[REG_SP] = SP;
	reg[REG_FP] = SP + 0x1200;
	reg[REG_PC] = a;
	fake_put(f, SP + 0x900 - 8, RA(b));
	fake_put(f, SP + 0x1200, SP + 0x2400);
	fake_put(f, SP + 0x1208, RA(b));
	fake_put(f, SP + 0x2408, RA(c));
	fake_put(f, SP + 0x2410 + 10 * 8, SP + 0x4000); /* rbp */
	fake_put(f, SP + 0x2410 + 15 * 8, SP + 0x3000); /* rsp */
	fake_put(f, SP + 0x2410 + 16 * 8, d);
	fake_put(f, SP + 0x4008, RA(root));
}

#endif
