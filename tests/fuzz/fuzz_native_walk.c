/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native step by any tables over any stack. The input: registers, then pieces that overwrite a sound process's
 * table, regions, code and stack. The walk must end, within its bounds.
 */
#include "tests/unit/native_fake.h"

/* Takes up to size bytes of the input. */
static void take(const uint8_t **data, size_t *left, void *to, size_t size)
{
	size_t n = size < *left ? size : *left;

	memcpy(to, *data, n);
	*data += n;
	*left -= n;
}

/* Functions by rsp, by rbp (which they save), by frame pointers alone, of signals, and a root. */
static struct fake *build(void)
{
	struct fake *f = fake_create();
	struct cfi_rule rule = fake_rule(CFI_REG, REG_SP, 64);

	rule.slot[0] = cfi_slot(-16, 0);
	fake_function(f, &rule);
	rule = fake_rule(CFI_REG, REG_FP, 16);
	rule.slot[1] = cfi_slot(-16, 0);
	fake_function(f, &rule);
	fake_function(f, NULL);
	rule = fake_rule(CFI_SIGNAL, REG_SP, 0);
	fake_function(f, &rule);
	rule = fake_rule(CFI_ROOT, REG_SP, 8);
	fake_function(f, &rule);
	return f;
}

/* A stack full of return addresses and of links to itself. */
static void fill_stack(struct fake *f)
{
	for (u64 at = 0; at < FAKE_BYTES; at += 8)
		fake_put(f, FAKE_STACK + at,
		        at & 8 ? FAKE_CODE + at / 16 % 4 * FAKE_PAGE + FAKE_RETURN : FAKE_STACK + at + 32);
}

static void overwrite(struct fake *f, const uint8_t *data, size_t size)
{
	while (size > 4) {
		u32 what = data[0], at = data[1] | data[2] << 8, n = data[3] & 63;
		u8 *table = arena_at(f->arena, f->region[what >> 2 & 3].table, 64), *region = (u8 *)f->region;

		data += 4;
		size -= 4;
		if ((what & 3) == 0 && table)
			take(&data, &size, table + at % 16 * 4, n);
		else if ((what & 3) == 1)
			take(&data, &size, region + at % (5 * sizeof(struct region) - 63), n);
		else if ((what & 3) == 2)
			take(&data, &size, f->code + at % (FAKE_BYTES - 63), n);
		else
			take(&data, &size, f->stack + (at & ~7u) % (FAKE_BYTES - 63), n);
	}
}

/* Registers that lead somewhere: a byte each chooses a word of the stack, or of the code. */
static void choose_registers(u64 *reg, const u8 *choice)
{
	for (u32 i = 0; i < ARCH_NREGS; i++)
		reg[i] = FAKE_STACK + choice[i] * 64;
	reg[REG_PC] = FAKE_CODE + (choice[REG_PC] % 5) * FAKE_PAGE + choice[REG_PC];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u8 choice[ARCH_NREGS + 3] = {0};
	struct fake *f = build();
	u64 reg[ARCH_NREGS];
	int stop;

	fill_stack(f);
	take(&data, &size, choice, sizeof(choice));
	choose_registers(reg, choice);
	f->absent[choice[ARCH_NREGS] % FAKE_PAGES] = choice[ARCH_NREGS] & 128;
	f->fail = choice[ARCH_NREGS + 1];
	f->failures = choice[ARCH_NREGS + 2] & 3;
	overwrite(f, data, size);
	stop = fake_walk(f, reg);
	if (stop <= STOP_NONE || stop >= STOP_MAX || f->walk.nframes > f->max)
		abort();
	for (u32 i = 0; i < f->walk.nframes; i++)
		if (frame_kind(&f->frames[i]) == FRAME_NONE)
			abort();
	fake_destroy(f);
	return 0;
}
