/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "text.h"
#include "words.h"

#define FREQUENCY_MIN 1e-3
#define FREQUENCY_MAX 1e9

static u32 sequence_length(u8 first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first < 0xe0)
		return 2;
	if (first >= 0xe0 && first < 0xf0)
		return 3;
	return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

static bool is_code_point(u32 c, u32 length)
{
	static const u32 least[] = {0, 0, 0x80, 0x800, 0x10000};

	return c >= least[length] && c <= 0x10ffff && (c < 0xd800 || c >= 0xe000);
}

u32 text_next(const char **s)
{
	const u8 *b = (const u8 *)*s;
	u32 length = sequence_length(*b), c = length > 1 ? *b & (0x7f >> length) : *b, i = 1;

	while (i < length && (b[i] & 0xc0) == 0x80)
		c = c << 6 | (b[i++] & 0x3f);
	if (!length || i < length || !is_code_point(c, length)) {
		(*s)++;
		return TEXT_REPLACEMENT;
	}
	*s += length;
	return c;
}

u32 text_encode(u32 c, char ret[4])
{
	u32 length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (u32 i = length - 1; i; i--, c >>= 6)
		ret[i] = (char)(0x80 | (c & 0x3f));
	ret[0] = (char)(length == 1 ? c : (0xf00 >> length & 0xff) | c);
	return length;
}

bool text_is_control(u32 c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

size_t text_clean(const char *s, char to[TEXT_CLEAN])
{
	size_t n = 0;

	while (*s && n + 4 < TEXT_CLEAN) {
		u32 c = text_next(&s);

		n += text_encode(text_is_control(c) ? ' ' : c, to + n);
	}
	to[n] = 0;
	return n;
}

void text_json(FILE *out, const char *s)
{
	char bytes[4];

	putc('"', out);
	while (*s) {
		u32 c = text_next(&s);

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c == '<' || c == '>' || c == '&' || text_is_control(c))
			fprintf(out, "\\u%04x", c);
		else
			fwrite(bytes, 1, text_encode(c, bytes), out);
	}
	putc('"', out);
}

void text_xml(FILE *out, const char *s)
{
	char bytes[4];

	while (*s) {
		u32 c = text_next(&s);

		if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'')
			fprintf(out, "&#%u;", c);
		else if (text_is_control(c))
			putc(' ', out);
		else /* U+FFFE and U+FFFF may not be in XML 1.0 */
			fwrite(bytes, 1, text_encode(c == 0xfffe || c == 0xffff ? TEXT_REPLACEMENT : c, bytes), out);
	}
}

const char *text_name(const struct profile_function *fn)
{
	return *fn->name ? fn->name : "[unknown]";
}

const char *text_plain_name(const struct profile_function *fn, char *ret, size_t size)
{
	size_t n = strlen(text_name(fn)), tail;
	char line[16];

	tail = (size_t)snprintf(line, sizeof(line), ":%u", fn->line);
	if (fn->line && n > tail && !strcmp(text_name(fn) + n - tail, line))
		n -= tail;
	snprintf(ret, size, "%.*s", (int)n, text_name(fn));
	return ret;
}

const char *text_marks(u32 flags)
{
	static const char *const marks[] = {"", "? ", "~ ", "? ~ "};

	return marks[!!(flags & FRAME_GUESS) + 2 * !!(flags & FRAME_APPROX)];
}

void text_number(FILE *out, u64 n)
{
	char digits[20];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + n % 10);
	while (n /= 10);
	fwrite_unlocked(digits + at, 1, sizeof(digits) - at, out);
}

const char *text_kind(enum profile_kind kind)
{
	static const char *const words[] = {
#define X(id, word) [id] = word,
	        PROFILE_KINDS(X)
#undef X
	};

	return words[kind];
}

const char *text_tiers(const struct profile_function *fn, char ret[TEXT_TIERS])
{
	const struct {
		enum profile_kind kind;
		u32 percent;
	} tiers[] = {{KIND_SCRIPT_JIT, fn->tiers.jit}, {KIND_SCRIPT_BASELINE, fn->tiers.baseline},
	        {KIND_SCRIPT, fn->tiers.script}};
	int n = 0;

	for (size_t i = 0; i < sizeof(tiers) / sizeof(*tiers); i++)
		if (tiers[i].percent)
			n += snprintf(ret + n, TEXT_TIERS - n, "%s%s %u %%", n ? ", " : "",
			        words_of(fn->module, tiers[i].kind), tiers[i].percent);
	if (n && fn->tiers.inlined)
		n += snprintf(ret + n, TEXT_TIERS - n, ", inlined %u %%", fn->tiers.inlined);
	if (n && fn->tiers.approx)
		snprintf(ret + n, TEXT_TIERS - n, ", approximate %u %%", fn->tiers.approx);
	if (!n)
		snprintf(ret, TEXT_TIERS, "%s", words_of(fn->module, fn->kind));
	return ret;
}

const char *text_unit(const struct profile_meta *m)
{
	return m->unit && *m->unit ? m->unit : "samples";
}

bool text_is_time(const struct profile_meta *m)
{
	return !strcmp(text_unit(m), "nanoseconds");
}

const char *text_amount(const struct profile_meta *m, u64 n, char ret[TEXT_AMOUNT])
{
	static const char *const bytes[] = {"B", "KiB", "MiB", "GiB", "TiB", NULL};
	static const char *const times[] = {"ns", "us", "ms", "s", NULL};
	bool is_time = text_is_time(m);
	const char *const *units = is_time ? times : bytes;
	double value = (double)n, base = is_time ? 1000 : 1024;
	u32 i = 0;

	if (!is_time && strcmp(text_unit(m), "bytes")) {
		snprintf(ret, TEXT_AMOUNT, "%" PRIu64 " %s", n, text_unit(m));
		return ret;
	}
	for (; value >= base && units[i + 1]; i++)
		value /= base;
	snprintf(ret, TEXT_AMOUNT, "%.*f %s", !i || value >= 100 ? 0 : value < 10 ? 2 : 1, value, units[i]);
	return ret;
}

double text_period_ns(const struct profile_meta *m)
{
	bool known = isfinite(m->frequency) && m->frequency >= FREQUENCY_MIN && m->frequency <= FREQUENCY_MAX;

	return known && !strcmp(text_unit(m), "samples") ? 1e9 / m->frequency : 0;
}

u64 text_scaled(u64 count, double factor)
{
	double scaled = (double)count * factor;

	return scaled < (double)INT64_MAX ? (u64)scaled : (u64)INT64_MAX;
}

struct error *text_finish(FILE *out, const char *what)
{
	int code = ferror(out) ? errno : 0; /* after a failed write flushing may succeed: there is nothing left */

	errno = 0;
	if (!fflush(out) && !ferror(out))
		return NULL;
	code = errno ? errno : code;
	return error_new(ERROR_OUTPUT, "cannot write the %s: %s", what, code ? strerror(code) : "a write failed");
}
