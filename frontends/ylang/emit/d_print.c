/* SPDX-License-Identifier: Apache-2.0 */
/* What a script of D prints, and its maps. */
#include "d_make.h"

#include <string.h>

/* Is a value of a format printed in one of several ways? Its status may not be none, or a pointer 0. */
static bool varies(const struct d *y, const struct y_piece *p, const u32 *a)
{
	u64 known;

	if (p->kind == Y_TEXT)
		return false;
	return !d_known(y, a[1], &known) || known || (p->kind == Y_POINTER && !(d_known(y, a[0], &known) && known));
}

/* A pointer as a number or as a text. */
static struct y_piece pointer_as(const struct y_piece *p, bool nil)
{
	struct y_piece ret = *p;

	ret.kind = nil ? Y_STRING : Y_NUMBER;
	ret.conversion = nil ? 's' : 'x';
	ret.alternate = !nil;
	ret.type = Y_U64;
	return ret;
}

static void put_operand(struct d *y, const struct y_piece *p, const u32 *a)
{
	u32 bits = 8 * y_type_size(p->type);
	char s[D_TEXT];

	if (p->width == Y_STAR)
		fprintf(y->out, ", (int)%s", d_slot(y, a[p->precision == Y_STAR ? -6 : -3], s));
	if (p->precision == Y_STAR)
		fprintf(y->out, ", (int)%s", d_slot(y, a[-3], s));
	d_slot(y, a[0], s);
	if (p->kind == Y_CHAR)
		fprintf(y->out, ", (char)%s", s);
	else if (p->kind != Y_NUMBER)
		fprintf(y->out, ", %s", s);
	else if (strchr("uxXo", p->conversion) && bits && bits < 64)
		fprintf(y->out, ", (uint64_t)(%s & 0x%lx)", s, UINT64_MAX >> (64 - bits));
	else
		fprintf(y->out, p->conversion == 'd' ? ", (int64_t)%s" : ", (uint64_t)%s", s);
}

/* Pieces from first to last, which do not fail, in one printf(). nil: pointers are 0. */
static void put_pieces(struct d *y, const struct y_format *f, u32 first, u32 last, const u32 *const *values, bool nil)
{
	if (first == last)
		return;
	fputs("\tprintf(\"", y->out);
	for (u32 k = first; k < last; k++) {
		const struct y_piece *p = &f->pieces[k], as = pointer_as(p, nil);

		if (p->kind == Y_TEXT)
			d_characters(y->out, p->text, p->len, true);
		else if (p->kind == Y_POINTER)
			y_piece_write(&as, as.conversion, y->out);
		else
			y_piece_write(p, p->kind == Y_STRING ? 's' : p->conversion, y->out);
	}
	fputc('"', y->out);
	for (u32 k = first; k < last; k++) {
		const struct y_piece *p = &f->pieces[k], as = pointer_as(p, nil);

		if (p->kind == Y_POINTER && nil)
			fputs(", \"(nil)\"", y->out);
		else if (p->kind != Y_TEXT)
			put_operand(y, p->kind == Y_POINTER ? &as : p, values[k]);
	}
	fputs(");\n", y->out);
}

/* "<fault 0x18>", in its width */
static void put_failed(struct d *y, const struct y_piece *p, const u32 *a, bool has_address)
{
	char status[D_TEXT], at[D_TEXT], cause[D_LONG];

	d_slot(y, a[1], status);
	d_slot(y, a[2], at);
	snprintf(cause, sizeof(cause), "%s == %u ? \"fault\" : %s == %u ? \"division by zero\" : \"limit\"", status,
	        Y_FAULT, status, Y_DIV);
	if (p->width) {
		fprintf(y->out, "\tthis->pad = %d - strlen(%s) - %u", p->width, cause, has_address ? 6 : 2);
		for (u32 k = 4; has_address && k < 64; k += 4)
			fprintf(y->out, " - ((uint64_t)%s >= 0x%lx)", at, 1ul << k);
		fputs(";\n", y->out);
	}
	if (p->width && !p->left)
		fputs("\tprintf(\"%*s\", (int)(this->pad > 0 ? this->pad : 0), \"\");\n", y->out);
	if (has_address)
		fprintf(y->out, "\tprintf(\"<%%s 0x%%x>\", %s, %s);\n", cause, at);
	else
		fprintf(y->out, "\tprintf(\"<%%s>\", %s);\n", cause);
	if (p->width && p->left)
		fputs("\tprintf(\"%*s\", (int)(this->pad > 0 ? this->pad : 0), \"\");\n", y->out);
}

