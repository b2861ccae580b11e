/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts records by a number that they begin with: symbols and functions of a file by their addresses. These have few
 * bytes that differ, so a pass for each such byte takes a tenth of qsort()'s time (tests/bench/bench_symbols.c).
 */
#ifndef YRT_SORT_KEYS_H
#define YRT_SORT_KEYS_H

#include <stddef.h>

/* n records of `size` bytes, each of which begins with a u64. Equal ones come in any order, as with qsort(). */
void sort_keys(void *records, size_t n, size_t size);

#endif
