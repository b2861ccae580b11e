/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Compact unwind tables: what .eh_frame says, as sorted rows that BPF can search.
 *
 * A table covers a range of text in 256-byte pages and lies in one piece, at a multiple of 8 bytes, inside one slab of
 * the arena (arena.h):
 *
 *	struct cfi_table                       the head
 *	u16 index[npages + 1]                  first row of each page; index[npages] == nrows
 *	u32 rows[nrows]                        cfi_row(): the first byte in its page that the row covers, and its rule
 *	struct cfi_rule rules[nrules]          shared by the rows of this table
 *
 * Each page is whole in itself: its first row starts at offset 0 (a row that began earlier is repeated), rows of a page
 * ascend, and a row holds until the next row or the end of the page. So a search looks at one page's rows only.
 * Text larger than a slab is split into several tables, each with its own region.
 */
#ifndef YRT_SHARED_CFI_H
#define YRT_SHARED_CFI_H

#include <arch.h>
#include <types.h>

#define CFI_PAGE_BITS 8
#define CFI_PAGE_SIZE (1u << CFI_PAGE_BITS)

struct cfi_table {
	u32 npages;
	u32 nrows;
	u32 nrules;
	u32 index; /* byte offsets from the head of the table */
	u32 rows;
	u32 rules;
};

/* A row: rule number above, offset in the page in the low byte. */
static inline u32 cfi_row(u32 rule, u32 offset)
{
	return rule << CFI_PAGE_BITS | offset;
}

enum cfi_kind {
	CFI_NONE,        /* nothing known here: follow the frame pointer, marked as a guess */
	CFI_REG,         /* CFA = reg[cfa_reg] + cfa_off */
	CFI_DEREF,       /* CFA = *(reg[cfa_reg] + cfa_off) + cfa_add */
	CFI_PLT,         /* CFA = rsp + cfa_off + ((rip & 15) >= cfa_add ? 8 : 0): lazy PLT stubs */
	CFI_SIGNAL,      /* signal frame: all registers lie at rsp + cfa_off in the order of struct sigcontext */
	CFI_ROOT,        /* return address undefined: the outermost frame */
	CFI_UNSUPPORTED, /* given by an expression that no kind here covers */
	CFI_INDEXED,     /* CFA = *(reg[cfa_reg] + 8 * reg[index_reg] + cfa_off) + cfa_add: bignum code of libcrypto */
	CFI_NEWBORN,     /* after the system call that makes a thread: the child's outermost frame, else CFI_REG */
	CFI_DEREF_TWICE, /* CFA = *(*(reg[cfa_reg] + cfa_off) + cfa_between) + cfa_add: where OCaml 5 runs a fiber */
	CFI_CONTEXT,     /* all registers are where the struct _Unwind_Context at reg[cfa_reg] + cfa_off says */
	CFI_BEFORE_SIGNAL, /* right before what a signal handler returns to: CFI_REG for code that runs there; else as
	                      CFI_SIGNAL, with cfa_add */
	CFI_KINDS,
};

/*
 * Where the caller's value of a register lies. CFI_SAME: still in the register. CFI_UNDEFINED: lost. Otherwise
 * cfi_slot(offset, base): at base + offset, offset a multiple of 8; base 0 is the CFA, 1 is reg[slot_reg] of the callee
 * (frames that realign the stack save relative to rbp or rsp).
 */
#define CFI_SAME      ((s16)-32768)
#define CFI_UNDEFINED ((s16)-32767)

static inline s16 cfi_slot(s32 offset, u32 base)
{
	return (s16)((offset / 8) * 2 + (s32)base);
}

#define CFI_NO_REG 0xff

/*
 * struct _Unwind_Context of libgcc (unwind-dw2.c, gcc 4.5 to 15): pointers to the values of 18 registers by DWARF's
 * numbers, the CFA, the address where it goes on.
 */
#define CFI_CONTEXT_CFA (18 * 8)

struct cfi_rule {
	u8 kind;
	u8 cfa_reg;
	u8 slot_reg; /* see cfi_slot() */
	u8 ra_reg;   /* return address is in this register; CFI_NO_REG: it is in slot[ARCH_SLOT_RA] */
	s32 cfa_off;
	s32 cfa_add;
	s16 slot[ARCH_NSLOTS]; /* in the order of ARCH_SAVED_REGS, then the return address */
	u16 flags;             /* enum cfi_flag */
	u8 index_reg;          /* CFI_INDEXED only, otherwise 0 */
	u8 reserved;           /* zero */
	s16 cfa_between;       /* CFI_DEREF_TWICE only, otherwise 0 */
};
_Static_assert(sizeof(struct cfi_rule) == 32, "a rule is 32 bytes");

enum cfi_flag {
	CFI_SIGNAL_FRAME = 1, /* augmentation 'S': the caller's pc is exact, not a return address */
	CFI_FROM_CODE = 2,    /* made from code between FDEs: only if it leads behind a call it is believed */
	CFI_OWN_STACK = 4,    /* its callers are on a stack of its own: the next frame is that of what entered it */
	CFI_KEPT = 8,         /* a call that leaves cfa_reg alone, although it need not */
};

#endif
