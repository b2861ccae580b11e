/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a JVM ended itself: what its report (hs_err_pid.log) begins with. VMError keeps it in static variables
 * (share/utilities/vmError.hpp of 8 to 28), which libjvm's .symtab or its debug file names.
 */
#ifndef YRT_HOTSPOT_FATAL_H
#define YRT_HOTSPOT_FATAL_H

#include "hotspot_instance.h"

/* runtime_ops.last_words: "fatal error: OutOfMemory encountered: Java heap space" */
bool hotspot_last_words(void *instance, const struct runtime_dying *t, char *ret, size_t size);

#endif
