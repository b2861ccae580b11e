/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_parameters.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "runtimes/hotspot/heap/hotspot_heap_view.h"

#define TAIL_MAX 16384 /* bytes behind the bytecode, of which the last are read */

/* ConstMethod::_flags (ConstMethodFlags since 21). */
enum {
	CHECKED_EXCEPTIONS = 2,
	LOCAL_VARIABLES = 4,
	EXCEPTIONS = 8,
	GENERIC_SIGNATURE = 16,
	PARAMETERS = 32,
	ANNOTATIONS_FIRST = 128, /* four kinds */
};
#define ANNOTATIONS 4

/* Words of 2 bytes. */
#define EXCEPTION      4
#define PARAMETER      2 /* name, flags */
#define LOCAL_VARIABLE 6 /* start, length, name, descriptor, signature, slot */

struct tail {
	u16 *words;
	u32 n; /* before what was taken */
};

static u16 take(struct tail *t)
{
	return t->n ? t->words[--t->n] : 0;
}

/* A table of elements, whose number is behind it. NULL: it is not there in full. */
static const u16 *take_table(struct tail *t, u32 size, u32 *n)
{
	*n = take(t);
	if (*n * size > t->n)
		t->n = *n = 0;
	t->n -= *n * size;
	return t->words + t->n;
}

static void read_parameters(struct tail *t, struct hotspot_parameters *ret)
{
	u32 n;
	const u16 *at = take_table(t, PARAMETER, &n);

	for (u32 i = 0; i < n && i < HOTSPOT_PARAMETERS; i++)
		ret->in_order[i] = at[PARAMETER * i];
}

static void read_variables(struct tail *t, struct hotspot_parameters *ret)
{
	u32 n;
	const u16 *at = take_table(t, LOCAL_VARIABLE, &n);

	for (u32 i = 0; i < n; i++, at += LOCAL_VARIABLE)
		if (!at[0] && at[5] < HOTSPOT_PARAMETERS)
			ret->name[at[5]] = at[2];
}

void hotspot_parameters_read(
        const struct hotspot_layout *l, struct memory *mem, u64 constants, struct hotspot_parameters *ret)
{
	struct tail t = {0};
	cleanup(free) u16 *words = NULL;
	u64 from, to;
	u32 flags, size, n;
	u16 code;

	*ret = (struct hotspot_parameters){0};
	if (!memory_read(mem, &ret->pool, sizeof(ret->pool), constants + l->const_pool.at) ||
	        !memory_read(mem, &flags, sizeof(flags), constants + l->const_flags.at) ||
	        !memory_read(mem, &size, sizeof(size), constants + l->const_words.at) ||
	        !memory_read(mem, &code, sizeof(code), constants + l->const_code_size.at))
		return;
	if (l->const_flags.size == 2)
		flags &= 0xffff;
	from = constants + l->const_size.at + code;
	to = constants + 8ull * size;
	if (!(flags & (LOCAL_VARIABLES | PARAMETERS)) || to <= from)
		return;
	from = to - from > TAIL_MAX ? to - TAIL_MAX : (from + 1) & ~1ull;
	words = malloc(to - from);
	if (!words || !memory_read(mem, words, to - from, from))
		return;
	t = (struct tail){.words = words, .n = (u32)((to - from) / 2)};
	for (u32 i = 0; i < ANNOTATIONS; i++)
		t.n -= flags & ANNOTATIONS_FIRST << i && t.n >= 4 ? 4 : 0;
	if (flags & GENERIC_SIGNATURE)
		take(&t);
	if (flags & PARAMETERS)
		read_parameters(&t, ret);
	if (flags & CHECKED_EXCEPTIONS)
		take_table(&t, 1, &n);
	if (flags & EXCEPTIONS)
		take_table(&t, EXCEPTION, &n);
	if (flags & LOCAL_VARIABLES)
		read_variables(&t, ret);
}

void hotspot_parameter_name(const struct hotspot_instance *instance, struct memory *mem,
        const struct hotspot_parameters *p, u32 local, u32 number, char *ret, size_t size)
{
	const struct hotspot_layout *l = instance->layout;
	u16 index = local < HOTSPOT_PARAMETERS ? p->name[local] : 0;
	u64 symbol;
	u32 length;

	*ret = '\0';
	if (!index && number < HOTSPOT_PARAMETERS)
		index = p->in_order[number];
	if (!index || !memory_read(mem, &length, sizeof(length), p->pool + l->pool_length.at) || index >= length ||
	        !memory_read(mem, &symbol, sizeof(symbol), p->pool + l->pool_size.at + 8ull * index) ||
	        !hotspot_symbol(instance->heap, mem, symbol, ret, size))
		*ret = '\0';
	ret[strcspn(ret, ",")] = '\0';
}
