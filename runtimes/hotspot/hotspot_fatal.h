/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a JVM ended itself: what its report (hs_err_pid.log) begins with. VMError keeps it in static variables
 * (share/utilities/vmError.hpp of 8 to 28), which libjvm's .symtab or its debug file names.
 */
#ifndef YRT_HOTSPOT_FATAL_H
#define YRT_HOTSPOT_FATAL_H

#include "hotspot_instance.h"

/* As runtime_ops.last_words: "fatal error: OutOfMemory encountered: Java heap space". */
bool hotspot_last_words(const struct hotspot_instance *instance, const struct runtime_process *p,
        const struct frame *frames, u32 n, char *ret, size_t size);

#endif
