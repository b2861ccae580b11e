/* SPDX-License-Identifier: Apache-2.0 */
#include "requests.h"

#include <jansson.h>

#include "text.h"

#define ROUTES_MAX  1000
#define SLOWEST_MAX 200
#define PARTS_MAX   16
#define STACKS_MAX  64

static void put_number(const json_t *of, const char *name, FILE *out)
{
	fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(of, name)));
}

static void put_string(const json_t *of, const char *name, FILE *out)
{
	const char *text = json_string_value(json_object_get(of, name));

	text_json(out, text ? text : "");
}

static void put_parts(const json_t *times, bool words, FILE *out)
{
	const char *word;
	json_t *ns;
	u32 n = 0;

	putc('[', out);
	json_object_foreach((json_t *)times, word, ns)
	{
		if (n == PARTS_MAX)
			break;
		if (n++)
			putc(',', out);
		if (words)
			text_json(out, word);
		else
			fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(ns));
	}
	putc(']', out);
}

static void put_route(const json_t *r, FILE *out)
{
	static const char *const numbers[] = {"requests", "errors", "p50_ns", "p95_ns", "p99_ns", "max_ns"};

	put_string(r, "route", out);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		putc(',', out);
		put_number(r, numbers[i], out);
	}
	putc(',', out);
	put_parts(json_object_get(r, "time_ns"), false, out);
}

struct column {
	const char *name;
	bool text;
};

/* "[a,b],[a,b]": the first rows of a list; the last column has no name. */
static void put_rows(const json_t *list, const struct column *columns, FILE *out)
{
	const json_t *row;
	size_t i;

	json_array_foreach(list, i, row)
	{
		if (i == STACKS_MAX)
			break;
		fputs(i ? ",[" : "[", out);
		for (const struct column *c = columns; c->name; c++) {
			if (c != columns)
				putc(',', out);
			(c->text ? put_string : put_number)(row, c->name, out);
		}
		putc(']', out);
	}
}

static void put_slow(const json_t *r, FILE *out)
{
	static const char *const numbers[] = {"status", "ns", "pid"};
	static const struct column stacks[] = {{"ns", false}, {"reason", true}, {"frames", true}, {0}},
	                           phases[] = {{"phase", true}, {"ns", false}, {0}},
	                           upstreams[] = {{"peer", true}, {"status", false}, {"response_ms", false}, {0}};

	put_string(r, "request", out);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		putc(',', out);
		put_number(r, numbers[i], out);
	}
	putc(',', out);
	put_parts(json_object_get(r, "time_ns"), false, out);
	fputs(",[", out);
	put_rows(json_object_get(r, "stacks"), stacks, out);
	fputs("],[", out);
	put_rows(json_object_get(r, "phases"), phases, out);
	fputs("],[", out);
	put_rows(json_object_get(r, "upstreams"), upstreams, out);
	putc(']', out);
}

static void put_list(const char *name, const json_t *list, size_t most, void (*put)(const json_t *, FILE *), FILE *out)
{
	const json_t *each;
	size_t i;

	fprintf(out, ",\n\"%s\":[", name);
	json_array_foreach(list, i, each)
	{
		if (i == most)
			break;
		fputs(i ? ",\n[" : "[", out);
		put(each, out);
		putc(']', out);
	}
	putc(']', out);
}

void requests_put(const char *stats, FILE *out)
{
	json_t *root = stats ? json_loads(stats, 0, NULL) : NULL;
	const json_t *requests = json_object_get(root, "requests"), *routes = json_object_get(requests, "routes");

	if (json_array_size(routes)) {
		fputs(",\n\"requests\":{\"times\":", out);
		put_parts(json_object_get(json_array_get(routes, 0), "time_ns"), true, out);
		put_list("routes", routes, ROUTES_MAX, put_route, out);
		put_list("slowest", json_object_get(requests, "slowest"), SLOWEST_MAX, put_slow, out);
		putc('}', out);
	}
	json_decref(root);
}
