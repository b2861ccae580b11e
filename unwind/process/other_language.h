/* SPDX-License-Identifier: Apache-2.0 */
/* Languages that yrt does not read: JITs that it can name only by a perf map (/tmp/perf-PID.map), and interpreters. */
#ifndef YRT_OTHER_LANGUAGE_H
#define YRT_OTHER_LANGUAGE_H

#include <stdbool.h>
#include <sys/types.h>

struct other_language {
	const char *name;
	char limits[160]; /* what its stacks lack, and which option changes that */
};

/* False: it runs none, or one whose functions have names, as it writes a perf map. */
bool other_language_of(pid_t pid, struct other_language *ret);

#endif
