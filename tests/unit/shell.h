/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the shell in a test. */
#ifndef YRT_SHELL_H
#define YRT_SHELL_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fails the test if the command does. */
static inline void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void run(const char *format, ...)
{
	char command[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	if (system(command))
		fail_msg("failed: %s", command);
}

/* Of a symbol, in a file that nm has written. */
static inline unsigned long address_in(const char *path, const char *symbol)
{
	FILE *file = fopen(path, "r");
	unsigned long addr;
	char name[64];

	assert_non_null(file);
	while (fscanf(file, "%lx %*c %63s\n", &addr, name) == 2 || fscanf(file, "%*[^\n]\n") != EOF)
		if (!strcmp(name, symbol)) {
			fclose(file);
			return addr;
		}
	fail_msg("nm knows no %s", symbol);
	return 0;
}

#endif
