/* SPDX-License-Identifier: Apache-2.0 */
#include "uprobe_cost.h"

#include <link.h>
#include <stdlib.h>

#include "unwind/cleanup.h"
#include "unwind/now.h"
#include "uprobe.h"
#include "uprobe_shifts.h"

#define MEASURED   9          /* hits */
#define COLD_BYTES (8u << 20) /* written between them: more than a CPU's own caches have */
#define LINE       64

/* Nothing but places for a uprobe. */
void uprobe_cost_emulated(void);
void uprobe_cost_stepped(void);
__asm__(".text\n"
        ".type uprobe_cost_emulated, @function\nuprobe_cost_emulated: nop\nret\n"
        ".size uprobe_cost_emulated, . - uprobe_cost_emulated\n"
        ".type uprobe_cost_stepped, @function\nuprobe_cost_stepped: ret\n"
        ".size uprobe_cost_stepped, . - uprobe_cost_stepped\n");

bool uprobe_is_emulated(const u8 code[UPROBE_CODE])
{
	const u8 *c = code + (code[0] == 0x41); /* push of r8 to r15 */

	if ((*c & 0xf8) == 0x50)
		return true;
	switch (*code) {
	case 0x0f: /* nop of several bytes, jcc */
		return code[1] == 0x1f || (code[1] & 0xf0) == 0x80;
	case 0x90: /* nop */
	case 0xe8: /* call */
	case 0xe9: /* jmp */
	case 0xeb:
		return true;
	default:
		return (*code & 0xf0) == 0x70; /* jcc */
	}
}

struct place {
	u64 code, offset;
};

/* Where it lies in the file of this program. */
static int find_offset(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct place *place = ctx;
	u64 addr = place->code - info->dlpi_addr;

	for (u32 i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && addr >= ph->p_vaddr && addr - ph->p_vaddr < ph->p_filesz)
			place->offset = addr - ph->p_vaddr + ph->p_offset;
	}
	return 1; /* the program is the first */
}

static int by_value(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* cold: memory that is written before each hit; NULL: caches stay warm. */
static u64 median(void (*code)(void), volatile u8 *cold)
{
	u64 took[MEASURED];

	for (u32 i = 0; i < MEASURED; i++) {
		u64 begin;

		for (u32 k = 0; cold && k < COLD_BYTES; k += LINE)
			cold[k]++;
		begin = now_ns();
		code();
		took[i] = now_ns() - begin;
	}
	qsort(took, MEASURED, sizeof(*took), by_value);
	return took[MEASURED / 2];
}

u64 uprobe_cost(const struct bpf_program *program, bool emulated, bool warm, struct uprobe_shifts *s)
{
	void (*code)(void) = emulated ? uprobe_cost_emulated : uprobe_cost_stepped;
	cleanup(free) volatile u8 *cold = warm ? NULL : calloc(1, COLD_BYTES);
	struct place place = {.code = (u64)code};
	struct uprobe *u;
	struct error *err;
	u64 ret;

	dl_iterate_phdr(find_offset, &place);
	if ((!warm && !cold) || !place.offset)
		return 0;
	err = uprobe_place(program, 0, "/proc/self/exe", place.offset, 0, UINT32_MAX, &u);
	if (err) {
		error_free(err);
		return 0;
	}
	ret = median(code, cold);
	if (s)
		uprobe_shifts_take_away(s, u);
	else
		uprobe_take_away(u);
	return ret;
}
