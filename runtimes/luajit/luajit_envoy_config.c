/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf's wire format: a field is a varint of its number and type, then for type 2 a varint of its size. */
#include <stdio.h>
#include <string.h>

#include "luajit_envoy.h"

#define SCRIPTS     256
#define MESSAGE_MAX (1u << 20)
#define AROUND      (64u << 10) /* a route's fields before its filters' configuration */
#define VARINT      4           /* bytes of the size of a message: less than 256 MiB */

enum { TYPE_VARINT = 0, TYPE_64 = 1, TYPE_BYTES = 2, TYPE_32 = 5 };

#define TAG(field) ((field) << 3 | TYPE_BYTES)

struct bytes {
	const u8 *at, *end;
};

struct field {
	u32 number;
	struct bytes bytes; /* empty if it has another type */
};

static bool get_varint(struct bytes *b, u64 *ret)
{
	*ret = 0;
	for (u32 shift = 0; b->at < b->end && shift < 64; shift += 7) {
		*ret |= (u64)(*b->at & 0x7f) << shift;
		if (!(*b->at++ & 0x80))
			return true;
	}
	return false;
}

static bool skip(struct bytes *b, u64 n)
{
	if (n > (u64)(b->end - b->at))
		return false;
	b->at += n;
	return true;
}

static bool next_field(struct bytes *b, struct field *ret)
{
	u64 tag, size;

	*ret = (struct field){0};
	if (!get_varint(b, &tag) || tag >> 3 == 0 || tag >> 3 >= 1u << 29)
		return false;
	ret->number = (u32)(tag >> 3);
	switch (tag & 7) {
	case TYPE_VARINT:
		return get_varint(b, &size);
	case TYPE_64:
		return skip(b, 8);
	case TYPE_32:
		return skip(b, 4);
	case TYPE_BYTES:
		if (!get_varint(b, &size) || size > (u64)(b->end - b->at))
			return false;
		ret->bytes = (struct bytes){b->at, b->at + size};
		return skip(b, size);
	}
	return false;
}

/* The first field of this number. */
static struct bytes get_field(struct bytes message, u32 number)
{
	struct field f;

	while (message.at < message.end && next_field(&message, &f))
		if (f.number == number)
			return f.bytes;
	return (struct bytes){0};
}

static bool is_text(struct bytes b)
{
	for (; b.at < b.end; b.at++)
		if (*b.at < ' ' || *b.at == 0x7f)
			return false;
	return true;
}

static bool copy_text(char *ret, const char *before, struct bytes b)
{
	if (b.at == b.end || !is_text(b))
		return false;
	snprintf(ret, LUAJIT_ENVOY_NAME, "%s%.*s", before, (int)(b.end - b.at < 256 ? b.end - b.at : 256), b.at);
	return true;
}

/* --- backwards --- */

/* Where the field begins that has this tag and body as its payload; NULL: body is no such payload. */
static const u8 *field_around(const u8 *start, struct bytes body, u8 tag)
{
	struct bytes size;
	u64 value;

	for (u32 n = 1; n <= VARINT && body.at - start > n; n++) {
		size = (struct bytes){body.at - n, body.at};
		if (get_varint(&size, &value) && size.at == body.at && value == (u64)(body.end - body.at) &&
		        body.at[-(int)n - 1] == tag)
			return body.at - n - 1;
	}
	return NULL;
}

/* The name that ends right before at: field 1 of a message. Returns where it starts. */
static const u8 *name_before(const u8 *start, const u8 *at, struct bytes *ret)
{
	for (u32 n = 1; n < 128 && at - start >= n + 2; n++) {
		*ret = (struct bytes){at - n, at};
		if (at[-(int)n - 1] == n && at[-(int)n - 2] == TAG(1) && is_text(*ret))
			return at - n - 2;
	}
	return NULL;
}

/* Is this a message that begins with field 1, and has a field of its own at inner? */
static bool has_field_at(struct bytes message, const u8 *inner)
{
	struct field f;

	if (*message.at != TAG(1))
		return false;
	while (message.at < inner)
		if (!next_field(&message, &f))
			return false;
	return message.at == inner;
}

/* The message around the field at inner, which is itself a field of this tag. */
static bool find_around(struct bytes all, const u8 *inner, const u8 *inner_end, u8 tag, struct bytes *ret)
{
	for (const u8 *at = inner; at > all.at && inner - at < AROUND; at--) {
		struct bytes b = {at - 1, all.end};
		u64 size;

		if (*b.at != tag || (b.at++, !get_varint(&b, &size)) || size > (u64)(all.end - b.at))
			continue;
		*ret = (struct bytes){b.at, b.at + size};
		if (ret->at < inner && ret->end >= inner_end && has_field_at(*ret, inner))
			return true;
	}
	return false;
}

