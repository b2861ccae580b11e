/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of a search through a large file, as a few numbers, kept for the next run beside the unwind tables
 * (cfi_cache_dir.h): in <identity>-<hash>.memo, by image_identity(), the file's size and the name of the search. Files
 * below MEMO_FILE bytes have none, because searching them is fast.
 */
#ifndef YRT_CFI_MEMO_H
#define YRT_CFI_MEMO_H

#include <stdbool.h>
#include <types.h>

#include "binary/image.h"

#define MEMO_FILE   (1u << 20)
#define MEMO_VALUES 512u /* at most */

struct memo {
	u64 values[MEMO_VALUES];
	u32 n;
};

/*
 * search: its name, with a version that is raised when the search changes. False: there is none, or it is corrupt. The
 * caller should check the values against the file where it can.
 */
bool memo_load(const struct image *img, const char *search, struct memo *ret);
void memo_store(const struct image *img, const char *search, const struct memo *memo);

#endif
