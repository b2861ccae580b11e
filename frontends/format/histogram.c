/* SPDX-License-Identifier: Apache-2.0 */
#include "histogram.h"

#include <jansson.h>

#include "text.h"

#define BUCKETS_MAX 4096
#define LONGEST_MAX 1000
#define WAITS_MAX   64

static json_int_t member(const json_t *bucket, const char *name)
{
	return json_integer_value(json_object_get(bucket, name));
}

static void put_time(const json_t *of, const char *name, FILE *out)
{
	fprintf(out, "%" JSON_INTEGER_FORMAT, member(of, name));
}

static void put_string(const json_t *of, const char *name, FILE *out)
{
	const char *text = json_string_value(json_object_get(of, name));

	text_json(out, text ? text : "");
}

/* Of a function; *several: others were put before. */
static void put_histogram(const json_t *function, bool *several, FILE *out)
{
	const json_t *list = json_object_get(function, "histogram"), *bucket;
	json_int_t before = 0;
	size_t i, n = 0;

	json_array_foreach(list, i, bucket)
	{
		json_int_t from = member(bucket, "from_ns"), to = member(bucket, "to_ns"),
		           calls = member(bucket, "calls");

		if (from < before || to <= from || calls <= 0 || n == BUCKETS_MAX)
			continue;
		if (!n++) {
			fputs(*several ? ",\n[" : ",\n\"histograms\":[[", out);
			put_string(function, "function", out);
			*several = true;
		}
		fprintf(out, ",[%" JSON_INTEGER_FORMAT ",%" JSON_INTEGER_FORMAT ",%" JSON_INTEGER_FORMAT "]", from, to,
		        calls);
		before = to;
	}
	if (n)
		putc(']', out);
}

static void put_call(const json_t *call, FILE *out)
{
	const char *thread = json_string_value(json_object_get(call, "thread"));
	char title[256];
	const json_t *wait;
	size_t i;

	snprintf(title, sizeof(title), "%s (%" JSON_INTEGER_FORMAT ")", thread ? thread : "", member(call, "tid"));
	put_time(call, "ns", out);
	putc(',', out);
	put_time(call, "at_ns", out);
	putc(',', out);
	text_json(out, title);
	putc(',', out);
	put_string(call, "call", out);
	json_array_foreach(json_object_get(call, "waits"), i, wait)
	{
		if (i == WAITS_MAX)
			break;
		putc(',', out);
		put_string(wait, "reason", out);
		putc(',', out);
		put_time(wait, "ns", out);
	}
}

static void put_longest(const json_t *list, bool *several, FILE *out)
{
	const json_t *call;
	size_t i;

	json_array_foreach(list, i, call)
	{
		if (i == LONGEST_MAX)
			break;
		fputs(*several ? ",\n[" : ",\n\"longest\":[[", out);
		put_call(call, out);
		putc(']', out);
		*several = true;
	}
}

void histogram_put(const char *stats, FILE *out)
{
	json_t *root = stats ? json_loads(stats, 0, NULL) : NULL;
	json_t *latency = json_object_get(root, "latency"), *functions = json_object_get(latency, "functions"),
	       *function;
	json_t *all = functions ? json_incref(functions) : json_pack("[O*]", latency);
	bool several = false;
	size_t i;

	json_array_foreach(all, i, function) put_histogram(function, &several, out);
	if (several)
		putc(']', out);
	several = false;
	json_array_foreach(all, i, function) put_longest(json_object_get(function, "longest"), &several, out);
	if (several)
		putc(']', out);
	json_decref(all);
	json_decref(root);
}
