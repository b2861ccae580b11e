/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of blocks in classes: each multiple of 16 bytes up to 1 KiB by itself, above four to a doubling.
 */
#ifndef YRT_SIZE_CLASS_H
#define YRT_SIZE_CLASS_H

#include <stddef.h>
#include <types.h>

#define SIZE_CLASSES    (65 + 4 * 54)
#define SIZE_CLASS_NAME 48

/* "48 B", "20 KiB": exact below 10 KiB, and of whole KiB. */
void size_text(char *ret, size_t room, u64 bytes);
u32 size_class(u64 size);
/* The largest size of the class: "48 B", "up to 1280 B". */
const char *size_class_name(u32 number, char ret[SIZE_CLASS_NAME]);

#endif
