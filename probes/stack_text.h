/* SPDX-License-Identifier: Apache-2.0 */
/* A stack as a line of text, of calls and requests that are listed one by one. */
#ifndef YRT_STACK_TEXT_H
#define YRT_STACK_TEXT_H

#include <stdio.h>

#include "unwind/profile/profile.h"

/*
 * "leaf; ...; root" of a node, hostile; without the kernel's frames, if it has others, and without its process. Behind
 * its NUL is what stack_text_print() needs. malloc'd; NULL: no memory.
 */
char *stack_text(const struct profile *p, u32 node);
/* The frames nearest to its leaf, in a line, without those of an interpreter between two functions of its language. */
void stack_text_print(FILE *out, const char *text);

#endif
