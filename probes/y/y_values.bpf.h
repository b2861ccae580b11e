/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Arguments of a language's function as a Y program's handler has them: of what values_take() has read. */
#ifndef YRT_Y_VALUES_BPF_H
#define YRT_Y_VALUES_BPF_H

#include "hit/hit_callee.bpf.h"
#include "y/y.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct y_arguments);
} y_arguments SEC(".maps");

#define ABOVE_REALS  0xfff8000000000000ull /* the highest of a double that LuaJIT makes: -nan */
#define DIGIT_BITS   30
#define DIGIT        ((1ull << DIGIT_BITS) - 1)
#define FRACTION     52
#define EXPONENT_AT0 1075 /* of a number whose last bit counts 1 */

/* The integer that a double is without what is behind its point. False: a long does not hold it. */
static inline bool y_whole(u64 bits, u64 *ret)
{
	s32 exponent = (s32)(bits >> FRACTION & 0x7ff) - EXPONENT_AT0;
	u64 value = (bits & ((1ull << FRACTION) - 1)) | 1ull << FRACTION;

	*ret = 0;
	if (exponent > 10)
		return false;
	if (exponent < -FRACTION)
		return true;
	value = exponent < 0 ? value >> (-exponent & 63) : value << (exponent & 63);
	*ret = bits >> 63 ? -value : value;
	return true;
}

/* The nearest double, as C has it: halves go to the even one. */
static inline u64 y_real(u64 number)
{
	u64 sign = number & 1ull << 63, value = sign ? -number : number, rest;
	u32 shift = 0;

	if (!value)
		return 0;
	for (u32 step = 32; step; step >>= 1) /* the first bit becomes the highest */
		if (!(value >> (64 - step))) {
			value <<= step;
			shift += step;
		}
	rest = value & 0x7ff;
	value >>= 11;
	value += rest > 0x400 || (rest == 0x400 && value & 1); /* may carry into the exponent, as it should */
	return sign | (((u64)(EXPONENT_AT0 - 1 + 11 - shift) << FRACTION) + value);
}

/* The double that a float is. What is below the least normal float is an integer of its last bit. */
static inline u64 y_double(u32 bits)
{
	u64 sign = (u64)(bits >> 31) << 63, exponent = bits >> 23 & 0xff, fraction = bits & 0x7fffff;

	if (!exponent)
		return fraction ? sign | (y_real(fraction) - (149ull << FRACTION)) : sign;
	exponent = exponent == 0xff ? 0x7ff : exponent + 1023 - 127;
	return sign | exponent << FRACTION | fraction << (FRACTION - 23);
}

static inline void y_number(struct y_argument *a, u64 number)
{
	a->is_number = 1;
	a->number = number;
	a->real = y_real(number);
}

static inline u64 y_word(const struct values_record *r, u32 i, u32 at)
{
	u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), &r->bytes[i & (VALUES_MAX - 1)][at & (VALUE_BYTES - 1)]);
	return word;
}

/* The low bytes of a word, with their sign or without. */
static inline u64 y_extended(u64 word, u32 bytes, bool is_signed)
{
	u32 shift = (64 - 8 * bytes) & 63;

	word <<= shift;
	return is_signed ? (u64)((s64)word >> shift) : word >> shift;
}

/* Up to two digits. */
static inline void y_digits(struct y_argument *a, u64 head, u64 digits, bool tagged)
{
	bool negative = tagged ? (head & 3) == 2 : (s64)head < 0;
	u64 n = tagged ? head >> 3 : negative ? -head : head, value = 0;

	if (n > 0)
		value = digits & DIGIT;
	if (n > 1)
		value |= (digits >> 32 & DIGIT) << DIGIT_BITS;
	y_number(a, negative ? -value : value);
	if (n > 2)
		a->beyond = Y_BEYOND_BOTH;
}

static inline void y_put(struct y_text *t, u32 byte)
{
	u32 at = *(volatile u32 *)&t->len;

	if (at < 255) {
		t->bytes[at & 255] = (char)byte;
		t->len = at + 1;
	}
}

/* A character beyond ASCII takes two to four bytes. */
static inline void y_character(struct y_text *t, u32 c)
{
	if (c < 0x80) {
		y_put(t, c);
		return;
	}
	if (c < 0x800) {
		y_put(t, 0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			y_put(t, 0xe0 | c >> 12);
		} else {
			y_put(t, 0xf0 | (c >> 18 & 7));
			y_put(t, 0x80 | (c >> 12 & 63));
		}
		y_put(t, 0x80 | (c >> 6 & 63));
	}
	y_put(t, 0x80 | (c & 63));
}

struct y_source {           /* characters in r->bytes[i] */
	u32 i, at, unit, n; /* from where on; bytes of each; how many */
};

/* UTF-8 of them. */
WALK_GLOBAL int y_encode(struct y_argument *a, const struct y_source *from)
{
	const struct values_record *r = values_here();
	u32 high = 0;

	if (!a || !from || !r)
		return 0;
	for (u32 k = 0; k < VALUE_BYTES; k++) {
		u32 c;

		if (k >= *(volatile u32 *)&from->n)
			break;
		c = (u32)y_extended(y_word(r, from->i, from->at + k * from->unit), from->unit, false);
		if (from->unit == 2 && c >> 10 == 0xd800 >> 10) {
			*(volatile u32 *)&high = c;
			continue;
		}
		if (from->unit == 2 && c >> 10 == 0xdc00 >> 10)
			c = 0x10000 + ((*(volatile u32 *)&high & 0x3ff) << 10) + (c & 0x3ff);
		y_character(&a->text, c);
	}
	return 0;
}

