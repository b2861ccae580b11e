/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine of line programs. */
#include <dwarf.h>
#include <stdlib.h>

#include "line_read.h"

#define ROWS_MAX      (6u << 20)
#define SEQUENCES_MAX (1u << 22)

struct line_state {
	struct line_table *t;
	const struct line_header *h;
	u64 addr, line, column, file;
	u32 first; /* row of this sequence */
	u64 low;
	bool full;
};

static void reset(struct line_state *s)
{
	s->addr = s->column = 0;
	s->line = s->file = 1;
	s->first = s->t->nrows;
}

/* A row that says what the one before it says adds nothing. */
static inline void add_row(struct line_state *s)
{
	struct line_row row = {.addr = s->addr,
	        .column = s->column < UINT16_MAX ? s->column : UINT16_MAX,
	        .line = s->line,
	        .file = s->file};
	struct line_row *last = s->t->nrows > s->first ? &s->t->rows[s->t->nrows - 1] : NULL;

	if (!last)
		s->low = s->addr;
	if (last && last->line == row.line && last->file == row.file && last->column == row.column &&
	        last->addr <= s->addr)
		return;
	if (last && last->addr == row.addr) { /* the last of an address holds */
		*last = row;
		return;
	}
	if (s->t->nrows < s->t->rows_room) {
		s->t->rows[s->t->nrows++] = row;
		return;
	}
	last = line_add(&s->t->rows, &s->t->nrows, &s->t->rows_room, ROWS_MAX, sizeof(*last));
	if (last)
		*last = row;
	s->full = !last;
}

static void end_sequence(struct line_state *s)
{
	struct line_table *t = s->t;
	struct line_sequence *seq;

	if (t->nrows > s->first && s->addr > s->low) {
		seq = line_add(&t->sequences, &t->nsequences, &t->sequences_room, SEQUENCES_MAX, sizeof(*seq));
		if (seq)
			*seq = (struct line_sequence){s->low, s->addr, s->first, t->nrows - s->first};
	} else {
		t->nrows = s->first;
	}
	reset(s);
}

static void run_extended(struct line_state *s, struct dwarf_cursor *c)
{
	u64 len = cursor_uleb(c);
	const u8 *end = c->p + (len < cursor_left(c) ? len : cursor_left(c));
	u8 op = len ? cursor_fixed(c, 1) : 0;

	switch (op) {
	case DW_LNE_end_sequence:
		end_sequence(s);
		break;
	case DW_LNE_set_address:
		s->addr = cursor_fixed(c, len - 1 <= 8 ? len - 1 : 8);
		break;
	}
	c->p = end;
}

static void run_standard(struct line_state *s, struct dwarf_cursor *c, u8 op)
{
	const struct line_header *h = s->h;

	switch (op) {
	case DW_LNS_copy:
		add_row(s);
		break;
	case DW_LNS_advance_pc:
		s->addr += cursor_uleb(c) * h->min_length;
		break;
	case DW_LNS_advance_line:
		s->line += cursor_sleb(c);
		break;
	case DW_LNS_set_file:
		s->file = cursor_uleb(c);
		break;
	case DW_LNS_set_column:
		s->column = cursor_uleb(c);
		break;
	case DW_LNS_negate_stmt:
	case DW_LNS_set_basic_block:
	case DW_LNS_set_prologue_end:
	case DW_LNS_set_epilogue_begin:
		break;
	case DW_LNS_const_add_pc:
		if (h->line_range)
			s->addr += (u64)((255 - h->opcode_base) / h->line_range) * h->min_length;
		break;
	case DW_LNS_fixed_advance_pc:
		s->addr += cursor_fixed(c, 2);
		break;
	default:
		for (u32 i = 0; i < h->lengths[op]; i++)
			cursor_skip_leb(c);
	}
}

static inline void run_special(struct line_state *s, u8 op)
{
	const struct line_header *h = s->h;
	u8 adjusted = op - h->opcode_base;

	if (h->line_range) {
		s->addr += (u64)(adjusted / h->line_range) * h->min_length;
		s->line += h->line_base + adjusted % h->line_range;
	}
	add_row(s);
}

static int compare(const void *left, const void *right)
{
	const struct line_sequence *a = left, *b = right;

	if (a->high != b->high)
		return a->high < b->high ? -1 : 1;
	return (a->first > b->first) - (a->first < b->first);
}

void line_program_run(struct line_table *t, const struct line_header *h, struct dwarf_cursor c)
{
	struct line_state s = {.t = t, .h = h};

	reset(&s);
	while (c.p < c.end && !s.full) {
		u8 op = *c.p++;

		if (op >= h->opcode_base)
			run_special(&s, op);
		else if (op)
			run_standard(&s, &c, op);
		else
			run_extended(&s, &c);
	}
	if (t->nsequences)
		qsort(t->sequences, t->nsequences, sizeof(*t->sequences), compare);
}
