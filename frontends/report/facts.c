/* SPDX-License-Identifier: Apache-2.0 */
#include "facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/clean_text.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"

const struct fact *facts_find(const struct facts *f, const char *name)
{
	for (u32 i = 0; i < f->n; i++)
		if (!strcmp(f->all[i].name, name))
			return &f->all[i];
	return NULL;
}

static struct fact *make(struct facts *f, const char *name)
{
	struct fact *found = (struct fact *)facts_find(f, name);
	char *copy;

	if (found || f->n >= FACTS_MAX)
		return found;
	copy = strdup(name);
	if (!copy || grow(&f->all, f->n, sizeof(*f->all))) {
		free(copy);
		f->no_memory = true;
		return NULL;
	}
	f->all[f->n] = (struct fact){.name = copy};
	return &f->all[f->n++];
}

void facts_set(struct facts *f, const char *name, double number)
{
	struct fact *fact = isfinite(number) ? make(f, name) : NULL;

	if (!fact)
		return;
	free(fact->text);
	fact->text = NULL;
	fact->number = number;
}

void facts_set_text(struct facts *f, const char *name, const char *text)
{
	struct fact *fact = text ? make(f, name) : NULL;
	char *copy = fact ? clean_text(text) : NULL;

	if (!fact)
		return;
	if (!copy)
		f->no_memory = true;
	free(fact->text);
	fact->text = copy;
}

bool facts_raise(struct facts *f, const char *name, double number)
{
	const struct fact *before = facts_find(f, name);

	if (before && before->number >= number)
		return false;
	facts_set(f, name, number);
	return true;
}

void facts_lower(struct facts *f, const char *name, double number)
{
	const struct fact *known = facts_find(f, name);

	facts_set(f, name, known ? fmin(known->number, number) : number);
}

void facts_forget(struct facts *f, const char *name)
{
	struct fact *fact = (struct fact *)facts_find(f, name);

	if (!fact)
		return;
	free(fact->name);
	free(fact->text);
	*fact = f->all[--f->n];
}

void facts_add(struct facts *f, const char *name, double number)
{
	facts_set(f, name, facts_number(f, name) + number);
}

double facts_number(const struct facts *f, const char *name)
{
	const struct fact *fact = facts_find(f, name);

	return fact && !fact->text ? fact->number : 0;
}

struct error *facts_check(const struct facts *f)
{
	return f->no_memory ? &error_no_memory : NULL;
}

void facts_free(struct facts *f)
{
	for (u32 i = 0; i < f->n; i++) {
		free(f->all[i].name);
		free(f->all[i].text);
	}
	free(f->all);
	*f = (struct facts){0};
}

json_t *facts_to_json(const struct facts *f)
{
	json_t *ret = json_object();

	for (u32 i = 0; i < f->n; i++)
		json_object_set_new(ret, f->all[i].name,
		        f->all[i].text ? json_string(f->all[i].text) : json_real(f->all[i].number));
	return ret;
}

struct error *facts_from_json(const json_t *object, const char *path, struct facts *ret)
{
	const char *name;
	json_t *value;

	if (!json_is_object(object))
		return error_new(ERROR_INPUT, "%s: the counters are no JSON object", path);
	json_object_foreach((json_t *)object, name, value)
	{
		if (json_is_number(value))
			facts_set(ret, name, json_number_value(value));
		else if (json_is_string(value))
			facts_set_text(ret, name, json_string_value(value));
		else
			return error_new(ERROR_INPUT, "%s: \"%s\" is neither a number nor a text", path, name);
	}
	return facts_check(ret);
}
