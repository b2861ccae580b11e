/* SPDX-License-Identifier: Apache-2.0 */
/* printf and _print: formats are checked and cut into pieces here. */
#include "lower.h"

#include <string.h>

#define WIDTH_MOST 4096

struct printing {
	struct y_format *format;
	u32 slots[3 * 64];
	u32 n; /* values */
};

static struct y_piece *add_piece(struct lower *l, struct y_format *f, enum y_piece_kind kind)
{
	f->pieces = y_grow(l->s, f->pieces, f->npieces, sizeof(*f->pieces));
	f->pieces[f->npieces] = (struct y_piece){.kind = kind, .precision = -1};
	return &f->pieces[f->npieces++];
}

static void add_text(struct lower *l, struct y_format *f, const char *text, u32 len)
{
	struct y_piece *last = f->npieces ? &f->pieces[f->npieces - 1] : NULL;

	if (!len)
		return;
	if (last && last->kind == Y_TEXT) {
		char *both = y_new(l->s, last->len + len + 1);

		memcpy(both, last->text, last->len);
		memcpy(both + last->len, text, len);
		last->text = both;
		last->len += len;
		return;
	}
	last = add_piece(l, f, Y_TEXT);
	last->text = y_keep(l->s, text, len);
	last->len = len;
}

/* A value; where making it fails, its status and address go beside it instead. */
static void add_value(struct lower *l, const struct y_node *n, struct printing *p,
        struct value (*make)(struct lower *l, const struct y_node *n, void *ctx), void *ctx)
{
	u32 failed = new_block(l), end = new_block(l), fail = l->fail, status = new_slot(l, Y_I32),
	    at = new_slot(l, Y_U64), dst;
	struct value v;

	if (p->n == 64)
		FAIL(l, n, "at most 64 values are printed at once");
	emit(l, NULL, Y_OP_CONST, Y_I32)->dst = status;
	emit(l, NULL, Y_OP_CONST, Y_U64)->dst = at;
	l->fail = failed;
	v = make(l, n, ctx);
	dst = to_slot(l, n, v);
	l->fail = fail;
	emit_jump(l, end);
	place_block(l, failed);
	emit(l, n, Y_OP_STATUS, Y_I32)->dst = status;
	emit(l, n, Y_OP_AT, Y_U64)->dst = at;
	place_block(l, end);
	p->slots[3 * p->n] = dst;
	p->slots[3 * p->n + 1] = status;
	p->slots[3 * p->n + 2] = at;
	p->n++;
}

static void finish(struct lower *l, const struct y_node *n, struct printing *p)
{
	struct y_insn *i = emit(l, n, Y_OP_PRINT, Y_VOID);

	p->format->nvalues = p->n;
	i->args = add_args(l, p->slots, 3 * p->n);
	i->nargs = 3 * p->n;
	i->imm = (u64)(p->format - l->p->formats);
}

static void begin(struct lower *l, struct printing *p)
{
	l->p->formats = y_grow(l->s, l->p->formats, l->p->nformats, sizeof(*l->p->formats));
	l->p->formats[l->p->nformats] = (struct y_format){0};
	p->format = &l->p->formats[l->p->nformats++];
	p->n = 0;
}

/* --- making values --- */

struct wanted {
	struct y_piece *piece;
	u64 at_most; /* bytes of a %.Ns; UINT64_MAX: no limit */
	u32 at_most_slot;
};

static bool is_text(const struct type *type)
{
	return type->kind == TYPE_INT && type->size == 1;
}

/* A string in the target is read here; %.*s reads no further than that. */
static struct value text_of(struct lower *l, const struct y_node *n, struct value v, const struct wanted *w)
{
	u32 dst, most = l->in_probe ? Y_STR_MOST_PROBE : Y_STR_MOST, address;
	struct y_insn *i;

	v = as_asked(l, v, &y_string_type);
	if (v.type == &y_string_type || y_is_stack(v.type))
		return v;
	if (v.type->kind != TYPE_POINTER || !is_text(v.type->to))
		FAIL(l, n, "%%s needs a string, this is %s%s", y_type_text(l->s, v.type),
		        v.type->kind == TYPE_POINTER ? "; cast it to char *"
		        : is_arithmetic(v.type)      ? "; %d prints a number"
		                                     : "");
	address = to_slot(l, n, v);
	dst = new_slot(l, Y_STR);
	i = emit(l, n, w->at_most_slot != Y_NONE ? Y_OP_STR_READ_N : Y_OP_STR_READ, Y_STR);
	i->dst = dst;
	i->a = address;
	i->b = w->at_most_slot;
	i->c = v.type->to->kernel ? Y_KERNEL : Y_NONE;
	i->imm = w->at_most < most && w->at_most_slot == Y_NONE ? w->at_most : most;
	return in_slot(&y_string_type, dst);
}

static struct value formatted(struct lower *l, const struct y_node *n, void *ctx)
{
	struct wanted *w = ctx;
	struct y_piece *piece = w->piece;
	struct value v = lower_rvalue(l, n);

