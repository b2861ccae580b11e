/* SPDX-License-Identifier: Apache-2.0 */
/* Which allocator a file is or has in it, by the symbols that only it defines, and by the names of its libraries. */
#ifndef YRT_ALLOCATOR_NAMES_H
#define YRT_ALLOCATOR_NAMES_H

#include "binary/image.h"

#define ALLOCATOR_SYMBOLS 4

struct allocator_name {
	const char *name;
	const char *library; /* how names of its files begin; NULL: it has none of its own */
	const char *symbols[ALLOCATOR_SYMBOLS];
};

/* The last one has no name. */
extern const struct allocator_name allocator_names[];

/* By its symbols; NULL: none of these. Of several, that which comes first in the list. */
const struct allocator_name *allocator_of_image(struct image *img);
/* By its name; NULL: none of these. */
const struct allocator_name *allocator_of_file(const char *path);

#endif
