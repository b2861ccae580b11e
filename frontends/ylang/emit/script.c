/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions as Python: a function each, whose blocks are chosen by their number, halving the range. */
#include "emit.h"

#include "frontends/ylang/library.h"
#include "frontends/ylang/regex.h"

struct script {
	const struct y_program *p;
	const struct y_function *f;
	FILE *out;
	u32 indent;
};

static void line(struct script *y, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void line(struct script *y, const char *format, ...)
{
	va_list args;

	fprintf(y->out, "%*s", (int)(y->indent * 4), "");
	va_start(args, format);
	vfprintf(y->out, format, args);
	va_end(args);
	fputc('\n', y->out);
}

static void put_bytes(struct script *y, const char *bytes, u32 len)
{
	fputs("b\"", y->out);
	for (u32 i = 0; i < len; i++)
		fprintf(y->out, "\\x%02x", (u8)bytes[i]);
	fputc('"', y->out);
}

static void put_text(struct script *y, const char *text)
{
	fputc('"', y->out);
	for (; *text; text++)
		if (*text == '"' || *text == '\\' || (u8)*text < ' ')
			fprintf(y->out, "\\x%02x", (u8)*text);
		else
			fputc(*text, y->out);
	fputc('"', y->out);
}

static const char *struct_of(enum y_type type)
{
	static const char *const names[] = {"", "I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64", "F32", "F64"};

	return names[type];
}

/* --- values --- */

static void put_const(struct script *y, const struct y_insn *i)
{
	if (i->type == Y_STR)
		line(y, "s%u = b\"\"", i->dst);
	else if (y_type_is_float(i->type))
		line(y, "s%u = bits(0x%lx, \"%c\")", i->dst, i->imm, i->type == Y_F32 ? 'f' : 'd');
	else if (y_type_is_signed(i->type))
		line(y, "s%u = %ld", i->dst, (s64)i->imm);
	else
		line(y, "s%u = %lu", i->dst, i->imm);
}

/* An expression wrapped at a type. */
static void put_wrapped(struct script *y, u32 dst, enum y_type type, const char *expression)
{
	u32 bits = 8 * y_type_size(type);

	if (type == Y_F32)
		line(y, "s%u = f32(%s)", dst, expression);
	else if (type == Y_F64)
		line(y, "s%u = %s", dst, expression);
	else if (y_type_is_signed(type))
		line(y, "s%u = ((%s) + 0x%lx & 0x%lx) - 0x%lx", dst, expression, 1ul << (bits - 1),
		        UINT64_MAX >> (64 - bits), 1ul << (bits - 1));
	else
		line(y, "s%u = (%s) & 0x%lx", dst, expression, UINT64_MAX >> (64 - bits));
}

static void put_convert(struct script *y, const struct y_insn *i)
{
	enum y_type from = (enum y_type)i->imm;
	u32 bits = 8 * y_type_size(i->type);
	char text[128];

	if (y_type_is_float(i->type)) {
		snprintf(text, sizeof(text), "float(s%u)", i->a);
		put_wrapped(y, i->dst, i->type, text);
	} else if (!y_type_is_float(from)) {
		snprintf(text, sizeof(text), "s%u", i->a);
		put_wrapped(y, i->dst, i->type, text);
	} else if (y_type_is_signed(i->type)) {
		line(y, "s%u = to_integer(s%u, -0x%lx, 0x%lx)", i->dst, i->a, 1ul << (bits - 1),
		        (1ul << (bits - 1)) - 1);
	} else {
		line(y, "s%u = to_integer(s%u, 0, 0x%lx)", i->dst, i->a, UINT64_MAX >> (64 - bits));
	}
}

static void put_arithmetic(struct script *y, const struct y_insn *i)
{
	char text[128];

	switch (i->op) {
	case Y_OP_EQ:
	case Y_OP_NE:
	case Y_OP_LT:
	case Y_OP_LE:
		line(y, "s%u = int(s%u %s s%u)", i->dst, i->a, y_op_sign(i->op), i->b);
		return;
	case Y_OP_NEG:
	case Y_OP_NOT:
		snprintf(text, sizeof(text), "%cs%u", i->op == Y_OP_NEG ? '-' : '~', i->a);
		break;
	case Y_OP_SHL:
	case Y_OP_SHR:
		snprintf(text, sizeof(text), "s%u %s (s%u & %u)", i->a, y_op_sign(i->op), i->b,
		        8 * y_type_size(i->type) - 1);
		break;
	case Y_OP_DIV:
	case Y_OP_MOD:
		if (y_type_is_float(i->type))
			snprintf(text, sizeof(text), "fdiv(s%u, s%u)", i->a, i->b);
		else
			snprintf(text, sizeof(text), "%s(s%u, s%u, %u)", y_op_name(i->op), i->a, i->b, i->place);
		break;
	default:
		snprintf(text, sizeof(text), "s%u %s s%u", i->a, y_op_sign(i->op), i->b);
	}
	put_wrapped(y, i->dst, i->type, text);
}

/* "(s1, s2,)" */
static void put_slots(struct script *y, const struct y_insn *i)
{
	fputc('(', y->out);
	for (u32 k = 0; k < i->nargs; k++)
		fprintf(y->out, "s%u, ", y->f->args[i->args + k]);
	fputc(')', y->out);
}

static void put_map_op(struct script *y, const struct y_insn *i)
{
	fprintf(y->out, "%*s", (int)(y->indent * 4), "");
	if (i->dst != Y_NONE)
		fprintf(y->out, "s%u = ", i->dst);
	fprintf(y->out, "%sMAPS[%lu].", i->op == Y_OP_MAP_IN ? "int(" : "", i->imm);
	switch (i->op) {
	case Y_OP_MAP_GET:
		fputs("get(", y->out);
		break;
	case Y_OP_MAP_SET:
		fputs("set(", y->out);
		break;
	case Y_OP_MAP_ADD:
		fputs("add(", y->out);
		break;
	case Y_OP_MAP_IN:
		fputs("of.__contains__(", y->out);
		break;
	case Y_OP_MAP_DELETE:
		fputs("of.pop(", y->out);
		break;
	case Y_OP_AGG_ADD:
		fputs("record(", y->out);
		break;
	case Y_OP_AGG_GET:
		fputs("read(", y->out);
		break;
	default:
		fputs("of.clear()\n", y->out);
		return;
	}
	put_slots(y, i);
	if (i->op == Y_OP_MAP_SET || i->op == Y_OP_MAP_ADD || i->op == Y_OP_AGG_ADD)
		fprintf(y->out, ", s%u", i->a);
	else if (i->op == Y_OP_AGG_GET)
		fprintf(y->out, ", %u", i->a);
	else if (i->op == Y_OP_MAP_DELETE)
		fputs(", None", y->out);
	fputs(i->op == Y_OP_MAP_IN ? "))\n" : ")\n", y->out);
}

static void put_each_next(struct script *y, const struct y_insn *i)
{
	line(y, "if not e%u:", i->a);
	line(y, "    b = %u", i->c);
	line(y, "    continue");
	line(y, "k, v = e%u.pop(0)", i->a);
	for (u32 k = 0; k < i->nargs; k++)
		line(y, "s%u = k[%u]", y->f->args[i->args + k], k);
	if (i->dst != Y_NONE)
		line(y, "s%u = v", i->dst);
	line(y, "b = %u", i->b);
	line(y, "continue");
}

static void put_match(struct script *y, const struct y_insn *i)
{
	line(y, "m = match(REGEXES[%lu], s%u)", i->imm, i->a);
	line(y, "s%u = int(m is not None)", i->dst);
	line(y, "if m is not None:");
	for (u32 k = 0; k < i->nargs; k++)
		line(y, "    s%u = s%u[m[%u]:m[%u]] if %u in m else b\"\"", y->f->args[i->args + k], i->a, 2 * k,
		        2 * k + 1, 2 * k + 1);
}

static void put_print(struct script *y, const struct y_insn *i)
{
	fprintf(y->out, "%*sprint_format(FORMATS[%lu], [", (int)(y->indent * 4), "", i->imm);
	for (u32 k = 0; k < i->nargs; k += 3) {
		const u32 *a = &y->f->args[i->args + k];

		fprintf(y->out, "(s%u, s%u, s%u), ", a[0], a[1], a[2]);
	}
	fputs("])\n", y->out);
}

static void put_call(struct script *y, const struct y_insn *i)
{
	fprintf(y->out, "%*s", (int)(y->indent * 4), "");
	if (i->dst != Y_NONE)
		fprintf(y->out, "s%u = ", i->dst);
	fprintf(y->out, "call(f%lu, %u", i->imm, i->place);
	for (u32 k = 0; k < i->nargs; k++)
		fprintf(y->out, ", s%u", y->f->args[i->args + k]);
	fputs(")\n", y->out);
}

static void put_array(struct script *y, const struct y_insn *i)
{
	bool global = i->imm >= Y_GLOBAL_ARRAY;
	char array[32], sum[96];

	snprintf(array, sizeof(array), global ? "G[%lu]" : "a%lu", global ? i->imm - Y_GLOBAL_ARRAY : i->imm);
	if (i->op == Y_OP_ARRAY_GET)
		line(y, "s%u = %s[element(%s, s%u, %u)]", i->dst, array, array, i->a, i->place);
	else if (i->op == Y_OP_ARRAY_SET)
		line(y, "%s[element(%s, s%u, %u)] = s%u", array, array, i->a, i->place, i->b);
	if (i->op != Y_OP_ARRAY_ADD)
		return;
	snprintf(sum, sizeof(sum), "%s[element(%s, s%u, %u)] + s%u", array, array, i->a, i->place, i->b);
	put_wrapped(y, i->dst, i->type, sum);
	line(y, "%s[s%u] = s%u", array, i->a, i->dst);
}

/* --- instructions --- */

static void put_string_op(struct script *y, const struct y_insn *i)
{
	switch (i->op) {
	case Y_OP_STR_READ:
		line(y, "s%u = M.string(s%u, %lu, %u)", i->dst, i->a, i->imm, i->place);
		break;
	case Y_OP_STR_READ_N:
		line(y, "s%u = M.string_n(s%u, s%u, %lu, %u)", i->dst, i->a, i->b, i->imm, i->place);
		break;
	case Y_OP_STR_LEN:
		line(y, "s%u = len(s%u)", i->dst, i->a);
		break;
	case Y_OP_STR_CUT:
		line(y, "s%u = int(isinstance(s%u, Cut))", i->dst, i->a);
		break;
	case Y_OP_STR_AT:
		line(y, "s%u = s%u[element(s%u, s%u, %u)]", i->dst, i->a, i->a, i->b, i->place);
		break;
	case Y_OP_STR_CAT:
		line(y, "s%u = join(s%u, s%u, %u)", i->dst, i->a, i->b, i->place);
		break;
	default:
		put_match(y, i);
	}
}

static void put_other(struct script *y, const struct y_insn *i)
{
	char text[64];

	switch (i->op) {
	case Y_OP_LITERAL:
		line(y, "s%u = LITERALS[%lu]", i->dst, i->imm);
		break;
	case Y_OP_MOVE:
		line(y, "s%u = s%u", i->dst, i->a);
		break;
	case Y_OP_CONVERT:
		put_convert(y, i);
		break;
	case Y_OP_ADDRESS:
		line(y, "s%u = B[%u] + 0x%lx & MASK", i->dst, i->a, i->imm);
		break;
	case Y_OP_LOAD:
		line(y, "s%u = M.load(s%u + %lu, %s, %u)", i->dst, i->a, i->imm, struct_of(i->type), i->place);
		break;
	case Y_OP_GLOBAL_GET:
		line(y, "s%u = G[%lu]", i->dst, i->imm);
		break;
	case Y_OP_GLOBAL_SET:
		line(y, "G[%lu] = s%u", i->imm, i->a);
		break;
	case Y_OP_GLOBAL_ADD:
		snprintf(text, sizeof(text), "G[%lu] + s%u", i->imm, i->a);
		put_wrapped(y, i->dst, i->type, text);
		line(y, "G[%lu] = s%u", i->imm, i->dst);
		break;
	case Y_OP_ARRAY_GET:
	case Y_OP_ARRAY_SET:
	case Y_OP_ARRAY_ADD:
		put_array(y, i);
		break;
	case Y_OP_CALL:
		put_call(y, i);
		break;
	case Y_OP_LOOP:
		line(y, "step(%u)", i->place);
		break;
	case Y_OP_STATUS:
		line(y, "s%u = T.last.status", i->dst);
		break;
	case Y_OP_AT:
		line(y, "s%u = T.last.at", i->dst);
		break;
	case Y_OP_SYMBOL:
		line(y, "s%u = SYMBOL(s%u)", i->dst, i->a);
		break;
	case Y_OP_CONTEXT:
		line(y, "s%u = %s", i->dst,
		        i->imm == Y_PID || i->imm == Y_TID ? "PID()"
		        : i->imm == Y_NS                   ? "NS()"
		                                           : "WALL()");
		break;
	default:
		put_string_op(y, i);
	}
}

static void put_output(struct script *y, const struct y_insn *i)
{
	switch (i->op) {
	case Y_OP_EACH_BEGIN:
		if (i->b == Y_NONE)
			line(y, "e%u = MAPS[%lu].sorted()", i->a, i->imm);
		else
			line(y, "e%u = MAPS[%lu].sorted(s%u)", i->a, i->imm, i->b);
		break;
	case Y_OP_EACH_NEXT:
		put_each_next(y, i);
		break;
	case Y_OP_PRINT:
		put_print(y, i);
		break;
	case Y_OP_PRINT_MAP:
		line(y, "MAPS[%lu].%s()", i->imm, i->a == Y_HIST ? "histogram" : "table");
		break;
	case Y_OP_WARN:
	case Y_OP_ERROR:
		line(y, "say(%u, \"%s\", s%u)", i->place, i->op == Y_OP_WARN ? "warning" : "error", i->a);
		if (i->op == Y_OP_ERROR)
			line(y, "raise Stop");
		break;
	case Y_OP_JUMP:
		line(y, "b = %u", i->b);
		line(y, "continue");
		break;
	case Y_OP_BRANCH:
		line(y, "b = %u if s%u else %u", i->b, i->a, i->c);
		line(y, "continue");
		break;
	case Y_OP_RETURN:
		if (i->a == Y_NONE)
			line(y, "return");
		else
			line(y, "return s%u", i->a);
		break;
	default:
		line(y, "raise Exit");
	}
}

static bool is_output(u16 op)
{
	return y_op_ends_block(op) || op == Y_OP_EACH_BEGIN || op == Y_OP_PRINT || op == Y_OP_PRINT_MAP ||
	       op == Y_OP_WARN;
}

static void put_insn(struct script *y, const struct y_insn *i)
{
	bool guarded = y_op_can_fail(i->op) && i->fail != Y_PROPAGATE;

	if (guarded) {
		line(y, "try:");
		y->indent++;
	}
	if (i->op == Y_OP_CONST)
		put_const(y, i);
	else if (i->op >= Y_OP_ADD && i->op <= Y_OP_LE)
		put_arithmetic(y, i);
	else if (i->op >= Y_OP_MAP_GET && i->op <= Y_OP_AGG_GET)
		put_map_op(y, i);
	else if (is_output(i->op))
		put_output(y, i);
	else
		put_other(y, i);
	if (guarded) {
		y->indent--;
		line(y, "except Fail as error:");
		line(y, "    T.last = error");
		line(y, "    b = %u", i->fail);
		line(y, "    continue");
	}
}

/* Blocks first to last - 1. */
static void put_blocks(struct script *y, u32 first, u32 last)
{
	u32 middle = first + (last - first) / 2;

	if (last - first == 1) {
		for (u32 i = 0; i < y->f->blocks[first].n; i++)
			put_insn(y, &y->f->insns[y->f->blocks[first].start + i]);
		return;
	}
	line(y, "if b < %u:", middle);
	y->indent++;
	put_blocks(y, first, middle);
	y->indent--;
	line(y, "else:");
	y->indent++;
	put_blocks(y, middle, last);
	y->indent--;
}

static void put_function(struct script *y, u32 number)
{
	const struct y_function *f = y->f = &y->p->functions[number];

	fprintf(y->out, "\n\ndef f%u(", number);
	for (u32 i = 0; i < f->nparameters; i++)
		fprintf(y->out, i ? ", s%u" : "s%u", i);
	fputs("):\n", y->out);
	y->indent = 1;
	for (u32 i = f->nparameters; i < f->nslots; i++)
		line(y, "s%u = %s", i, f->slots[i] == Y_STR ? "b\"\"" : y_type_is_float(f->slots[i]) ? "0.0" : "0");
	for (u32 i = 0; i < f->narrays; i++)
		line(y, "a%u = [%s] * %u", i, f->arrays[i].type == Y_STR ? "b\"\"" : "0", f->arrays[i].n);
	line(y, "b = 0");
	line(y, "while True:");
	y->indent = 2;
	put_blocks(y, 0, f->nblocks);
	y->indent = 0;
}

/* --- data --- */

static void put_piece(struct script *y, const struct y_piece *p)
{
	static const char *const kinds[] = {"text", "number", "char", "string", "pointer", "number"};
	char flags[8] = "", *f = flags;

	if (p->kind == Y_TEXT) {
		fputs("(\"text\", own(", y->out);
		put_bytes(y, p->text, p->len);
		fputs("), 0, 0, \"\", 0), ", y->out);
		return;
	}
	for (u32 i = 0; i < 5; i++)
		if ((const bool[]){p->left, p->zero, p->plus, p->space, p->alternate}[i])
			*f++ = "-0+ #"[i];
	fprintf(y->out, "(\"%s\", \"%s\", ", kinds[p->kind], flags);
	for (u32 i = 0; i < 2; i++) {
		int n = i ? p->precision : p->width;

		if (n == Y_STAR)
			fputs("None, ", y->out);
		else
			fprintf(y->out, "%d, ", n);
	}
	fprintf(y->out, "\"%c\", %u), ", p->conversion, y_type_size(p->type));
}

static void put_regex(struct script *y, const struct y_regex *r)
{
	fputs("    ([", y->out);
	for (u32 i = 0; i < r->n; i++)
		fprintf(y->out, "(%u, %u, %u), ", r->insns[i].op, r->insns[i].x, r->insns[i].y);
	fputs("], [", y->out);
	for (u32 i = 0; i < r->nsets; i++) {
		fputs("0x", y->out);
		for (u32 k = 8; k--;)
			fprintf(y->out, "%08x", r->sets[i].bits[k]);
		fputs(", ", y->out);
	}
	fputs("]),\n", y->out);
}

static void put_map(struct script *y, const struct y_map *m)
{
	fprintf(y->out, "    Map(\"%s\", %s, \"%s\", %u, %u, %ld, %lu, %u),\n", m->name, m->is_agg ? "True" : "False",
	        y_type_name(m->value), m->nkeys, m->most, m->low, m->step, m->steps);
}

static void put_tables(struct script *y)
{
	const struct y_program *p = y->p;

	fprintf(y->out, "\nSTEPS = %lu\nLITERALS = [", p->limits.steps);
	for (u32 i = 0; i < p->nliterals; i++) {
		put_bytes(y, p->literals[i].bytes, p->literals[i].len);
		fputs(", ", y->out);
	}
	fputs("]\nPLACES = [", y->out);
	for (u32 i = 0; i < p->nplaces; i++) {
		fputc('(', y->out);
		put_text(y, p->places[i].file);
		fprintf(y->out, ", %u, %u), ", p->places[i].line, p->places[i].column);
	}
	fputs("]\nFORMATS = [\n", y->out);
	for (u32 i = 0; i < p->nformats; i++) {
		fputs("    [", y->out);
		for (u32 k = 0; k < p->formats[i].npieces; k++)
			put_piece(y, &p->formats[i].pieces[k]);
		fputs("],\n", y->out);
	}
	fputs("]\nMAPS = [\n", y->out);
	for (u32 i = 0; i < p->nmaps; i++)
		put_map(y, &p->maps[i]);
	fputs("]\nREGEXES = [\n", y->out);
	for (u32 i = 0; i < p->nregexes; i++)
		put_regex(y, p->regexes[i]);
	fputs("]\n", y->out);
}

static void put_globals(struct script *y)
{
	fputs("G = [", y->out);
	for (u32 i = 0; i < y->p->nglobals; i++) {
		const struct y_global *g = &y->p->globals[i];

		if (g->n)
			fprintf(y->out, "[%s] * %u, ", g->type == Y_STR ? "b\"\"" : "0", g->n);
		else if (g->type == Y_STR)
			fprintf(y->out, "LITERALS[%lu], ", g->value);
		else if (y_type_is_float(g->type))
			fprintf(y->out, "bits(0x%lx, \"%c\"), ", g->value, g->type == Y_F32 ? 'f' : 'd');
		else
			fprintf(y->out, y_type_is_signed(g->type) ? "%ld, " : "%lu, ", g->value);
	}
	fputs("]\nB = [\n", y->out);
	for (u32 i = 0; i < y->p->nmodules; i++) {
		const struct y_module *m = &y->p->modules[i];

		fputs("    bias_of(", y->out);
		put_text(y, m->path);
		fputs(", ", y->out);
		put_bytes(y, (const char *)m->build_id, m->build_id_len);
		fprintf(y->out, ", 0x%lx),\n", m->first);
	}
	fputs("]\n", y->out);
}

static void put_handlers(struct script *y, const char *name, const enum y_point *points, u32 n)
{
	fprintf(y->out, "%s = [", name);
	for (u32 k = 0; k < n; k++)
		for (u32 i = 0; i < y->p->nhandlers; i++)
			if (y->p->handlers[i].point == points[k])
				fprintf(y->out, "f%u, ", y->p->handlers[i].function);
	fputs("]\n", y->out);
}

/* --- the debuggers --- */

static const char gdb_adapter[] =
        "\n\n# --- gdb ---\n\n"
        "import gdb, re\n\n\n"
        "def READ(addr, n):\n"
        "    try:\n"
        "        return bytes(gdb.selected_inferior().read_memory(addr, n))\n"
        "    except (gdb.MemoryError, OverflowError, gdb.error):\n"
        "        return None\n\n\n"
        "def MODULES_HERE():\n"
        "    for row in gdb.execute(\"info proc mappings\", to_string=True).splitlines():\n"
        "        m = "
        "re.match(r\"\\s*0x([0-9a-f]+)\\s+0x[0-9a-f]+\\s+0x[0-9a-f]+\\s+0x0\\s+(?:[rwxsp-]{4}\\s+)?(/.*)\", row)\n"
        "        if m:\n"
        "            yield m[2], int(m[1], 16)\n\n\n"
        "def SYMBOL(addr):\n"
        "    m = re.match(r\"(\\S+)(?: \\+ (\\d+))? in section\", gdb.execute(\"info symbol %d\" % addr, "
        "to_string=True))\n"
        "    return b\"\" if not m else (m[1] + (\"+0x%x\" % int(m[2]) if m[2] else \"\")).encode()\n\n\n"
        "def PID():\n"
        "    return gdb.selected_inferior().pid\n\n\n"
        "def LIVE():\n"
        "    return \"core\" not in gdb.execute(\"info target\", to_string=True).split(\"\\n\", 3)[1]\n\n";

static const char lldb_adapter[] =
        "\n\n# --- lldb ---\n\n"
        "import lldb\n\n\n"
        "def READ(addr, n):\n"
        "    error = lldb.SBError()\n"
        "    got = PROCESS.ReadMemory(addr, n, error)\n"
        "    if error.Fail() and not LIVE():\n"
        "        \"\"\"A core leaves out what is in files: lldb 14 has it only by section.\"\"\"\n"
        "        target, error = PROCESS.GetTarget(), lldb.SBError()\n"
        "        at = target.ResolveLoadAddress(addr)\n"
        "        if not at.GetSection().IsValid() or at.GetSection().GetPermissions() & lldb.ePermissionsWritable:\n"
        "            return None\n"
        "        got = target.ReadMemory(at, n, error)\n"
        "    return got if error.Success() and got is not None and len(got) == n else None\n\n\n"
        "def MODULES_HERE():\n"
        "    target = PROCESS.GetTarget()\n"
        "    for m in target.module_iter():\n"
        "        start = m.GetObjectFileHeaderAddress().GetLoadAddress(target)\n"
        "        if start != lldb.LLDB_INVALID_ADDRESS:\n"
        "            yield m.file.fullpath, start\n\n\n"
        "def SYMBOL(addr):\n"
        "    at = PROCESS.GetTarget().ResolveLoadAddress(addr)\n"
        "    symbol = at.GetSymbol()\n"
        "    if not symbol.IsValid() or symbol.IsSynthetic() or (symbol.GetName() or "
        "\"\").startswith(\"___lldb_unnamed\"):\n"
        "        return b\"\"\n"
        "    offset = at.GetFileAddress() - symbol.GetStartAddress().GetFileAddress()\n"
        "    return (symbol.GetMangledName() or symbol.GetName()).encode() + (b\"+0x%x\" % offset if offset else "
        "b\"\")\n\n\n"
        "def PID():\n"
        "    return PROCESS.GetProcessID()\n\n\n"
        "def LIVE():\n"
        "    return PROCESS.GetPluginName() != \"elf-core\"\n\n\n"
        "PROCESS = lldb.debugger.GetSelectedTarget().GetProcess()\n";

static const char clocks[] = "\n\ndef NS():\n    return time.monotonic_ns() if LIVE() else 0\n\n\n"
                             "def WALL():\n    return time.time_ns() if LIVE() else 0\n\n";

static const char heads[][512] = {
        "# Made by yrt y --emit gdb: it needs no yrt and no debug information.\n"
        "#\tYRT_OUT=FILE gdb -nx -batch -p PID -x THIS\n"
        "#\tYRT_OUT=FILE gdb -nx -batch PROGRAM -c CORE -x THIS\n"
        "# gdb stops the process while it runs. Without YRT_OUT the output is mixed with gdb's own.\n",
        "# Made by yrt y --emit lldb: it needs no yrt and no debug information. Its name must have no dot but that of "
        ".py.\n"
        "#\tYRT_OUT=FILE lldb --no-lldbinit --batch -p PID -o 'command script import THIS'\n"
        "#\tYRT_OUT=FILE lldb --no-lldbinit --batch PROGRAM -c CORE -o 'command script import THIS'\n"
        "# lldb stops the process while it runs. Without YRT_OUT the output is mixed with lldb's own.\n"};

struct error *y_script_refuses(const struct y_program *p, enum y_debugger debugger)
{
	const char *name = debugger == Y_GDB ? "gdb" : "lldb";

	for (u32 i = 0; i < p->nhandlers; i++) {
		const struct y_function *f = &p->functions[p->handlers[i].function];
		const struct y_place *at = &p->places[f->place];
		enum y_point point = p->handlers[i].point;

		if (point == Y_TIMER || y_in_kernel(point))
			return error_hint(error_new(ERROR_UNSUPPORTED,
			                          "%s:%u:%u: %s: %s: the debugger stops the process, so only _oneshot, "
			                          "_begin and _end are exported",
			                          at->file, at->line, at->column, name, f->name),
			        "what a probe or timer asks of the target's data, _oneshot can ask, too; yrt y runs "
			        "the rest by itself");
	}
	for (u32 k = 0; k < p->nfunctions; k++)
		for (u32 i = 0; i < p->functions[k].ninsns; i++) {
			const struct y_insn *insn = &p->functions[k].insns[i];
			const struct y_place *at = &p->places[insn->place];

			if (insn->op == Y_OP_SYMBOL && insn->imm)
				return error_hint(
				        error_new(ERROR_UNSUPPORTED, "%s:%u:%u: %s: _syscall is not known there",
				                at->file, at->line, at->column, name),
				        "print the number");
			if (insn->op == Y_OP_CONTEXT &&
			        (insn->imm == Y_COMM || insn->imm == Y_PROG || insn->imm == Y_CPU))
				return error_hint(error_new(ERROR_UNSUPPORTED,
				                          "%s:%u:%u: %s: _comm, _prog and _cpu are not known there",
				                          at->file, at->line, at->column, name),
				        "leave it out, or define it where the script is made: -D NAME='\"nginx\"'");
		}
	return NULL;
}

struct error *y_emit_script(const struct y_program *p, enum y_debugger debugger, FILE *out)
{
	static const enum y_point first[] = {Y_BEGIN, Y_ONESHOT, Y_END}, end[] = {Y_END};
	struct script y = {.p = p, .out = out};
	struct error *err = y_script_refuses(p, debugger);

	if (err)
		return err;
	fputs(heads[debugger], out);
	fputs(y_runtime_text, out);
	fputs(debugger == Y_GDB ? gdb_adapter : lldb_adapter, out);
	fputs(clocks, out);
	fputs("\nOUT = os.open(os.environ[\"YRT_OUT\"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644) "
	      "if \"YRT_OUT\" in os.environ else 1\n",
	        out);
	put_tables(&y);
	put_globals(&y);
	for (u32 i = 0; i < p->nfunctions; i++)
		put_function(&y, i);
	fputs("\n\n", out);
	put_handlers(&y, "HANDLERS", first, 3);
	put_handlers(&y, "END_HANDLERS", end, 1);
	fputs("run()\n", out);
	return NULL;
}
