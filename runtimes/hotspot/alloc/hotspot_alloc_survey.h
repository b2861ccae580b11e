/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of a TLAB that its thread has given up: objects one behind the other, and a filler for the rest
 * (ThreadLocalAllocBuffer::retire(), gc/shared/threadLocalAllocBuffer.cpp; 8 to 28).
 */
#ifndef YRT_HOTSPOT_ALLOC_SURVEY_H
#define YRT_HOTSPOT_ALLOC_SURVEY_H

#include "runtimes/hotspot/heap/hotspot_heap.h"
#include "runtime_alloc.h"

/*
 * Reports each class and alloc_size_class() in the TLAB from start to limit, where its filler ends. klass 0: the rest,
 * if there are too many classes. False, and nothing was reported: the contents are incomplete or gone. Takes 60 KB of
 * stack.
 */
bool hotspot_alloc_survey(struct hotspot_heap_view *h, struct memory *m, u64 start, u64 limit,
        void (*each)(void *ctx, u64 klass, u64 bytes, u64 objects), void *ctx);

#endif
