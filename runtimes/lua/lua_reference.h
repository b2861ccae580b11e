/* SPDX-License-Identifier: Apache-2.0 */
/* Code that refers to a place of its file: lea relative to RIP, or a 32-bit mov in a program at fixed addresses. */
#ifndef YRT_LUA_REFERENCE_H
#define YRT_LUA_REFERENCE_H

#include "binary/image.h"

#define LUA_REFERENCE 7 /* bytes of the longest such instruction */

/* What the instruction at code, LUA_REFERENCE bytes, refers to; addr: where it is. 0: nothing, or it is another one. */
u64 lua_referred(const u8 *code, u64 addr);
/* The first instruction of .text that refers to it. 0: none. */
u64 lua_reference_find(struct image *img, u64 to);

#endif
