/* SPDX-License-Identifier: Apache-2.0 */
/* A heap as text. Names in it are cleaned. */
#ifndef YRT_OBJECTS_TEXT_H
#define YRT_OBJECTS_TEXT_H

#include <stdio.h>

#include "unwind/heap/heap.h"

/* Count and bytes by type. before: of an earlier moment; NULL. Then only what has grown. */
struct error *objects_print_types(const struct heap *before, const struct heap *h, FILE *out);
/* What each root alone would free. */
struct error *objects_print_roots(const struct heap *h, FILE *out);

#endif
