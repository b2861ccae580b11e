/* SPDX-License-Identifier: Apache-2.0 */
#include "perf_map_hint.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "say.h"
#include "unwind/cleanup.h"

#define ARGUMENTS_MAX (256 << 10)

static const struct hint {
	const char *program, *option;
} hints[] = {
        {"node", "--perf-basic-prof"}, /* https://nodejs.org/api/cli.html#--perf-basic-prof */
        {"nodejs", "--perf-basic-prof"},
};

/* Is it among the strings of /proc/PID/cmdline or environ? */
static bool says(pid_t pid, const char *file, const char *option)
{
	cleanup(fclose) FILE *in = NULL;
	cleanup(free) char *bytes = malloc(ARGUMENTS_MAX);
	char path[64];
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	in = fopen(path, "re");
	n = in && bytes ? fread(bytes, 1, ARGUMENTS_MAX, in) : 0;
	return n && memmem(bytes, n, option, strlen(option));
}

static const struct hint *find_hint(pid_t pid)
{
	char path[64], program[PATH_MAX];
	const char *base;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, program, sizeof(program) - 1);
	program[n > 0 ? n : 0] = '\0';
	base = strrchr(program, '/');
	for (size_t i = 0; base && i < sizeof(hints) / sizeof(*hints); i++)
		if (!strcmp(base + 1, hints[i].program))
			return &hints[i];
	return NULL;
}

void perf_map_hint(pid_t pid)
{
	const struct hint *h = find_hint(pid);
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root/tmp/perf-%d.map", pid, pid);
	if (h && access(path, F_OK) && !says(pid, "cmdline", h->option) && !says(pid, "environ", h->option))
		say_note("what %s (pid %d) compiled has no names: started with %s it tells them", h->program, pid,
		        h->option);
}