/* A clause that prints a value which was read without an error. Of a pointer: one that is 0 (nil), or is not. */
static void put_where(struct d *y, const struct y_format *f, u32 k, const u32 *const *values, bool nil)
{
	char status[D_TEXT], value[D_TEXT], condition[D_LONG];
	bool pointer = f->pieces[k].kind == Y_POINTER;

	d_slot(y, values[k][0], value);
	snprintf(condition, sizeof(condition), "%s == 0%s%s%s", d_slot(y, values[k][1], status), pointer ? " && " : "",
	        pointer ? value : "",
	        !pointer ? ""
	        : nil    ? " == 0"
	                 : " != 0");
	d_open(y, condition);
	put_pieces(y, f, k, k + 1, values, nil);
	d_close(y);
}

static void put_failure(struct d *y, const struct y_piece *p, const u32 *a, bool has_address)
{
	char status[D_TEXT], at[D_TEXT], condition[D_LONG];

	snprintf(condition, sizeof(condition), "%s != 0 && %s %s 0", d_slot(y, a[1], status), d_slot(y, a[2], at),
	        has_address ? "!=" : "==");
	d_open(y, condition);
	put_failed(y, p, a, has_address);
	d_close(y);
}

/* A value or what it failed with: of these clauses one runs. */
static void put_either(struct d *y, const struct y_format *f, u32 k, const u32 *const *values)
{
	const u32 *a = values[k];
	u64 known;

	put_where(y, f, k, values, false);
	if (f->pieces[k].kind == Y_POINTER)
		put_where(y, f, k, values, true);
	if (d_known(y, a[1], &known) && !known)
		return;
	if (!d_known(y, a[2], &known))
		put_failure(y, &f->pieces[k], a, true);
	put_failure(y, &f->pieces[k], a, false);
}

void d_put_print(struct d *y, const struct y_insn *i)
{
	const struct y_format *f = &y->p->formats[i->imm];
	const u32 *a = &y->f.args[i->args];
	const u32 **values = y_new(y->s, (f->npieces + 1) * sizeof(*values));
	u32 first = 0;

	for (u32 k = 0; k < f->npieces; k++) {
		const struct y_piece *p = &f->pieces[k];

		if (p->kind == Y_TEXT)
			continue;
		a += 3 * ((p->width == Y_STAR) + (p->precision == Y_STAR));
		values[k] = a;
		a += 3;
	}
	for (u32 k = 0; k < f->npieces; k++) {
		if (!varies(y, &f->pieces[k], values[k]))
			continue;
		put_pieces(y, f, first, k, values, false);
		d_next(y);
		d_close(y);
		put_either(y, f, k, values);
		d_open(y, "");
		first = k + 1;
	}
	put_pieces(y, f, first, f->npieces, values, false);
	y->printed = true;
}

/* --- maps --- */

bool d_is_added(const struct y_program *p, u32 map)
{
	if (p->maps[map].is_agg)
		return true;
	for (u32 k = 0; k < p->nfunctions; k++)
		for (u32 i = 0; i < p->functions[k].ninsns; i++) {
			const struct y_insn *insn = &p->functions[k].insns[i];

			if (insn->op < Y_OP_MAP_GET || insn->op > Y_OP_AGG_GET || insn->imm != map ||
			        insn->op == Y_OP_MAP_CLEAR)
				continue;
			if (insn->op != Y_OP_MAP_ADD ||
			        (insn->dst != Y_NONE && y_slot_matters(&p->functions[k], insn->dst)))
				return false;
		}
	return true;
}

