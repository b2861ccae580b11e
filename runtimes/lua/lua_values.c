/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_values.h"

#include "argument_text.h"

#define VALUE_SIZE  16 /* sizeof(TValue) */
#define STRING_DATA 24 /* behind a TString's header */
#define LENGTH      16 /* of a string, */
#define SHORT       11 /* of a short one from 5.3 on: shrlen */
#define COLLECTABLE 0x40
#define VARIANT     16
#define NAME        16 /* sizeof(LocVar) */

enum { NIL, BOOLEAN, LIGHT, NUMBER, STRING, TABLE, FUNCTION, USERDATA, THREAD, NTYPES };

static void set_shapes(u32 version, struct value_places *v)
{
	const struct value_shape shapes[] = {
	        {.type = BOOLEAN,
	                .plain = version < 504 ? 4 : 0,
	                .sense = version < 504 ? VALUE_UNSIGNED : VALUE_FALSE},
	        {.type = BOOLEAN | VARIANT, .sense = VALUE_TRUE},
	        {.type = NUMBER, .plain = 8, .sense = version < 504 ? VALUE_REAL : VALUE_SIGNED},
	        {.type = NUMBER | VARIANT, .plain = 8, .sense = version < 504 ? VALUE_SIGNED : VALUE_REAL},
	        {.type = STRING,
	                .from = STRING_DATA,
	                .to = STRING_DATA,
	                .length_at = version < 503 ? LENGTH : SHORT,
	                .length_bits = version < 503 ? UINT32_MAX : UINT8_MAX,
	                .data_at = STRING_DATA,
	                .sense = VALUE_TEXT},
	        {.type = STRING | VARIANT,
	                .from = STRING_DATA,
	                .to = STRING_DATA,
	                .length_at = LENGTH,
	                .length_bits = UINT32_MAX,
	                .data_at = STRING_DATA,
	                .sense = VALUE_TEXT},
	};

	_Static_assert(sizeof(shapes) <= sizeof(v->shape), "room for all");
	memcpy(v->shape, shapes, sizeof(shapes));
	for (u32 i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		v->shape[i].type |= VALUE_BESIDE;
}

/* Names of parameters are those of the first local variables. */
static void add_names(struct memory *mem, const struct lua_proto *p, struct runtime_callee *c)
{
	char name[LUA_NAME_MAX];
	u64 text;

	for (u32 i = 0; i < c->values.n && i < p->sizelocvars; i++)
		if (!memory_read(mem, &text, sizeof(text), p->locvars + (u64)NAME * i) ||
		        !lua_string_read(p->version, mem, text, name, sizeof(name)))
			return;
		else
			runtime_add_argument(c, name);
}

void lua_places(const struct lua_image *image, struct memory *mem, const struct lua_proto *p, struct runtime_callee *c)
{
	u8 head[2]; /* Proto: numparams, is_vararg; maxstacksize follows */

	if (!image->layout->p_maxstacksize.size ||
	        !memory_read(mem, head, sizeof(head), p->addr + image->layout->p_maxstacksize.at - sizeof(head)))
		return;
	c->takes_more = head[1] || head[0] > VALUES_MAX;
	c->values = (struct value_places){.n = head[0] < VALUES_MAX ? head[0] : VALUES_MAX,
	        .base = VALUE_PLACE,
	        .at = p->version < 504 ? 0 : VALUE_SIZE,
	        .step = VALUE_SIZE,
	        .typing = VALUE_TYPE_BESIDE,
	        .type_at = COLLECTABLE,
	        .mask = UINT64_MAX};
	set_shapes(p->version, &c->values);
	add_names(mem, p, c);
}

void lua_value(const struct lua_image *image, const struct runtime_value *v, FILE *out)
{
	static const char *const words[NTYPES] = {[NIL] = "nil",
	        [LIGHT] = "<light userdata>",
	        [TABLE] = "<table>",
	        [FUNCTION] = "<function>",
	        [USERDATA] = "<userdata>",
	        [THREAD] = "<thread>"};
	u32 version = image->vm.version, type = (u32)v->type & (VARIANT - 1);
	bool variant = v->type & VARIANT;

	if (!v->type || type >= NTYPES)
		putc('?', out);
	else if (type == BOOLEAN)
		fputs((version < 504 ? (u32)v->word != 0 : variant) ? "true" : "false", out);
	else if (type == STRING)
		argument_text(v, STRING_DATA, out);
	else if (type != NUMBER)
		fputs(words[type], out);
	else if (version >= 503 && variant == (version < 504))
		fprintf(out, "%ld", (long)v->word);
	else
		argument_number(v->word, version < 503 ? "" : ".0", out);
}