	switch (piece->kind) {
	case Y_NUMBER:
	case Y_CHAR:
		if (!is_integer(v.type) && v.type->kind != TYPE_POINTER)
			FAIL(l, n, "%%%c needs an integer, this is %s%s", piece->conversion, y_type_text(l->s, v.type),
			        v.type == &y_string_type     ? "; %s prints a string"
			        : v.type->kind == TYPE_FLOAT ? "; %f prints a floating-point number"
			                                     : "");
		if (v.type->kind == TYPE_POINTER)
			v = cast_to(l, n, v, &y_ulong);
		if (piece->type)
			v = cast_to(l, n, v, piece->type == Y_I8 ? &y_schar : &y_short);
		break;
	case Y_POINTER:
		if (!is_integer(v.type) && v.type->kind != TYPE_POINTER)
			FAIL(l, n, "%%p needs a pointer, this is %s", y_type_text(l->s, v.type));
		v = cast_to(l, n, v, &y_ulong);
		break;
	case Y_FLOAT:
		if (!is_arithmetic(v.type))
			FAIL(l, n, "%%%c needs a number, this is %s", piece->conversion, y_type_text(l->s, v.type));
		v = cast_to(l, n, v, &y_double);
		break;
	default:
		v = text_of(l, n, v, w);
	}
	piece->type = type_of_value(l, n, v.type);
	return v;
}

static struct value star(struct lower *l, const struct y_node *n, void *ctx)
{
	return convert_to(l, n, lower_rvalue(l, n), &y_int, "a width or precision");
}

/* --- formats --- */

static int number(struct lower *l, const struct y_node *n, const char **p, const char *end)
{
	int value = 0;

	for (; *p < end && **p >= '0' && **p <= '9'; (*p)++)
		value = value < WIDTH_MOST * 10 ? value * 10 + **p - '0' : value;
	if (value > WIDTH_MOST)
		FAIL(l, n, "a width or precision of more than %d", WIDTH_MOST);
	return value;
}

static void flags(struct y_piece *piece, const char **p, const char *end)
{
	for (; *p < end; (*p)++) {
		switch (**p) {
		case '-':
			piece->left = true;
			break;
		case '0':
			piece->zero = true;
			break;
		case '+':
			piece->plus = true;
			break;
		case ' ':
			piece->space = true;
			break;
		case '#':
			piece->alternate = true;
			break;
		default:
			return;
		}
	}
}

static const struct y_node *next_argument(struct lower *l, const struct y_node *n, u32 *used)
{
	if (*used == n->n)
		FAIL(l, n, "the format takes more values than are given (%u)", n->n - 1);
	return n->list[(*used)++];
}

/* hh and h narrow what is printed; the other lengths are those of the value, whatever is written. */
static void length(struct y_piece *piece, const char **p, const char *end)
{
	if (*p < end && **p == 'h') {
		piece->type = Y_I16;
		(*p)++;
		if (*p < end && **p == 'h') {
			piece->type = Y_I8;
			(*p)++;
		}
	}
	while (*p < end && strchr("lqjzt", **p))
		(*p)++;
}

static void conversion(struct lower *l, const struct y_node *n, struct y_piece *piece, char c)
{
	piece->conversion = c == 'i' ? 'd' : c;
	if (c && strchr("diuxXo", c))
		piece->kind = Y_NUMBER;
	else if (c == 'c' || c == 's' || c == 'p')
		piece->kind = c == 'c' ? Y_CHAR : c == 's' ? Y_STRING : Y_POINTER;
	else if (c && strchr("fFeEgG", c))
		piece->kind = Y_FLOAT;
	else if (c == 'n')
		FAIL(l, n, "%%n writes, and Y writes nowhere");
	else if (c)
		FAIL(l, n, "printf has no conversion %%%c", c);
	else
		FAIL(l, n, "the format ends within a conversion");
}

static u32 emit_long(struct lower *l, const struct y_node *n, u32 slot)
{
	return to_slot(l, n, cast_to(l, n, in_slot(&y_int, slot), &y_long));
}

static void directive(
        struct lower *l, const struct y_node *n, struct printing *out, const char **p, const char *end, u32 *used)
{
	struct y_piece piece = {.precision = -1};
	struct wanted w = {.at_most = UINT64_MAX, .at_most_slot = Y_NONE};
	bool star_width = false, star_precision = false;
	u32 format = (u32)(out->format - l->p->formats);

