/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Y program is compiled to, for all engines: typed three-address code in basic blocks. The VM (vm.h) defines
 * what each instruction means; any other engine prints what it prints, or refuses the instruction by name.
 *
 * Slots. Each function has slots of a fixed type, numbered from 0; its parameters are the first ones. A slot of an
 * integer type always holds a value of that type: 64 bits, extended by its sign or by zeros. Arithmetic wraps at the
 * instruction's type, in two's complement; operands have that type, too (conversions are instructions).
 *
 * Failure. An instruction that can fail (op_can_fail()) has an edge for it: `fail` is the block where the function
 * goes on, or Y_PROPAGATE: it ends the function, and the call that it came from fails, with the same cause, address
 * and place; in a handler's own function it ends the handler, and is counted by place and cause. Where a block is
 * entered by such an edge, STATUS, AT and nothing else say what happened. dst is as it was before.
 *
 * Places. `place` is the index of the position in the source that an instruction stands for (struct
 * y_program.places); those that can fail and calls always have one.
 *
 * Addresses are ADDRESS instructions: a module's number and an offset in its file, so that a program fits each
 * process that has the same builds. Their engine adds the load bias.
 *
 * Budget. LOOP stands at the head of each loop and CALL counts the same: beyond y_limits.steps of both together in a
 * handler, LOOP and CALL fail with LIMIT. So a program ends everywhere at the same round.
 */
#ifndef YRT_YLANG_IR_H
#define YRT_YLANG_IR_H

#include <stdbool.h>
#include <stdio.h>
#include <types.h>

#include "unwind/error.h"

enum y_type { Y_VOID, Y_I8, Y_U8, Y_I16, Y_U16, Y_I32, Y_U32, Y_I64, Y_U64, Y_F32, Y_F64, Y_STR, Y_STACK };

enum y_status { /* causes of failure; 0: none */
	Y_OK,
	Y_FAULT,  /* the memory at `at` cannot be read */
	Y_ABSENT, /* its page is not present, and the handler may not wait for it */
	Y_OPTIMIZED_OUT,
	Y_LIMIT, /* a budget, an index of a tracer's array, a string or a map that would be too large */
	Y_DIV,   /* a division by zero */
	Y_KIND,  /* an argument of a language's function is something else than asked for */
};

/*
 * d: dst, a b c: operands. Each is a slot, but where it says otherwise. T: the instruction's type.
 *
 *	X(name, text, may fail)
 */
