/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_native_key.h"

#include <stdlib.h>
#include <string.h>

#define OFFSET_MAX 0x7fff /* VALUE_KEYED */

bool hit_native_key_is(const char *key)
{
	return !strncmp(key, "arg", 3) && strchr(key, '+');
}

static bool take_number(const char **at, unsigned long most, unsigned long *ret)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	*ret = strtoul(*at, &end, 10);
	*at = end;
	return *ret <= most;
}

/* "arg2+16+56#". *at: moved behind it. */
static bool take_part(const char **at, const u8 *regs, u32 nregs, struct value_places *v)
{
	struct value_path *path = &v->path[v->n];
	unsigned long number;

	if (strncmp(*at, "arg", 3) != 0)
		return false;
	*at += 3;
	if (!take_number(at, nregs, &number) || !number)
		return false;
	v->slot[v->n] = 1 + regs[number - 1];
	while (**at == '+') {
		++*at;
		if (path->n == VALUE_HOPS || !take_number(at, OFFSET_MAX, &number))
			return false;
		path->at[path->n++] = (u16)number;
	}
	path->string = **at == '#' ? VALUE_STRING_SIZED : VALUE_STRING_C;
	*at += **at == '#';
	v->n++;
	return path->n != 0;
}

bool hit_native_key(const char *key, const u8 *regs, u32 nregs, struct value_places *ret)
{
	*ret = (struct value_places){
	        .base = VALUE_REGISTERS, .typing = VALUE_TYPE_DECLARED, .ahead = 1, .reference_bytes = 8};
	for (const char *at = key; ret->n < VALUES_MAX; at++) {
		if (!take_part(&at, regs, nregs, ret))
			return false;
		if (*at != ',')
			return !*at;
	}
	return false;
}