/* Its characters, of which some may not have been read: length is in bytes. */
static inline void y_characters(struct y_argument *a, u32 i, u32 at, u32 unit, u64 length, u32 size)
{
	u32 have = size > at ? size - at : 0;
	struct y_source from = {.i = i, .at = at, .unit = unit};

	a->is_text = 1;
	a->text.cut = length > have;
	from.n = (length < have ? (u32)length : have) / unit;
	y_encode(a, &from);
}

static inline void y_bytes(struct y_argument *a, const struct values_record *r, u32 i, u32 at, u32 length)
{
	u32 size = r->size[i & (VALUES_MAX - 1)], n = size > at ? size - at : 0;

	n = length < n ? length : n;
	at &= VALUE_BYTES - 1;
	a->is_text = 1;
	a->text.cut = length > n;
	WALK_BARRIER(n);
	if (n <= VALUE_BYTES && !bpf_probe_read_kernel(a->text.bytes, n, &r->bytes[i & (VALUES_MAX - 1)][at]))
		a->text.len = n;
}

static inline void y_text_of(struct y_argument *a, const struct values_record *r, const struct value_shape *s, u32 i)
{
	u32 size = r->size[i & (VALUES_MAX - 1)], length, state;

	if (!size)
		return;
	if (s->sense == VALUE_UTF16) {
		u32 wide = !s->narrow_at || y_word(r, i, 0) & 0xffffffff;

		y_characters(a, i, offsetof(struct value_text, text), 1 + wide, y_word(r, i, 0) >> 32, size);
		return;
	}
	if (s->length_at < s->from) { /* what is in front of that was cleared */
		y_bytes(a, r, i, s->data_at, size == VALUE_BYTES ? VALUE_BYTES : size - s->data_at);
		return;
	}
	length = (u32)(y_word(r, i, s->length_at & ~7u) >> 8 * (s->length_at & 7)) & s->length_bits;
	if (s->sense == VALUE_TEXT) {
		y_bytes(a, r, i, s->data_at, length);
		return;
	}
	state = (u32)y_word(r, i, s->narrow_at);
	if (state & s->narrow) {
		y_bytes(a, r, i, s->data_at, length);
		return;
	}
	state >>= state & 0xfc ? 2 : 8;
	state &= 7;
	if (state == 1 || state == 2 || state == 4)
		y_characters(a, i, s->value_at, state, (u64)length * state, size);
}

static inline void y_value(
        struct y_argument *a, const struct values_record *r, const struct value_shape *s, u32 sense, u32 i)
{
	u64 word = r->word[i & (VALUES_MAX - 1)];
	u32 bytes = s ? s->plain : 8;

	if (s && !s->plain && sense != VALUE_FALSE && sense != VALUE_TRUE) {
		if (!r->size[i & (VALUES_MAX - 1)])
			return;
		word = y_word(r, i, s->value_at);
		bytes = s->to - s->value_at;
	}
	switch (sense) {
	case VALUE_SIGNED:
	case VALUE_UNSIGNED:
		y_number(a, y_extended(word, bytes, sense == VALUE_SIGNED));
		break;
	case VALUE_DIGITS:
	case VALUE_TAGGED:
		y_digits(a, word, y_word(r, i, s ? s->value_at + 8u : 0), sense == VALUE_TAGGED);
		break;
	case VALUE_FALSE:
	case VALUE_TRUE:
		y_number(a, sense == VALUE_TRUE);
		break;
	case VALUE_REAL:
		if (!s && word > ABOVE_REALS)
			return;
		if (bytes == 4)
			word = y_double((u32)word);
		a->is_number = 1;
		a->real = word;
		a->beyond = y_whole(word, &a->number) ? 0 : Y_BEYOND_LONG;
		break;
	default:
		if (s && sense >= VALUE_TEXT)
			y_text_of(a, r, s, i);
	}
}

/* What wanted argument k of the function is. */
WALK_GLOBAL int y_take(struct y_argument *a, u32 k)
{
	const struct values_record *r = values_here();
	const struct value_places *p = r ? values_places(r->function) : NULL;
	const struct value_shape *s = NULL;
	u32 i, shape;

	if (!a || !p || k >= VALUES_MAX)
		return 0;
	__builtin_memset(a, 0, sizeof(*a));
	a->absent = 1;
	i = p->wanted[k] - 1;
	WALK_BARRIER(i);
	if (i >= VALUES_MAX || i >= r->n || r->unread >> i & 1)
		return 0;
	if (!r->kind[i] && p->typing != VALUE_TYPE_IN_WORD)
		return 0;
	a->absent = 0;
	shape = p->typing == VALUE_TYPE_DECLARED ? i : values_shape(p, r->kind[i]);
	WALK_BARRIER(shape);
	if (shape < VALUE_SHAPES)
		s = &p->shape[shape];
	y_value(a, r, s, s ? s->sense : p->others_sense, i);
	return 0;
}

/* Between on_callee() and the handler. */
SEC("perf_event") int on_y_values(void *ctx)
{
	struct callee_counts *counts = callee_counts_here();
	struct y_arguments *all;
	u32 zero = 0;

	all = bpf_map_lookup_elem(&y_arguments, &zero);
	if (!all || !counts)
		return 0;
	for (u32 k = 0; k < Y_ARGUMENTS; k++)
		y_take(&all->of[k], k);
	bpf_tail_call(ctx, &y_handlers, (u32)counts->handler);
	return 0;
}

#endif
