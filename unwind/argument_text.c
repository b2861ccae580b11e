/* SPDX-License-Identifier: Apache-2.0 */
#include "argument_text.h"

#include <string.h>

static void write_byte(u8 c, FILE *out)
{
	if (c == '\n')
		fputs("\\n", out);
	else if (c == '"' || c == '\\')
		fprintf(out, "\\%c", c);
	else if (c < ' ' || c == 0x7f)
		fprintf(out, "\\%u", c);
	else
		putc(c, out);
}

void argument_quoted(const char *text, size_t size, bool cut, FILE *out)
{
	putc('"', out);
	for (size_t i = 0; i < size; i++)
		write_byte((u8)text[i], out);
	fputs(cut ? "\"..." : "\"", out);
}

void argument_text(const struct runtime_value *v, u32 data_at, FILE *out)
{
	if (v->size < data_at) {
		fputs("<string>", out);
		return;
	}
	argument_quoted((const char *)v->bytes + data_at, v->size - data_at, v->size == VALUE_BYTES, out);
}

void argument_number(u64 word, const char *whole, FILE *out)
{
	char text[40];
	double d;

	memcpy(&d, &word, sizeof(d));
	snprintf(text, sizeof(text), "%.14g", d);
	fprintf(out, "%s%s", text, strpbrk(text, ".en") ? "" : whole);
}
