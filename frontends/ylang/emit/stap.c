/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions as SystemTap's language: a function each, whose blocks are chosen by their number, halving the range. */
#include "stap.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define KEY_NAMES 128
#define MAP_MOST  10000u /* entries: it takes their memory at the start */

struct stap {
	const struct y_program *p;
	const struct y_function *f;
	u32 number; /* of f */
	struct y_target *t;
	FILE *out;
	u32 indent;
};

static void indent(struct stap *y)
{
	fprintf(y->out, "%*s", (int)(y->indent * 2), "");
}

static void line(struct stap *y, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void line(struct stap *y, const char *format, ...)
{
	va_list args;

	indent(y);
	va_start(args, format);
	vfprintf(y->out, format, args);
	va_end(args);
	fputc('\n', y->out);
}

/* --- values --- */

static void put_text(struct stap *y, const char *text, u32 len)
{
	fputc('"', y->out);
	for (u32 i = 0; i < len; i++)
		if (text[i] == '"' || text[i] == '\\')
			fprintf(y->out, "\\%c", text[i]);
		else if (text[i] == '\n' || text[i] == '\t')
			fputs(text[i] == '\n' ? "\\n" : "\\t", y->out);
		else if ((u8)text[i] < ' ')
			fprintf(y->out, "\\%03o", (u8)text[i]);
		else
			fputc(text[i], y->out);
	fputc('"', y->out);
}

/* All of its numbers are signed, of 64 bits; the least of them has no literal. */
static void put_number(struct stap *y, u32 dst, s64 v)
{
	if (v == INT64_MIN)
		line(y, "s%u = -9223372036854775807 - 1", dst);
	else
		line(y, "s%u = %ld", dst, v);
}

/* An expression wrapped at a type. */
static void put_wrapped(struct stap *y, u32 dst, enum y_type type, const char *expression)
{
	u32 bits = 8 * y_type_size(type);

	if (bits == 64)
		line(y, "s%u = %s", dst, expression);
	else if (y_type_is_signed(type))
		line(y, "s%u = (((%s) & 0x%lx) ^ 0x%lx) - 0x%lx", dst, expression, UINT64_MAX >> (64 - bits),
		        1ul << (bits - 1), 1ul << (bits - 1));
	else
		line(y, "s%u = (%s) & 0x%lx", dst, expression, UINT64_MAX >> (64 - bits));
}

static void put_comparison(struct stap *y, const struct y_insn *i)
{
	if (i->type == Y_U64 && (i->op == Y_OP_LT || i->op == Y_OP_LE))
		line(y, "s%u = %syrt_below(s%u, s%u)", i->dst, i->op == Y_OP_LE ? "!" : "",
		        i->op == Y_OP_LE ? i->b : i->a, i->op == Y_OP_LE ? i->a : i->b);
	else
		line(y, "s%u = s%u %s s%u", i->dst, i->a, y_op_sign(i->op), i->b);
}

static void put_arithmetic(struct stap *y, const struct y_insn *i)
{
	char text[128];

	switch (i->op) {
	case Y_OP_EQ:
	case Y_OP_NE:
	case Y_OP_LT:
	case Y_OP_LE:
		put_comparison(y, i);
		return;
	case Y_OP_NEG:
	case Y_OP_NOT:
		snprintf(text, sizeof(text), "%cs%u", i->op == Y_OP_NEG ? '-' : '~', i->a);
		break;
	case Y_OP_SHL:
	case Y_OP_SHR:
		if (i->op == Y_OP_SHR && i->type == Y_U64)
			snprintf(text, sizeof(text), "yrt_shift(s%u, s%u & 63)", i->a, i->b);
		else
			snprintf(text, sizeof(text), "s%u %s (s%u & %u)", i->a, y_op_sign(i->op), i->b,
			        8 * y_type_size(i->type) - 1);
		break;
	case Y_OP_DIV:
	case Y_OP_MOD:
		snprintf(text, sizeof(text), "yrt_%s%s(s%u, s%u, %u)", i->type == Y_U64 ? "u" : "", y_op_name(i->op),
		        i->a, i->b, i->place);
		break;
	default:
		snprintf(text, sizeof(text), "s%u %s s%u", i->a, y_op_sign(i->op), i->b);
	}
	put_wrapped(y, i->dst, i->type, text);
}

/* --- maps --- */

/* "m0" or "m0[s1, s2]" */
static const char *element(const struct stap *y, const struct y_insn *i, char ret[256])
{
	size_t n = (size_t)snprintf(ret, 256, "m%lu", i->imm);

	for (u32 k = 0; k < i->nargs; k++)
		n += (size_t)snprintf(ret + n, 256 - n, "%ss%u", k ? ", " : "[", y->f->args[i->args + k]);
	if (i->nargs)
		snprintf(ret + n, 256 - n, "]");
	return ret;
}

static void put_has(struct stap *y, const struct y_insn *i, const char *at)
{
	const char *keys = strchr(at, '[');

	if (keys)
		fprintf(y->out, "(%s in m%lu)", keys, i->imm);
	else
		fprintf(y->out, "@count(%s)", at);
}

static void put_map_op(struct stap *y, const struct y_insn *i)
{
	static const char *const aggregates[] = {"count", "sum", "min", "max", "avg"};
	char room[256];
	const char *at = element(y, i, room);

	switch (i->op) {
	case Y_OP_MAP_GET:
		line(y, "s%u = %s", i->dst, at);
		break;
	case Y_OP_MAP_SET:
		line(y, "%s = s%u", at, i->a);
		break;
	case Y_OP_MAP_ADD:
		line(y, "%s = %s + s%u", at, at, i->a);
		if (i->dst != Y_NONE)
			line(y, "s%u = %s", i->dst, at);
		break;
	case Y_OP_AGG_ADD:
		line(y, "%s <<< s%u", at, i->a);
		break;
	case Y_OP_MAP_DELETE:
		line(y, "delete %s", at);
		break;
	case Y_OP_MAP_CLEAR:
		line(y, "delete m%lu", i->imm);
		break;
	default:
		indent(y);
		fprintf(y->out, "s%u = ", i->dst);
		put_has(y, i, at);
		if (i->op == Y_OP_MAP_IN)
			fputs(" ? 1 : 0\n", y->out);
		else
			fprintf(y->out, " ? @%s(%s) : 0\n", aggregates[i->a], at);
	}
}

/* "k0, k1": the keys of an entry of a map, in foreach. */
static const char *key_names(const struct y_map *m, char ret[KEY_NAMES])
{
	size_t n = 0;

	*ret = '\0';
	for (u32 k = 0; k < m->nkeys; k++)
		n += (size_t)snprintf(ret + n, KEY_NAMES - n, "%sk%u", k ? ", " : "", k);
	return ret;
}

static const char *value_of(const struct y_map *m, u32 number, const char *keys, char ret[256])
{
	snprintf(ret, 256, m->is_agg ? "@sum(m%u[%s])" : "m%u[%s]", number, keys);
	return ret;
}

/* Its entries, sorted, are copied: the rounds are blocks of their own. */
static void put_each_begin(struct stap *y, const struct y_insn *i)
{
	const struct y_map *m = &y->p->maps[i->imm];
	char room[KEY_NAMES], value[256];
	const char *keys = key_names(m, room);

	line(y, "e%u_%u = 0", y->number, i->a);
	line(y, "e%u_%u_at = 0", y->number, i->a);
	if (i->b == Y_NONE)
		line(y, "foreach ([k0+%s] in m%lu) {", keys + 2, i->imm);
	else
		line(y, m->is_agg ? "foreach ([%s] in m%lu @sum - limit s%u) {" : "foreach ([%s] in m%lu- limit s%u) {",
		        keys, i->imm, i->b);
	for (u32 k = 0; k < m->nkeys; k++)
		line(y, "  e%u_%u_k%u[e%u_%u] = k%u", y->number, i->a, k, y->number, i->a, k);
	line(y, "  e%u_%u_v[e%u_%u++] = %s", y->number, i->a, y->number, i->a, value_of(m, (u32)i->imm, keys, value));
	line(y, "}");
}

static void put_each_next(struct stap *y, const struct y_insn *i)
{
	line(y, "if (e%u_%u_at >= e%u_%u) { b = %u; continue }", y->number, i->a, y->number, i->a, i->c);
	for (u32 k = 0; k < i->nargs; k++)
		line(y, "s%u = e%u_%u_k%u[e%u_%u_at]", y->f->args[i->args + k], y->number, i->a, k, y->number, i->a);
	if (i->dst != Y_NONE)
		line(y, "s%u = e%u_%u_v[e%u_%u_at]", i->dst, y->number, i->a, y->number, i->a);
	line(y, "e%u_%u_at++", y->number, i->a);
	line(y, "b = %u; continue", i->b);
}

/* --- output --- */

static void put_table(struct stap *y, u32 number)
{
	const struct y_map *m = &y->p->maps[number];
	char room[KEY_NAMES], formats[64] = "", values[192] = "";
	const char *keys = key_names(m, room);
	size_t f = 0, v = 0;

	for (u32 k = 0; k < m->nkeys; k++) {
		bool text = m->keys[k] == Y_STR;

		f += (size_t)snprintf(formats + f, sizeof(formats) - f, text ? "%%s\\t" : "%%d\\t");
		v += (size_t)snprintf(values + v, sizeof(values) - v, text ? "text_str(k%u), " : "k%u, ", k);
	}
	line(y, "printf(\"%s\\n\")", m->name);
	if (!m->nkeys)
		line(y, "if (@count(m%u)) printf(\"%%d\\t%%d\\n\", @count(m%u), @sum(m%u))", number, number, number);
	else if (m->is_agg)
		line(y, "foreach ([%s] in m%u @sum -) printf(\"%s%%d\\t%%d\\n\", %s@count(m%u[%s]), @sum(m%u[%s]))",
		        keys, number, formats, values, number, keys, number, keys);
	else
		line(y, "foreach ([k0+%s] in m%u) printf(\"%s%s\\n\", %sm%u[%s])", keys + 2, number, formats,
		        m->value == Y_STR ? "%s" : "%d", values, number, keys);
}

static void put_histogram(struct stap *y, u32 number)
{
	const struct y_map *m = &y->p->maps[number];
	char room[KEY_NAMES];
	const char *keys = key_names(m, room), *shape = m->steps ? "hist_linear" : "hist_log";
	char bounds[96] = "";

	if (m->steps)
		snprintf(
		        bounds, sizeof(bounds), ", %ld, %ld, %lu", m->low, m->low + (s64)(m->steps * m->step), m->step);
	if (m->nkeys)
		line(y, "foreach ([k0+%s] in m%u) { println(\"%s[\", k0, \"]\"); print(@%s(m%u[%s]%s)) }", keys + 2,
		        number, m->name, shape, number, keys, bounds);
	else
		line(y, "if (@count(m%u)) { println(\"%s\"); print(@%s(m%u%s)) }", number, m->name, shape, number,
		        bounds);
}

static void put_stars(struct stap *y, const struct y_piece *p, const u32 *a)
{
	if (p->width == Y_STAR)
		fprintf(y->out, "s%u, ", a[p->precision == Y_STAR ? -6 : -3]);
	if (p->precision == Y_STAR)
		fprintf(y->out, "s%u, ", a[-3]);
}

/* Of unsigned conversions with the value's own width. */
static void put_operand(struct stap *y, const struct y_piece *p, u32 slot)
{
	u32 bits = 8 * y_type_size(p->type);

	if (p->kind == Y_STRING)
		fprintf(y->out, "text_str(s%u)", slot);
	else if (p->kind == Y_POINTER)
		fprintf(y->out, "s%u ? sprintf(\"0x%%x\", s%u) : \"(nil)\"", slot, slot);
	else if (strchr("uxXo", p->conversion) && bits && bits < 64)
		fprintf(y->out, "s%u & 0x%lx", slot, UINT64_MAX >> (64 - bits));
	else
		fprintf(y->out, "s%u", slot);
}

static void put_value(struct stap *y, const struct y_piece *p, const u32 *a)
{
	struct y_piece failed = {.left = p->left, .width = p->width, .precision = -1};
	bool text = p->kind == Y_STRING || p->kind == Y_POINTER;

	indent(y);
	fprintf(y->out, "if (s%u) printf(\"", a[1]);
	y_piece_write(&failed, 's', y->out);
	fputs("\", ", y->out);
	if (p->width == Y_STAR)
		put_stars(y, &failed, p->precision == Y_STAR ? a - 3 : a);
	fprintf(y->out, "yrt_value(s%u, s%u)) else printf(\"", a[1], a[2]);
	y_piece_write(p, text ? 's' : p->conversion, y->out);
	fputs("\", ", y->out);
	put_stars(y, p, a);
	put_operand(y, p, a[0]);
	fputs(")\n", y->out);
}

static void put_print(struct stap *y, const struct y_insn *i)
{
	const struct y_format *f = &y->p->formats[i->imm];
	const u32 *a = &y->f->args[i->args];

	for (u32 k = 0; k < f->npieces; k++) {
		const struct y_piece *p = &f->pieces[k];

		if (p->kind == Y_TEXT) {
			indent(y);
			fputs("print(", y->out);
			put_text(y, p->text, p->len);
			fputs(")\n", y->out);
			continue;
		}
		a += 3 * ((p->width == Y_STAR) + (p->precision == Y_STAR));
		put_value(y, p, a);
		a += 3;
	}
}

/* --- instructions --- */

static void put_array(struct stap *y, const struct y_insn *i)
{
	bool global = i->imm >= Y_GLOBAL_ARRAY;
	u64 number = global ? i->imm - Y_GLOBAL_ARRAY : i->imm;
	u32 n = global ? y->p->globals[number].n : y->f->arrays[number].n;
	char array[48], sum[128];

	if (global)
		snprintf(array, sizeof(array), "g%lu[s%u]", number, i->a);
	else
		snprintf(array, sizeof(array), "a%u_%lu[s%u]", y->number, number, i->a);
	line(y, "if (s%u < 0 || s%u >= %u) yrt_fail(%u, 0, %u)", i->a, i->a, n, Y_LIMIT, i->place);
	if (i->op == Y_OP_ARRAY_GET) {
		line(y, "s%u = %s", i->dst, array);
	} else if (i->op == Y_OP_ARRAY_SET) {
		line(y, "%s = s%u", array, i->b);
	} else {
		snprintf(sum, sizeof(sum), "%s + s%u", array, i->b);
		put_wrapped(y, i->dst, i->type, sum);
		line(y, "%s = s%u", array, i->dst);
	}
}

static void put_load(struct stap *y, const struct y_insn *i)
{
	static const char *const names[] = {[Y_I8] = "int8",
	        [Y_U8] = "uint8",
	        [Y_I16] = "int16",
	        [Y_U16] = "uint16",
	        [Y_I32] = "int32",
	        [Y_U32] = "uint32",
	        [Y_I64] = "int64",
	        [Y_U64] = "uint64"};

	line(y, "try { s%u = user_%s(s%u + %ld) } catch { yrt_fail(%u, s%u + %ld, %u) }", i->dst, names[i->type], i->a,
	        (s64)i->imm, Y_FAULT, i->a, (s64)i->imm, i->place);
}

static void put_string_op(struct stap *y, const struct y_insn *i)
{
	switch (i->op) {
	case Y_OP_STR_READ:
		line(y, "s%u = yrt_string(s%u, %lu, %u)", i->dst, i->a, i->imm, i->place);
		break;
	case Y_OP_STR_READ_N:
		line(y, "if (s%u < 0 || s%u > %lu) yrt_fail(%u, 0, %u)", i->b, i->b, i->imm, Y_LIMIT, i->place);
		line(y, "s%u = yrt_string(s%u, s%u, %u)", i->dst, i->a, i->b, i->place);
		break;
	case Y_OP_STR_LEN:
		line(y, "s%u = strlen(s%u)", i->dst, i->a);
		break;
	case Y_OP_STR_AT:
		line(y, "if (s%u < 0 || s%u >= strlen(s%u)) yrt_fail(%u, 0, %u)", i->b, i->b, i->a, Y_LIMIT, i->place);
		line(y, "s%u = stringat(s%u, s%u)", i->dst, i->a, i->b);
		break;
	default:
		line(y, "s%u = s%u . s%u", i->dst, i->a, i->b);
	}
}

static void put_call(struct stap *y, const struct y_insn *i)
{
	indent(y);
	if (i->dst != Y_NONE)
		fprintf(y->out, "s%u = ", i->dst);
	fprintf(y->out, "f%lu(", i->imm);
	for (u32 k = 0; k < i->nargs; k++)
		fprintf(y->out, k ? ", s%u" : "s%u", y->f->args[i->args + k]);
	fputs(")\n", y->out);
}

static void put_context(struct stap *y, const struct y_insn *i)
{
	static const char *const names[] = {[Y_PID] = "pid()",
	        [Y_TID] = "tid()",
	        [Y_COMM] = "execname()",
	        [Y_CPU] = "cpu()",
	        [Y_NS] = "ktime_get_ns()",
	        [Y_WALL] = "gettimeofday_ns()"};

	line(y, "s%u = %s", i->dst, names[i->imm]);
}

static void put_register(struct stap *y, const struct y_insn *i)
{
	static const char *const names[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10",
	        "r11", "r12", "r13", "r14", "r15"};

	line(y, "s%u = u_register(\"%s\")", i->dst, names[i->imm & 15]);
}

static void put_end(struct stap *y, const struct y_insn *i)
{
	switch (i->op) {
	case Y_OP_JUMP:
		line(y, "b = %u; continue", i->b);
		break;
	case Y_OP_BRANCH:
		line(y, "b = s%u ? %u : %u; continue", i->a, i->b, i->c);
		break;
	case Y_OP_RETURN:
		if (i->a == Y_NONE)
			line(y, "return 0");
		else
			line(y, "return s%u", i->a);
		break;
	case Y_OP_EACH_NEXT:
		put_each_next(y, i);
		break;
	default:
		if (i->op == Y_OP_ERROR)
			line(y, "yrt_say(\"error\", s%u, %u)", i->a, i->place);
		line(y, "exit(); error(\"yrt: the end\")");
	}
}

/* Constants, moves, addresses, globals. False: i is another instruction. */
static bool put_simple(struct stap *y, const struct y_insn *i)
{
	char text[64];

	switch (i->op) {
	case Y_OP_CONST:
		if (i->type == Y_STR)
			line(y, "s%u = \"\"", i->dst);
		else
			put_number(y, i->dst, (s64)i->imm);
		break;
	case Y_OP_LITERAL:
		indent(y);
		fprintf(y->out, "s%u = ", i->dst);
		put_text(y, y->p->literals[i->imm].bytes, y->p->literals[i->imm].len);
		fputc('\n', y->out);
		break;
	case Y_OP_MOVE:
		line(y, "s%u = s%u", i->dst, i->a);
		break;
	case Y_OP_CONVERT:
		snprintf(text, sizeof(text), "s%u", i->a);
		put_wrapped(y, i->dst, i->type, text);
		break;
	case Y_OP_ADDRESS:
		put_number(y, i->dst, (s64)(y->p->modules[i->a].bias + i->imm));
		break;
	case Y_OP_REGISTER:
		put_register(y, i);
		break;
	case Y_OP_GLOBAL_GET:
		line(y, "s%u = g%lu", i->dst, i->imm);
		break;
	case Y_OP_GLOBAL_SET:
		line(y, "g%lu = s%u", i->imm, i->a);
		break;
	case Y_OP_GLOBAL_ADD:
		snprintf(text, sizeof(text), "g%lu + s%u", i->imm, i->a);
		put_wrapped(y, i->dst, i->type, text);
		line(y, "g%lu = s%u", i->imm, i->dst);
		break;
	default:
		return false;
	}
	return true;
}

static void put_other(struct stap *y, const struct y_insn *i)
{
	switch (i->op) {
	case Y_OP_CALL:
		put_call(y, i);
		break;
	case Y_OP_LOOP:
		break;
	case Y_OP_STATUS:
	case Y_OP_AT:
		line(y, "s%u = yrt_%s", i->dst, i->op == Y_OP_AT ? "at" : "status");
		break;
	case Y_OP_CONTEXT:
		put_context(y, i);
		break;
	case Y_OP_EACH_BEGIN:
		put_each_begin(y, i);
		break;
	case Y_OP_PRINT:
		put_print(y, i);
		break;
	case Y_OP_PRINT_MAP:
		(i->a == Y_HIST ? put_histogram : put_table)(y, (u32)i->imm);
		break;
	case Y_OP_WARN:
		line(y, "yrt_say(\"warning\", s%u, %u)", i->a, i->place);
		break;
	default:
		put_string_op(y, i);
	}
}

static void put_insn(struct stap *y, const struct y_insn *i)
{
	bool guarded = y_op_can_fail(i->op) && i->fail != Y_PROPAGATE && i->op != Y_OP_LOOP;

	if (guarded) {
		line(y, "try {");
		y->indent++;
	}
	if (i->op >= Y_OP_ADD && i->op <= Y_OP_LE)
		put_arithmetic(y, i);
	else if (i->op >= Y_OP_MAP_GET && i->op <= Y_OP_AGG_GET)
		put_map_op(y, i);
	else if (y_op_ends_block(i->op))
		put_end(y, i);
	else if (i->op == Y_OP_LOAD)
		put_load(y, i);
	else if (i->op >= Y_OP_ARRAY_GET && i->op <= Y_OP_ARRAY_ADD)
		put_array(y, i);
	else if (!put_simple(y, i))
		put_other(y, i);
	if (guarded) {
		y->indent--;
		if (i->op == Y_OP_CALL)
			line(y, "} catch (m) { if (m == \"yrt: the end\") error(m); b = %u; continue }", i->fail);
		else
			line(y, "} catch { b = %u; continue }", i->fail);
	}
}

/* Blocks first to last - 1. */
static void put_blocks(struct stap *y, u32 first, u32 last)
{
	u32 middle = first + (last - first) / 2;

	if (last - first == 1) {
		for (u32 i = 0; i < y->f->blocks[first].n; i++)
			put_insn(y, &y->f->insns[y->f->blocks[first].start + i]);
		return;
	}
	line(y, "if (b < %u) {", middle);
	y->indent++;
	put_blocks(y, first, middle);
	y->indent--;
	line(y, "} else {");
	y->indent++;
	put_blocks(y, middle, last);
	y->indent--;
	line(y, "}");
}

static void put_function(struct stap *y, u32 number)
{
	const struct y_function *f = y->f = &y->p->functions[number];

	y->number = number;
	fprintf(y->out, "\nfunction f%u:%s (", number, f->returns == Y_STR ? "string" : "long");
	for (u32 i = 0; i < f->nparameters; i++)
		fprintf(y->out, "%ss%u:%s", i ? ", " : "", i, f->slots[i] == Y_STR ? "string" : "long");
	fprintf(y->out, ") { /* %s */\n", f->name);
	y->indent = 1;
	for (u32 i = f->nparameters; i < f->nslots; i++)
		line(y, "s%u = %s", i, f->slots[i] == Y_STR ? "\"\"" : "0");
	for (u32 i = 0; i < f->narrays; i++)
		line(y, "delete a%u_%u", number, i);
	line(y, "b = 0");
	line(y, "while (1) {");
	y->indent = 2;
	put_blocks(y, 0, f->nblocks);
	y->indent = 0;
	fputs("  }\n}\n", y->out);
}

/* --- the whole --- */

static const char runtime[] =
        "global yrt_status, yrt_at, yrt_place, yrt_failures, yrt_once\n"
        "\n"
        "function yrt_fail:long (status:long, at:long, place:long) {\n"
        "  yrt_status = status; yrt_at = at; yrt_place = place\n"
        "  error(\"yrt: a failure\")\n"
        "  return 0\n"
        "}\n"
        "function yrt_cause:string (status:long) {\n"
        "  return status == 1 ? \"fault\" : status == 5 ? \"division by zero\" : \"limit\"\n"
        "}\n"
        "function yrt_value:string (status:long, at:long) {\n"
        "  return at ? sprintf(\"<%s 0x%x>\", yrt_cause(status), at) : sprintf(\"<%s>\", yrt_cause(status))\n"
        "}\n"
        "function yrt_say:long (what:string, text:string, place:long) {\n"
        "  warn(sprintf(\"%s: %s: %s\", yrt_where(place), what, text_str(text)))\n"
        "  return 0\n"
        "}\n"
        "function yrt_ended:long (message:string) {\n"
        "  if (message == \"yrt: a failure\") yrt_failures[yrt_place, yrt_status, yrt_at]++\n"
        "  else if (message != \"yrt: the end\") warn(message)\n"
        "  return 0\n"
        "}\n"
        "function yrt_below:long (a:long, b:long) {\n"
        "  return (a < 0) == (b < 0) ? a < b : b < 0\n"
        "}\n"
        "function yrt_shift:long (a:long, n:long) {\n"
        "  return n ? ((a >> 1) & 0x7fffffffffffffff) >> (n - 1) : a\n"
        "}\n"
        "function yrt_div:long (a:long, b:long, place:long) {\n"
        "  if (!b) yrt_fail(5, 0, place)\n"
        "  return b == -1 ? -a : a / b\n"
        "}\n"
        "function yrt_mod:long (a:long, b:long, place:long) {\n"
        "  if (!b) yrt_fail(5, 0, place)\n"
        "  return b == -1 ? 0 : a % b\n"
        "}\n"
        "function yrt_udiv:long (a:long, b:long, place:long) {\n"
        "  if (!b) yrt_fail(5, 0, place)\n"
        "  if (b < 0) return !yrt_below(a, b)\n"
        "  if (a >= 0) return a / b\n"
        "  q = (yrt_shift(a, 1) / b) << 1\n"
        "  return yrt_below(a - q * b, b) ? q : q + 1\n"
        "}\n"
        "function yrt_umod:long (a:long, b:long, place:long) {\n"
        "  return a - yrt_udiv(a, b, place) * b\n"
        "}\n"
        "function yrt_string:string (at:long, n:long, place:long) {\n"
        "  if (n <= 0) return \"\"\n"
        "  try { user_uint8(at) } catch { yrt_fail(1, at, place) }\n"
        "  return user_string_n(at, n)\n"
        "}\n";

/* Can anything there fail, or warn? */
static bool is_told(const struct y_program *p, u32 place)
{
	for (u32 k = 0; k < p->nfunctions; k++)
		for (u32 i = 0; i < p->functions[k].ninsns; i++) {
			const struct y_insn *insn = &p->functions[k].insns[i];

			if (insn->place == place && insn->op != Y_OP_LOOP && insn->op != Y_OP_CALL &&
			        (y_op_can_fail(insn->op) || insn->op == Y_OP_WARN || insn->op == Y_OP_ERROR))
				return true;
		}
	return false;
}

static void put_places(struct stap *y)
{
	fputs("function yrt_where:string (place:long) {\n", y->out);
	for (u32 i = 1; i < y->p->nplaces; i++) {
		char at[64];

		if (!is_told(y->p, i))
			continue;
		snprintf(at, sizeof(at), ":%u:%u", y->p->places[i].line, y->p->places[i].column);
		fprintf(y->out, "  if (place == %u) return ", i);
		put_text(y, y->p->places[i].file, (u32)strlen(y->p->places[i].file));
		fputs(" . ", y->out);
		put_text(y, at, (u32)strlen(at));
		fputc('\n', y->out);
	}
	fputs("  return \"?\"\n}\n", y->out);
}

static void put_globals(struct stap *y)
{
	for (u32 i = 0; i < y->p->nmaps; i++) {
		if (y->p->maps[i].nkeys)
			fprintf(y->out, "global m%u[%u] # %s\n", i,
			        y->p->maps[i].most < MAP_MOST ? y->p->maps[i].most : MAP_MOST, y->p->maps[i].name);
		else
			fprintf(y->out, "global m%u # %s\n", i, y->p->maps[i].name);
	}
	for (u32 i = 0; i < y->p->nglobals; i++) {
		const struct y_global *g = &y->p->globals[i];

		if (!y_is_used(y->p, i, false))
			continue;
		fprintf(y->out, "global g%u", i);
		if (g->n) {
			fprintf(y->out, "[%u]", g->n);
		} else if (g->type == Y_STR) {
			fputs(" = ", y->out);
			put_text(y, y->p->literals[g->value].bytes, y->p->literals[g->value].len);
		} else if ((s64)g->value != INT64_MIN) {
			fprintf(y->out, " = %ld", (s64)g->value);
		}
		fprintf(y->out, " # %s\n", g->name);
	}
}

/* Arrays and iterations of functions: they do not call themselves, so that one room is enough. */
static void put_rooms(struct stap *y, u32 number)
{
	const struct y_function *f = &y->p->functions[number];

	for (u32 i = 0; i < f->narrays; i++)
		fprintf(y->out, "global a%u_%u[%u]\n", number, i, f->arrays[i].n);
	for (u32 i = 0; i < f->ninsns; i++) {
		const struct y_insn *insn = &f->insns[i];

		if (insn->op != Y_OP_EACH_BEGIN)
			continue;
		fprintf(y->out, "global e%u_%u, e%u_%u_at, e%u_%u_v", number, insn->a, number, insn->a, number,
		        insn->a);
		for (u32 k = 0; k < y->p->maps[insn->imm].nkeys; k++)
			fprintf(y->out, ", e%u_%u_k%u", number, insn->a, k);
		fputc('\n', y->out);
	}
}

static void put_period(struct stap *y, u64 ns)
{
	if (ns % 1000000000 == 0)
		fprintf(y->out, "timer.s(%lu)", ns / 1000000000);
	else if (ns % 1000000 == 0)
		fprintf(y->out, "timer.ms(%lu)", ns / 1000000);
	else
		fprintf(y->out, "timer.us(%lu)", ns / 1000 ? ns / 1000 : 1);
}

/* By address where debug information has it, else by name. */
static void put_place(struct stap *y, const struct y_handler *h)
{
	struct y_target_object o;

	if (!y_target_function(y->t, h->spec, &o))
		return;
	fputs("process(", y->out);
	put_text(y, y->t->modules[o.module].path, (u32)strlen(y->t->modules[o.module].path));
	if (y_target_types(y->t, o.module))
		fprintf(y->out, ").statement(0x%lx)", o.addr);
	else
		fprintf(y->out, ").function(\"%s\")", strrchr(h->spec, ':') ? strrchr(h->spec, ':') + 1 : h->spec);
}

static void put_handler(struct stap *y, const struct y_handler *h)
{
	fputs("\nprobe ", y->out);
	switch (h->point) {
	case Y_BEGIN:
		fputs("begin {\n", y->out);
		break;
	case Y_END:
		fputs("end {\n", y->out);
		break;
	case Y_TIMER:
		put_period(y, h->period_ns);
		fputs(" {\n", y->out);
		break;
	case Y_ONESHOT:
		fputs("timer.profile {\n  if (pid() != target() || yrt_once++) next\n", y->out);
		break;
	case Y_PROFILE:
		fprintf(y->out, "perf.sw.cpu_clock.sample(%lu) {\n  if (pid() != target()) next\n", h->period_ns);
		break;
	default:
		put_place(y, h);
		fputs(" {\n  if (pid() != target()) next\n", y->out);
	}
	fprintf(y->out, "  try { f%u() } catch (message) { yrt_ended(message) }\n%s}\n", h->function,
	        h->point == Y_ONESHOT ? "  exit()\n" : "");
}

/* As yrt: maps that nothing prints are printed at the end. */
static void put_end_of_all(struct stap *y)
{
	fputs("\nprobe end(1000) {\n", y->out);
	y->indent = 1;
	if (y_has_probes(y->p) && !y_prints_map(y->p) && !y_has_point(y->p, Y_END))
		for (u32 i = 0; i < y->p->nmaps; i++)
			put_table(y, i);
	y->indent = 0;
	fputs("  foreach ([place, status, at] in yrt_failures)\n"
	      "    warn(sprintf(\"%s: %s at 0x%x ended a handler %d times\", yrt_where(place), yrt_cause(status), at,\n"
	      "      yrt_failures[place, status, at]))\n"
	      "}\n",
	        y->out);
}

struct error *y_emit_stap(const struct y_program *p, struct y_target *t, FILE *out)
{
	struct stap y = {.p = p, .t = t, .out = out};
	struct error *err = y_stap_refuses(p, t);

	if (err)
		return err;
	fprintf(out,
	        "# Made by yrt y --emit stap, for process %d: addresses are its own.\n"
	        "#\tstap -x %d -DMAXSTRINGLEN=256 -DMAXACTION=100000 -DMAXACTION_INTERRUPTIBLE=1000000 THIS\n"
	        "# Other than in yrt: strings end at a NUL and after 255 bytes, bytes that do not print are \\ooo, "
	        "tables have\n"
	        "# no columns, histograms are SystemTap's own, a loop ends at MAXACTION, maps have at most 10,000 "
	        "entries, only the\n"
	        "# first of several keys is in order. _oneshot runs at a tick of "
	        "the clock\n"
	        "# in the process, which has to use a CPU; pages that are not present are faults.\n",
	        (int)t->pid, (int)t->pid);
	fputs(runtime, out);
	put_places(&y);
	put_globals(&y);
	for (u32 i = 0; i < p->nfunctions; i++)
		put_rooms(&y, i);
	for (u32 i = 0; i < p->nfunctions; i++)
		put_function(&y, i);
	for (u32 i = 0; i < p->nhandlers; i++)
		put_handler(&y, &p->handlers[i]);
	put_end_of_all(&y);
	return NULL;
}
