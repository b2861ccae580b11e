/* SPDX-License-Identifier: Apache-2.0 */
#include "ir.h"

#include <math.h>

#include "regex.h"
#include "source.h"

const char *y_op_name(enum y_op op)
{
	static const char *const names[] = {
#define X(name, text, fails) text,
	        Y_OPS(X)
#undef X
	};

	return names[op];
}

const char *y_op_sign(enum y_op op)
{
	static const char *const signs[Y_OPS_N] = {[Y_OP_ADD] = "+",
	        [Y_OP_SUB] = "-",
	        [Y_OP_MUL] = "*",
	        [Y_OP_AND] = "&",
	        [Y_OP_OR] = "|",
	        [Y_OP_XOR] = "^",
	        [Y_OP_SHL] = "<<",
	        [Y_OP_SHR] = ">>",
	        [Y_OP_EQ] = "==",
	        [Y_OP_NE] = "!=",
	        [Y_OP_LT] = "<",
	        [Y_OP_LE] = "<="};

	return signs[op];
}

void y_piece_write(const struct y_piece *p, char conversion, FILE *out)
{
	const bool flags[] = {p->left, p->zero, p->plus, p->space, p->alternate};

	fputc('%', out);
	for (u32 i = 0; i < 5; i++)
		if (flags[i])
			fputc("-0+ #"[i], out);
	if (p->width == Y_STAR)
		fputc('*', out);
	else if (p->width)
		fprintf(out, "%d", p->width);
	if (p->precision == Y_STAR)
		fputs(".*", out);
	else if (p->precision >= 0)
		fprintf(out, ".%d", p->precision);
	fputc(conversion, out);
}

bool y_op_can_fail(enum y_op op)
{
	static const bool can[] = {
#define X(name, text, fails) fails,
	        Y_OPS(X)
#undef X
	};

	return can[op];
}

bool y_op_ends_block(enum y_op op)
{
	switch (op) {
	case Y_OP_JUMP:
	case Y_OP_BRANCH:
	case Y_OP_RETURN:
	case Y_OP_EXIT:
	case Y_OP_ERROR:
	case Y_OP_EACH_NEXT:
		return true;
	default:
		return false;
	}
}

const char *y_type_name(enum y_type type)
{
	static const char *const names[] = {
	        "void", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "str", "stack"};

	return names[type];
}

const char *y_status_name(enum y_status status)
{
	static const char *const names[] = {
	        "ok", "fault", "absent", "optimized out", "limit", "division by zero", "of another type"};

	return names[status];
}

/* --- arithmetic --- */

union number {
	u64 word;
	double f64;
	float f32;
};

static double as_double(enum y_type type, u64 v)
{
	union number n = {.word = v};

	return type == Y_F32 ? n.f32 : type == Y_F64 ? n.f64 : y_type_is_signed(type) ? (double)(s64)v : (double)v;
}

static u64 of_double(enum y_type type, double v)
{
	union number n = {0};

	if (type == Y_F32)
		n.f32 = (float)v;
	else
		n.f64 = v;
	return n.word;
}

static u64 to_integer(enum y_type type, double v)
{
	u32 bits = 8 * y_type_size(type);
	double most = ldexp(1, (int)bits - y_type_is_signed(type));

	if (isnan(v))
		return 0;
	if (y_type_is_signed(type)) {
		if (v >= most)
			return (1ull << (bits - 1)) - 1;
		return v < -most ? y_wrap(type, 1ull << (bits - 1)) : (u64)(s64)v;
	}
	if (v >= most)
		return y_wrap(type, UINT64_MAX);
	return v < 0 ? 0 : (u64)v;
}

u64 y_convert(enum y_type to, enum y_type from, u64 v)
{
	if (y_type_is_float(to))
		return from == to ? v
		       : to == Y_F32 && !y_type_is_float(from)
		               ? of_double(to, y_type_is_signed(from) ? (float)(s64)v : (float)v)
		               : of_double(to, as_double(from, v));
	return y_type_is_float(from) ? to_integer(to, as_double(from, v)) : y_wrap(to, v);
}

static enum y_status compute_float(enum y_op op, enum y_type type, u64 a, u64 b, u64 *ret)
{
	double x = as_double(type, a), y = as_double(type, b);

