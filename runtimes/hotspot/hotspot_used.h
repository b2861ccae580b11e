/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a JVM's old generation its last collection left in use: a heap that has its pages already grows without
 * the process growing. From the file of performance counters (/tmp/hsperfdata_USER/PID as the process sees it), which
 * HotSpot writes unless it runs with -XX:-UsePerfData or -XX:+PerfDisableSharedMem. Format: jdk 17,
 * src/hotspot/share/runtime/perfMemory.hpp and perfData.hpp; names: gc/shared/generationCounters.cpp and
 * hSpaceCounters.cpp. Serial, Parallel and G1 update them at the end of collections; ZGC, too, whose heap is
 * generation 1.
 */
#ifndef YRT_HOTSPOT_USED_H
#define YRT_HOTSPOT_USED_H

#include <stddef.h>
#include <sys/types.h>
#include <types.h>

/* As runtime_ops.used_after_collection. */
u64 hotspot_used(pid_t pid);
/* The same, of a file of counters, which may hold anything. */
u64 hotspot_used_of(const void *data, size_t size);

#endif
