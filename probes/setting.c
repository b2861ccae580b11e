/* SPDX-License-Identifier: Apache-2.0 */
#include "setting.h"

#include <stdlib.h>
#include <string.h>

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

/* "100ms", "5us", "2s". */
static struct error *apply_time(const struct setting *s, const char *argument, u64 *ret)
{
	const struct {
		const char *word;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"", s->per_number}};
	char *end;
	double value = strtod(argument, &end);

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (end != argument && units[i].ns && !strcmp(end, units[i].word) && value >= 0 &&
		        value * units[i].ns < 1e18) {
			*ret = (u64)(value * units[i].ns);
			return NULL;
		}
	return error_new(ERROR_USAGE, "%s takes a time such as 100ms, 5us or 2s, not \"%s\"", s->name, argument);
}

static struct error *apply(const struct setting *s, const char *argument, void *member)
{
	if (s->kind == SETTING_BOOL)
		*(bool *)member = s->on;
	else if (s->kind == SETTING_TEXT)
		*(const char **)member = argument;
	else if (s->kind == SETTING_TIME)
		return apply_time(s, argument, member);
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
