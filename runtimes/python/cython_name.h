/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that Cython gives its functions in C (Cython/Compiler/Naming.py, Symtab.py and Nodes.py of 0.29 to 3.1):
 *
 *	__pyx_pw_6uvloop_4loop_4Loop_115_Loop__subprocess_run	uvloop.loop.Loop.__subprocess_run
 *
 * After the kind comes each scope with its length, then a number that distinguishes definitions in one scope, and the
 * name. Kinds: pw takes the arguments from Python, pf is the body of a def, f is a cdef function, gb the body of a
 * generator, whose name is only "generator" and a number; tp, sq, mp … are slots of a type. A number may by chance be
 * the length of a scope: a name that can be read in two ways is left as it is.
 */
#ifndef YRT_CYTHON_NAME_H
#define YRT_CYTHON_NAME_H

#include <stddef.h>
#include <types.h>

#include "symbols/translated.h"

#define CYTHON_PREFIX "__pyx_"

bool cython_is_symbol(const char *symbol);
/*
 * name as it is in the file, or as C++'s demangler gives it. Writes "module.Class.function" to ret, with " [clone
 * .cold]" and the like behind it. False, with nothing written: it is no such name, can be read in two ways, or has no
 * room.
 */
bool cython_demangle(const char *name, char *ret, size_t size);

/* Of a name as it is in the file. */
enum translated_layer cython_layer(const char *symbol);
/*
 * The body of a scope's first def can be read in two ways. The name that its wrapper has if the longer one, of more
 * scopes, is right; false: it is none, or has no room.
 */
bool cython_wrapper_of(const char *symbol, char *ret, size_t size);
/*
 * The body of a generator or coroutine has the number behind its wrapper's. Writes what the wrapper's name begins with,
 * up to its number, to ret; false: it is no such body, or has no room.
 */
bool cython_generator_wrapper(const char *symbol, char *ret, size_t size);
/* Is it how Cython's code calls, and runs coroutines? A language's view hides it as the interpreter's own. */
bool cython_is_glue(const char *symbol);

#endif
