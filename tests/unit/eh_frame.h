/* SPDX-License-Identifier: Apache-2.0 */
/* Assembles CIEs and FDEs into the bytes of an .eh_frame or .debug_frame, for tests. */
#ifndef YRT_TEST_EH_FRAME_H
#define YRT_TEST_EH_FRAME_H

#include <dwarf.h>

#include "elf_file.h"

/* What a CIE is made of; eh_cie_default is GCC's. */
struct eh_cie {
	u8 version;
	const char *augmentation;
	u8 encoding; /* of FDE addresses */
	bool dw64;
	bool debug; /* .debug_frame */
	u8 data_align;
	const u8 *code; /* NULL: CFA = rsp + 8, return address at CFA - 8 */
	size_t code_size;
};

static const struct eh_cie eh_cie_default = {
        .version = 1,
        .augmentation = "zR",
        .encoding = DW_EH_PE_pcrel | DW_EH_PE_sdata4,
};

static inline size_t eh_open(struct bytes *b, bool dw64)
{
	if (dw64)
		put32(b, 0xffffffff);
	if (dw64)
		put64(b, 0);
	else
		put32(b, 0);
	return b->n;
}

/* Pads with DW_CFA_nop and writes the length. */
static inline void eh_close(struct bytes *b, size_t body, bool dw64)
{
	u64 size;

	while (b->n % 8)
		put8(b, DW_CFA_nop);
	size = b->n - body;
	memcpy(b->at + body - (dw64 ? 8 : 4), &size, dw64 ? 8 : 4);
}

static inline void eh_augmentation(struct bytes *b, const struct eh_cie *cie)
{
	struct bytes data = {.n = 0};

	for (const char *c = cie->augmentation + 1; *c; c++) {
		if (*c == 'R')
			put8(&data, cie->encoding);
		if (*c == 'L')
			put8(&data, DW_EH_PE_absptr);
		if (*c == 'P') {
			put8(&data, DW_EH_PE_indirect | DW_EH_PE_pcrel | DW_EH_PE_sdata4);
			put32(&data, 0x12345678);
		}
	}
	put_uleb(b, data.n);
	put(b, data.at, data.n);
}

/* Returns where the CIE starts, for its FDEs. */
static inline size_t eh_put_cie(struct bytes *b, const struct eh_cie *cie)
{
	static const u8 code[] = {DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1};
	size_t start = b->n, body = eh_open(b, cie->dw64);

	if (cie->debug && cie->dw64)
		put64(b, UINT64_MAX);
	else
		put32(b, cie->debug ? UINT32_MAX : 0);
	put8(b, cie->version);
	put(b, cie->augmentation, strlen(cie->augmentation) + 1);
	if (cie->version >= 4) {
		put8(b, 8);
		put8(b, 0);
	}
	put_uleb(b, 1);
	put8(b, cie->data_align ? cie->data_align : 0x78); /* -8 */
	put8(b, 16);
	if (*cie->augmentation == 'z')
		eh_augmentation(b, cie);
	put(b, cie->code ? cie->code : code, cie->code ? cie->code_size : sizeof(code));
	eh_close(b, body, cie->dw64);
	return start;
}

static inline void eh_put_value(struct bytes *b, u8 encoding, u64 value)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_uleb128:
		put_uleb(b, value);
		break;
	case DW_EH_PE_sleb128:
		put_sleb(b, (s64)value);
		break;
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2:
		put16(b, (u16)value);
		break;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		put32(b, (u32)value);
		break;
	default:
		put64(b, value);
	}
}

/* addr: where b->at[0] will lie. */
static inline void eh_put_pointer(struct bytes *b, u8 encoding, u64 addr, u64 value)
{
	if (encoding == DW_EH_PE_aligned)
		while ((addr + b->n) % 8)
			put8(b, 0);
	if ((encoding & 0x70) == DW_EH_PE_pcrel)
		value -= addr + b->n;
	eh_put_value(b, encoding, value);
}

static inline void eh_put_fde(struct bytes *b, const struct eh_cie *cie, size_t cie_at, u64 addr, u64 start, u64 size,
        const void *code, size_t code_size)
{
	size_t body = eh_open(b, cie->dw64);

	if (cie->debug && cie->dw64)
		put64(b, cie_at);
	else
		put32(b, (u32)(cie->debug ? cie_at : b->n - cie_at));
	eh_put_pointer(b, cie->encoding, addr, start);
	eh_put_value(b, cie->encoding == DW_EH_PE_aligned ? DW_EH_PE_absptr : cie->encoding, size);
	if (*cie->augmentation == 'z')
		put_uleb(b, 0);
	put(b, code, code_size);
	eh_close(b, body, cie->dw64);
}

#endif
