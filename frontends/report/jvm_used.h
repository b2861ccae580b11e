/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a JVM's old generation its last collection left in use: a heap that has its pages already grows without
 * the process growing. From the file of performance counters (/tmp/hsperfdata_USER/PID as the process sees it), which
 * HotSpot writes unless it runs with -XX:-UsePerfData or -XX:+PerfDisableSharedMem. Format: jdk 17,
 * src/hotspot/share/runtime/perfMemory.hpp and perfData.hpp; names: gc/shared/generationCounters.cpp and
 * hSpaceCounters.cpp. Serial, Parallel and G1 update them at the end of collections; ZGC, too, whose heap is
 * generation 1.
 */
#ifndef YRT_REPORT_JVM_USED_H
#define YRT_REPORT_JVM_USED_H

#include <sys/types.h>

#include <types.h>

/* Bytes; 0: no such file. */
u64 jvm_used(pid_t pid);

#endif
