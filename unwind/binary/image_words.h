/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a file's data after relocation, without the load bias: pointers are addresses of the file. */
#ifndef YRT_IMAGE_WORDS_H
#define YRT_IMAGE_WORDS_H

#include <types.h>

#include "error.h"
#include "image.h"

#define IMAGE_WORDS_MAX 4

struct words {
	u64 addr;
	u64 n;
	u64 *word;
};

struct image_words {
	struct words section[IMAGE_WORDS_MAX];
	u32 n;
};

/* Copies a section's words, if there is one with content, and not larger than 256 MiB. Only fails for memory, or if
 * there is no room. */
struct error *image_words_add(struct image_words *w, struct image *img, const char *section);
/* Call when all sections are added: applies what the dynamic linker would write for this file alone. */
void image_words_relocate(struct image_words *w, struct image *img);
void image_words_free(struct image_words *w);

/* The word at an address; NULL: in none of the sections. */
u64 *image_word(const struct image_words *w, u64 addr);

#endif
