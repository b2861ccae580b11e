/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an ELF file: opening it, compiling its CFI, and looking up what came out. */
#include <stdlib.h>
#include <string.h>

#include "unwind/cfi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const struct cfi *cfi)
{
	struct cfi_rule rule;

	for (u32 i = 0; i < cfi->nfdes && i < 64; i++) {
		cfi_find(cfi, cfi->fdes[i].start, &rule);
		cfi_find(cfi, cfi->fdes[i].end - 1, &rule);
	}
	for (u32 i = 0; i < cfi->npieces && i < 64; i++) {
		if (cfi->pieces[i].start % CFI_PAGE_SIZE || cfi->pieces[i].end <= cfi->pieces[i].start)
			abort();
		for (u64 at = cfi->pieces[i].start; at < cfi->pieces[i].end && at - cfi->pieces[i].start < 8192;
		        at += 3)
			cfi_find(cfi, at, &rule);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *copy = malloc(size ? size : 1);
	struct image *img;
	struct cfi *cfi;
	struct error *err;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	err = image_from_memory(copy, size, "fuzz", &img);
	if (err) {
		error_free(err);
		return 0;
	}
	err = cfi_load(img, NULL, &cfi);
	if (!err) {
		look_up(cfi);
		cfi_destroy(cfi);
	}
	error_free(err);
	image_put(img);
	return 0;
}
