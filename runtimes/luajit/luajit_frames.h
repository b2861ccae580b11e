/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the Lua stack is made of: lj_obj.h, lj_frame.h of LuaJIT 2.1 with 64-bit references (GC64). */
#ifndef YRT_LUAJIT_FRAMES_H
#define YRT_LUAJIT_FRAMES_H

#include "luajit.h"

#define LJ_FRAMES_A_STEP 32 /* Lua frames that one step follows */
#define LJ_UNLINKED_MAX  4 /* cframes without Lua frames in a row (lua_cpcall, trace exit), enough in practice */
#define LJ_FRAMES_PUSH   (-2)

#define LJ_ALWAYS_INLINE static inline __attribute__((always_inline)) /* BPF has five arguments */

#define LJ_FFID_C     1 /* an ordinary C function; above: builtins; 0: Lua */
#define LJ_GCT_FUNC   8 /* ~LJ_TFUNC */
#define LJ_TAG_SHIFT  47
#define LJ_TAG_FUNC   (~(u64)8 & 0x1ffff) /* the upper 17 bits of a slot */
#define LJ_TAG_THREAD (~(u64)6 & 0x1ffff)
#define LJ_GC_POINTER ((1ull << LJ_TAG_SHIFT) - 1)

#define LJ_LINK_BOTTOM       (~0ull) /* nil */
#define LJ_CONT_FFI_CALLBACK 1

#define LJ_WORDS        8  /* room for an object's head, a power of two for the verifier */
#define LJ_OBJECT_BYTES 48 /* read of it: covers all that is needed of a GCfunc or a cframe */

#endif