/* clang-format off */
#define Y_OPS(X) \
	X(CONST, "const", 0) /* d = imm (of a float: its bits) */ \
	X(LITERAL, "literal", 0) /* d = literal number imm */ \
	X(MOVE, "move", 0) /* d = a */ \
	X(CONVERT, "convert", 0) /* d, of type T, = a, of type imm, as C converts; to bool: NE with 0 */ \
	X(ADD, "add", 0) /* d = a + b … */ \
	X(SUB, "sub", 0) \
	X(MUL, "mul", 0) \
	X(DIV, "div", 1) /* toward 0; the least number by -1 wraps. Fails: DIV. Floats do not fail */ \
	X(MOD, "mod", 1) /* the sign of a; the least number by -1 is 0. Fails: DIV */ \
	X(AND, "and", 0) \
	X(OR, "or", 0) \
	X(XOR, "xor", 0) \
	X(SHL, "shl", 0) /* by b modulo the width of T */ \
	X(SHR, "shr", 0) /* signed types keep the sign */ \
	X(NEG, "neg", 0) /* d = -a */ \
	X(NOT, "not", 0) /* d = ~a */ \
	X(EQ, "eq", 0) /* d (I32) = a == b, which have type T, also Y_STR: by bytes */ \
	X(NE, "ne", 0) \
	X(LT, "lt", 0) \
	X(LE, "le", 0) \
	X(ADDRESS, "address", 0) /* d (U64) = load bias of module a (its number) + imm */ \
	X(LOAD, "load", 1) /* d = what the target has at address a + imm, of type T; c: KERNEL (no slot): what \
			the kernel has, if the address is one of its own. Fails: FAULT, ABSENT */ \
	X(REGISTER, "register", 0) /* d = register imm (DWARF's number) of the thread at the place of a probe */ \
	X(ARGUMENT, "argument", 1) /* d = argument imm of the tracepoint, system call or USDT probe; RETURNED: \
			its result. Fails: FAULT, ABSENT, of a USDT probe. Of a call: wanted[imm], as a number \
			(I64), a double (F64) or a text (STR). Fails: KIND, OPTIMIZED_OUT, LIMIT */ \
	X(GLOBAL_GET, "global_get", 0) /* d = global number imm of the program */ \
	X(GLOBAL_SET, "global_set", 0) /* global number imm = a */ \
	X(GLOBAL_ADD, "global_add", 0) /* d = global number imm += a, atomic */ \
	X(ARRAY_GET, "array_get", 1) /* d = array number imm, element a (I64). Fails: LIMIT */ \
	X(ARRAY_SET, "array_set", 1) /* array number imm, element a = b */ \
	X(ARRAY_ADD, "array_add", 1) /* d = array number imm (a global one), element a += b, atomic. Fails: LIMIT */ \
	X(CALL, "call", 1) /* d = function number imm (args). Fails: as it does; LIMIT: too deep */ \
	X(LOOP, "loop", 1) /* a round begins. Fails: LIMIT */ \
	X(STR_READ, "str_read", 1) /* d = the bytes at a up to a NUL, at most imm; c: as of LOAD */ \
	X(STR_READ_N, "str_read_n", 1) /* d = b (I64) bytes at a. Fails: also LIMIT, beyond imm */ \
	X(STR_LEN, "str_len", 0) /* d (I32) = bytes of a */ \
	X(STR_CUT, "str_cut", 0) /* d (I32) = 1: a was read by STR_READ, and was longer than imm there */ \
	X(STR_AT, "str_at", 1) /* d (I32) = byte b (I64) of a. Fails: LIMIT */ \
	X(STR_CAT, "str_cat", 1) /* d = a and b. Fails: LIMIT */ \
	X(MATCH, "match", 1) /* d (I32) = regex number imm matches a; args: slots of $0, $1 …: "" if not */ \
	X(MAP_GET, "map_get", 0) /* d = map number imm [args]; of a missing key: 0 or "" */ \
	X(MAP_SET, "map_set", 0) /* map number imm [args] = a; lost and counted if the map is full */ \
	X(MAP_ADD, "map_add", 0) /* d = map number imm [args] += a, atomic */ \
	X(MAP_IN, "map_in", 0) /* d (I32) = does map or aggregate imm have [args]? */ \
	X(MAP_DELETE, "map_delete", 0) \
	X(MAP_CLEAR, "map_clear", 0) \
	X(AGG_ADD, "agg_add", 0) /* aggregate (a map's number imm) [args] <<< a (I64) */ \
	X(AGG_GET, "agg_get", 0) /* d (I64) = enum y_agg a (no slot) of aggregate imm [args]; 0 of a missing */ \
	X(EACH_BEGIN, "each_begin", 0) /* iteration a (its number) over map imm; b: slot of _top's n, or \
			Y_NONE */ \
	X(EACH_NEXT, "each_next", 0) /* the next of iteration a: args: slots of its keys; d: of its value, \
			or NONE; goes to block b, at the end to block c. Ends a block */ \
	X(PRINT, "print", 0) /* format number imm; args: three slots a value: it, its status, its at */ \
	X(PRINT_MAP, "print_map", 0) /* a map or an aggregate imm, whole; a: enum y_shape (no slot) */ \
	X(WARN, "warn", 0) /* a: a string, on stderr, with the place */ \
	X(ERROR, "error", 0) /* the same, and ends the run with an error. Ends a block */ \
	X(STATUS, "status", 0) /* d (I32) = enum y_status of the failure that led here */ \
	X(AT, "at", 0) /* d (U64) = its address; 0: it has none */ \
	X(CONTEXT, "context", 0) /* d = enum y_context imm; a (no slot), of THREAD_POINTER: where the kernel's struct \
			task_struct has it */ \
	X(STACK, "stack", 0) /* d = enum y_stack imm; a deferred value: a key or printed, no operand */ \
	X(SYMBOL, "symbol", 0) /* d (STR) = "name+0x10" of address a; imm 1: name of system call a; "": not known */ \
	X(JUMP, "jump", 0) /* to block b. These end a block */ \
	X(BRANCH, "branch", 0) /* to block b if a (an integer) is not 0, else to block c */ \
	X(RETURN, "return", 0) /* a, or Y_NONE */ \
	X(EXIT, "exit", 0) /* ends the run; _end handlers still run */
