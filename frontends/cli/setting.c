/* SPDX-License-Identifier: Apache-2.0 */
#include "setting.h"

#include <stdlib.h>

static struct error *parse_number(const char *what, const char *text, double min, double max, double *ret)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= min) || !(value <= max))
		return error_new(ERROR_USAGE, "%s takes a number from %g to %g, not \"%s\"", what, min, max, text);
	*ret = value;
	return NULL;
}

static struct error *apply_number(const struct setting *s, const char *argument, void *member)
{
	double number = 0;
	struct error *err = parse_number(s->name, argument, s->min, s->max, &number);

	if (!err && s->kind == SETTING_NUMBER)
		*(double *)member = number;
	else if (!err)
		*(u32 *)member = (u32)number;
	return err;
}

static struct error *apply(const struct setting *s, const char *argument, void *member)
{
	if (s->kind == SETTING_BOOL)
		*(bool *)member = s->on;
	else if (s->kind == SETTING_TEXT)
		*(const char **)member = argument;
	else if (s->bits)
		*(u32 *)member |= s->bits;
	else
		return apply_number(s, argument, member);
	return NULL;
}

struct error *settings_apply(const struct setting *table, int key, const char *argument, void *to, bool *taken)
{
	struct error *err = NULL;

	*taken = false;
	for (const struct setting *s = table; s->key && !err; s++)
		if (s->key == key) {
			err = apply(s, argument, (char *)to + s->at);
			*taken = true;
		}
	return err;
}
