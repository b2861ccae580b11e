/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of formats: a profile from a few words, and what a format makes of it. */
#ifndef YRT_TEST_PROFILE_TEXT_H
#define YRT_TEST_PROFILE_TEXT_H

#include <stdlib.h>
#include <string.h>

#include "frontends/format/format.h"
#include "frontends/format/input.h"

struct bytes {
	char *data;
	size_t size;
};

static inline struct bytes written(const struct profile *p, const struct format *format)
{
	struct bytes ret = {0};
	FILE *out = open_memstream(&ret.data, &ret.size);

	assert_null(format->write(p, out));
	fclose(out);
	return ret;
}

/* A child of node: kind, and name, module and file as they are. */
static inline u32 add_frame(
        struct profile *p, u32 node, enum profile_kind kind, const char *name, const char *module, const char *file)
{
	struct profile_function fn = {
	        .name = name, .module = module, .file = file, .line = *file ? 7 : 0, .kind = kind};
	u32 function, ret;

	assert_null(profile_function(p, 0, &fn, false, &function));
	assert_null(profile_child(p, node, function, &ret));
	return ret;
}

static inline struct error *read_bytes(const void *data, size_t size, const struct filter_options *options,
        struct profile **ret, struct recording *recording)
{
	FILE *in = fmemopen((void *)data, size, "r");
	struct error *err;

	assert_non_null(in);
	err = input_read(in, "x.yrt", options, ret, recording);
	fclose(in);
	return err;
}

/* Folded stacks of what is read back with these options. */
static inline void expect_read(const struct bytes *b, const struct filter_options *options, const char *expected)
{
	struct recording recording;
	struct profile *p;
	struct bytes text;

	assert_null(read_bytes(b->data, b->size, options, &p, &recording));
	text = written(p, &format_folded);
	assert_string_equal(text.data, expected);
	free(text.data);
	profile_destroy(p);
}

#endif