static const char *keys_of(struct d *y, const struct y_insn *i, char ret[1024])
{
	char s[D_TEXT];
	size_t n = 0;

	*ret = '\0';
	for (u32 k = 0; k < i->nargs; k++)
		n += (size_t)snprintf(ret + n, 1024 - n, "%s%s", k ? ", " : "[", d_slot(y, y->f.args[i->args + k], s));
	if (i->nargs)
		snprintf(ret + n, 1024 - n, "]");
	return ret;
}

static const char *const aggregations[] = {"count", "sum", "min", "max", "avg"};

static void put_aggregation(struct d *y, const struct y_insn *i, const char *keys)
{
	u32 map = (u32)i->imm;
	const struct y_map *m = &y->p->maps[map];
	char a[D_TEXT];

	d_slot(y, i->a, a);
	if (!m->is_agg) {
		fprintf(y->out, "\t@m%u%s = sum(%s);\n", map, keys, a);
		return;
	}
	for (u32 k = 0; d_prints_map(y->p, map) && k < 5; k++)
		fprintf(y->out, "\t@m%u_%s%s = %s(%s);\n", map, aggregations[k], keys, aggregations[k], k ? a : "");
	if (y_prints_histogram(y->p, map) && m->steps)
		fprintf(y->out, "\t@m%u_hist%s = lquantize(%s, %ld, %ld, %lu);\n", map, keys, a, m->low,
		        m->low + (s64)(m->steps * m->step), m->step);
	else if (y_prints_histogram(y->p, map))
		fprintf(y->out, "\t@m%u_hist%s = quantize(%s);\n", map, keys, a);
}

static void put_clear(struct d *y, u32 map)
{
	if (!y->p->maps[map].is_agg)
		fprintf(y->out, "\ttrunc(@m%u);\n", map);
	for (u32 k = 0; y->p->maps[map].is_agg && d_prints_map(y->p, map) && k < 5; k++)
		fprintf(y->out, "\ttrunc(@m%u_%s);\n", map, aggregations[k]);
	if (y->p->maps[map].is_agg && y_prints_histogram(y->p, map))
		fprintf(y->out, "\ttrunc(@m%u_hist);\n", map);
}

void d_put_map_op(struct d *y, const struct y_insn *i)
{
	char keys[1024], a[D_TEXT];
	bool text = y->p->maps[i->imm].value == Y_STR;

	keys_of(y, i, keys);
	switch (i->op) {
	case Y_OP_MAP_GET:
		d_set(y, i->dst, "m%lu%s", i->imm, keys);
		break;
	case Y_OP_MAP_SET:
		fprintf(y->out, "\tm%lu%s = %s;\n", i->imm, keys, d_slot(y, i->a, a));
		break;
	case Y_OP_MAP_ADD:
		if (d_is_added(y->p, (u32)i->imm)) {
			put_aggregation(y, i, keys);
			break;
		}
		fprintf(y->out, "\tm%lu%s += %s;\n", i->imm, keys, d_slot(y, i->a, a));
		if (i->dst != Y_NONE)
			d_set(y, i->dst, "m%lu%s", i->imm, keys);
		break;
	case Y_OP_MAP_DELETE:
		fprintf(y->out, text ? "\tm%lu%s = NULL;\n" : "\tm%lu%s = 0;\n", i->imm, keys);
		break;
	case Y_OP_MAP_CLEAR:
		put_clear(y, (u32)i->imm);
		break;
	default:
		put_aggregation(y, i, keys);
	}
}

void d_print_map(struct d *y, u32 map, bool histogram)
{
	const struct y_map *m = &y->p->maps[map];

	fprintf(y->out, "\tprintf(\"%s\\n\");\n\tprinta(\"", m->name);
	for (u32 k = 0; k < m->nkeys; k++)
		fputs(m->keys[k] == Y_STR ? "%s\\t" : "%d\\t", y->out);
	if (histogram)
		fprintf(y->out, "%%@d\\n\", @m%u_hist);\n", map);
	else if (!m->is_agg)
		fprintf(y->out, "%%@d\\n\", @m%u);\n", map);
	else
		fprintf(y->out,
		        "%%@d\\t%%@d\\t%%@d\\t%%@d\\t%%@d\\n\", @m%u_count, @m%u_sum, @m%u_min, @m%u_max, @m%u_avg);\n",
		        map, map, map, map, map);
	y->printed = true;
}
