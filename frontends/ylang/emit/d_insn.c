/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions as assignments of D. All of its numbers here are signed, of 64 bits. */
#include "d_make.h"

#include <string.h>

#include "unwind/arch/x86_64/arch.h"

static const char *const type_names[] = {[Y_I8] = "int8_t",
        [Y_U8] = "uint8_t",
        [Y_I16] = "int16_t",
        [Y_U16] = "uint16_t",
        [Y_I32] = "int32_t",
        [Y_U32] = "uint32_t",
        [Y_I64] = "int64_t",
        [Y_U64] = "uint64_t"};

void d_characters(FILE *out, const char *text, u32 len, bool format)
{
	for (u32 i = 0; i < len; i++)
		if (text[i] == '"' || text[i] == '\\')
			fprintf(out, "\\%c", text[i]);
		else if (text[i] == '%' && format)
			fputs("%%", out);
		else if (text[i] == '\n')
			fputs("\\n", out);
		else if ((u8)text[i] < ' ' || (u8)text[i] > '~')
			fprintf(out, "\\%03o", (u8)text[i]);
		else
			fputc(text[i], out);
}

void d_text(FILE *out, const char *text, u32 len)
{
	fputc('"', out);
	d_characters(out, text, len, false);
	fputc('"', out);
}

const char *d_number(u64 v, char ret[D_TEXT])
{
	if ((s64)v == INT64_MIN)
		strcpy(ret, "(-9223372036854775807 - 1)");
	else
		snprintf(ret, D_TEXT, (s64)v < 0 ? "(%ld)" : "%ld", (s64)v);
	return ret;
}

static void d_wrapped(struct d *y, u32 dst, enum y_type type, const char *expression)
{
	if (y_type_size(type) == 8)
		d_set(y, dst, "%s", expression);
	else
		d_set(y, dst, "(int64_t)(%s)(%s)", type_names[type], expression);
}

static void put_comparison(struct d *y, const struct y_insn *i, const char *a, const char *b)
{
	if (i->type == Y_U64)
		d_set(y, i->dst, "(uint64_t)%s %s (uint64_t)%s", a, y_op_sign((enum y_op)i->op), b);
	else
		d_set(y, i->dst, "%s %s %s", a, y_op_sign((enum y_op)i->op), b);
}

static void put_division(struct d *y, const struct y_insn *i)
{
	char a[D_TEXT], b[D_TEXT], text[D_LONG];
	const char *sign = i->op == Y_OP_DIV ? "/" : "%";
	u64 by = 0;

	d_slot(y, i->b, b);
	if (!d_known(y, i->b, &by)) {
		snprintf(text, sizeof(text), "%s != 0", b);
		d_check(y, i, Y_DIV, text);
	} else if (!by) {
		d_check(y, i, Y_DIV, NULL);
		return;
	}
	d_slot(y, i->a, a);
	if (i->type == Y_U64)
		snprintf(text, sizeof(text), "(int64_t)((uint64_t)%s %s (uint64_t)%s)", a, sign, b);
	else if (i->op == Y_OP_DIV)
		snprintf(text, sizeof(text), "%s == -1 ? -%s : %s / %s", b, a, a, b);
	else
		snprintf(text, sizeof(text), "%s == -1 ? 0 : %s %% %s", b, a, b);
	d_wrapped(y, i->dst, (enum y_type)i->type, text);
}

static void put_arithmetic(struct d *y, const struct y_insn *i)
{
	char a[D_TEXT], b[D_TEXT], text[D_LONG];
	u32 bits = 8 * y_type_size((enum y_type)i->type);

	d_slot(y, i->a, a);
	if (i->op == Y_OP_NEG || i->op == Y_OP_NOT) {
		snprintf(text, sizeof(text), "%c%s", i->op == Y_OP_NEG ? '-' : '~', a);
		d_wrapped(y, i->dst, (enum y_type)i->type, text);
		return;
	}
	d_slot(y, i->b, b);
	if (i->op >= Y_OP_EQ && i->op <= Y_OP_LE) {
		put_comparison(y, i, a, b);
		return;
	}
	if (i->op == Y_OP_SHR && i->type == Y_U64)
		snprintf(text, sizeof(text), "(int64_t)((uint64_t)%s >> (%s & 63))", a, b);
	else if (i->op == Y_OP_SHL || i->op == Y_OP_SHR)
		snprintf(text, sizeof(text), "(int64_t)%s %s (%s & %u)", a, y_op_sign((enum y_op)i->op), b, bits - 1);
	else
		snprintf(text, sizeof(text), "(int64_t)%s %s %s", a, y_op_sign((enum y_op)i->op), b);
	d_wrapped(y, i->dst, (enum y_type)i->type, text);
}

