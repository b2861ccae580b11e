/* SPDX-License-Identifier: Apache-2.0 */
#include "top_json.h"

#include <jansson.h>

#include "frontends/format/text.h"

static json_t *clean(const char *s)
{
	char text[TEXT_CLEAN];

	text_clean(s, text);
	return json_string(text);
}

static json_t *json_row(const struct row *r)
{
	json_t *o = json_pack("{s:I, s:I, s:o, s:s, s:o}", "self", (json_int_t)r->self, "total", (json_int_t)r->total,
	        "function", clean(text_name(r->function)), "kind", text_kind(r->function->kind), "module",
	        clean(r->function->module));

	if (r->function->kind == KIND_PROCESS)
		json_object_set_new(o, "pid", json_integer(r->function->line));
	if (r->thread)
		json_object_set_new(o, "thread", clean(r->thread->name));
	return o;
}

struct error *top_json(FILE *out, const struct rows *rows, u32 most, const struct top_moment *m)
{
	json_t *list = json_array(), *o;
	bool failed;

	for (u32 i = 0; i < rows->n && i < most; i++)
		json_array_append_new(list, json_row(&rows->row[i]));
	o = json_pack("{s:o, s:f, s:f, s:I, s:f, s:o, s:o}", "target", clean(m->target ? m->target : ""), "seconds",
	        m->elapsed_s, "span", m->span_s, "samples", (json_int_t)rows->samples, "cpus", m->cpus, "loss",
	        clean(m->loss ? m->loss : ""), "rows", list);
	failed = !o || json_dumpf(o, out, JSON_COMPACT);
	json_decref(o);
	if (failed)
		return error_new(ERROR_OUTPUT, "cannot write the table");
	fputc('\n', out);
	return text_finish(out, "table");
}
