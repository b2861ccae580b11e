/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the shell in a test. */
#ifndef YRT_SHELL_H
#define YRT_SHELL_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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

#endif