/* --- the target --- */

/* What copyin() points to is read without its sign, whatever the type: the value gets it. */
static void put_load(struct d *y, const struct y_insn *i)
{
	char a[D_TEXT], at[2 * D_TEXT], text[D_LONG];
	u32 size = y_type_size((enum y_type)i->type);
	u64 known;

	if (d_known(y, i->a, &known))
		d_number(known + i->imm, at);
	else if (i->imm)
		snprintf(at, sizeof(at), "%s + %ld", d_slot(y, i->a, a), (s64)i->imm);
	else
		snprintf(at, sizeof(at), "%s", d_slot(y, i->a, a));
	d_expect(y, i, Y_FAULT, at);
	if (i->c == Y_KERNEL)
		snprintf(text, sizeof(text),
		        "%s < 0 ? (int64_t)*(uint%u_t *)(%s) : (int64_t)*(uint%u_t *)copyin(%s, %u)", at, 8 * size, at,
		        8 * size, at, size);
	else
		snprintf(text, sizeof(text), "(int64_t)*(uint%u_t *)copyin(%s, %u)", 8 * size, at, size);
	d_wrapped(y, i->dst, y_type_is_signed((enum y_type)i->type) ? (enum y_type)i->type : Y_I64, text);
}

static void put_string_read(struct d *y, const struct y_insn *i)
{
	char a[D_TEXT], n[D_TEXT], text[D_LONG];

	if (i->op == Y_OP_STR_READ_N) {
		d_slot(y, i->b, n);
		snprintf(text, sizeof(text), "%s >= 0 && %s <= %lu", n, n, i->imm);
		d_check(y, i, Y_LIMIT, text);
	}
	d_slot(y, i->a, a);
	d_expect(y, i, Y_FAULT, a);
	if (i->op == Y_OP_STR_READ_N)
		d_set(y, i->dst, "%s ? copyinstr(%s, %s + 1) : \"\"", n, a, n);
	else if (i->imm < Y_STR_MOST_PROBE)
		d_set(y, i->dst, "copyinstr(%s, %lu)", a, i->imm + 1);
	else
		d_set(y, i->dst, "copyinstr(%s)", a);
}

static void put_string_op(struct d *y, const struct y_insn *i)
{
	char a[D_TEXT], b[D_TEXT], text[D_LONG];

	d_slot(y, i->a, a);
	if (i->op == Y_OP_STR_LEN) {
		d_set(y, i->dst, "(int64_t)strlen(%s)", a);
		return;
	}
	d_slot(y, i->b, b);
	if (i->op == Y_OP_STR_CAT) {
		d_set(y, i->dst, "strjoin(%s, %s)", a, b);
		return;
	}
	snprintf(text, sizeof(text), "%s >= 0 && %s < strlen(%s)", b, b, a);
	d_check(y, i, Y_LIMIT, text);
	d_set(y, i->dst, "(int64_t)(uint8_t)%s[%s]", a, b);
}

static void put_context(struct d *y, const struct y_insn *i)
{
	static const char *const names[] = {[Y_PID] = "pid",
	        [Y_TID] = "tid",
	        [Y_COMM] = "execname",
	        [Y_NS] = "timestamp",
	        [Y_WALL] = "walltimestamp"};

	d_set(y, i->dst, i->imm == Y_COMM ? "%s" : "(int64_t)%s", names[i->imm]);
}

static void put_register(struct d *y, const struct y_insn *i)
{
	static const u8 words[] = ARCH_PT_REGS_WORDS;

	d_set(y, i->dst, "(int64_t)uregs[%u]", words[i->imm & 15]);
}

/* --- variables of the program --- */

