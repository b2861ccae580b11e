/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_interpreter.h"
#include "hotspot_flow.h"

#include <stdlib.h>
#include <string.h>

#define INTERPRETER_MAX (4u << 20)
#define CODELETS_MAX    4096
#define CODE_ALIGNMENT  32 /* CodeEntryAlignment on x86-64 */
#define LEAVE           0xc9

struct reader {
	struct memory *m;
	u64 start;
	u8 *bytes; /* of all of the interpreter */
	u32 size;
	u64 size_at, description_at, header;
	struct flow flow; /* of the last codelet */
	struct interpreter_piece *pieces;
	u32 npieces;
};

static struct error *add_piece(struct reader *r, const struct flow *f, u32 from, u32 to, u64 end)
{
	struct interpreter_piece piece = {.start = f->ins[from].addr, .end = to < f->n ? f->ins[to].addr : end};
	struct interpreter_piece *grown = realloc(r->pieces, (r->npieces + 1) * sizeof(*grown));
	struct flow_value rbx = f->state[from].reg[DWREG_RBX];
	struct error *err;

	if (!grown)
		return &error_no_memory;
	r->pieces = grown;
	piece.part = rbx.kind == FLOW_REG && rbx.offset == DWREG_RBX ? HOTSPOT_ENTRY : HOTSPOT_STUBS;
	err = flow_rows(f, from, to, &piece.entries, &piece.nentries);
	if (!err)
		r->pieces[r->npieces++] = piece;
	return err;
}

/* Is the caller's rbp in its register, before or after the frame of the method? */
static bool is_outside(const struct flow_state *s)
{
	return s->known && s->reg[DWREG_RBP].kind == FLOW_REG && s->reg[DWREG_RBP].offset == DWREG_RBP;
}

static struct error *add_pieces(struct reader *r, const struct flow *f, u64 end)
{
	struct error *err = NULL;

	for (u32 i = 0, to; !err && i < f->n; i = to) {
		for (to = i; to < f->n && is_outside(&f->state[to]); to++)
			;
		if (to > i)
			err = add_piece(r, f, i, to, end);
		else
			to++;
	}
	return err;
}

static struct error *read_codelet(struct reader *r, u32 at, u32 end, const char *description)
{
	bool is_entry = !strncmp(description, "method entry point", 18);
	struct flow_state entry = flow_entry_r13(), framed = flow_framed();
	struct flow *f = &r->flow;
	struct error *err;

	if (!is_entry && !memchr(r->bytes + at, LEAVE, end - at))
		return NULL;
	err = flow_read(r->bytes + at, r->start + at, end - at, f);
	if (err)
		return err;
	if (is_entry)
		flow_follow(f, 0, &entry);
	flow_follow_rest(f, &framed);
	return add_pieces(r, f, r->start + end);
}

static struct error *read_codelets(struct reader *r)
{
	struct error *err = NULL;
	char description[64];
	u32 size;

	for (u32 at = 0, i = 0; !err && i < CODELETS_MAX && at + r->header < r->size; i++, at += size) {
		u32 code = (at + (u32)r->header + CODE_ALIGNMENT - 1) & ~(CODE_ALIGNMENT - 1);
		u64 text;

		memcpy(&size, r->bytes + at + r->size_at, sizeof(size));
		memcpy(&text, r->bytes + at + r->description_at, sizeof(text));
		if (size < r->header || size > r->size - at)
			break;
		if (code < at + size && memory_string(r->m, description, sizeof(description), text))
			err = read_codelet(r, code, at + size, description);
	}
	return err;
}

static bool find_offsets(const struct vmstructs *v, struct reader *r)
{
	return vmstructs_field(v, "InterpreterCodelet", "_size", &r->size_at, NULL) &&
	       vmstructs_field(v, "InterpreterCodelet", "_description", &r->description_at, NULL) &&
	       vmstructs_type_size(v, "InterpreterCodelet", &r->header) && r->header <= 128 &&
	       r->size_at + 4 <= r->header && r->description_at + 8 <= r->header;
}

struct error *hotspot_interpreter_pieces(
        const struct vmstructs *v, struct memory *m, u64 start, u64 end, struct interpreter_piece **ret, u32 *n)
{
	struct reader r = {.m = m, .start = start, .size = end - start};
	struct error *err = NULL;

	*ret = NULL;
	*n = 0;
	if (end - start > INTERPRETER_MAX || !find_offsets(v, &r))
		return NULL;
	r.bytes = malloc(r.size);
	if (!r.bytes)
		return &error_no_memory;
	if (memory_read(m, r.bytes, r.size, start))
		err = read_codelets(&r);
	flow_free(&r.flow);
	free(r.bytes);
	*ret = r.pieces;
	*n = r.npieces;
	return err;
}
