/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "token.h"

struct lexer {
	struct y_source *s;
	const char *p, *end, *line; /* line: where it begins */
	u32 file, number;
	struct y_pos fixed; /* of all tokens, if its line is not 0 */
	bool first, space;
};

static struct y_pos here(const struct lexer *l, const char *p)
{
	if (l->fixed.line)
		return l->fixed;
	return (struct y_pos){l->file, l->number, (u32)(p - l->line) + 1};
}

static void next_line(struct lexer *l, const char *behind)
{
	l->number++;
	l->line = behind;
}

/* Bytes of a line that goes on in the next one; 0: it does not. */
static size_t splice(const struct lexer *l, const char *p)
{
	if (l->end - p >= 2 && p[0] == '\\' && p[1] == '\n')
		return 2;
	return l->end - p >= 3 && p[0] == '\\' && p[1] == '\r' && p[2] == '\n' ? 3 : 0;
}

static void skip_comment(struct lexer *l)
{
	const char *start = l->p;
	struct y_pos pos = here(l, start);

	if (l->p[1] == '/') {
		while (l->p < l->end && *l->p != '\n')
			l->p++;
		return;
	}
	for (l->p += 2; l->end - l->p >= 2; l->p++) {
		if (l->p[0] == '*' && l->p[1] == '/') {
			l->p += 2;
			return;
		}
		if (*l->p == '\n')
			next_line(l, l->p + 1);
	}
	y_error(l->s, pos, NULL, "a comment without an end");
}

static void skip_space(struct lexer *l)
{
	for (; l->p < l->end; l->space = true) {
		size_t n = splice(l, l->p);

		if (n) {
			l->p += n;
			next_line(l, l->p);
		} else if (*l->p == '\n') {
			next_line(l, ++l->p);
			l->first = true;
		} else if (isspace((unsigned char)*l->p)) {
			l->p++;
		} else if (l->end - l->p >= 2 && l->p[0] == '/' && (l->p[1] == '*' || l->p[1] == '/')) {
			skip_comment(l);
		} else {
			return;
		}
	}
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static const char *lex_name(const char *p, const char *end)
{
	p += *p == '$';
	while (p < end && is_name(*p))
		p++;
	return p;
}

/* A preprocessing number: what looks like one. */
static const char *lex_number(const char *p, const char *end)
{
	bool hex = end - p > 1 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X');

	while (p < end && (is_name(*p) || *p == '.' ||
	                          ((*p == '+' || *p == '-') &&
	                                  (p[-1] == 'p' || p[-1] == 'P' || (!hex && (p[-1] == 'e' || p[-1] == 'E'))))))
		p++;
	return p;
}

static const char *lex_quoted(struct lexer *l, char quote, const char *what)
{
	const char *p = l->p;
	bool class = false;

	for (p += what[0] == 'r' ? 3 : 1; p < l->end && *p != '\n'; p++) {
		if (*p == '\\' && p + 1 < l->end && p[1] != '\n') {
			p++;
		} else if (*p == quote && !class) {
			return p + 1;
		} else if (what[0] == 'r') {
			class = *p == '[' || (class && *p != ']');
		}
	}
	y_error(l->s, here(l, l->p), NULL, "a %s without an end", what);
}

static const char *lex_regex(struct lexer *l)
{
	const char *p = lex_quoted(l, '/', "regex");

	while (p < l->end && is_name(*p))
		p++;
	return p;
}

static const char *lex_punctuation(struct lexer *l)
{
	static const char *const all[] = {"<<<", "<<=", ">>=", "...", "!~~", "->", "++", "--", "<<", ">>",
	        "<=", ">=", "==", "!=", "&&", "||", "*=", "/=", "%=", "+=", "-=", "&=", "^=", "|=", "##", "??", "~~",
	        "{", "}", "[", "]", "(", ")", ".", "&", "*", "+", "-", "~", "!", "/", "%", "<", ">", "^", "|", "?", ":",
	        ";", "=", ",", "#", "`"};

	for (u32 i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strncmp(l->p, all[i], strlen(all[i])) && (size_t)(l->end - l->p) >= strlen(all[i]))
			return l->p + strlen(all[i]);
	if (*l->p == '@')
		y_error(l->s, here(l, l->p), NULL,
		        "'@' means nothing here: a map has a name, `_map long n[long];`, and is n[key]++ then");
	if (isprint((unsigned char)*l->p))
		y_error(l->s, here(l, l->p), NULL, "'%c' means nothing here", *l->p);
	y_error(l->s, here(l, l->p), NULL, "the byte 0x%02x means nothing here", (unsigned char)*l->p);
}

static const char *lex_one(struct lexer *l, enum y_token_kind *kind)
{
	const char *p = l->p;
	bool more = l->end - p > 1;

	if (l->end - p >= 3 && !strncmp(p, "rx/", 3)) {
		*kind = Y_T_REGEX;
		return lex_regex(l);
	}
	if ((is_name(*p) && !isdigit((unsigned char)*p)) || (*p == '$' && more && is_name(p[1]))) {
		*kind = Y_T_NAME;
		return lex_name(p, l->end);
	}
	if (isdigit((unsigned char)*p) || (*p == '.' && more && isdigit((unsigned char)p[1]))) {
		*kind = Y_T_NUMBER;
		return lex_number(p, l->end);
	}
	if (*p == '"' || *p == '\'') {
		*kind = *p == '"' ? Y_T_STRING : Y_T_CHARACTER;
		return lex_quoted(l, *p, *p == '"' ? "string" : "character");
	}
	*kind = Y_T_PUNCTUATION;
	return lex_punctuation(l);
}

static struct y_token *lex(struct lexer *l)
{
	struct y_token head = {0}, *last = &head;

	do {
		struct y_token *t = y_new(l->s, sizeof(*t));
		const char *start;

		l->space = false;
		skip_space(l);
		start = l->p;
		t->pos = here(l, start);
		t->first = l->first;
		t->space = l->space;
		l->first = false;
		if (l->p < l->end)
			l->p = lex_one(l, &t->kind);
		t->len = (u32)(l->p - start);
		t->text = y_keep(l->s, start, t->len);
		last = last->next = t;
	} while (last->kind != Y_T_END);
	return head.next;
}

struct y_token *y_lex(struct y_source *s, u32 file)
{
	const struct y_file *f = &s->files[file];
	const char *nul = memchr(f->text, 0, f->size);
	struct lexer l = {.s = s, .p = f->text, .line = f->text, .end = f->text + f->size, .file = file, .number = 1};

	if (nul)
		y_error(s, (struct y_pos){0}, NULL, "%s: it contains a NUL byte: it is no text", f->name);
	if (f->size >= 2 && !strncmp(f->text, "#!", 2))
		while (l.p < l.end && *l.p != '\n')
			l.p++;
	l.first = true;
	return lex(&l);
}

struct y_token *y_lex_text(struct y_source *s, const char *text, struct y_pos pos)
{
	const char *copy = y_keep(s, text, strlen(text));
	struct lexer l = {.s = s, .p = copy, .line = copy, .end = copy + strlen(copy), .number = 1, .fixed = pos};

	return lex(&l);
}

/* --- constants --- */

static struct y_number real_number(struct y_source *s, const struct y_token *t)
{
	char *end;
	double real = strtod(t->text, &end);

	if (*end == 'f' || *end == 'F' || *end == 'l' || *end == 'L')
		end++;
	if (*end)
		y_error(s, t->pos, t->macro, "\"%s\" is no number", t->text);
	return (struct y_number){.is_float = true, .real = real};
}

static bool is_real(const char *text)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');

	return strchr(text, '.') || strpbrk(text, hex ? "pP" : "eE");
}