/* clang-format on */

enum y_op {
#define X(name, text, fails) Y_OP_##name,
	Y_OPS(X)
#undef X
	        Y_OPS_N
};

enum y_agg { Y_COUNT, Y_SUM, Y_MIN, Y_MAX, Y_AVG };
enum y_shape { Y_TABLE, Y_HIST };
enum y_context { Y_PID, Y_TID, Y_COMM, Y_CPU, Y_NS, Y_WALL, Y_PROG, Y_UID, Y_GID, Y_CGROUP, Y_THREAD_POINTER };
enum y_stack { Y_WHOLE_STACK, Y_USER_STACK, Y_KERNEL_STACK, Y_STACK_PARTS }; /* of a thread: what it has of frames */

#define Y_GLOBAL_ARRAY (1ul << 32) /* ARRAY_GET, _SET, _ADD: from here on global number imm - this */
#define Y_RETURNED     UINT32_MAX  /* ARGUMENT */
#define Y_KERNEL       1u          /* c of LOAD, STR_READ, STR_READ_N: the address is the kernel's */
#define Y_NONE         UINT32_MAX  /* no slot */
#define Y_PROPAGATE    UINT32_MAX  /* no block: struct y_insn.fail */

#define Y_STR_MOST          (64u << 10) /* bytes of a string; in a probe: */
#define Y_STR_MOST_PROBE    255u
#define Y_DEPTH_MOST        256u /* calls in each other */
#define Y_KEYS_MOST         8u
#define Y_CAPTURES_MOST     10u
#define Y_MAP_ENTRIES       (1u << 20) /* of a map that does not say how many; in a program with probes: */
#define Y_MAP_ENTRIES_PROBE (1u << 16)

struct y_insn {
	u16 op;   /* enum y_op */
	u16 type; /* enum y_type */
	u32 dst, a, b, c;
	u64 imm;
	u32 fail;
	u32 place;
	u32 args, nargs; /* in y_function.args */
};

struct y_block {
	u32 start, n; /* in y_function.insns; the last one ends it, and only that one */
};

struct y_array { /* of a function: zeroed at each call */
	enum y_type type;
	u32 n;
};

struct y_function {
	const char *name; /* "_oneshot" of a handler */
	enum y_type returns;
	u32 nparameters;
	u8 *slots; /* enum y_type of each */
	u32 nslots;
	struct y_array *arrays;
	u32 narrays;
	struct y_insn *insns;
	u32 ninsns;
	struct y_block *blocks; /* it begins with block 0 */
	u32 nblocks;
	u32 *args;
	u32 nargs;
	u32 neach; /* iterations */
	u32 place;
};

enum y_point { /* from Y_CALL on: in the kernel */
	Y_ONESHOT,
	Y_BEGIN,
	Y_END,
	Y_TIMER,
	Y_CALL, /* of a function of a language: "python:orders.checkout" */
	Y_PROBE,
	Y_TRACEPOINT,
	Y_SYSCALL,
	Y_PROFILE
};

