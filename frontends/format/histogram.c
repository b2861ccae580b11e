/* SPDX-License-Identifier: Apache-2.0 */
#include "histogram.h"

#include <jansson.h>

#define BUCKETS_MAX 4096

static json_int_t member(const json_t *bucket, const char *name)
{
	return json_integer_value(json_object_get(bucket, name));
}

void histogram_put(const char *stats, FILE *out)
{
	json_t *root = stats ? json_loads(stats, 0, NULL) : NULL;
	const json_t *list = json_object_get(json_object_get(root, "latency"), "histogram"), *bucket;
	json_int_t before = 0;
	size_t i, n = 0;

	json_array_foreach(list, i, bucket)
	{
		json_int_t from = member(bucket, "from_ns"), to = member(bucket, "to_ns"),
		           calls = member(bucket, "calls");

		if (from < before || to <= from || calls <= 0 || n == BUCKETS_MAX)
			continue;
		fprintf(out, "%s[%" JSON_INTEGER_FORMAT ",%" JSON_INTEGER_FORMAT ",%" JSON_INTEGER_FORMAT "]",
		        n++ ? "," : ",\n\"histogram\":[", from, to, calls);
		before = to;
	}
	if (n)
		putc(']', out);
	json_decref(root);
}
