/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which methods of a class add to a collection in one of its fields, by the bytecode of its file (JVMS 25, chapters 4
 * and 6): what adds (add(), put(), computeIfAbsent(), ...) is called on what was read from the field, on one of its
 * elements, or on a local variable that has that. Files are found as the process does: in the archives
 * that it has open, also below BOOT-INF/classes and WEB-INF/classes, and the folders of its class path.
 */
#ifndef YRT_HOTSPOT_ADDED_H
#define YRT_HOTSPOT_ADDED_H

#include <stddef.h>
#include <types.h>

#include "unwind/runtime.h"

/* As runtime_ops.added. */
struct error *hotspot_added(pid_t pid, const char *holder, const char *field, runtime_place *each, void *ctx);
/* The same of one file, which may hold anything. */
struct error *hotspot_added_in(
        const void *file, size_t size, const char *holder, const char *field, runtime_place *each, void *ctx);

#endif
