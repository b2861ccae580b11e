/* SPDX-License-Identifier: Apache-2.0 */
#include "own_tid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

pid_t own_tid(pid_t pid, pid_t tid)
{
	static const char key[] = "NSpid:";
	cleanup(fclose) FILE *file = NULL;
	char line[512];
	const char *last;

	snprintf(line, sizeof(line), "/proc/%d/task/%d/status", pid, tid);
	file = fopen(line, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, sizeof(key) - 1))
			continue;
		last = strrchr(line, '\t');
		return last && atoi(last) > 0 ? atoi(last) : tid;
	}
	return tid;
}