	switch (op) {
	case Y_OP_ADD:
		*ret = of_double(type, x + y);
		break;
	case Y_OP_SUB:
		*ret = of_double(type, x - y);
		break;
	case Y_OP_MUL:
		*ret = of_double(type, x * y);
		break;
	case Y_OP_DIV:
		*ret = of_double(type, x / y);
		break;
	case Y_OP_NEG:
		*ret = of_double(type, -x);
		break;
	case Y_OP_EQ:
		*ret = x == y;
		break;
	case Y_OP_NE:
		*ret = x != y;
		break;
	case Y_OP_LT:
		*ret = x < y;
		break;
	default:
		*ret = x <= y;
	}
	return Y_OK;
}

static enum y_status divide(enum y_op op, enum y_type type, u64 a, u64 b, u64 *ret)
{
	if (!b)
		return Y_DIV;
	if (!y_type_is_signed(type))
		*ret = op == Y_OP_DIV ? a / b : a % b;
	else if (b == UINT64_MAX)
		*ret = op == Y_OP_DIV ? -a : 0;
	else
		*ret = op == Y_OP_DIV ? (u64)((s64)a / (s64)b) : (u64)((s64)a % (s64)b);
	*ret = y_wrap(type, *ret);
	return Y_OK;
}

static u64 shift(enum y_op op, enum y_type type, u64 a, u64 b)
{
	u32 by = (u32)b & (8 * y_type_size(type) - 1);

	if (op == Y_OP_SHL)
		return a << by;
	return y_type_is_signed(type) ? (u64)((s64)a >> by) : a >> by;
}

enum y_status y_compute(enum y_op op, enum y_type type, u64 a, u64 b, u64 *ret)
{
	bool s = y_type_is_signed(type);

	if (y_type_is_float(type))
		return compute_float(op, type, a, b, ret);
	switch (op) {
	case Y_OP_ADD:
		*ret = y_wrap(type, a + b);
		break;
	case Y_OP_SUB:
		*ret = y_wrap(type, a - b);
		break;
	case Y_OP_MUL:
		*ret = y_wrap(type, a * b);
		break;
	case Y_OP_DIV:
	case Y_OP_MOD:
		return divide(op, type, a, b, ret);
	case Y_OP_AND:
		*ret = a & b;
		break;
	case Y_OP_OR:
		*ret = a | b;
		break;
	case Y_OP_XOR:
		*ret = a ^ b;
		break;
	case Y_OP_SHL:
	case Y_OP_SHR:
		*ret = y_wrap(type, shift(op, type, a, b));
		break;
	case Y_OP_NEG:
		*ret = y_wrap(type, -a);
		break;
	case Y_OP_NOT:
		*ret = y_wrap(type, ~a);
		break;
	case Y_OP_EQ:
		*ret = a == b;
		break;
	case Y_OP_NE:
		*ret = a != b;
		break;
	case Y_OP_LT:
		*ret = s ? (s64)a < (s64)b : a < b;
		break;
	default:
		*ret = s ? (s64)a <= (s64)b : a <= b;
	}
	return Y_OK;
}

/* --- programs --- */

struct y_program *y_program_new(void)
{
	struct y_memory *memory = y_memory_new();
	struct y_program *p = memory ? y_memory_get(memory, sizeof(*p)) : NULL;

	if (!p) {
		y_memory_free(memory);
		return NULL;
	}
	p->memory = memory;
	p->limits = (struct y_limits){.steps = 100000000, .time_s = 60, .hit_ns = 1000000};
	return p;
}

void y_program_free(struct y_program *p)
{
	if (p)
		y_memory_free(p->memory);
}