	flags(&piece, p, end);
	if (*p < end && **p == '*') {
		(*p)++;
		star_width = true;
		piece.width = Y_STAR;
	} else {
		piece.width = number(l, n, p, end);
	}
	if (*p < end && **p == '.') {
		(*p)++;
		star_precision = *p < end && **p == '*';
		*p += star_precision;
		piece.precision = star_precision ? Y_STAR : number(l, n, p, end);
	}
	length(&piece, p, end);
	conversion(l, n, &piece, *p < end ? *(*p)++ : 0);
	if (piece.kind != Y_NUMBER)
		piece.type = Y_VOID;
	if (star_width)
		add_value(l, next_argument(l, n, used), out, star, NULL);
	if (star_precision)
		add_value(l, next_argument(l, n, used), out, star, NULL);
	if (piece.kind == Y_STRING && star_precision)
		w.at_most_slot = emit_long(l, n, out->slots[3 * (out->n - 1)]);
	else if (piece.kind == Y_STRING && piece.precision >= 0)
		w.at_most = (u64)piece.precision;
	w.piece = &piece;
	add_value(l, next_argument(l, n, used), out, formatted, &w);
	out->format = &l->p->formats[format];
	*add_piece(l, out->format, piece.kind) = piece;
}

void lower_printf(struct lower *l, const struct y_node *n)
{
	struct printing out;
	const char *p, *end;
	u32 used = 1;

	if (!n->n || n->list[0]->kind != Y_N_STRING)
		FAIL(l, n, "printf needs a format: a string that is written out here");
	begin(l, &out);
	p = n->list[0]->bytes;
	end = p + n->list[0]->len;
	while (p < end) {
		const char *percent = memchr(p, '%', (size_t)(end - p));

		if (!percent || percent > p) {
			add_text(l, out.format, p, (u32)((percent ? percent : end) - p));
			p = percent ? percent : end;
		} else if (p + 1 < end && p[1] == '%') {
			add_text(l, out.format, "%", 1);
			p += 2;
		} else {
			p++;
			directive(l, n, &out, &p, end, &used);
		}
	}
	if (used != n->n)
		FAIL(l, n->list[used], "the format takes %u value%s, more are given", used - 1, used == 2 ? "" : "s");
	finish(l, n, &out);
}

/* --- _print --- */

static void natural_piece(const struct type *type, struct y_piece *piece)
{
	*piece = (struct y_piece){.precision = -1, .kind = Y_NUMBER, .conversion = type->is_signed ? 'd' : 'u'};
	if (type == &y_string_type || y_is_stack(type) || (type->kind == TYPE_POINTER && is_text(type->to))) {
		piece->kind = Y_STRING;
		piece->conversion = 's';
	} else if (type->kind == TYPE_POINTER) {
		piece->kind = Y_POINTER;
		piece->conversion = 'p';
	} else if (type->kind == TYPE_FLOAT) {
		piece->kind = Y_FLOAT;
		piece->conversion = 'g';
	}
}

static struct value natural(struct lower *l, const struct y_node *n, void *ctx)
{
	struct wanted *w = ctx;
	const struct type *type = type_of_expression(l, n);

	if (type->kind == TYPE_ARRAY)
		type = y_pointer_to(l->s, type->to);
	natural_piece(type, w->piece);
	return formatted(l, n, ctx);
}

static bool print_map(struct lower *l, const struct y_node *n)
{
	int map = n->kind == Y_N_NAME && !n->module ? find_map(l, n->name) : -1;
	struct y_insn *i;

	if (map < 0)
		return false;
	i = emit(l, n, Y_OP_PRINT_MAP, Y_VOID);
	i->a = Y_TABLE;
	i->imm = (u64)map;
	return true;
}

/* An argument of a language's function as it is: what kind of value it has is known as it is read. */
static bool is_untyped(const struct lower *l, const struct y_node *n)
{
	return l->probe && l->probe->point == Y_CALL &&
	       (n->kind == Y_N_DOLLAR || (n->kind == Y_N_CALL && !strcmp(n->name, "_arg")));
}

static void print_value(struct lower *l, const struct y_node *n, struct printing *out,
        struct value (*make)(struct lower *l, const struct y_node *n, void *ctx), struct y_piece piece)
{
	struct wanted w = {.piece = &piece, .at_most = UINT64_MAX, .at_most_slot = Y_NONE};
	u32 format = (u32)(out->format - l->p->formats);

	add_value(l, n, out, make, &w);
	out->format = &l->p->formats[format];
	*add_piece(l, out->format, piece.kind) = piece;
}

/* Values in a line with spaces between them; a whole map or aggregate by itself is a table. */
void lower_print(struct lower *l, const struct y_node *n)
{
	struct printing out;

	if (!n->n)
		FAIL(l, n, "_print needs something to print");
	if (n->n == 1 && print_map(l, n->list[0]))
		return;
	begin(l, &out);
	for (u32 i = 0; i < n->n; i++) {
		if (i)
			add_text(l, out.format, " ", 1);
		print_value(l, n->list[i], &out, natural, (struct y_piece){0});
		if (!is_untyped(l, n->list[i]))
			continue;
		out.format->pieces[out.format->npieces - 1].or_next = true;
		print_value(l, n->list[i], &out, formatted,
		        (struct y_piece){.precision = -1, .kind = Y_STRING, .conversion = 's'});
	}
	add_text(l, out.format, "\n", 1);
	finish(l, n, &out);
}
