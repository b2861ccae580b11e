/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where in a stack the collector of cycles begins: collect() or gc_collect_main() (Modules/gcmodule.c, from 3.13 on
 * Python/gc.c and gc_free_threading.c). In 3.6 to 3.15 it is the function that prints "gc: collecting generation" for
 * debugging, which identifies it in stripped files too. Functions around it, such as gc_collect_generations(), have a
 * name or are inlined.
 */
#ifndef YRT_PYTHON_GC_H
#define YRT_PYTHON_GC_H

#include "binary/image.h"
#include "shared/frame.h"

#define PYTHON_GC_FUNCTIONS 24

/* The collector's functions in the file that has them. Starts as zero. */
struct python_gc {
	bool looked, named; /* for those known by their code; for those that have names */
	u64 start[PYTHON_GC_FUNCTIONS], end[PYTHON_GC_FUNCTIONS]; /* file addresses */
	u32 n;
};

/*
 * struct runtime_ops.expand for native frames: puts a frame "(gc)" right outside the collector's frames, inside its
 * caller. img: the interpreter's file, which is searched once.
 */
u32 python_gc_put(struct python_gc *gc, struct image *img, u64 bias, const struct frame *frames, u32 i, u32 n,
        struct frame *ret, u32 max, u32 *eaten);

#endif
