/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "text.h"
#include "words.h"

#define FREQUENCY_MIN 1e-3
#define FREQUENCY_MAX 1e9

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

void text_put_clean(FILE *out, const char *s, int most)
{
	char clean[TEXT_CLEAN];
	const char *end = clean;

	text_clean(s, clean);
	for (int i = 0; i < most && *end; i++)
		text_next(&end);
	fprintf(out, "%.*s%s", (int)(end - clean), clean, *end ? "\xe2\x80\xa6" : "");
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

/* "(Book&)" of "total(Book&)"; not "(anonymous namespace)::", nor "()" of "operator()(int)". */
static bool is_parameters(const char *name, const char *at)
{
	return at > name && (isalnum((unsigned char)at[-1]) || at[-1] == '_' || at[-1] == '>' || at[-1] == ')');
}

void text_put_short(FILE *out, const char *name, enum profile_kind kind)
{
	u32 depth = 0;

	for (const char *at = name; *at; at++) {
		bool opens = *at == '<' && at > name && (isalnum((unsigned char)at[-1]) || at[-1] == '_');

		if (kind == KIND_CXX && !depth && *at == '(' && is_parameters(name, at) &&
		        strncmp(at - (at > name + 7 ? 8 : 0), "operator", 8) != 0)
			return;
		depth += opens || (depth && *at == '<');
		if (!depth)
			fputc(*at, out);
		depth -= depth && *at == '>';
	}
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

const char *text_title(const struct profile_meta *m, const char *otherwise)
{
	return m->heading ? m->heading : m->title ? m->title : otherwise;
}

const char *text_unit(const struct profile_meta *m)
{
	return m->unit && *m->unit ? m->unit : "samples";
}

bool text_more(const struct profile_meta *m, bool compared)
{
	return m->more && !compared && !strcmp(text_unit(m), "bytes") && !strstr(m->more, "bytes");
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
