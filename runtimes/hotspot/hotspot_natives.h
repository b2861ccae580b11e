/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native frames of the JVM with a meaning, once a stack is complete: where a thread that runs Java begins to collect
 * garbage, and what calls Java in a libjvm without symbols.
 */
#ifndef YRT_HOTSPOT_NATIVES_H
#define YRT_HOTSPOT_NATIVES_H

#include "hotspot_instance.h"

/*
 * struct runtime_ops.expand for native frames. Puts the frame "(gc)" right outside the first function of a collector;
 * recognised by its name, so not in a libjvm without symbols. There, FRAME_VM is set for the functions that have called
 * call_stub instead.
 */
u32 hotspot_natives(const struct hotspot_instance *instance, const struct runtime_process *p,
        const struct frame *frames, u32 i, u32 n, struct frame *ret, u32 max, u32 *eaten);

#endif
