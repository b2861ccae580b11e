/* SPDX-License-Identifier: Apache-2.0 */
#include "setting.h"

#include <stdlib.h>
#include <string.h>

/* What a number of seconds is multiplied by; 0: there is no such unit. Times of calls and waits have the small ones. */
static double seconds_of(const char *unit)
{
	static const struct {
		const char *word;
		double s;
	} units[] = {{"", 1}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(unit, units[i].word))
			return units[i].s;
	return 0;
}

struct error *setting_number(const struct setting *s, const char *text, double *ret)
{
	char *end;
	double value = strtod(text, &end), unit = s->seconds ? seconds_of(end) : !*end;

	value *= unit;
	if (end == text || !unit || !(value >= s->min) || !(value <= s->max))
		return error_new(ERROR_USAGE, "%s takes %s from %g to %g, not \"%s\"", s->name,
		        s->seconds ? "seconds (or 500ms, 2m, 1h)" : "a number", s->min, s->max, text);
	*ret = value;
	return NULL;
}

static struct error *apply_number(const struct setting *s, const char *argument, void *member)
{
	double number = 0;
	struct error *err = setting_number(s, argument, &number);

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
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9},
	        {"", s->per_number}};
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
