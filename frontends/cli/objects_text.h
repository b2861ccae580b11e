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
/* The n objects that are largest by themselves, with a shortest way from a root to each. Needs heap_settle(). */
struct error *objects_print_largest(const struct heap *h, u32 n, FILE *out);

#endif
