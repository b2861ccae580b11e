/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_text.h"

#include <string.h>

#define REPLACEMENT    0xfffd
#define DIMENSIONS_MAX 255
#define ELLIPSIS       "\xe2\x80\xa6"

struct text {
	char *at, *end; /* end: of the room, for what ELLIPSIS and the 0 leave */
	bool cut;
};

static struct text text_of(char *ret, size_t size)
{
	*ret = '\0';
	return (struct text){.at = ret, .end = ret + size - sizeof(ELLIPSIS)};
}

static void put_bytes(struct text *t, const char *bytes, size_t n)
{
	if (t->cut || n > (size_t)(t->end - t->at)) {
		t->cut = true;
		return;
	}
	memcpy(t->at, bytes, n);
	t->at += n;
}

static void put_string(struct text *t, const char *s)
{
	put_bytes(t, s, strlen(s));
}

static void put_char(struct text *t, u32 c)
{
	u32 n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	char bytes[4];

	for (u32 i = n - 1; i; i--, c >>= 6)
		bytes[i] = (char)(0x80 | (c & 0x3f));
	bytes[0] = (char)(n == 1 ? c : (0xf00 >> n & 0xff) | c);
	put_bytes(t, bytes, n);
}

static void finish(struct text *t)
{
	if (t->cut) {
		memcpy(t->at, ELLIPSIS, sizeof(ELLIPSIS) - 1);
		t->at += sizeof(ELLIPSIS) - 1;
	}
	*t->at = '\0';
}

/* A sequence of two or three bytes; 0: it is none. */
static u32 read_sequence(const u8 *s, size_t n, u32 *length)
{
	*length = (*s & 0xe0) == 0xc0 ? 2 : (*s & 0xf0) == 0xe0 ? 3 : 0;
	if (!*length || *length > n || (s[1] & 0xc0) != 0x80 || (*length == 3 && (s[2] & 0xc0) != 0x80))
		return 0;
	if (*length == 2)
		return (u32)(*s & 0x1f) << 6 | (s[1] & 0x3f);
	return (u32)(*s & 0xf) << 12 | (u32)(s[1] & 0x3f) << 6 | (s[2] & 0x3f);
}

bool hotspot_text_is_sound(const u8 *s, size_t n, bool cut)
{
	for (size_t at = 0; at < n;) {
		size_t size = s[at] < 0x80 ? 1 : (s[at] & 0xe0) == 0xc0 ? 2 : (s[at] & 0xf0) == 0xe0 ? 3 : 0;

		if (!s[at] || !size)
			return false;
		for (size_t i = 1; i < size && at + i < n; i++)
			if ((s[at + i] & 0xc0) != 0x80)
				return false;
		at += size;
		if (at > n)
			return cut;
	}
	return true;
}

/* Characters beyond U+FFFF are two surrogates of three bytes each, U+0000 is two bytes. */
static u32 next_char(const u8 **s, const u8 *end)
{
	u32 length, more, c, low;

	if (**s && **s < 0x80)
		return *(*s)++;
	c = read_sequence(*s, end - *s, &length);
	if (!c) {
		*s += length == 2 && end - *s >= 2 && (*s)[0] == 0xc0 && (*s)[1] == 0x80 ? 2 : 1;
		return REPLACEMENT;
	}
	*s += length;
	if (c < 0xd800 || c > 0xdfff)
		return c;
	low = c <= 0xdbff && *s < end ? read_sequence(*s, end - *s, &more) : 0;
	if (low < 0xdc00 || low > 0xdfff)
		return REPLACEMENT;
	*s += more;
	return 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
}

static void put_name(struct text *t, const u8 *s, size_t n)
{
	const u8 *end = s + n;

	while (s < end && !t->cut)
		put_char(t, next_char(&s, end));
}

