/* SPDX-License-Identifier: Apache-2.0 */
/* Names that a language gives a file's functions in C, if the file has no symbols for them. */
#ifndef YRT_C_NAMES_H
#define YRT_C_NAMES_H

#include <types.h>

#include "error.h"
#include "binary/image.h"

struct c_name {
	u64 function; /* its first byte, in the file */
	char *name;
};

struct c_names {
	struct c_name *list;
	u32 n;
};

#define C_NAMES_MAX (1u << 20) /* more are left out */

/* name is copied. If a function has several names, the longest is found, and of those the first by the alphabet. */
struct error *c_names_add(struct c_names *c, u64 function, const char *name);
/* Once all are added. */
void c_names_sort(struct c_names *c);
const char *c_names_find(const struct c_names *c, u64 function); /* NULL: none */
/* The names that all languages give in a file, sorted. */
struct error *c_names_read(struct image *img, struct c_names *ret);
void c_names_free(struct c_names *c);

#endif
