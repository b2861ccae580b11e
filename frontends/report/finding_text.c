/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings.h"

static void put_scaled(FILE *out, double value, double base, const char *const *units)
{
	u32 i = 0;

	for (; fabs(value) >= base && units[i + 1]; i++)
		value /= base;
	fprintf(out, "%.*f %s", fabs(value) >= 100 || !i ? 0 : 1, value, units[i]);
}

static void put_time(FILE *out, double s)
{
	static const char *const units[] = {"ns", "us", "ms", "s", NULL};

	put_scaled(out, s * 1e9, 1000, units);
}

int finding_decimals(double share)
{
	return share < 0.0995 && share > 0;
}

static void put_number(FILE *out, double value, const char *format)
{
	static const char *const bytes[] = {"B", "KiB", "MiB", "GiB", "TiB", NULL};

	if (*format == '%')
		fprintf(out, "%.*f %%", finding_decimals(value), 100 * value);
	else if (*format == 'b')
		put_scaled(out, value, 1024, bytes);
	else if (*format == 'm')
		put_scaled(out, value * 60, 1024, bytes);
	else if (*format == 't')
		put_time(out, value);
	else if (*format >= '0' && *format <= '9')
		fprintf(out, "%.*f", *format - '0', value);
	else if (value == floor(value) && fabs(value) < 1e15)
		fprintf(out, "%.0f", value);
	else
		fprintf(out, "%.3g", value);
}

/* "{NAME:FORMAT}", or "{NAME|what is said if its text is empty}", at s, up to end. */
static void put_placeholder(FILE *out, const char *s, const char *end, const struct facts *f)
{
	char name[64];
	size_t n = strcspn(s, ":|}");
	const struct fact *fact;

	snprintf(name, sizeof(name), "%.*s", (int)n, s);
	fact = facts_find(f, name);
	if (!fact)
		fprintf(out, "[%s: not known]", name);
	else if (fact->text && !*fact->text && s[n] == '|')
		fprintf(out, "%.*s", (int)(end - s - (long)n - 1), s + n + 1);
	else if (fact->text)
		fputs(fact->text, out);
	else
		put_number(out, fact->number, s + n < end ? s + n + 1 : "");
}

char *finding_text(const char *text, const struct facts *f)
{
	char *ret = NULL;
	size_t size;
	FILE *out = open_memstream(&ret, &size);

	if (!out)
		return NULL;
	while (*text) {
		const char *end = *text == '{' ? strchr(text, '}') : NULL;

		if (end) {
			put_placeholder(out, text + 1, end, f);
			fflush(out);
			text = end + 1;
			text += !size && *text == ' '; /* nothing to begin with */
		} else {
			fputc(*text++, out);
		}
	}
	fclose(out);
	return ret;
}
