/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a symbol have the name that was asked for? That is the symbol, or what its language calls it, with or without
 * arguments, the type that a C++ function returns, and the parameters of its template: "f", "a::f", "a::f(int)",
 * "a::f<int>", "int a::f<int>(int)". Copies that a compiler made of a whole function (".isra.0", ".constprop.0") are
 * the function, parts of it (".cold", ".part.0") and thunks are not.
 */
#ifndef YRT_HIT_NAME_H
#define YRT_HIT_NAME_H

#include <stdbool.h>

#include "hit_spec.h"

struct hit_name {
	const char *text;
	char part[HIT_NAME_MAX]; /* of each mangled symbol with this name; empty: of any */
};

void hit_name_set(struct hit_name *n, const char *text);
bool hit_name_is(const struct hit_name *n, const char *symbol);
/* What it is called without namespaces, classes, parameters and arguments: "f" of "a::f<int>(int) const". */
void hit_name_last(const char *name, char ret[HIT_NAME_MAX]);
/* Does a pattern, whose * stands for any letters, match? All others are themselves: int[], Sum[...]. */
bool hit_name_fits(const char *pattern, const char *name);
/* The shortest way to ask for it; malloc'd. NULL: no memory. */
char *hit_name_short(const char *symbol);

#endif
