/* SPDX-License-Identifier: Apache-2.0 */
/* Envoy's serialized configuration: which filter, route or virtual host a script is of. */
#include "unit.h"

#include "runtimes/luajit/luajit_envoy.h"

struct message {
	u8 bytes[4096];
	size_t n;
};

static struct message join(struct message a, struct message b)
{
	memcpy(a.bytes + a.n, b.bytes, b.n);
	a.n += b.n;
	return a;
}

/* A field with these bytes. */
static struct message field(u32 number, struct message m)
{
	struct message ret = {0};
	size_t size = m.n;

	ret.bytes[ret.n++] = (u8)(number << 3 | 2);
	for (; size >= 0x80; size >>= 7)
		ret.bytes[ret.n++] = (u8)(size | 0x80);
	ret.bytes[ret.n++] = (u8)size;
	return join(ret, m);
}

static struct message text(u32 number, const char *s)
{
	struct message m = {.n = strlen(s)};

	memcpy(m.bytes, s, m.n);
	return field(number, m);
}

static struct message any(const char *url, struct message value)
{
	return join(text(1, url), field(2, value));
}

static struct message filter(const char *name, struct message lua)
{
	return field(5, join(text(1, name), field(4, any(LUAJIT_ENVOY_URL, lua))));
}

static struct message per_filter(u32 number, const char *name, const char *script)
{
	struct message route = field(3, text(3, script));

	return field(number, join(text(1, name), field(2, any(LUAJIT_ENVOY_URL "PerRoute", route))));
}

static void each(void *ctx, const struct luajit_envoy_script *s)
{
	char *all = ctx;

	sprintf(all + strlen(all), "%s%s%s%.*s;", s->filter, s->part, s->is_file ? "@" : "=", (int)s->len, s->text);
}

/* All scripts that are found in a copy of its own size, which ends at size bytes; "tokens=text;" */
static const char *parse(const struct message *m, size_t size)
{
	static char all[4096];
	u8 *copy = malloc(size ? size : 1), *at = copy;

	memcpy(copy, m->bytes, size);
	all[0] = '\0';
	for (; (at = memmem(at, copy + size - at, LUAJIT_ENVOY_URL, strlen(LUAJIT_ENVOY_URL))); at++) {
		assert_true(luajit_envoy_size(copy, size, at - copy) <= 4096);
		luajit_envoy_parse(copy, size, at - copy, each, all);
	}
	free(copy);
	return all;
}

static void check(struct message m, const char *expected)
{
	assert_string_equal(parse(&m, m.n), expected);
	for (size_t n = 0; n < m.n; n++) /* cut anywhere: no other names */
		parse(&m, n);
}

static void test_filters(void **state)
{
	struct message named = field(2, join(text(1, "call"), field(2, text(3, "x()"))));
	struct message two = join(filter("tokens", field(3, text(3, "a()"))), filter("odd", text(1, "b()")));
	char name[100] = "";

	check(two, "tokens=a();odd=b();");
	check(filter("routes", join(named, field(3, text(2, "y()")))), "routes/call=x();routes=y();");
	check(filter("file", field(3, text(1, "/etc/x.lua"))), "file@/etc/x.lua;");
	check(filter("none", text(4, "stat_prefix")), "");
	check(filter("a\nb", text(1, "b()")), "");
	memset(name, 'n', sizeof(name) - 1);
	check(filter(name, text(1, "b()")), "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn=b();");
}

/* RouteAction, direct_response and others stand between what is matched and the filters' part. */
static void test_routes(void **state)
{
	struct message prefix = join(field(1, text(1, "/p")), text(2, "upstream"));
	struct message path = join(field(1, text(2, "/q")), text(7, "ok"));
	struct message regex = field(1, field(10, text(2, "/r.*")));
	struct message first = field(3, join(join(prefix, per_filter(13, "other", "a()")), per_filter(13, "f", "b()")));
	struct message second = field(3, join(join(path, per_filter(13, "f", "c()")), text(14, "by-name")));
	struct message third = field(3, join(regex, per_filter(13, "f", "d()")));
	struct message host = join(text(1, "all"), join(text(2, "*"), join(first, join(second, third))));

	check(field(2, join(host, per_filter(15, "f", "e()"))),
	        "other at /p=a();f at /p=b();f at by-name=c();f at /r.*=d();f of all=e();");
	check(per_filter(13, "alone", "a()"), "alone=a();");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_filters), cmocka_unit_test(test_routes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