static void print_escaped(const char *bytes, u32 len, FILE *out)
{
	fputc('"', out);
	for (u32 i = 0; i < len; i++) {
		unsigned char c = (unsigned char)bytes[i];

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < ' ' || c > '~')
			fprintf(out, "\\%03o", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void print_slot(const char *before, u32 slot, FILE *out)
{
	if (slot != Y_NONE)
		fprintf(out, "%s%%%u", before, slot);
}

static bool has_c(enum y_op op)
{
	return op == Y_OP_BRANCH || op == Y_OP_EACH_NEXT;
}

static bool has_dst(enum y_op op)
{
	switch (op) {
	case Y_OP_GLOBAL_SET:
	case Y_OP_ARRAY_SET:
	case Y_OP_LOOP:
	case Y_OP_MAP_SET:
	case Y_OP_MAP_DELETE:
	case Y_OP_MAP_CLEAR:
	case Y_OP_AGG_ADD:
	case Y_OP_EACH_BEGIN:
	case Y_OP_PRINT:
	case Y_OP_PRINT_MAP:
	case Y_OP_WARN:
	case Y_OP_ERROR:
	case Y_OP_JUMP:
	case Y_OP_BRANCH:
	case Y_OP_RETURN:
	case Y_OP_EXIT:
		return false;
	default:
		return true;
	}
}

static void print_insn(const struct y_program *p, const struct y_function *f, const struct y_insn *i, FILE *out)
{
	fputc('\t', out);
	if (has_dst(i->op) && i->dst != Y_NONE)
		fprintf(out, "%%%u = ", i->dst);
	fputs(y_op_name(i->op), out);
	if (i->type)
		fprintf(out, " %s", y_type_name(i->type));
	print_slot(" ", i->a, out);
	if (i->op == Y_OP_JUMP || has_c(i->op))
		fprintf(out, " @%u", i->b);
	else
		print_slot(" ", i->b, out);
	if (has_c(i->op))
		fprintf(out, " @%u", i->c);
	if (i->imm || i->op == Y_OP_CONST)
		fprintf(out, " #%lu", i->imm);
	if (i->op == Y_OP_LITERAL) {
		fputc(' ', out);
		print_escaped(p->literals[i->imm].bytes, p->literals[i->imm].len, out);
	}
	for (u32 k = 0; k < i->nargs; k++)
		print_slot(k ? " " : " (", f->args[i->args + k], out);
	if (i->nargs)
		fputc(')', out);
	if (i->fail != Y_PROPAGATE)
		fprintf(out, " fail @%u", i->fail);
	if (i->place)
		fprintf(out, "\t; %u:%u", p->places[i->place].line, p->places[i->place].column);
	fputc('\n', out);
}

static void print_function(const struct y_program *p, u32 number, FILE *out)
{
	const struct y_function *f = &p->functions[number];

	fprintf(out, "function %u %s %s (%u)\n", number, f->name, y_type_name(f->returns), f->nparameters);
	fputs("  slots", out);
	for (u32 i = 0; i < f->nslots; i++)
		fprintf(out, " %s", y_type_name(f->slots[i]));
	fputc('\n', out);
	for (u32 i = 0; i < f->narrays; i++)
		fprintf(out, "  array %u %s %u\n", i, y_type_name(f->arrays[i].type), f->arrays[i].n);
	for (u32 b = 0; b < f->nblocks; b++) {
		fprintf(out, "@%u:\n", b);
		for (u32 i = 0; i < f->blocks[b].n; i++)
			print_insn(p, f, &f->insns[f->blocks[b].start + i], out);
	}
}

void y_program_print(const struct y_program *p, FILE *out)
{
	static const char *const points[] = {[Y_ONESHOT] = "oneshot",
	        [Y_BEGIN] = "begin",
	        [Y_END] = "end",
	        [Y_TIMER] = "timer",
	        [Y_CALL] = "call",
	        [Y_PROBE] = "probe",
	        [Y_TRACEPOINT] = "tracepoint",
	        [Y_SYSCALL] = "syscall",
	        [Y_PROFILE] = "profile"};

	for (u32 i = 0; i < p->nmodules; i++) {
		fprintf(out, "module %u %s ", i, p->modules[i].path);
		for (u32 k = 0; k < p->modules[i].build_id_len; k++)
			fprintf(out, "%02x", p->modules[i].build_id[k]);
		fputc('\n', out);
	}
	for (u32 i = 0; i < p->nmaps; i++) {
		fprintf(out, "%s %u %s %s most %u keys", p->maps[i].is_agg ? "agg" : "map", i, p->maps[i].name,
		        y_type_name(p->maps[i].value), p->maps[i].most);
		for (u32 k = 0; k < p->maps[i].nkeys; k++)
			fprintf(out, " %s", y_type_name(p->maps[i].keys[k]));
		if (p->maps[i].steps)
			fprintf(out, " from %ld by %lu, %u steps", p->maps[i].low, p->maps[i].step, p->maps[i].steps);
		fputc('\n', out);
	}
	for (u32 i = 0; i < p->nglobals; i++)
		fprintf(out, "global %u %s %s %u = %lu\n", i, p->globals[i].name, y_type_name(p->globals[i].type),
		        p->globals[i].n, p->globals[i].value);
	for (u32 i = 0; i < p->nhandlers; i++)
		fprintf(out, "handler %u %s function %u period %lu %s\n", i, points[p->handlers[i].point],
		        p->handlers[i].function, p->handlers[i].period_ns,
		        p->handlers[i].spec ? p->handlers[i].spec : "");
	for (u32 i = 0; i < p->nfunctions; i++)
		print_function(p, i, out);
}

bool y_has_point(const struct y_program *p, enum y_point point)
{
	for (u32 i = 0; i < p->nhandlers; i++)
		if (p->handlers[i].point == point)
			return true;
	return false;
}

bool y_has_probes(const struct y_program *p)
{
	for (u32 i = 0; i < p->nhandlers; i++)
		if (y_in_kernel(p->handlers[i].point))
			return true;
	return false;
}

bool y_prints_histogram(const struct y_program *p, u32 map)
{
	for (u32 f = 0; f < p->nfunctions; f++)
		for (u32 i = 0; i < p->functions[f].ninsns; i++) {
			const struct y_insn *insn = &p->functions[f].insns[i];

			if (insn->op == Y_OP_PRINT_MAP && insn->imm == map && insn->a == Y_HIST)
				return true;
		}
	return false;
}

bool y_is_used(const struct y_program *p, u64 number, bool map)
{
	for (u32 k = 0; k < p->nfunctions; k++)
		for (u32 i = 0; i < p->functions[k].ninsns; i++) {
			const struct y_insn *insn = &p->functions[k].insns[i];
			bool of_map = insn->op == Y_OP_MAP_SET || insn->op == Y_OP_MAP_ADD || insn->op == Y_OP_AGG_ADD;
			bool of_global = insn->op >= Y_OP_GLOBAL_GET && insn->op <= Y_OP_ARRAY_ADD;

			if (map ? of_map && insn->imm == number
			        : of_global && (insn->imm == number || insn->imm == number + Y_GLOBAL_ARRAY))
				return true;
		}
	return false;
}

bool y_prints_map(const struct y_program *p)
{
	for (u32 f = 0; f < p->nfunctions; f++)
		for (u32 i = 0; i < p->functions[f].ninsns; i++)
			if (p->functions[f].insns[i].op == Y_OP_PRINT_MAP)
				return true;
	return false;
}

void y_see_calls(const struct y_program *p, u32 function, bool *seen)
{
	const struct y_function *f = &p->functions[function];

	if (seen[function])
		return;
	seen[function] = true;
	for (u32 i = 0; i < f->ninsns; i++)
		if (f->insns[i].op == Y_OP_CALL)
			y_see_calls(p, (u32)f->insns[i].imm, seen);
}

static bool reads_slot(const struct y_function *f, const struct y_insn *i, u32 slot)
{
	bool no_a = i->op == Y_OP_ADDRESS || i->op == Y_OP_AGG_GET || i->op == Y_OP_EACH_BEGIN ||
	            i->op == Y_OP_EACH_NEXT || i->op == Y_OP_PRINT_MAP || i->op == Y_OP_CONTEXT;

	for (u32 k = 0; k < i->nargs; k++)
		if (f->args[i->args + k] == slot)
			return true;
	return (!no_a && i->a == slot) || (i->op != Y_OP_JUMP && !has_c(i->op) && i->b == slot);
}

#define ARITHMETIC_DEEP 8u

static bool matters(const struct y_function *f, u32 slot, u32 depth)
{
	for (u32 n = 0; n < f->ninsns; n++) {
		const struct y_insn *i = &f->insns[n];
		bool plain = i->op == Y_OP_MOVE || i->op == Y_OP_CONVERT || (i->op >= Y_OP_ADD && i->op <= Y_OP_LE);

		if (reads_slot(f, i, slot) &&
		        (!plain || y_op_can_fail(i->op) || depth == ARITHMETIC_DEEP || matters(f, i->dst, depth + 1)))
			return true;
	}
	return false;
}

bool y_slot_matters(const struct y_function *f, u32 slot)
{
	return matters(f, slot, 0);
}
