/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of emit/d*.c share: the script as it is made. */
#ifndef YRT_YLANG_D_MAKE_H
#define YRT_YLANG_D_MAKE_H

#include "d.h"
#include "d_flat.h"

#define D_CLAUSES 200u /* of a handler: the kernel takes 256 functions in a program, and DTrace has some of its own */
#define D_TEXT    40u  /* of an operand */
#define D_LONG    320u /* of an expression */

struct d_value { /* what is known of a slot where a node begins */
	bool known;
	u64 value;
};

struct d_node {
	u32 block, rounds[D_NEST];
	u32 id; /* this->b */
	bool done;
	struct d_value *slots;
};

struct d {
	const struct y_program *p;
	struct y_target *t;
	struct y_source *s;
	FILE *out; /* clauses */
	const struct y_handler *h;
	const char *point, *in; /* "pid7:a.out:f:entry"; what holds of the process, before " && ", or "" */
	struct d_flat f;
	u32 first_slot, first_array; /* of f, in the script */
	u8 *used;                    /* slots of the script: enum y_type, 0: not used */
	u32 nused;
	struct d_node **nodes;
	u32 nnodes;
	u32 next_id, clauses;

	struct d_node *node;       /* where it is */
	struct d_value *slots;     /* what is known of them here */
	u32 id;                    /* of the clause */
	bool ended;                /* the node: nothing follows */
	bool printed;              /* the clause prints: it must not fail from here on */
	u32 failure, cause, place; /* as the clause has set them; 0: not yet */
	bool fails;                /* any handler may end by an error */
	bool *told;                /* places at which a handler may end by an error */
};

/* Texts of an instruction's operands. */
const char *d_slot(struct d *y, u32 slot, char ret[D_TEXT]);
bool d_known(const struct d *y, u32 slot, u64 *ret);
/* "\tthis->s1 = ": the slot is not known from here on. */
void d_assign(struct d *y, u32 dst);
void d_set(struct d *y, u32 dst, const char *format, ...) __attribute__((format(printf, 3, 4)));
const char *d_number(u64 v, char ret[D_TEXT]);
/* A literal; the inside of one, or of a format. */
void d_text(FILE *out, const char *text, u32 len);
void d_characters(FILE *out, const char *text, u32 len, bool format);

/* A clause, in a condition of its own besides the others; or "". */
void d_open(struct d *y, const char *condition);
void d_close(struct d *y);
/* Another clause: nothing that failed before it loses what was printed. */
void d_next(struct d *y);
/* this->b is what follows if the instruction fails; it fails with this cause, unless something follows. */
void d_expect(struct d *y, const struct y_insn *i, enum y_status cause, const char *at);
/* Goes on only where the condition holds, else fails; NULL: it fails. */
void d_check(struct d *y, const struct y_insn *i, enum y_status cause, const char *condition);

void d_put_print(struct d *y, const struct y_insn *i);
void d_put_map_op(struct d *y, const struct y_insn *i);
void d_print_map(struct d *y, u32 map, bool histogram);
/* Arithmetic, strings, reads: instructions that neither end a block nor print. */
void d_put_insn(struct d *y, const struct y_insn *i);

/* A map that the program only adds to and prints is an aggregation there. */
bool d_is_added(const struct y_program *p, u32 map);
/* Leaves with what D cannot do, but for what only shows when loops are unrolled. */
void d_check_program(struct d *y);
/* Does it print this map as a table? DTrace prints at its end what nothing has printed: it may not have more. */
bool d_prints_map(const struct y_program *p, u32 map);
/* Does it print its maps at its end, as nothing else does? */
bool d_prints_at_end(const struct y_program *p);

#endif
