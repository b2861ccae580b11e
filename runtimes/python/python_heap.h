/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of CPython 3.8 to 3.15, from its modules and frames on: python-heap, python-refs (runtime_heap.h). */
#ifndef YRT_PYTHON_HEAP_H
#define YRT_PYTHON_HEAP_H

#include "python_image.h"
#include "runtime_heap.h"

/* In an error: what is not supported. *ret: for the other operations. */
struct error *python_heap_open(
        const struct python_image *image, u64 bias, const struct runtime_process *p, struct heap *h, void **ret);
void python_heap_close(void *reader);
struct error *python_heap_roots(void *reader);
struct error *python_heap_all(void *reader);
enum heap_seen python_heap_object(void *reader, u64 addr, u32 label, struct heap_object *ret);

#endif
