/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

#define NAMED_MAX 8 /* missing fields that a message names */

struct error *layout_create(const struct layout_schema *schema, struct layout **ret)
{
	struct layout *l = calloc(1, sizeof(*l));

	if (!l)
		return &error_no_memory;
	l->schema = schema;
	l->values = calloc(1, schema->size);
	l->fills = calloc(schema->n, sizeof(*l->fills));
	if (!l->values || !l->fills) {
		layout_destroy(l);
		return &error_no_memory;
	}
	*ret = l;
	return NULL;
}

void layout_destroy(struct layout *l)
{
	if (!l)
		return;
	for (u32 i = 0; l->values && i < l->schema->n; i++)
		if (l->schema->fields[i].list)
			free(layout_list(l, i)->names);
	for (u32 i = 0; i < LAYOUT_SOURCES; i++)
		free(l->details[i]);
	free(l->values);
	free(l->fills);
	free(l);
}

struct error *layout_copy(const struct layout *from, struct layout **ret)
{
	struct error *err = layout_create(from->schema, ret);

	for (u32 i = 0; !err && i < from->schema->n; i++) {
		if (from->schema->fields[i].list)
			err = layout_set_list(
			        *ret, i, layout_list(from, i)->names, layout_list(from, i)->n, from->fills[i].source);
		else
			layout_set(*ret, i, *layout_member(from, i), from->fills[i].source);
	}
	for (u32 i = 0; !err && i < LAYOUT_SOURCES; i++)
		if (from->details[i])
			err = layout_detail(*ret, i, "%s", from->details[i]);
	if (err) {
		layout_destroy(*ret);
		*ret = NULL;
	}
	return err;
}

struct layout_member *layout_member(const struct layout *l, u32 field)
{
	return (struct layout_member *)((char *)l->values + l->schema->fields[field].slot);
}

struct layout_list *layout_list(const struct layout *l, u32 field)
{
	return (struct layout_list *)((char *)l->values + l->schema->fields[field].slot);
}

void layout_set(struct layout *l, u32 field, struct layout_member value, enum layout_source source)
{
	*layout_member(l, field) = value;
	l->fills[field] = (struct layout_fill){.source = source};
}

/* One block: pointers, then the text that they point to. */
static const char **copy_names(const char *const *names, u32 n)
{
	size_t size = (n + 1) * sizeof(*names);
	const char **copy;
	char *text;

	for (u32 i = 0; i < n; i++)
		size += names[i] ? strlen(names[i]) + 1 : 1;
	copy = calloc(1, size);
	if (!copy)
		return NULL;
	text = (char *)(copy + n + 1);
	for (u32 i = 0; i < n; i++) {
		copy[i] = text;
		text = stpcpy(text, names[i] ? names[i] : "") + 1;
	}
	return copy;
}

struct error *layout_set_list(struct layout *l, u32 field, const char *const *names, u32 n, enum layout_source source)
{
	const char **copy = copy_names(names, n);
	struct layout_list *list = layout_list(l, field);

	if (!copy)
		return &error_no_memory;
	free(list->names);
	*list = (struct layout_list){copy, n};
	l->fills[field] = (struct layout_fill){.source = source};
	return NULL;
}

struct error *layout_detail(struct layout *l, enum layout_source source, const char *format, ...)
{
	char *text;
	va_list args;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0)
		return &error_no_memory;
	free(l->details[source]);
	l->details[source] = text;
	return NULL;
}

const char *layout_origin(const struct layout *l, u32 field, char *buf, size_t size)
{
	static const char *const words[] = {"unknown", "DWARF", "debug file", "library", "code", "process"};
	u8 source = l->fills[field].source;
	const char *detail = l->details[source];

	snprintf(buf, size, "%s%s%s", words[source], detail ? " " : "", detail ? detail : "");
	return buf;
}

struct error *layout_complete(const struct layout *l, const char *what)
{
	cleanup(free) char *names = NULL;
	size_t size;
	u32 missing = 0;
	FILE *out = open_memstream(&names, &size);

	if (!out)
		return &error_no_memory;
	for (u32 i = 0; i < l->schema->n; i++) {
		const char *problem = l->fills[i].problem;

		if (l->fills[i].source != LAYOUT_UNKNOWN || (l->schema->fields[i].optional && !problem))
			continue;
		if (missing++ < NAMED_MAX)
			fprintf(out, "%s%s%s%s%s", missing > 1 ? ", " : "", l->schema->fields[i].name,
			        problem ? " (" : "", problem ? problem : "", problem ? ")" : "");
	}
	if (missing > NAMED_MAX)
		fprintf(out, " and %u more", missing - NAMED_MAX);
	if (fclose(out) || !names)
		return &error_no_memory;
	if (!missing)
		return NULL;
	return error_new(ERROR_UNSUPPORTED, "%s lacks parts of the layout of %s: %s", what, l->schema->runtime, names);
}

bool layout_equal_field(const struct layout *a, const struct layout *b, u32 field)
{
	const struct layout_list *x, *y;

	if (!a->schema->fields[field].list)
		return !memcmp(layout_member(a, field), layout_member(b, field), sizeof(struct layout_member));
	x = layout_list(a, field);
	y = layout_list(b, field);
	if (x->n != y->n)
		return false;
	for (u32 i = 0; i < x->n; i++)
		if (strcmp(x->names[i], y->names[i]))
			return false;
	return true;
}

bool layout_equal(const struct layout *a, const struct layout *b)
{
	for (u32 i = 0; i < a->schema->n; i++)
		if (!layout_equal_field(a, b, i))
			return false;
	return true;
}
