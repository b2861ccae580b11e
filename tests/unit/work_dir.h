/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of a test's own, its files, and commands of the shell in it. */
#ifndef YRT_WORK_DIR_H
#define YRT_WORK_DIR_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static char dir[] = "/tmp/yrt-test-XXXXXX";

/* Fails the test if the command does. */
static inline void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void run(const char *format, ...)
{
	char command[2048];
	va_list args;
	int at = snprintf(command, sizeof(command), "cd %s && ", dir);

	va_start(args, format);
	vsnprintf(command + at, sizeof(command) - at, format, args);
	va_end(args);
	if (system(command))
		fail_msg("%s", command);
}

static inline void write_file(const char *name, const void *bytes, size_t size)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static inline int make_dir(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static inline int remove_dir(void **state)
{
	run("cd / && rm -r %s", dir);
	return 0;
}

#endif
