/* SPDX-License-Identifier: Apache-2.0 */
/* JITs that yrt can only name by a perf map (/tmp/perf-PID.map), which they write if they are asked to. */
#ifndef YRT_PERF_MAP_HINT_H
#define YRT_PERF_MAP_HINT_H

#include <sys/types.h>

/* Notes on stderr if pid is such a program and was not asked to. */
void perf_map_hint(pid_t pid);

#endif