struct y_handler { /* its predicate is in the function: it returns at once */
	enum y_point point;
	u32 function;          /* without parameters */
	u64 period_ns;         /* of a timer or profile */
	const char *spec;      /* of a probe: as `probe -e` takes it; of a tracepoint its name */
	bool returns;          /* of its function or system call: not where it begins, but where it is left */
	u32 syscall;           /* its number */
	bool line;             /* spec is a place in a line, not a function */
	const char **variants; /* of a USDT probe: the different forms of its places' arguments (hit_usdt.h) */
	u32 nvariants;
	const char **wanted; /* of a call: names of arguments that are read, or their numbers ("0") */
	u32 nwanted;
};

struct y_map { /* also an aggregate */
	const char *name;
	bool is_agg;
	enum y_type value;             /* of a map: an integer of 8 bytes, Y_F64 or Y_STR */
	enum y_type keys[Y_KEYS_MOST]; /* Y_I64, Y_U64, Y_STR, Y_STACK */
	u32 nkeys;                     /* 0: an aggregate that is not an array */
	u32 most;                      /* entries */
	u32 stack;                     /* 1 + number of the key that is a stack, as text: "main;serve"; 0: none is */
	enum y_stack part;             /* of it */
	s64 low;                       /* of its histogram by equal steps (_lhist): where the first one begins */
	u64 step;
	u32 steps; /* 0: its histogram, if it has any, is by powers of two */
};

/*
 * Buckets of histograms. By powers of two: below 0, 0, then by the number of bits. By steps: below the first one, each,
 * and from the last one's end on.
 */
#define Y_STEPS_MOST 256u
static inline u32 y_buckets(const struct y_map *m)
{
	return m->steps ? m->steps + 2 : 66;
}
static inline u32 y_bucket(const struct y_map *m, s64 value)
{
	u64 step = m->steps ? ((u64)value - (u64)m->low) / m->step : 0;

	if (m->steps)
		return value < m->low ? 0 : 1 + (u32)(step < m->steps ? step : m->steps);
	return value < 0 ? 0 : value ? 65 - (u32)__builtin_clzll((u64)value) : 1;
}

struct y_global {
	const char *name;
	enum y_type type;
	u64 value; /* at first */
	u32 n;     /* not 0: an array of n zeros */
};

/* A string of the program; not NUL-terminated. */
struct y_literal {
	const char *bytes;
	u32 len;
};

enum y_piece_kind { Y_TEXT, Y_NUMBER, Y_CHAR, Y_STRING, Y_POINTER, Y_FLOAT };

/*
 * A part of a format. TEXT is printed as it is; the rest take values, in order: `width` and `precision` if they are
 * Y_STAR (I32), then the value. A value whose status is not Y_OK is printed as "<fault 0x18>" and so on, padded to the
 * width; text of the target with U+FFFD for each control character and each byte that is no UTF-8.
 */
#define Y_STAR INT32_MAX
struct y_piece {
	enum y_piece_kind kind;
	const char *text;
	u32 len;
	bool left, zero, plus, space, alternate;
	bool or_next;         /* if the value is of another type, the next piece stands for it, else that is left out */
	int width, precision; /* precision -1: none */
	char conversion;      /* d u x X o, c, s, p, f e g */
	enum y_type type;     /* of the value */
};

struct y_format {
	struct y_piece *pieces;
	u32 npieces;
	u32 nvalues;
};

struct y_place {
	const char *file;
	u32 line, column;
};

struct y_module {
	const char *path; /* as the target knows it */
	u8 build_id[64];
	u32 build_id_len;
	u64 bias;  /* in the target that the program was compiled for */
	u64 first; /* the address in the file of its first byte: bias + first is where it is mapped from */
};

struct y_regex; /* regex.h */

struct y_limits {
	u64 steps;     /* rounds and calls in a handler */
	double time_s; /* of a run of a handler */
	u64 hit_ns;    /* of a hit of a probe */
};