static bool is_digit(u8 c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(u8 c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* The length without "+0x0000000800c03000" or "/0x0000000800c03000" at its end. */
static size_t without_address(const u8 *s, size_t n)
{
	size_t at = n;

	while (at && is_hex(s[at - 1]))
		at--;
	if (at < n && at >= 3 && s[at - 1] == 'x' && s[at - 2] == '0' && (s[at - 3] == '+' || s[at - 3] == '/'))
		return at - 3;
	return n;
}

/* The length without the number of a lambda's class: "Foo$$Lambda$14". */
static size_t without_number(const u8 *s, size_t n)
{
	static const char lambda[] = "$$Lambda";
	size_t at = n, len = sizeof(lambda) - 1;

	while (at && is_digit(s[at - 1]))
		at--;
	if (at < n && at > len && s[at - 1] == '$' && !memcmp(s + at - 1 - len, lambda, len))
		return at - 1;
	return n;
}

/* A class name of internal form: slashes are dots. */
static void put_class(struct text *t, const u8 *s, size_t n)
{
	const u8 *end;

	n = without_number(s, without_address(s, n));
	for (end = s + n; s < end && !t->cut;) {
		u32 c = next_char(&s, end);

		put_char(t, c == '/' ? '.' : c);
	}
}

static const char *primitive(u8 c)
{
	static const char *const names[] = {['B' - 'A'] = "byte",
	        ['C' - 'A'] = "char",
	        ['D' - 'A'] = "double",
	        ['F' - 'A'] = "float",
	        ['I' - 'A'] = "int",
	        ['J' - 'A'] = "long",
	        ['S' - 'A'] = "short",
	        ['V' - 'A'] = "void",
	        ['Z' - 'A'] = "boolean"};

	return c >= 'A' && c <= 'Z' ? names[c - 'A'] : NULL;
}

/* The type of a descriptor; returns its length, 0 if it is none. */
static size_t put_type(struct text *t, const u8 *s, size_t n)
{
	const u8 *semicolon;
	size_t at = 0, dimensions;

	while (at < n && s[at] == '[' && at < DIMENSIONS_MAX)
		at++;
	dimensions = at;
	if (at == n)
		return 0;
	semicolon = s[at] == 'L' ? memchr(s + at, ';', n - at) : NULL;
	if (semicolon) {
		put_class(t, s + at + 1, semicolon - s - at - 1);
		at = semicolon - s + 1;
	} else if (primitive(s[at])) {
		put_string(t, primitive(s[at++]));
	} else {
		return 0;
	}
	while (dimensions--)
		put_string(t, "[]");
	return at;
}

void hotspot_text_name(const u8 *symbol, size_t n, char *ret, size_t size)
{
	struct text t = text_of(ret, size);

	put_name(&t, symbol, n);
	finish(&t);
}

void hotspot_text_class(const u8 *symbol, size_t n, char *ret, size_t size)
{
	struct text t = text_of(ret, size);

	if (!n || symbol[0] != '[' || put_type(&t, symbol, n) != n) {
		t = text_of(ret, size);
		put_class(&t, symbol, n);
	}
	finish(&t);
}

void hotspot_text_signature(const u8 *symbol, size_t n, char *ret, size_t size)
{
	struct text t = text_of(ret, size);
	size_t at = 1, length;

	if (!n || symbol[0] != '(')
		return;
	put_string(&t, "(");
	for (; at < n && symbol[at] != ')'; at += length) {
		if (at > 1)
			put_string(&t, ", ");
		length = put_type(&t, symbol + at, n - at);
		if (!length)
			break;
	}
	if (at < n && symbol[at] == ')')
		put_string(&t, ")");
	else
		t.cut = true; /* the symbol was read in part, or is no descriptor */
	finish(&t);
}

/* The operator at s, which is behind a "$", and its length; 0: there is none. */
static char scala_operator(const char *s, size_t *length)
{
	static const struct {
		char c, word[8];
	} operators[] = {{'~', "tilde"}, {'=', "eq"}, {'<', "less"}, {'>', "greater"}, {'!', "bang"}, {'#', "hash"},
	        {'%', "percent"}, {'^', "up"}, {'&', "amp"}, {'|', "bar"}, {'*', "times"}, {'/', "div"}, {'+', "plus"},
	        {'-', "minus"}, {':', "colon"}, {'\\', "bslash"}, {'?', "qmark"}, {'@', "at"}};

	*length = strcspn(s, "$.");
	for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++)
		if (*length == strlen(operators[i].word) && !memcmp(s, operators[i].word, *length))
			return operators[i].c;
	return 0;
}

void hotspot_text_scala(char *name)
{
	bool starts =
	        true; /* an operator may be here: "package$eq$" is the object eq, "$anonfun$at$1" of the method at */
	char *to = name;

	for (; *name; name++) {
		size_t length = 0;
		char c = starts && *name == '$' ? scala_operator(name + 1, &length) : 0;

		starts = c || strchr(".$_", *name);
		*to++ = c ? c : *name;
		name += c ? length : 0;
	}
	*to = '\0';
}
