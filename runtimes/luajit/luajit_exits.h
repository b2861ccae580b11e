/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where GCtrace.nsnap is, by code. Structures of snapshots grew between v2.1.0-beta3 and 2019-05, and no code of the VM
 * or of an exported function uses them. But jit.util.traceinfo() (lib_jit.c) stores nsnap as "nexit": the 16-bit load
 * is next to the instruction that takes the address of this text.
 */
#ifndef YRT_LUAJIT_EXITS_H
#define YRT_LUAJIT_EXITS_H

#include "binary/image.h"

struct luajit_exits {
	u64 at[2]; /* a bit for each offset of a 16-bit load there */
};

/* False: none was found. */
bool luajit_exits_read(struct image *img, struct luajit_exits *ret);
bool luajit_exits_have(const struct luajit_exits *exits, s32 nsnap);

#endif
