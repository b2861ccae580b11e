/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of JIT code as a program writes them to /tmp/perf-PID.map (V8 with --perf-basic-prof, .NET with
 * DOTNET_PerfMapEnabled, PHP with opcache.jit_debug): lines of "START SIZE NAME", in hexadecimal, appended while it
 * runs. Format: Linux's tools/perf/Documentation/jit-interface.txt.
 *
 * The file is in the target's own root, and named by the pid in the target's pid namespace. Anybody can write to /tmp,
 * so a file that belongs neither to the target's user nor to root is not read.
 */
#ifndef YRT_PERF_MAP_H
#define YRT_PERF_MAP_H

#include <sys/types.h>
#include <types.h>

#include "error.h"

struct perf_map;

/* Reads nothing yet. A process without a file is no error, now or later. */
struct error *perf_map_create(pid_t pid, struct perf_map **ret);
void perf_map_destroy(struct perf_map *m);
/*
 * The name that was written last for addr; NULL: none. Valid until the next call. What was appended since the last
 * call is read if addr is not known yet, a few times a second at most.
 */
const char *perf_map_find(struct perf_map *m, u64 addr);
/* Reads now what was appended. */
void perf_map_look(struct perf_map *m);

#endif
