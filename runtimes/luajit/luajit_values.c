/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_values.h"

#include "luajit_proto.h"
#include "argument_text.h"

#define TYPE_AT    47 /* GC64: the type is in the bits from there on, */
#define TYPE_AT_32 32 /* else in the upper half */
#define NARGS      DWREG_RAX

/* Types, inverted. */
enum { NIL, FALSE, TRUE, LIGHT, STR, UPVALUE, THREAD, PROTO, FUNCTION, TRACE, CDATA, TABLE, USERDATA, NTYPES };

static u32 type_at(const struct luajit_image *image)
{
	return image->vm.gc64 ? TYPE_AT : TYPE_AT_32;
}

/* What a type is in a slot. */
static u64 type_of(const struct luajit_image *image, u32 type)
{
	return ~(u64)type << type_at(image) >> type_at(image);
}

static void set_shapes(const struct luajit_image *image, struct value_places *v)
{
	static const u8 objects[] = {THREAD, FUNCTION, CDATA, TABLE, USERDATA};
	u16 data = image->layout->str_size.at;

	v->shape[0] = (struct value_shape){.type = type_of(image, STR),
	        .from = data,
	        .to = data,
	        .length_at = image->layout->str_len.at,
	        .length_bits = UINT32_MAX,
	        .data_at = data,
	        .sense = VALUE_TEXT};
	v->shape[1] = (struct value_shape){.type = type_of(image, FALSE), .plain = 8, .sense = VALUE_FALSE};
	v->shape[2] = (struct value_shape){.type = type_of(image, TRUE), .plain = 8, .sense = VALUE_TRUE};
	for (u32 i = 0; i < sizeof(objects); i++)
		v->shape[3 + i].type = type_of(image, objects[i]);
}

void luajit_places(const struct luajit_image *image, struct memory *mem, u64 proto, struct runtime_callee *c)
{
	struct luajit_proto *pt = luajit_proto_read(image->layout, mem, proto);
	char name[LUAJIT_NAME_MAX];
	u32 n;

	if (!pt)
		return;
	n = luajit_proto_parameters(pt, &c->takes_more);
	c->takes_more |= n > VALUES_MAX;
	c->values = (struct value_places){.n = n < VALUES_MAX ? n : VALUES_MAX,
	        .base = VALUE_PLACE,
	        .step = 8,
	        .typing = VALUE_TYPE_IN_WORD,
	        .type_at = type_at(image),
	        .others_plain = 1,
	        .others_sense = VALUE_REAL,
	        .given = 1 + NARGS,
	        .mask = (1ull << type_at(image)) - 1};
	set_shapes(image, &c->values);
	for (u32 i = 0; i < c->values.n && luajit_proto_parameter(pt, i, name); i++)
		runtime_add_argument(c, name);
	luajit_proto_free(pt);
}

void luajit_value(const struct luajit_image *image, const struct runtime_value *v, FILE *out)
{
	static const char *const words[NTYPES] = {[NIL] = "nil",
	        [FALSE] = "false",
	        [TRUE] = "true",
	        [LIGHT] = "<light userdata>",
	        [UPVALUE] = "?",
	        [THREAD] = "<thread>",
	        [PROTO] = "?",
	        [FUNCTION] = "<function>",
	        [TRACE] = "?",
	        [CDATA] = "<cdata>",
	        [TABLE] = "<table>",
	        [USERDATA] = "<userdata>"};
	u64 type = ~(v->type << type_at(image)) >> type_at(image);

	if (!image->vm.gc64 && (s64)v->word >> TYPE_AT == ~LIGHT)
		type = LIGHT;
	if (type >= NTYPES)
		argument_number(v->word, "", out);
	else if (type == STR)
		argument_text(v, image->layout->str_size.at, out);
	else
		fputs(words[type], out);
}
