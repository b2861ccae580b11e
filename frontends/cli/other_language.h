/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Languages that yrt does not support: JITs that it can name only by a perf map (/tmp/perf-PID.map), and interpreters.
 */
#ifndef YRT_OTHER_LANGUAGE_H
#define YRT_OTHER_LANGUAGE_H

#include <sys/types.h>

/* Notes on stderr if pid runs one: which option makes it write a perf map, if it was not given, or what its stacks
 * lack. */
void other_language_hint(pid_t pid);

#endif
