/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of generators and coroutines of Cython. Their bodies in C are called only "generator" and a number. But the
 * function that makes one, which Python calls, is in the same file and has the number before (Cython/Compiler/Nodes.py
 * of 0.29 to 3.1: a def takes one number for its body, one for its wrapper, and, if it is a generator, one more). A
 * generator expression has no wrapper.
 */
#ifndef YRT_CYTHON_GENERATOR_H
#define YRT_CYTHON_GENERATOR_H

#include <stddef.h>
#include <types.h>

#include "binary/image.h"
#include "symbols/translated.h"

/*
 * symbol: a function of img as it is in the file. Writes "uvloop.loop.Loop.create_server", or "….genexpr", with "
 * [clone .cold]" and the like behind it, to ret. False, with nothing written: it is no such body, or there is no room.
 */
bool cython_generator_name(struct image *img, const char *symbol, char *ret, size_t size);

/* As translated_ops.resolve: the same, and the body of a scope's first def. */
bool cython_resolve(struct image *img, const char *symbol, char *ret, size_t size);

#endif
