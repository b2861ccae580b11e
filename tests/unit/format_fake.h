/* SPDX-License-Identifier: Apache-2.0 */
/* A profile that a test fills frame by frame, and what a format makes of it. */
#ifndef YRT_FORMAT_FAKE_H
#define YRT_FORMAT_FAKE_H

#include "unit.h"

#include "frontends/format/format.h"

static inline int setup(void **state)
{
	return profile_create((struct profile **)state) != NULL;
}

static inline int teardown(void **state)
{
	profile_destroy(*state);
	return 0;
}

static inline u32 frame(struct profile *p, u32 node, const char *name)
{
	struct profile_function fn = {.name = name, .module = "mod", .file = "f.c", .line = 7, .kind = KIND_NATIVE};
	u32 function, ret;

	assert_null(profile_function(p, 0, &fn, false, &function));
	assert_null(profile_child(p, node, function, &ret));
	return ret;
}

static char *bytes_of(const struct profile *p, const struct format *format, size_t *size)
{
	char *bytes = NULL;
	FILE *out = open_memstream(&bytes, size);

	assert_null(format->write(p, out));
	fclose(out);
	return bytes;
}

static char *text_of(struct profile *p, const struct format *format)
{
	size_t size;
	char *text;

	profile_finish(p);
	text = bytes_of(p, format, &size);
	assert_int_equal(strlen(text), size);
	return text;
}

#endif