/* --- the parts of Envoy's API --- */

struct parsing {
	struct luajit_envoy_script script;
	u32 n;
	void (*each)(void *ctx, const struct luajit_envoy_script *script);
	void *ctx;
};

static void add(struct parsing *p, struct bytes text, bool is_file)
{
	if (text.at == text.end || p->n++ >= SCRIPTS)
		return;
	p->script.text = text.at;
	p->script.len = text.end - text.at;
	p->script.is_file = is_file;
	p->each(p->ctx, &p->script);
}

/* DataSource: filename, inline_bytes, inline_string */
static void add_source(struct parsing *p, struct bytes source)
{
	add(p, get_field(source, 1), true);
	add(p, get_field(source, 2), false);
	add(p, get_field(source, 3), false);
}

/* Lua: inline_code, source_codes (a map), default_source_code */
static void add_filter(struct parsing *p, struct bytes lua)
{
	struct field f;

	while (lua.at < lua.end && next_field(&lua, &f)) {
		p->script.part[0] = '\0';
		if (f.number == 1)
			add(p, f.bytes, false);
		else if (f.number == 3 || (f.number == 2 && copy_text(p->script.part, "/", get_field(f.bytes, 1))))
			add_source(p, f.number == 3 ? f.bytes : get_field(f.bytes, 2));
	}
}

/* Route: match, name. RouteMatch: prefix, path, safe_regex (its regex), path_separated_prefix */
static void name_route(struct bytes route, char *ret)
{
	struct bytes match = get_field(route, 1);

	if (copy_text(ret, " at ", get_field(route, 14)) || copy_text(ret, " at ", get_field(match, 1)) ||
	        copy_text(ret, " at ", get_field(match, 2)) || copy_text(ret, " at ", get_field(match, 14)))
		return;
	copy_text(ret, " at ", get_field(get_field(match, 10), 2));
}

/* entry is one of typed_per_filter_config: of a Route in VirtualHost.routes, or of a VirtualHost. */
static void name_part(struct bytes all, struct bytes entry, char *ret)
{
	const u8 *at = field_around(all.at, entry, TAG(13));
	struct bytes around;

	if (at && find_around(all, at, entry.end, TAG(3), &around)) {
		name_route(around, ret);
		return;
	}
	at = field_around(all.at, entry, TAG(15));
	if (at && find_around(all, at, entry.end, TAG(2), &around))
		copy_text(ret, " of ", get_field(around, 1));
}

/* The Any that begins with this URL: *value is what it holds. */
static bool find_any(struct bytes all, size_t url, struct bytes *any, struct bytes *value, bool *route)
{
	static const char filter[] = LUAJIT_ENVOY_URL, per_route[] = LUAJIT_ENVOY_URL "PerRoute";
	size_t len = all.at[url - 1];
	struct field f;

	*route = len == sizeof(per_route) - 1;
	if (all.at[url - 2] != TAG(1) || (!*route && len != sizeof(filter) - 1) ||
	        len > (u64)(all.end - all.at) - url || memcmp(all.at + url, per_route, len))
		return false;
	*any = *value = (struct bytes){all.at + url - 2, all.end};
	value->at = all.at + url + len;
	if (value->at == value->end || *value->at != TAG(2) || !next_field(value, &f))
		return false;
	any->end = value->at;
	*value = f.bytes;
	return true;
}

size_t luajit_envoy_size(const u8 *bytes, size_t n, size_t url)
{
	struct bytes b = {bytes + url, bytes + n};
	u64 size;

	if (url < 2 || url > n || !skip(&b, bytes[url - 1]) || b.at == b.end || *b.at++ != TAG(2) ||
	        !get_varint(&b, &size) || size > MESSAGE_MAX)
		return 0;
	return b.at - (bytes + url) + size;
}

void luajit_envoy_parse(const u8 *bytes, size_t n, size_t url,
        void (*each)(void *ctx, const struct luajit_envoy_script *script), void *ctx)
{
	struct parsing p = {.each = each, .ctx = ctx};
	struct bytes all = {bytes, bytes + n}, any, value, name;
	const u8 *at, *start;
	bool route;

	if (url < 2 || url >= n || !find_any(all, url, &any, &value, &route))
		return;
	at = field_around(bytes, any, TAG(2));
	if (!at && !route)
		at = field_around(bytes, any, TAG(4));
	start = at ? name_before(bytes, at, &name) : NULL;
	if (!start || !copy_text(p.script.filter, "", name))
		return;
	if (!route) {
		add_filter(&p, value);
		return;
	}
	name_part(all, (struct bytes){start, any.end}, p.script.part);
	add_source(&p, get_field(value, 3));
}