static void put_array(struct d *y, const struct y_insn *i)
{
	bool global = i->imm >= Y_GLOBAL_ARRAY;
	u64 number = global ? i->imm - Y_GLOBAL_ARRAY : i->imm, at = 0;
	u32 n = global ? y->p->globals[number].n : y->f.arrays[number].n;
	char a[D_TEXT], b[D_TEXT], array[2 * D_TEXT], text[D_LONG];

	d_slot(y, i->a, a);
	if (!d_known(y, i->a, &at)) {
		snprintf(text, sizeof(text), "%s >= 0 && %s < %u", a, a, n);
		d_check(y, i, Y_LIMIT, text);
	} else if (at >= n) {
		d_check(y, i, Y_LIMIT, NULL);
		return;
	}
	if (global)
		snprintf(array, sizeof(array), "g%lu[%s]", number, a);
	else
		snprintf(array, sizeof(array), "self->a%lu[%s]", y->first_array + number, a);
	if (i->op == Y_OP_ARRAY_GET) {
		d_set(y, i->dst, "%s", array);
		return;
	}
	d_slot(y, i->b, b);
	if (i->op == Y_OP_ARRAY_SET) {
		fprintf(y->out, "\t%s = %s;\n", array, b);
		return;
	}
	snprintf(text, sizeof(text), "%s + %s", array, b);
	d_wrapped(y, i->dst, (enum y_type)i->type, text);
	fprintf(y->out, "\t%s = %s;\n", array, d_slot(y, i->dst, b));
}

static void put_zeros(struct d *y, u64 array)
{
	for (u32 k = 0; k < y->f.arrays[array].n; k++)
		fprintf(y->out, "\tself->a%lu[%u] = 0;\n", y->first_array + array, k);
}

/* False: i is another instruction. */
static bool put_simple(struct d *y, const struct y_insn *i)
{
	char a[D_TEXT];

	switch (i->op) {
	case Y_OP_CONST: /* others are known */
		d_set(y, i->dst, "\"\"");
		break;
	case Y_OP_LITERAL:
		d_assign(y, i->dst);
		d_text(y->out, y->p->literals[i->imm].bytes, y->p->literals[i->imm].len);
		fputs(";\n", y->out);
		break;
	case Y_OP_MOVE:
		d_set(y, i->dst, "%s", d_slot(y, i->a, a));
		break;
	case Y_OP_CONVERT:
		d_wrapped(y, i->dst, (enum y_type)i->type, d_slot(y, i->a, a));
		break;
	case Y_OP_ARGUMENT:
		d_set(y, i->dst, "(int64_t)arg%lu", i->imm == Y_RETURNED ? 1 : i->imm);
		break;
	case Y_OP_GLOBAL_GET:
		d_set(y, i->dst, "g%lu", i->imm);
		break;
	case Y_OP_GLOBAL_SET:
		fprintf(y->out, "\tg%lu = %s;\n", i->imm, d_slot(y, i->a, a));
		break;
	case Y_OP_STATUS:
	case Y_OP_AT:
		d_set(y, i->dst, i->op == Y_OP_AT ? "this->at" : "this->status");
		break;
	case Y_OP_LOOP:
		break;
	default:
		return false;
	}
	return true;
}

static void put_global_sum(struct d *y, const struct y_insn *i)
{
	char a[D_TEXT], text[2 * D_TEXT];

	snprintf(text, sizeof(text), "g%lu + %s", i->imm, d_slot(y, i->a, a));
	d_wrapped(y, i->dst, (enum y_type)i->type, text);
	fprintf(y->out, "\tg%lu = %s;\n", i->imm, d_slot(y, i->dst, a));
}

static void put_other(struct d *y, const struct y_insn *i)
{
	switch (i->op) {
	case Y_OP_LOAD:
		put_load(y, i);
		break;
	case Y_OP_REGISTER:
		put_register(y, i);
		break;
	case Y_OP_GLOBAL_ADD:
		put_global_sum(y, i);
		break;
	case Y_OP_ARRAY_GET:
	case Y_OP_ARRAY_SET:
	case Y_OP_ARRAY_ADD:
		put_array(y, i);
		break;
	case Y_OP_STR_READ:
	case Y_OP_STR_READ_N:
		put_string_read(y, i);
		break;
	case Y_OP_STR_LEN:
	case Y_OP_STR_AT:
	case Y_OP_STR_CAT:
		put_string_op(y, i);
		break;
	case Y_OP_CONTEXT:
		put_context(y, i);
		break;
	case Y_OP_DIV:
	case Y_OP_MOD:
		put_division(y, i);
		break;
	case D_OP_ZERO:
		put_zeros(y, i->imm);
		break;
	default:
		put_arithmetic(y, i);
	}
}

void d_put_insn(struct d *y, const struct y_insn *i)
{
	if (i->op >= Y_OP_MAP_GET && i->op <= Y_OP_AGG_GET)
		d_put_map_op(y, i);
	else if (!put_simple(y, i))
		put_other(y, i);
}