struct y_program {
	struct y_function *functions;
	u32 nfunctions;
	struct y_handler *handlers;
	u32 nhandlers;
	struct y_map *maps;
	u32 nmaps;
	struct y_global *globals;
	u32 nglobals;
	struct y_literal *literals;
	u32 nliterals;
	struct y_format *formats;
	u32 nformats;
	struct y_regex **regexes;
	u32 nregexes;
	struct y_place *places; /* 0: none */
	u32 nplaces;
	struct y_module *modules;
	u32 nmodules;
	struct y_limits limits;
	struct y_memory *memory; /* of names and texts: freed with the program */
};

/* What an instruction of arithmetic or comparison gives; slots as they are. Y_DIV: not for floats. */
enum y_status y_compute(enum y_op op, enum y_type type, u64 a, u64 b, u64 *ret);
/* CONVERT. Floats beyond an integer's range give its nearest end, what is no number 0. */
u64 y_convert(enum y_type to, enum y_type from, u64 v);

struct y_program *y_program_new(void); /* NULL: out of memory */
void y_program_free(struct y_program *p);
/* The program as text: one instruction a line. */
void y_program_print(const struct y_program *p, FILE *out);

/* Does it have a handler of this kind? */
bool y_has_point(const struct y_program *p, enum y_point point);
static inline bool y_in_kernel(enum y_point point)
{
	return point >= Y_CALL;
}
/* Does it run in no thread of the target? */
static inline bool y_is_outside(enum y_point point)
{
	return point == Y_BEGIN || point == Y_END || point == Y_TIMER;
}
/* Marks the functions that this one may call, and itself. */
void y_see_calls(const struct y_program *p, u32 function, bool *seen);
/* Does anything use the slot but arithmetic whose result nobody uses? */
bool y_slot_matters(const struct y_function *f, u32 slot);
/* Does it have any that runs there? */
bool y_has_probes(const struct y_program *p);
/* Does it print a histogram of this aggregate? */
bool y_prints_histogram(const struct y_program *p, u32 map);
/* Does it use this global, or put anything into this map? */
bool y_is_used(const struct y_program *p, u64 number, bool map);
/* Does it print any map? */
bool y_prints_map(const struct y_program *p);

const char *y_op_name(enum y_op op);
const char *y_op_sign(enum y_op op); /* of arithmetic and comparisons, as in C, but for division; NULL: it has none */
bool y_op_can_fail(enum y_op op);
/* "%-*d", with this conversion in place of its own. */
void y_piece_write(const struct y_piece *p, char conversion, FILE *out);
bool y_op_ends_block(enum y_op op);
const char *y_type_name(enum y_type type);
const char *y_status_name(enum y_status status); /* "fault", "division by zero" */

static inline u32 y_type_size(enum y_type type)
{
	static const u8 sizes[] = {[Y_I8] = 1,
	        [Y_U8] = 1,
	        [Y_I16] = 2,
	        [Y_U16] = 2,
	        [Y_I32] = 4,
	        [Y_U32] = 4,
	        [Y_I64] = 8,
	        [Y_U64] = 8,
	        [Y_F32] = 4,
	        [Y_F64] = 8,
	        [Y_STR] = 0,
	        [Y_STACK] = 0};

	return sizes[type];
}

static inline bool y_type_is_signed(enum y_type type)
{
	return type == Y_I8 || type == Y_I16 || type == Y_I32 || type == Y_I64;
}

static inline bool y_type_is_float(enum y_type type)
{
	return type == Y_F32 || type == Y_F64;
}

/* A value as a slot of an integer type holds it. */
static inline u64 y_wrap(enum y_type type, u64 v)
{
	switch (type) {
	case Y_I8:
		return (u64)(s64)(s8)v;
	case Y_U8:
		return (u8)v;
	case Y_I16:
		return (u64)(s64)(s16)v;
	case Y_U16:
		return (u16)v;
	case Y_I32:
		return (u64)(s64)(s32)v;
	case Y_U32:
		return (u32)v;
	default:
		return v;
	}
}

#endif
