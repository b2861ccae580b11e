/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of builtin ("fast") functions by their number, ffid, from the file itself: they differ by version and by
 * options of the build. Each library of LuaJIT is registered from an array of bytes, lj_lib_init_* (made by
 * host/buildvm_lib.c, read by lj_lib_register() in lj_lib.c, the same in all of 2.1): the ffid of its first function,
 * how many functions in assembly are before it, its hash size, then entries by tag:
 *
 *	0x00, 0x40, 0x80 + length	a function and its name: in C, in assembly, with the code of the one before
 *	0xc0 + length			a string
 *	0xf9				a function in bytecode: name, prototype (lj_bcread.c). Takes no ffid
 *	0xfa, 0xfd			set, last closure
 *	0xfb, 0xfc			a number, 8 bytes; a copy, 1 byte
 *	0xfe				a function that is registered elsewhere: takes an ffid, has no name here
 *	0xff				the end
 *
 * ffids go on from one library to the next; the first, of `assert`, is 2. The arrays bear no names of libraries: these
 * are known by functions that only they have, and functions without a name by where they stand.
 */
#ifndef YRT_LUAJIT_BUILTINS_H
#define YRT_LUAJIT_BUILTINS_H

#include "error.h"
#include "binary/image.h"

#define LUAJIT_BUILTINS_MAX 256 /* ffid is a byte */

struct luajit_builtins {
	const char *names[LUAJIT_BUILTINS_MAX]; /* "string.gsub", "file:close"; NULL: not known */
	u32 n;                                  /* behind the highest; 0: the file has no such arrays */
};

struct error *luajit_builtins_read(struct image *img, struct luajit_builtins *ret);
/* The same from bytes. */
struct error *luajit_builtins_parse(const u8 *bytes, size_t size, struct luajit_builtins *ret);
void luajit_builtins_free(struct luajit_builtins *builtins);

#endif