/* Its type is the first of int, unsigned, long, unsigned long that holds it, as in C; decimals skip the unsigned. */
struct y_number y_number(struct y_source *s, const struct y_token *t)
{
	const char *p = t->text;
	int base = p[0] != '0' ? 10 : p[1] == 'x' || p[1] == 'X' ? 16 : p[1] == 'b' || p[1] == 'B' ? 2 : 8;
	struct y_number n = {0};
	char *end;

	if (is_real(p))
		return real_number(s, t);
	errno = 0;
	n.value = strtoull(base == 2 ? p + 2 : p, &end, base);
	if (errno)
		y_error(s, t->pos, t->macro, "%s does not fit into 64 bits", t->text);
	for (; *end; end++) {
		if (*end == 'u' || *end == 'U')
			n.is_unsigned = true;
		else if (*end == 'l' || *end == 'L')
			n.is_long = true;
		else
			y_error(s, t->pos, t->macro, "\"%s\" is no number", t->text);
	}
	if (base != 10 && !n.is_unsigned)
		n.is_unsigned = n.is_long ? n.value > INT64_MAX
		                          : (n.value > INT32_MAX && n.value <= UINT32_MAX) || n.value > INT64_MAX;
	if (n.value > (n.is_unsigned ? (u64)UINT32_MAX : (u64)INT32_MAX))
		n.is_long = true;
	if (n.value > INT64_MAX)
		n.is_unsigned = true;
	return n;
}

static int digit(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
	                                    : 99;
}

/* The byte at *p, which moves behind it. */
static unsigned char unescape(struct y_source *s, const struct y_token *t, const char **p)
{
	static const char from[] = "abfnrtv\\'\"?e", to[] = "\a\b\f\n\r\t\v\\'\"?\033";
	const char *q = *p, *known;
	u32 value = 0, n = 0;

	if (*q != '\\') {
		(*p)++;
		return (unsigned char)*q;
	}
	q++;
	known = *q ? strchr(from, *q) : NULL;
	if (known) {
		*p = q + 1;
		return (unsigned char)to[known - from];
	}
	if (*q == 'x') {
		for (q++; digit(*q) < 16 && value < 256; q++, n++)
			value = value * 16 + (u32)digit(*q);
	} else {
		for (; n < 3 && digit(*q) < 8; q++, n++)
			value = value * 8 + (u32)digit(*q);
	}
	if (!n || value > 255)
		y_error(s, t->pos, t->macro, "an escape that C does not have, or beyond a byte: \\%c",
		        **p ? (*p)[1] : ' ');
	*p = q;
	return (unsigned char)value;
}

s64 y_character(struct y_source *s, const struct y_token *t)
{
	const char *p = t->text + 1, *end = t->text + t->len - 1;
	s64 value;

	if (p == end)
		y_error(s, t->pos, t->macro, "a character of nothing");
	value = (signed char)unescape(s, t, &p);
	if (p != end)
		y_error(s, t->pos, t->macro, "a character is one byte");
	return value;
}

char *y_string(struct y_source *s, const struct y_token *t, u32 *len)
{
	const char *p = t->text + 1, *end = t->text + t->len - 1;
	char *ret = y_new(s, t->len);

	for (*len = 0; p < end;)
		ret[(*len)++] = (char)unescape(s, t, &p);
	return ret;
}
